"""Files written completely or not at all, and JSON Lines that survive a kill.

A line is written whole, under a lock, and forced to disk before the next begins. A process killed
while writing leaves at most one torn line, which readers skip and the next line does not touch.
Locks vanish with their process, however it ends.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import IO, Any, Generic, NoReturn, TypeVar

T = TypeVar("T")


@contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file under a temporary name that is replaced by the given one on success.

    Any error within, also an interruption, leaves neither a half-written nor a temporary file, and
    an existing file stays as it was. A link stays a link: the file it leads to is replaced. What
    killed writers of the same file have left is removed, where the system has locks for that.
    """
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; make it first.")
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    permissions = path.stat().st_mode & 0o777 if path.exists() else None
    handle, name = _create_beside(path, 0o666 if permissions is None else permissions)
    try:
        with os.fdopen(handle, mode, **text) as stream:
            if permissions is not None:
                os.chmod(name, permissions)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if sys.platform == "win32":
                stream.close()  # open files cannot be renamed there
            os.replace(name, path)
    except BaseException as error:
        name.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = str(path)  # a full disk does not report the file
        raise
    _sync_folder(path.parent)


def _create_beside(path: Path, permissions: int) -> tuple[int, Path]:
    """Remove temporary files of ended processes, and create one that is locked while it is open.

    The system takes its umask from the permissions, as it does for any file that is opened.
    """
    for left in path.parent.glob(f".{escape(path.name)}.{'[0-9a-z_]' * 8}.part"):
        with suppress(OSError), left.open("rb") as file:
            _hold(file.fileno(), wait=False)
            left.unlink()
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        name = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
        handle = os.open(name, flags, permissions)
        with suppress(OSError):  # some file systems have no locks
            _hold(handle, wait=True)
        if name.exists():
            return handle, name
        os.close(handle)  # removed by another writer before it was locked


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, where the system supports it."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class LineStore(Generic[T]):
    """Values by key in a file of JSON lines.

    Parameters
    ----------
    path : path-like
        The file; its folder is created if need be.
    read : callable
        Return the key and the value of a line; raise ValueError if it holds none.
    """

    def __init__(
        self, path: str | os.PathLike[str], read: Callable[[bytes], tuple[str, T]]
    ) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._read = read

    def load(self) -> dict[str, T]:
        """Return the readable values; of several with one key, the first."""
        values: dict[str, T] = {}
        for line in self._lines():
            try:
                key, value = self._read(line)
            except ValueError:
                continue
            values.setdefault(key, value)
        return values

    def append(self, line: str) -> None:
        """Add a line; once this returns, it is on disk."""
        content = line.encode() + b"\n"
        with self._locked():
            append_bytes(self.path, b"\n" + content if self._is_torn() else content)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        name = self.path.with_name(f".{self.path.stem}.lock")
        file = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            acquire(file, 0, wait=True)
            yield
        finally:
            os.close(file)

    def _lines(self) -> list[bytes]:
        """Return the lines, without empty ones."""
        content = self.path.read_bytes() if self.path.exists() else b""
        return [line for line in content.splitlines(keepends=True) if line.strip()]

    def _is_torn(self) -> bool:
        """Return whether the last line has no end: its writer was killed."""
        try:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read(1) != b"\n"
        except OSError:  # there is no file yet, or it is empty
            return False


def parse_line(line: str | bytes) -> dict[str, Any]:
    """Return the object of a line of JSON; raise ValueError for anything else, NaN included."""
    try:
        values = json.loads(line, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the line is nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("the line holds no object")
    return values


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def append_bytes(path: Path, content: bytes) -> None:
    """Write at the end of a file in one piece, and wait for the disk."""
    fresh = not path.exists()
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        written = os.write(file, content)
        if written != len(content):
            raise OSError(f"only {written} of {len(content)} bytes fitted into {path}")
        os.fsync(file)
    finally:
        os.close(file)
    if fresh:
        _sync_folder(path.parent)


if sys.platform == "win32":
    import msvcrt

    def acquire(file: int, place: int, *, wait: bool) -> None:
        os.lseek(file, place, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return
            except OSError:  # LK_LOCK gives up after ten seconds
                if not wait:
                    raise

    def _hold(file: int, *, wait: bool) -> None:
        raise OSError("files are not locked as a whole here")
else:
    import fcntl

    def _hold(file: int, *, wait: bool) -> None:
        """Lock a file until it is closed, against other threads too."""
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)

    def acquire(file: int, place: int, *, wait: bool) -> None:
        flags = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.lockf(file, flags, 1, place)
