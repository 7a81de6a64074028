"""Results as records, one line of JSON each in a file that survives kills and neighbours.

What a killed run has left torn, the next sets aside and computes again. Two runs on the same folder
take turns writing, and claim what they compute so that neither does the other's work again.
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
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from transferable._files import LineStore, lock_byte, parse_line

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

    @cached_property
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
    try:
        text = json.dumps(identity, sort_keys=True, allow_nan=False)
    except RecursionError:
        raise ValueError("the parameters are nested too deeply") from None
    return hashlib.sha256(text.encode()).hexdigest()


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

    @contextmanager
    def claim(self, key: str, *, wait: bool) -> Iterator[bool]:
        """Hold the right to compute a record; False if another process has it.

        The system gives a claim back when the process that holds it ends, however it ends.
        """
        place = 1 + int(key[:10], 16)
        with lock_byte(self.folder / ".claims.lock", place, wait=wait) as held:
            yield held


def _keyed(line: bytes) -> tuple[str, Record]:
    record = Record.from_line(line)
    return record.key, record
