"""What a fitted model gives for Dask collections, partition by partition, when it is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import delayed
from numpy.typing import NDArray

from transferable.dask._reading import schema_of

__all__ = ["Gives", "is_collection", "lazily"]


@dataclass(frozen=True)
class Gives:
    """What a method gives for each row, known without calling it.

    Attributes
    ----------
    columns : list or None
        Names of the values of a row; None for a single value.
    dtype : dtype or None
        Of the values; None for that of the rows.
    """

    columns: list[Any] | None
    dtype: Any

    def nothing(self) -> NDArray[Any]:
        """What it gives for no rows."""
        return np.empty((0,) if self.columns is None else (0, len(self.columns)), dtype=self.dtype)

    def frame(self, values: NDArray[Any], index: Any, name: str) -> pd.Series | pd.DataFrame:
        """Values of rows with this index."""
        if self.columns is None:
            return pd.Series(values, index=index, name=name)
        return pd.DataFrame(values, index=index, columns=self.columns)


def is_collection(X: Any) -> bool:
    """Whether rows are a Dask array or dataframe."""
    return isinstance(X, dd.DataFrame | da.Array)


def lazily(model: Any, X: Any, method: str, gives: Gives, domain: int | None = None) -> Any:
    """What a method of the model gives for each partition, which has the model once in its graph.

    `domain` marks all rows as source, if positive, or target; None leaves that to the model.
    """
    there = delayed(model)
    if isinstance(X, dd.DataFrame):
        names = getattr(model, "feature_names_in_", None)
        if names is not None:
            X = X[list(names)]
        gives = Gives(gives.columns, gives.dtype or schema_of(X, "X").dtype)
        meta = gives.frame(gives.nothing(), None, method)
        return X.map_partitions(_frame, there, method, gives, domain, meta=meta)
    gives = Gives(gives.columns, gives.dtype or schema_of(X, "X").dtype)
    X = X.rechunk({1: -1})
    shape: dict[str, Any] = {"drop_axis": 1}
    if gives.columns is not None:
        shape = {"chunks": (X.chunks[0], (len(gives.columns),))}
    return X.map_blocks(
        _array, there, method, gives, domain, dtype=gives.dtype, meta=gives.nothing(), **shape
    )


def _array(rows: Any, model: Any, method: str, gives: Gives, domain: int | None) -> NDArray[Any]:
    if len(rows) == 0:
        return gives.nothing()
    marks = () if domain is None else (np.full(len(rows), domain),)
    return np.asarray(getattr(model, method)(rows, *marks), dtype=gives.dtype)


def _frame(rows: pd.DataFrame, model: Any, method: str, gives: Gives, domain: int | None) -> Any:
    return gives.frame(_array(rows, model, method, gives, domain), rows.index, method)
