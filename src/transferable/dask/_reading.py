"""Read Dask collections block by block, and return lazy results of a fitted model for them.

An error about a block names its partition and, where it is known, the file it was read from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from transferable.domains import labelled_rows, marked_ids, row_keys


@dataclass(frozen=True)
class Schema:
    """Number of columns, their names in a frame, and dtype that every block must have."""

    n_features: int
    names: tuple[str, ...] | None
    dtype: str


@dataclass(frozen=True)
class Block:
    """Rows of one partition, those of the source first, with the labels of these.

    `marks` are the ids of the domains, where rows were marked with any.
    """

    X: NDArray[Any]
    labels: NDArray[Any]
    marks: frozenset[float] = frozenset()

    @property
    def sides(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The source rows and the target rows."""
        return self.X[: len(self.labels)], self.X[len(self.labels) :]

    @cached_property
    def places(self) -> list[NDArray[np.float64]]:
        """Places in the canonical order of source and target rows, kept with the block."""
        return [row_keys(X)[0] for X in self.sides]

    def __sizeof__(self) -> int:
        return int(self.X.nbytes + self.labels.nbytes)


Blocks = tuple[list[Delayed], Schema]


def domains_apart(Xs: Any, ys: Any, Xt: Any) -> Blocks:
    """Return blocks of the source, then of the target; `ys` may name a column of `Xs`."""
    label = _label_column(Xs, ys, "Xs")
    schema, other = schema_of(Xs, "Xs", label), schema_of(Xt, "Xt", label)
    if schema != other:
        raise ValueError(f"Xt has {_described(other)}, but Xs has {_described(schema)}.")
    labels = repeat(label) if label is not None else _column(ys, Xs, "ys", "Xs")
    source = _blocks(Xs, "Xs", labels, repeat(1), schema, label)
    return source + _blocks(Xt, "Xt", repeat(None), repeat(-1), schema, label), schema


def stacked_domains(X: Any, y: Any, sample_domain: Any = None) -> Blocks:
    """Return blocks of stacked rows; without marks, rows without a label are the target."""
    label = _label_column(X, y, "X")
    schema = schema_of(X, "X", label)
    labels = repeat(label) if label is not None else _column(y, X, "y", "X")
    marks = _column(sample_domain, X, "sample_domain", "X")
    return _blocks(X, "X", labels, marks, schema, label), schema


def _label_column(X: Any, y: Any, name: str) -> str | None:
    """Return the column of the labels, if `y` names one."""
    if not isinstance(y, str):
        return None
    if not isinstance(X, dd.DataFrame) or y not in X.columns:
        raise ValueError(f"{name} has no column {y!r} to take the labels from.")
    return y


def schema_of(X: Any, name: str, label: str | None = None) -> Schema:
    """Return what the collection claims of all of its blocks, before any is read."""
    if isinstance(X, dd.DataFrame):
        dtypes = X.dtypes.drop([label], errors="ignore")
        _refuse_text(dtypes, name)
        return Schema(len(dtypes), tuple(dtypes.index), _precision(*dtypes))
    if isinstance(X, da.Array) and X.ndim == 2 and X.dtype.kind in "fiub":
        return Schema(X.shape[1], None, _precision(X.dtype))
    what = f"shape {X.shape} and dtype {X.dtype}" if isinstance(X, da.Array) else type(X).__name__
    raise TypeError(
        f"{name} must be a Dask dataframe, or a Dask array of numbers in rows and columns; got "
        f"{what}. The classes of transferable itself take tables in memory."
    )


def _described(schema: Schema) -> str:
    columns = f"{schema.n_features} features in {schema.dtype}"
    return columns if schema.names is None else f"{columns} named {', '.join(schema.names)}"


def _precision(*dtypes: Any) -> str:
    return "float32" if all(dtype == np.float32 for dtype in dtypes) else "float64"


def _refuse_text(dtypes: pd.Series, where: str) -> None:
    for name, dtype in dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            raise TypeError(
                f"{where} has the column {name!r} of dtype {dtype}, which is not a number; encode "
                "it, or leave it out."
            )


def _blocks(
    X: Any,
    name: str,
    labels: Iterable[Any],
    domains: Iterable[Any],
    schema: Schema,
    label: str | None,
) -> list[Delayed]:
    """Return a task for each partition, which reads it."""
    framed = isinstance(X, dd.DataFrame)
    tables = X.to_delayed() if framed else X.rechunk({1: -1}).to_delayed().ravel().tolist()
    places = [f"partition {i} of {name}" for i in range(len(tables))]
    for i, file in (_files(X) if framed else {}).items():
        places[i] += f" ({file})"
    parts = zip(tables, labels, domains, places, strict=False)
    return [_read(*part, schema, label) for part in parts]


