"""Dask collections as lists of tasks, each of which reads and checks one block of rows.

What is wrong with a block is told with the number of its partition and, where it is known, the file
that it was read from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from transferable.domains import labelled_rows, marked_ids, row_keys

__all__ = ["Block", "Blocks", "Schema", "domains_apart", "schema_of", "stacked_domains"]

_SOURCE, _TARGET = 1, -1


@dataclass(frozen=True)
class Schema:
    """What every block must have.

    Attributes
    ----------
    n_features : int
        Columns.
    names : tuple of str or None
        Their names, of frames.
    dtype : str
        "float64" or "float32".
    """

    n_features: int
    names: tuple[str, ...] | None
    dtype: str


@dataclass(frozen=True)
class Block:
    """Rows of one partition, those of the source first, with the labels of these.

    `marks` are the numbers of the domains, where rows were marked with any.
    """

    X: NDArray[Any]
    labels: NDArray[Any]
    marks: frozenset[float] = frozenset()

    @property
    def n_source(self) -> int:
        """Rows of the source."""
        return len(self.labels)

    @property
    def Xs(self) -> NDArray[Any]:
        """The source rows."""
        return self.X[: self.n_source]

    @property
    def Xt(self) -> NDArray[Any]:
        """The target rows."""
        return self.X[self.n_source :]

    @cached_property
    def places(self) -> tuple[NDArray[np.float64], ...]:
        """Places in the canonical order of source and target rows, kept while the block is."""
        return tuple(row_keys(X)[0] if len(X) else np.empty(0) for X in (self.Xs, self.Xt))

    def __sizeof__(self) -> int:
        return int(self.X.nbytes + self.labels.nbytes)


Blocks = tuple[list[Delayed], Schema]


def domains_apart(Xs: Any, ys: Any, Xt: Any) -> Blocks:
    """Blocks of both domains, the source's first; `ys` may be the name of a column of `Xs`."""
    label = ys if isinstance(ys, str) else None
    if label is not None and (not _is_frame(Xs) or label not in Xs.columns):
        raise ValueError(f"Xs has no column {label!r} to take the labels from.")
    schema = schema_of(Xs, "Xs", label)
    other = schema_of(Xt, "Xt", label)
    if schema != other:
        raise ValueError(f"Xt has {_described(other)}, but Xs has {_described(schema)}.")
    tables, places = _partitions(Xs, "Xs")
    labels = _labels(label, ys, Xs, "ys", "Xs")
    blocks = [
        _read(table, y, _SOURCE, place, schema, label)
        for table, y, place in zip(tables, labels, places, strict=True)
    ]
    tables, places = _partitions(Xt, "Xt")
    blocks += [
        _read(table, None, _TARGET, place, schema, label)
        for table, place in zip(tables, places, strict=True)
    ]
    return blocks, schema


def stacked_domains(X: Any, y: Any, sample_domain: Any = None) -> Blocks:
    """Blocks of rows of both domains; without marks, rows without a label are the target's."""
    label = y if isinstance(y, str) else None
    if label is not None and (not _is_frame(X) or label not in X.columns):
        raise ValueError(f"X has no column {label!r} to take the labels from.")
    schema = schema_of(X, "X", label)
    tables, places = _partitions(X, "X")
    labels = _labels(label, y, X, "y", "X")
    marks: Sequence[Any]
    if sample_domain is None:
        marks = [None] * len(tables)
    else:
        marks = _column(sample_domain, X, "sample_domain", "X")
    parts = zip(tables, labels, marks, places, strict=True)
    return [_read(table, y, mark, place, schema, label) for table, y, mark, place in parts], schema


def _is_frame(X: Any) -> bool:
    return isinstance(X, dd.DataFrame)


def schema_of(X: Any, name: str, label: str | None = None) -> Schema:
    """What the collection says of all of its blocks, before any is read."""
    if _is_frame(X):
        dtypes = X.dtypes.drop([label], errors="ignore")
        _refuse_text(dtypes, name)
        single = all(dtype == np.float32 for dtype in dtypes)
        return Schema(len(dtypes), tuple(dtypes.index), "float32" if single else "float64")
    if isinstance(X, da.Array) and X.ndim == 2 and X.dtype.kind in "fiub":
        return Schema(X.shape[1], None, "float32" if X.dtype == np.float32 else "float64")
    what = f"shape {X.shape} and dtype {X.dtype}" if isinstance(X, da.Array) else type(X).__name__
    raise TypeError(
        f"{name} must be a Dask dataframe, or a Dask array of numbers in rows and columns; got "
        f"{what}. The classes of transferable itself take tables in memory."
    )


def _described(schema: Schema) -> str:
    columns = f"{schema.n_features} features in {schema.dtype}"
    return columns if schema.names is None else f"{columns} named {', '.join(schema.names)}"


def _refuse_text(dtypes: pd.Series, where: str) -> None:
    for name, dtype in dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            raise TypeError(
                f"{where} has the column {name!r} of dtype {dtype}, which is not a number; encode "
                "it, or leave it out."
            )


