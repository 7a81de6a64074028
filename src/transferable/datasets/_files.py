"""Data files on disk: their folder, verification, download and reading."""

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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from transferable._files import cache_folder
from transferable.exceptions import installing

Rows = tuple[NDArray[Any], NDArray[np.int64]]  # pictures may be bytes

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
    """Return the folder in which the fetchers look for their files.

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
    chosen = data_home or os.environ.get(_ENVIRONMENT) or cache_folder()
    return Path(chosen).expanduser()


@dataclass(frozen=True)
class DataFile:
    """One file of a dataset."""

    path: str  # under the data folder
    # Of a .gz file's content, which mirrors pack differently. None accepts any file, no download.
    sha256: str | None
    url: str | None = None

    def locate(self, data_home: Path, *, download: bool) -> Path:
        """Return the verified file under `data_home`, downloading it there if need be."""
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
        """Return the error in a file's content, None if there is none."""
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
        """Download to a temporary file beside it, verify, and only then rename it."""
        if find_spec("pooch") is None:
            raise ImportError(
                f"Downloading {file.name} needs pooch: {installing('data')}. Or save {self.url} in "
                f"{file.parent} yourself."
            )
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
        """Fetch the file's address into `part`; return the error, None if there is none."""
        import pooch
        from requests import HTTPError, RequestException

        bar = bool(sys.stderr) and sys.stderr.isatty() and find_spec("tqdm") is not None
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


def _registered() -> dict[str, DataFile]:
    lines = Path(__file__).with_name("registry.txt").read_text("utf-8").splitlines()
    fields = (line.split() for line in lines if not line.startswith("#"))
    none = {"-": None}
    return {
        path: DataFile(path, none.get(sha256, sha256), none.get(url, url))
        for path, sha256, url in fields
    }


FILES = _registered()
# (images, labels) of the 60,000 and of the 10,000.
MNIST = tuple(
    tuple(FILES[f"mnist_full/{part}-{kind}-ubyte.gz"] for kind in ("images-idx3", "labels-idx1"))
    for part in ("train", "t10k")
)
# Pairs of ordinary tables, (source, target), by the name they are fetched by.
TABLES = {
    path.split("/")[-2]: (file, FILES[path.replace("source.csv", "target.csv")])
    for path, file in FILES.items()
    if path.startswith("tables/") and path.endswith("/source.csv")
}


def read_mat(file: Path, data: str, labels: str) -> Rows:
    """Read data, integers as float64, and labels, counted from 0 instead of 1, of a MATLAB file."""
    try:
        content = loadmat(file, variable_names=[data, labels], spmatrix=False)
        X, y = content[data], content[labels]
    except (ValueError, TypeError, KeyError, NotImplementedError, OSError) as error:
        raise DataFileError(
            f"{file.name} in {file.parent} is not a MATLAB file (version 7 or older) with the "
            f"variables {data!r} and {labels!r}: {error}. Replace it with the published file."
        ) from error
    if not np.issubdtype(X.dtype, np.floating):
        X = X.astype(np.float64)
    return X, y.ravel().astype(np.int64) - 1


def read_idx(file: Path, ndim: int) -> NDArray[np.uint8]:
    """Read a gzipped idx file of bytes, labels (1 axis) or images (3); its checksum fits."""
    with gzip.open(file) as stream:
        content = stream.read()
    header = np.frombuffer(content, dtype=">i4", count=1 + ndim)
    return np.frombuffer(content, dtype=np.uint8, offset=header.nbytes).reshape(header[1:])


def read_usps(file: Path) -> Rows:
    """Read the full USPS, training rows first: float32 pixels between 0 and 1, and digits."""
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            f"Reading {file.name} needs h5py. Install it with: {installing('data')}"
        ) from error
    with h5py.File(file) as content:
        X = np.concatenate([content[part]["data"][()] for part in ("train", "test")])
        y = np.concatenate([content[part]["target"][()] for part in ("train", "test")])
    return X, y.astype(np.int64)
