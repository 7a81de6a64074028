"""Predictions as lines: id columns, then prediction, confidence and runner-up."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import typer

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from transferable.tables import TableClassifier

__all__ = [
    "Writer",
    "check_distinct",
    "check_folder",
    "check_output",
    "lines_of",
    "predicted",
    "writing",
]

_COLUMNS = ("prediction", "confidence", "runner_up", "source_only")
_BLOCK = 4096
_FORMATS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
_STDOUT = Path("-")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how spreadsheets know one


def check_output(path: Path | None) -> Path | None:
    """Refuse a path for predictions that cannot take them, before anything is computed."""
    if path in (None, _STDOUT):
        return None
    if not path.name.lower().endswith(_FORMATS):
        raise typer.BadParameter(
            f"{path.name!r} must end in one of {', '.join(_FORMATS)}, or be - for standard output."
        )
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
    model: TableClassifier,
    table: pd.DataFrame,
    ids: Sequence[str],
    *,
    every_class: bool = False,
) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Lines of predictions for the rows of a table, and the probabilities behind them."""
    import numpy as np

    X = model.encoder_.transform(table)
    blocks = [X[start : start + _BLOCK] for start in range(0, len(X), _BLOCK)]
    probabilities = np.concatenate([model.estimator_.predict_proba(block) for block in blocks])
    labels = np.concatenate([model.estimator_.predict(block) for block in blocks])
    lines = lines_of(table, ids, labels, probabilities, model.classes_, every_class)
    return lines, probabilities


def lines_of(
    table: pd.DataFrame,
    ids: Sequence[str],
    labels: NDArray[Any],
    probabilities: NDArray[Any],
    classes: NDArray[Any],
    every_class: bool,
) -> pd.DataFrame:
    """Lines for the rows of a table with these labels and probabilities."""
    import numpy as np
    import pandas as pd

    each = [f"probability_{name}" for name in classes.tolist()] if every_class else []
    _check_ids(table, ids, [*_COLUMNS, *each])
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :2]
    best, second = np.take_along_axis(probabilities, order, axis=1).T
    other = np.where(classes[order[:, 0]] == labels, order[:, 1], order[:, 0])
    runner_up = pd.Series(classes[other]).astype(object).where(second > 0, "")
    return (
        table[list(ids)]
        .reset_index(drop=True)
        .assign(
            prediction=labels,
            confidence=best.round(6).astype(float),
            runner_up=runner_up,
            **dict(zip(each, probabilities.round(6).astype(float).T, strict=False)),
        )
    )


def _check_ids(table: pd.DataFrame, ids: Sequence[str], taken: Sequence[str]) -> None:
    from transferable.tables import TableError
    from transferable.tables._errors import require_columns, who

    require_columns(list(table.columns), ids, who(table, "the table"))
    clashing = [name for name in ids if name in taken]
    if clashing:
        raise TableError(
            f"id column {clashing[0]!r} has a name the predictions need; rename it in "
            f"{who(table, 'the table')}."
        )


class Writer(Protocol):
    """Takes lines as they come."""

    def write(self, lines: pd.DataFrame) -> None:
        """Append lines."""


class _TextWriter:
    """Lines of text with one heading."""

    def __init__(self, stream: IO[str], separator: str, *, escape: bool) -> None:
        self._stream, self._separator, self._escape = stream, separator, escape
        self._started = False

    def write(self, lines: pd.DataFrame) -> None:
        if self._escape:
            lines = lines.map(_no_formula).rename(columns=_no_formula)
        lines.to_csv(
            self._stream,
            index=False,
            header=not self._started,
            sep=self._separator,
            lineterminator="\n",
        )
        self._started = True


def _no_formula(value: Any) -> Any:
    """The value, as text where a spreadsheet would take it for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


class _ParquetWriter:
    """One row group for each piece."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._writer: Any = None

    def write(self, lines: pd.DataFrame) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        texts = lines.select_dtypes(exclude="number").columns
        plain = lines.assign(**{name: lines[name].astype(object) for name in texts})
        fields = {name: pa.string() for name in texts}
        kinds = [(n, fields.get(n) or pa.from_numpy_dtype(plain[n].dtype)) for n in plain.columns]
        table = pa.Table.from_pandas(plain, schema=pa.schema(kinds), preserve_index=False)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._stream, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


@contextmanager
def writing(path: Path | None, *, escape_formulas: bool = False) -> Iterator[Writer]:
    """Write predictions to a file, which is there whole or not at all, or to standard output."""
    from transferable._files import replacing

    if path is None:
        yield _TextWriter(sys.stdout, ",", escape=escape_formulas)
        return
    name = path.name.lower()
    separator = "\t" if name.removesuffix(".gz").endswith(".tsv") else ","
    if name.endswith(".parquet"):
        _require_pyarrow(path)
        with replacing(path, "wb") as raw:
            writer = _ParquetWriter(raw)
            yield writer
            writer.close()
    elif name.endswith(".gz"):
        with replacing(path, "wb") as raw, gzip.open(raw, "wt", encoding="utf-8") as stream:
            yield _TextWriter(stream, separator, escape=escape_formulas)
    else:
        with replacing(path) as stream:
            yield _TextWriter(stream, separator, escape=escape_formulas)


def _require_pyarrow(path: Path) -> None:
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise ValueError(f"{path} needs pyarrow to be written: pip install 'transferable[tables]'.")