def _partitions(X: Any, name: str) -> tuple[list[Delayed], list[str]]:
    """A task for each partition, and what to call it."""
    if _is_frame(X):
        tasks = X.to_delayed()
        files = _files(X)
    else:
        tasks, files = X.rechunk({1: -1}).to_delayed().ravel().tolist(), {}
    places = [f"partition {i} of {name}" for i in range(len(tasks))]
    return tasks, [
        f"{place} ({files[i]})" if i in files else place for i, place in enumerate(places)
    ]


def _files(X: Any) -> dict[int, str]:
    """The file of each partition, where the frame was read from Parquet, one or more from each."""
    for node in X.expr.walk():
        pieces = getattr(node, "_plan", {}).get("parts", []) if hasattr(node, "_plan") else []
        if len(pieces) == X.npartitions:
            return {
                i: str(piece["piece"][0])
                for i, piece in enumerate(pieces)
                if isinstance(piece, dict) and "piece" in piece
            }
    return {}


def _labels(label: str | None, y: Any, X: Any, name: str, of: str) -> Sequence[Any]:
    """The labels of each partition: its column, an array, or None where none were given."""
    if y is None or label is not None:
        return [label] * _n_partitions(X)
    return _column(y, X, name, of)


def _n_partitions(X: Any) -> int:
    return int(X.npartitions if _is_frame(X) else X.numblocks[0])


def _column(values: Any, X: Any, name: str, of: str) -> list[Delayed]:
    """The partitions of labels or marks, one for each of the rows'."""
    if isinstance(values, dd.Series):
        tasks = values.to_delayed()
    elif isinstance(values, da.Array) and values.ndim == 1:
        known = not np.isnan(values.shape[0])
        if not _is_frame(X) and known and not np.isnan(X.shape[0]) and len(values) == len(X):
            values = values.rechunk((X.chunks[0],))
        tasks = values.to_delayed().ravel().tolist()
    else:
        raise TypeError(
            f"{name} must be a Dask series or a Dask array of one dimension, got "
            f"{type(values).__name__}."
        )
    expected = _n_partitions(X)
    if len(tasks) != expected:
        raise ValueError(
            f"{name} has {len(tasks)} partitions, but {of} has {expected}; give both the same."
        )
    return tasks


@delayed
def _read(
    table: Any, labels: Any, domain: Any, where: str, schema: Schema, label: str | None
) -> Block:
    """One block, checked."""
    if isinstance(labels, str):
        labels = table[labels] if labels in table else _refuse(where, f"no column {labels!r}")
    X = _numbers(table, where, schema, label)
    marks: frozenset[float] = frozenset()
    if isinstance(domain, int):
        source = np.full(len(X), domain == _SOURCE)
    elif domain is None:
        labels = np.asarray(labels)
        source = labelled_rows(labels)
        if labels.dtype.kind in "iu":
            source &= labels != -1
    else:
        ids = marked_ids(np.asarray(domain), len(X))
        source, marks = ids > 0, frozenset(np.unique(ids).tolist())
    if source.all() or not source.any():
        rows = np.ascontiguousarray(X)  # those of a frame lie column by column
    else:
        rows = np.concatenate([X[source], X[~source]])
    if not source.any():
        labels = np.empty(0, dtype=np.float64 if labels is None else np.asarray(labels).dtype)
        return Block(rows, labels, marks)
    labels = np.zeros(len(X), dtype=np.intp) if labels is None else np.asarray(labels)
    if labels.shape != (len(X),):
        _refuse(where, f"{len(X)} rows, but labels of shape {labels.shape}")
    labels = labels[source]
    missing = int((~labelled_rows(labels)).sum())
    if missing:
        _refuse(where, f"{missing} source rows without a label")
    return Block(rows, labels, marks)


def _numbers(table: Any, where: str, schema: Schema, label: str | None) -> NDArray[Any]:
    """The rows of a block as the schema has them."""
    if isinstance(table, pd.DataFrame):
        names = [name for name in table.columns if name != label]
        if sorted(names) != sorted(schema.names or ()):
            wanted = ", ".join(schema.names or ())
            _refuse(where, f"the columns {', '.join(names)} in place of {wanted}")
        table = table[list(schema.names or ())]
        _refuse_text(table.dtypes, where)
        single = all(dtype == np.float32 for dtype in table.dtypes)
    else:
        single = table.dtype == np.float32
        if table.shape[1] != schema.n_features:
            _refuse(where, f"{table.shape[1]} features in place of {schema.n_features}")
    found = "float32" if single else "float64"
    if found != schema.dtype and len(table):
        _refuse(where, f"rows in {found} in place of {schema.dtype}")
    X = np.asarray(table, dtype=schema.dtype)
    wrong = np.flatnonzero(~np.isfinite(X).all(axis=0))
    if len(wrong):
        column = int(wrong[0]) if schema.names is None else repr(schema.names[wrong[0]])
        rows = int((~np.isfinite(X[:, wrong[0]])).sum())
        _refuse(where, f"{rows} rows with NaN or infinity in column {column}; fill or drop them")
    return X


def _refuse(where: str, what: str) -> Any:
    raise ValueError(f"{where} has {what}.")
