"""What others read: files written completely or not at all, and text without hidden characters."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import IO, Any
from unicodedata import category


def cache_folder() -> Path:
    """Return the platform's folder for files of this library that can be made again."""
    home = Path.home()
    usual = {"win32": home / "AppData" / "Local", "darwin": home / "Library" / "Caches"}
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(named or usual.get(sys.platform, home / ".cache")) / "transferable"


def visible(text: object) -> str:
    """Escape unprintable characters in untrusted text."""
    return "".join(
        c if c == "\n" or c.isprintable() or category(c) == "Zs" else repr(c)[1:-1]
        for c in str(text)
    )


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
    sync_folder(path.parent)


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


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, where the system supports it."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


if sys.platform == "win32":

    def _hold(file: int, *, wait: bool) -> None:
        raise OSError("files are not locked as a whole here")
else:
    import fcntl

    def _hold(file: int, *, wait: bool) -> None:
        """Lock a file until it is closed, against other threads too."""
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
