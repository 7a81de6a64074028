"""Locks between processes that vanish with the process that holds them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["lock_byte"]

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
