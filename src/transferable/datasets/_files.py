"""Data files on disk: where they belong, whether they are whole, and how to get them."""

import gzip
import hashlib
import os
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pooch

_ENVIRONMENT = "TRANSFERABLE_DATA"
_ATTEMPTS = 3
_PAUSE_S = 1.0
_TIMEOUT_S = 30.0


class DataFileError(OSError):
    """A data file is missing, damaged or could not be downloaded.

    The message names the file, its folder and what to do.

    Examples
    --------
    >>> from transferable.datasets import DataFileError, fetch_coil20
    >>> try:
    ...     fetch_coil20(data_home="nowhere", download=False).task("COIL1", "COIL2")
    ... except DataFileError as error:
    ...     print("COIL_1.mat" in str(error))
    True
    """


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Give the folder in which the fetchers look for their files.

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder. If None, it is the one named by the environment variable
        ``TRANSFERABLE_DATA``, or else the platform's cache folder.

    Returns
    -------
    pathlib.Path
        The folder, which need not exist yet.

    Examples
    --------
    >>> from transferable.datasets import get_data_home
    >>> get_data_home("my_data").name
    'my_data'
    """
    chosen = data_home or os.environ.get(_ENVIRONMENT) or pooch.os_cache("transferable")
    return Path(chosen).expanduser()


@dataclass(frozen=True)
class DataFile:
    """One file of a dataset.

    Parameters
    ----------
    path : str
        Where it lies under the data folder, as ``folder/name``.
    sha256 : str or None
        Checksum of the file or, for a name ending in ``.gz``, of what it unpacks to: mirrors
        pack the same content differently. None accepts any file and allows no download.
    url : str or None
        Public address, None where there is none.
    """

    path: str
    sha256: str | None
    url: str | None = None

    def locate(self, data_home: Path, *, download: bool) -> Path:
        """Give the verified file under `data_home`, downloading it there if need be.

        Parameters
        ----------
        data_home : pathlib.Path
            The data folder.
        download : bool
            Whether a missing file may be downloaded.

        Returns
        -------
        pathlib.Path
            The file, its checksum verified.

        Raises
        ------
        DataFileError
            If the file is missing, does not match its checksum or cannot be downloaded.
        """
        file = data_home / self.path
        if file.is_file():
            if problem := self._problem(file):
                raise DataFileError(
                    f"{file.name} in {file.parent} {problem}. Delete it and "
                    + ("fetch again to download it." if self.url else "put an intact copy there.")
                )
            return file
        if self.url is None or self.sha256 is None:
            raise DataFileError(
                f"{file.name} is not in {file.parent}, and no public address is known for it. "
                f"If you have the file, put it there, or name the folder above "
                f"{file.parent.name} with data_home= or the variable {_ENVIRONMENT}."
            )
        if not download:
            raise DataFileError(
                f"{file.name} is not in {file.parent}, and download=False. Pass download=True, "
                f"or save {self.url} there yourself."
            )
        self._download(file)
        return file

    def _problem(self, file: Path) -> str | None:
        """Say what is wrong with a file's content, None if nothing is."""
        if self.sha256 is None:
            return None
        try:
            with gzip.open(file) if self.path.endswith(".gz") else file.open("rb") as stream:
                found = hashlib.sha256(stream.read()).hexdigest()
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            return f"({file.stat().st_size} bytes) cannot be unpacked: {error}"
        if found == self.sha256:
            return None
        return (
            f"({file.stat().st_size} bytes) is truncated or altered: its sha256 is {found}, "
            f"expected {self.sha256}"
        )

    def _download(self, file: Path) -> None:
        """Download to a temporary neighbour, verify, and only then take the file's name."""
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=file.parent, prefix=".part-") as folder:
                part = Path(folder, file.name)
                for attempt in range(1, _ATTEMPTS + 1):
                    problem = self._transfer(part)
                    if problem is None:
                        part.replace(file)
                        return
                    if attempt < _ATTEMPTS:
                        time.sleep(_PAUSE_S * attempt)
        except OSError as error:
            raise DataFileError(
                f"{file.name} cannot be saved in {file.parent}: {error}. Name a folder you can "
                f"write to with data_home= or the variable {_ENVIRONMENT}."
            ) from error
        raise DataFileError(
            f"{file.name} could not be downloaded to {file.parent} in {_ATTEMPTS} attempts; "
            f"at the last, {problem}. Try again later, or save {self.url} there yourself."
        )

    def _transfer(self, part: Path) -> str | None:
        """Fetch the file's address into `part` and say what went wrong, None if nothing did."""
        from requests import HTTPError, RequestException

        bar = sys.stderr.isatty() and find_spec("tqdm") is not None
        download = pooch.HTTPDownloader(progressbar=bar, chunk_size=2**16, timeout=_TIMEOUT_S)
        pooch.get_logger().info("Downloading %s", self.url)
        try:
            download(self.url, part, None)
        except HTTPError as error:
            return f"the server answered {error}"
        except RequestException as error:
            return f"the connection failed ({type(error).__name__}); check the network"
        problem = self._problem(part)
        return problem and f"the file received {problem}"
