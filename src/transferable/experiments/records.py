"""Results as records: one line of JSON each, appended durably, safe against kills and neighbours.

A record is written whole, under a lock, and forced to disk before the next begins. A process killed
while it writes leaves at most one torn line, which the next run sets aside and computes again. Two
runs on the same folder take turns writing, and claim what they compute so that neither does the
other's work again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from transferable.experiments._locks import lock_byte

__all__ = ["Record", "RecordStore", "record_key"]


@dataclass(frozen=True)
class Record:
    """What one method, with one setting, made of one task.

    Attributes
    ----------
    dataset, task, method, protocol : str
        What was run: ``"surf"``, ``"C->A"``, ``"TFDF"``, ``"fixed"``.
    accuracy : float
        Share of target rows labelled correctly at the last iterate, in [0, 1].
    accuracy_best_iterate : float
        The same at the iterate where it is highest. Target labels choose it: an upper bound for
        study, never a result. Equal to `accuracy` where a method labels rows once only.
    n_iterates : int
        Over how many iterates.
    seconds : float
        Wall-clock time of the fit, with one BLAS thread.
    peak_memory_mib : float or None
        Highest resident memory of the worker process during the fit, its libraries and the data
        included; where the system cannot reset that mark, since the process began.
    parameters : dict
        Every parameter of the estimator.
    changes : dict
        Those that differ from the documented setting of the dataset.
    seed : int
        Given to every ``random_state``.
    versions : dict
        Of Python and of the libraries that computed it; that of transferable with a digest of
        its code.
    warnings : list of str
        What the fit warned of.
    """

    dataset: str
    task: str
    method: str
    protocol: str
    accuracy: float
    accuracy_best_iterate: float
    n_iterates: int
    seconds: float
    peak_memory_mib: float | None
    parameters: dict[str, Any]
    changes: dict[str, Any]
    seed: int
    versions: dict[str, str]
    warnings: list[str]

    @property
    def key(self) -> str:
        """What makes this record the answer to a cell; see :func:`record_key`."""
        identity = (self.dataset, self.task, self.method, self.protocol)
        return record_key(*identity, self.parameters, self.seed, self.versions["transferable"])

    def to_line(self) -> str:
        """The record as one line of JSON, without the line's end."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False)

    @classmethod
    def from_line(cls, line: str | bytes) -> Self:
        """Read a record back; ValueError says what is wrong with the line."""
        values = json.loads(line)
        names = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(values, dict) or values.keys() != names:
            raise ValueError(f"the line does not hold the fields {sorted(names)}")
        record = cls(**values)
        for share in (record.accuracy, record.accuracy_best_iterate):
            if not (isinstance(share, int | float) and 0 <= share <= 1):
                raise ValueError(f"{share!r} is no accuracy in [0, 1]")
        if not (isinstance(record.seconds, int | float) and math.isfinite(record.seconds)):
            raise ValueError(f"{record.seconds!r} is no number of seconds")
        if not isinstance(record.versions, dict) or "transferable" not in record.versions:
            raise ValueError("the line does not say which version of transferable made it")
        return record


def record_key(
    dataset: str,
    task: str,
    method: str,
    protocol: str,
    parameters: dict[str, Any],
    seed: int,
    version: str,
) -> str:
    """Name of a computation: the same task, parameters, seed and code give the same key."""
    identity = [dataset, task, method, protocol, parameters, seed, version]
    text = json.dumps(identity, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class RecordStore:
    """The records of a folder.

    Parameters
    ----------
    folder : path-like
        Where ``records.jsonl`` lies; created if need be.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "records.jsonl"
        self.damaged_path = self.folder / "records.damaged.jsonl"

    def load(self) -> dict[str, Record]:
        """The readable records by key; of several with one key, the first."""
        records: dict[str, Record] = {}
        for line in self._lines():
            try:
                record = Record.from_line(line)
            except (ValueError, TypeError):
                continue
            records.setdefault(record.key, record)
        return records

    def set_aside_damaged(self) -> int:
        """Move unreadable lines to ``records.damaged.jsonl`` and say how many there were."""
        with self._locked():
            lines = self._lines()
            whole = [line for line in lines if _readable(line)]
            damaged = [line for line in lines if not _readable(line)]
            if damaged:
                _append(self.damaged_path, b"".join(line.rstrip(b"\n") + b"\n" for line in damaged))
                part = self.path.with_suffix(".part")
                part.unlink(missing_ok=True)
                _append(part, b"".join(line.rstrip(b"\n") + b"\n" for line in whole))
                part.replace(self.path)
                _sync_folder(self.folder)
        return len(damaged)

    def append(self, record: Record) -> None:
        """Add a record; once this returns, it is on disk."""
        line = record.to_line().encode() + b"\n"
        with self._locked():
            if self._is_torn():
                line = b"\n" + line
            _append(self.path, line)

    @contextmanager
    def claim(self, key: str, *, wait: bool) -> Iterator[bool]:
        """Hold the right to compute a record; False if another process has it.

        The system gives a claim back when the process that holds it ends, however it ends.
        """
        place = 1 + int(key[:10], 16)
        with lock_byte(self.folder / ".claims.lock", place, wait=wait) as held:
            yield held

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with lock_byte(self.folder / ".records.lock", 0, wait=True):
            yield

    def _lines(self) -> list[bytes]:
        """The lines, empty ones left out."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        return [line for line in content.splitlines(keepends=True) if line.strip()]

    def _is_torn(self) -> bool:
        """Whether the last line has no end: its writer was killed."""
        try:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read(1) != b"\n"
        except OSError:  # there is no file yet, or it is empty
            return False


def _readable(line: bytes) -> bool:
    if not line.endswith(b"\n"):
        return False
    try:
        Record.from_line(line)
    except (ValueError, TypeError):
        return False
    return True


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
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, where the system allows it."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
