"""JSON Lines that survive a kill.

A line is written whole, under a lock, and forced to disk before the next begins. A process killed
while writing leaves at most one torn line, which readers skip and the next line does not touch.
Locks vanish with their process, however it ends.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from transferable._files import sync_folder

T = TypeVar("T")


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
        sync_folder(path.parent)


if sys.platform == "win32":
    import msvcrt

    def acquire(file: int, place: int, *, wait: bool) -> None:
        """Lock one byte of a file, or raise OSError if another process has it."""
        os.lseek(file, place, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return
            except OSError:  # LK_LOCK gives up after ten seconds
                if not wait:
                    raise
else:
    import fcntl

    def acquire(file: int, place: int, *, wait: bool) -> None:
        """Lock one byte of a file, or raise OSError if another process has it."""
        flags = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.lockf(file, flags, 1, place)
