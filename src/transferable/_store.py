"""Lines of JSON in a file, appended durably, safe against kills and neighbours.

A line is written whole, under a lock, and forced to disk before the next begins. A process killed
while it writes leaves at most one torn line, which readers leave out and the next line does not
touch. Locks vanish with the process that holds them, however it ends.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from transferable._atomic import replacing, sync_folder

__all__ = ["LineStore", "lock_byte", "parse_line"]

T = TypeVar("T")


class LineStore(Generic[T]):
    """Values by key in a file of JSON lines.

    Parameters
    ----------
    path : path-like
        The file; its folder is created if need be.
    read : callable
        Given a line, the key and the value it holds; ValueError if it holds none.
    """

    def __init__(
        self, path: str | os.PathLike[str], read: Callable[[bytes], tuple[str, T]]
    ) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.damaged_path = self.path.with_name(f"{self.path.stem}.damaged{self.path.suffix}")
        self._read = read

    def load(self) -> dict[str, T]:
        """The readable values; of several with one key, the first."""
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
            _append(self.path, b"\n" + content if self._is_torn() else content)

    def set_aside_damaged(self) -> int:
        """Move unreadable lines to ``*.damaged.jsonl`` and say how many there were."""
        with self._locked():
            lines = self._lines()
            whole = [line for line in lines if self._is_readable(line)]
            damaged = [line for line in lines if not self._is_readable(line)]
            if damaged:
                _append(self.damaged_path, b"".join(line.rstrip(b"\n") + b"\n" for line in damaged))
                with replacing(self.path, "wb") as file:
                    file.writelines(whole)
        return len(damaged)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with lock_byte(self.path.with_name(f".{self.path.stem}.lock"), 0, wait=True):
            yield

    def _lines(self) -> list[bytes]:
        """The lines, empty ones left out."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        return [line for line in content.splitlines(keepends=True) if line.strip()]

    def _is_readable(self, line: bytes) -> bool:
        try:
            self._read(line)
        except ValueError:
            return False
        return line.endswith(b"\n")

    def _is_torn(self) -> bool:
        """Whether the last line has no end: its writer was killed."""
        try:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read(1) != b"\n"
        except OSError:  # there is no file yet, or it is empty
            return False


def parse_line(line: str | bytes) -> dict[str, Any]:
    """The object of a line of JSON; ValueError for anything else, NaN and endless nesting too."""
    try:
        values = json.loads(line, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the line is nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("the line holds no object")
    return values


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _append(path: Path, content: bytes) -> None:
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

    def _acquire(file: int, place: int, *, wait: bool) -> None:
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

    def _acquire(file: int, place: int, *, wait: bool) -> None:
        flags = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.lockf(file, flags, 1, place)


@contextmanager
def lock_byte(path: Path, place: int, *, wait: bool) -> Iterator[bool]:
    """Hold one byte of a lock file, which need not reach that far; False if it is taken.

    One file thus serves any number of locks. A process must not hold two of the same file: giving
    one back would give back the other.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            _acquire(file, place, wait=wait)
        except OSError:
            if wait:
                raise
            yield False
        else:
            yield True
    finally:
        os.close(file)
