"""Predictions as lines of text: id columns, then prediction, confidence and runner-up."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from transferable.tables import TableClassifier

__all__ = [
    "PredictionWriter",
    "check_distinct",
    "check_folder",
    "check_output",
    "names",
    "predicted",
    "writing",
]

_COLUMNS = ("prediction", "confidence", "runner_up")
_BLOCK = 4096
_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def names(given: Sequence[str] | None) -> list[str]:
    """Column names from options that may be repeated and may hold several names with commas."""
    return [name.strip() for text in given or () for name in text.split(",") if name.strip()]


def check_output(path: Path | None) -> Path | None:
    """Refuse a path for predictions that cannot take them, before anything is computed."""
    if path is not None and not path.name.lower().endswith(_TEXT):
        raise typer.BadParameter(f"{path.name!r} must end in one of {', '.join(_TEXT)}.")
    return check_folder(path)


def check_folder(path: Path | None) -> Path | None:
    """Refuse a path that no file can be written to."""
    if path is None:
        return None
    folder = path.resolve().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"the folder {path.parent} does not exist; make it first.")
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; name a file.")
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"the folder {path.parent} is read-only.")
    return path


def check_distinct(given: Sequence[Path], written: Sequence[Path | None]) -> None:
    """Refuse to write over what was given, or two things into one file."""
    taken = {path.resolve() for path in given}
    for path in written:
        if path is not None:
            if path.resolve() in taken:
                raise ValueError(f"{path} would be overwritten; name another file.")
            taken.add(path.resolve())


def predicted(
    model: TableClassifier, table: pd.DataFrame, ids: Sequence[str]
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Lines of predictions for the rows of a table, and the probabilities behind them."""
    import numpy as np
    import pandas as pd

    from transferable.tables import TableError

    lacking = [name for name in ids if name not in table.columns]
    clashing = [name for name in ids if name in _COLUMNS]
    if lacking or clashing:
        raise TableError(
            f"id column {(lacking or clashing)[0]!r} "
            + ("is not in the table." if lacking else "has a name the predictions need; rename it.")
        )
    X = model.encode(table)
    blocks = [X[start : start + _BLOCK] for start in range(0, len(X), _BLOCK)]
    probabilities = np.concatenate([model.estimator_.predict_proba(block) for block in blocks])
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :2]
    best, second = np.take_along_axis(probabilities, order, axis=1).T
    labels = np.concatenate([model.estimator_.predict(block) for block in blocks])
    other = np.where(model.classes_[order[:, 0]] == labels, order[:, 1], order[:, 0])
    runner_up = pd.Series(model.classes_[other]).astype(object).where(second > 0, "")
    lines = (
        table[list(ids)]
        .reset_index(drop=True)
        .assign(prediction=labels, confidence=best.round(6), runner_up=runner_up)
    )
    return lines, probabilities


class PredictionWriter:
    """Writes lines as they come, with one heading."""

    def __init__(self, stream: IO[str], separator: str) -> None:
        self._stream = stream
        self._separator = separator
        self._started = False

    def write(self, lines: pd.DataFrame) -> None:
        """Append lines."""
        lines.to_csv(
            self._stream,
            index=False,
            header=not self._started,
            sep=self._separator,
            lineterminator="\n",
        )
        self._started = True


@contextmanager
def writing(path: Path | None) -> Iterator[PredictionWriter]:
    """Write predictions to a file, which is there whole or not at all, or to standard output."""
    from transferable._atomic import replacing

    if path is None:
        yield PredictionWriter(sys.stdout, ",")
        return
    name = path.name.lower()
    separator = "\t" if name.removesuffix(".gz").endswith(".tsv") else ","
    if name.endswith(".gz"):
        with replacing(path, "wb") as raw, gzip.open(raw, "wt", encoding="utf-8") as stream:
            yield PredictionWriter(stream, separator)
    else:
        with replacing(path) as stream:
            yield PredictionWriter(stream, separator)