def _files(X: Any) -> dict[int, str]:
    """Return the file of each partition, where the frame was read from Parquet."""
    for node in X.expr.walk():
        pieces = getattr(node, "_plan", {}).get("parts", []) if hasattr(node, "_plan") else []
        if len(pieces) == X.npartitions:
            return {
                i: str(piece["piece"][0])
                for i, piece in enumerate(pieces)
                if isinstance(piece, dict) and "piece" in piece
            }
    return {}


def _column(values: Any, X: Any, name: str, of: str) -> Iterable[Any]:
    """Return the partitions of labels or marks, one for each of the rows', or None for each."""
    framed = isinstance(X, dd.DataFrame)
    if values is None:
        return repeat(None)
    if isinstance(values, dd.Series):
        tasks = values.to_delayed()
    elif isinstance(values, da.Array) and values.ndim == 1:
        if not framed and values.shape[0] == X.shape[0]:  # NaN, not known, equals none
            values = values.rechunk((X.chunks[0],))
        tasks = values.to_delayed().ravel().tolist()
    else:
        raise TypeError(
            f"{name} must be a Dask series or a Dask array of one dimension, got "
            f"{type(values).__name__}."
        )
    expected = X.npartitions if framed else X.numblocks[0]
    if len(tasks) != expected:
        raise ValueError(
            f"{name} has {len(tasks)} partitions, but {of} has {expected}; give both the same."
        )
    return tasks


@delayed
def _read(
    table: Any, labels: Any, domain: Any, where: str, schema: Schema, label: str | None
) -> Block:
    """Return one block, checked."""
    if isinstance(labels, str):
        labels = table[labels] if labels in table else _refuse(where, f"no column {labels!r}")
    X = _numbers(table, where, schema, label)
    marks: frozenset[float] = frozenset()
    if isinstance(domain, int):
        source = np.full(len(X), domain > 0)
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
    """Return the rows of a block, in the columns and the dtype of the schema."""
    if isinstance(table, pd.DataFrame):
        names = [name for name in table.columns if name != label]
        if sorted(names) != sorted(schema.names or ()):
            wanted = ", ".join(schema.names or ())
            _refuse(where, f"the columns {', '.join(names)} in place of {wanted}")
        table = table[list(schema.names or ())]
        _refuse_text(table.dtypes, where)
        found = _precision(*table.dtypes)
    else:
        found = _precision(table.dtype)
        if table.shape[1] != schema.n_features:
            _refuse(where, f"{table.shape[1]} features in place of {schema.n_features}")
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


def lazily(
    model: Any,
    X: Any,
    method: str,
    columns: list[Any] | None,
    dtype: Any,
    domain: int | None = None,
) -> Any:
    """Return what a method of the model gives for each partition, with the model once in the graph.

    Parameters
    ----------
    model, method : object, str
        The fitted model in memory, and the name of its method.
    X : dask array or dask dataframe
        The rows.
    columns : list or None
        Names of the values of a row; None for a single value.
    dtype : dtype or None
        Of the values; None for that of the rows.
    domain : int or None
        Marks all rows as source, if positive, or target; None leaves that to the model.
    """
    names = getattr(model, "feature_names_in_", None)
    if isinstance(X, dd.DataFrame) and names is not None:
        X = X[list(names)]
    how = delayed(model), method, columns, dtype or schema_of(X, "X").dtype, domain
    if isinstance(X, dd.DataFrame):
        return X.map_partitions(_frame, *how, meta=_frame(pd.DataFrame(), None, *how[1:]))
    X = X.rechunk({1: -1})
    shape = {"chunks": (X.chunks[0], (len(columns),))} if columns is not None else {"drop_axis": 1}
    meta = _array((), None, *how[1:])
    return X.map_blocks(_array, *how, dtype=meta.dtype, meta=meta, **shape)


def _array(
    rows: Any, model: Any, method: str, columns: list[Any] | None, dtype: Any, domain: int | None
) -> NDArray[Any]:
    if len(rows) == 0:
        return np.empty((0,) if columns is None else (0, len(columns)), dtype=dtype)
    marks = () if domain is None else (np.full(len(rows), domain),)
    return np.asarray(getattr(model, method)(rows, *marks), dtype=dtype)


def _frame(rows: Any, model: Any, method: str, columns: list[Any] | None, *how: Any) -> Any:
    values = _array(rows, model, method, columns, *how)
    if columns is None:
        return pd.Series(values, index=rows.index, name=method)
    return pd.DataFrame(values, index=rows.index, columns=columns)
