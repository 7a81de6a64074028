"""Rows of a table, dense or sparse, as vectors."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
from sklearn.preprocessing import normalize

from transferable.linalg.arrays import is_torch_array

__all__ = ["dense", "unit_rows"]


def unit_rows(X: Any) -> Any:
    """Rows scaled to Euclidean length one; rows of zeros stay as they are."""
    if is_torch_array(X):
        lengths = X.norm(dim=1, keepdim=True)
        return X / lengths.where(lengths > 0, 1.0)
    return normalize(X, norm="l2", axis=1)


def dense(X: Any) -> Any:
    """The same table as a dense array."""
    return X.toarray() if sp.issparse(X) else X
