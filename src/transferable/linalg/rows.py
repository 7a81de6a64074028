"""Rows of a table, dense or sparse, as vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

__all__ = ["dense", "unit_rows"]


def unit_rows(X: Any) -> Any:
    """Rows scaled to Euclidean length one; rows of zeros stay as they are."""
    return normalize(X, norm="l2", axis=1)


def dense(X: Any) -> NDArray[np.floating]:
    """The same table as a dense array."""
    return X.toarray() if sp.issparse(X) else np.asarray(X)
