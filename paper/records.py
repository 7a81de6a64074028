"""Cells, which define computations, and their records, one line of JSON each.

The file of records survives kills and parallel runs. Torn lines of a killed run are set aside by
the next, which computes them again. Two runs on the same folder take turns writing, and claim their
computations so that none is done twice.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator

from transferable import __version__
from transferable._files import replacing

from .lines import LineStore, acquire, append_bytes, parse_line

SEED = 0

# Modules that show or store results do not affect them.
_APART = ("cli", "diagnostics", "plots", "report", "tables")


@cache
def code_version() -> str:
    """Return the library's version and a digest of the code of the methods.

    Records of other code are not taken for results of this one.

    Examples
    --------
    >>> code_version()
    '0...+...'
    """
    digest = hashlib.sha256()
    for name, source in sorted(_sources(files("transferable"), "")):
        digest.update(name.encode() + b"\0" + source.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def _sources(folder: Traversable, before: str) -> Iterator[tuple[str, Traversable]]:
    """Yield every module that results may depend on, by its path in the package."""
    for item in folder.iterdir():
        name = before + item.name
        if item.is_dir() and name not in _APART:
            yield from _sources(item, f"{name}/")
        elif name.endswith(".py"):
            yield name, item


def record_key(
    dataset: str,
    task: str,
    method: str,
    protocol: str,
    parameters: dict[str, Any],
    seed: int,
    version: str,
) -> str:
    """Return the key of a computation: equal for the same task, parameters, seed and code."""
    identity = [dataset, task, method, protocol, parameters, seed, version]
    try:
        text = json.dumps(identity, sort_keys=True, allow_nan=False)
    except RecursionError:
        raise ValueError("the parameters are nested too deeply") from None
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Cell:
    """One method with one setting on one task.

    Attributes
    ----------
    dataset, source, target, method, protocol : str
        Its identification; `method` is the name in tables.
    estimator : estimator
        Unfitted, with its setting.
    changes : dict
        Differences of the setting from the documented one.
    """

    dataset: str
    source: str
    target: str
    method: str
    protocol: str
    estimator: BaseEstimator
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """Name of the task, such as ``"C->A"``."""
        return f"{self.source}->{self.target}"

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Every parameter of the estimator, as JSON can hold it."""
        values = self.estimator.get_params(deep=True)
        return {name: _plain(value) for name, value in sorted(values.items())}

    @cached_property
    def key(self) -> str:
        """Key of the record of this cell."""
        identity = (self.dataset, self.task, self.method, self.protocol)
        return record_key(*identity, self.parameters, SEED, code_version())


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it: an estimator by its class (its parameters follow)."""
    if hasattr(value, "get_params"):
        return type(value).__name__
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return getattr(value, "__name__", None) or repr(value)


@dataclass(frozen=True)
class Record:
    """Result of one method, with one setting, on one task.

    Attributes
    ----------
    dataset, task, method, protocol : str
        What was run: ``"surf"``, ``"C->A"``, ``"TFDF"``, ``"fixed"``.
    accuracy : float
        Share of target rows labelled correctly at the last iterate, in [0, 1].
    accuracy_best_iterate : float
        The accuracy at the best iterate. Target labels choose it: an upper bound for study, never a
        result. Equal to `accuracy` where a method labels rows only once.
    n_iterates : int
        Number of iterates.
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
        Warnings of the fit.
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

    @cached_property
    def key(self) -> str:
        """Key of the cell of this record."""
        identity = (self.dataset, self.task, self.method, self.protocol)
        return record_key(*identity, self.parameters, self.seed, self.versions["transferable"])

    def to_line(self) -> str:
        """Return the record as one line of JSON, without the line's end."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False)

    @classmethod
    def from_line(cls, line: str | bytes) -> Self:
        """Read a record back; raise ValueError if the line does not hold one."""
        values = parse_line(line)
        names = {field.name for field in dataclasses.fields(cls)}
        if values.keys() != names:
            raise ValueError(f"the line does not hold the fields {sorted(names)}")
        for name, kind in _KINDS.items():
            if not isinstance(values[name], kind):
                raise ValueError(f"{values[name]!r} is no {name}")
        record = cls(**values)
        for share in (record.accuracy, record.accuracy_best_iterate):
            if not 0 <= share <= 1:
                raise ValueError(f"{share!r} is no accuracy in [0, 1]")
        if not math.isfinite(record.seconds):
            raise ValueError(f"{record.seconds!r} is no number of seconds")
        if "transferable" not in record.versions:
            raise ValueError("the line does not say which version of transferable made it")
        return record


_KINDS: dict[str, Any] = {
    **dict.fromkeys(("dataset", "task", "method", "protocol"), str),
    **dict.fromkeys(("accuracy", "accuracy_best_iterate", "seconds"), int | float),
    **dict.fromkeys(("parameters", "changes", "versions"), dict),
    **dict.fromkeys(("n_iterates", "seed"), int),
    "peak_memory_mib": int | float | None,
    "warnings": list,
}


class RecordStore(LineStore[Record]):
    """The records of a folder.

    Parameters
    ----------
    folder : path-like
        Where ``records.jsonl`` lies; created if need be.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        super().__init__(self.folder / "records.jsonl", _keyed)
        self.damaged_path = self.folder / "records.damaged.jsonl"

    def set_aside_damaged(self) -> int:
        """Move unreadable lines to ``*.damaged.jsonl`` and return how many there were."""
        with self._locked():
            lines = self._lines()
            whole = [line for line in lines if self._is_readable(line)]
            damaged = [line for line in lines if not self._is_readable(line)]
            if damaged:
                append_bytes(
                    self.damaged_path, b"".join(line.rstrip(b"\n") + b"\n" for line in damaged)
                )
                with replacing(self.path, "wb") as file:
                    file.writelines(whole)
        return len(damaged)

    def _is_readable(self, line: bytes) -> bool:
        try:
            self._read(line)
        except ValueError:
            return False
        return line.endswith(b"\n")

    @contextmanager
    def claim(self, key: str, *, wait: bool) -> Iterator[bool]:
        """Hold the right to compute a record; yield False if another process has it.

        The system releases a claim when its process ends, however it ends.
        """
        place = 1 + int(key[:10], 16)
        with _lock_byte(self.folder / ".claims.lock", place, wait=wait) as held:
            yield held


def _keyed(line: bytes) -> tuple[str, Record]:
    record = Record.from_line(line)
    return record.key, record


@contextmanager
def _lock_byte(path: Path, place: int, *, wait: bool) -> Iterator[bool]:
    """Hold one byte of a lock file, which may be shorter than that; yield False if it is taken.

    One file thus serves any number of locks. A process must not hold two of the same file:
    releasing one would release the other.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            acquire(file, place, wait=wait)
        except OSError:
            if wait:
                raise
            yield False
        else:
            yield True
    finally:
        os.close(file)
