"""Rows of a table, dense or sparse, as vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from transferable.linalg.arrays import in_blocks, is_torch_array, namespace

__all__ = ["dense", "products", "unit_rows"]


def unit_rows(X: Any) -> Any:
    """Rows scaled to Euclidean length one; rows of zeros stay as they are."""
    if is_torch_array(X):
        lengths = X.norm(dim=1, keepdim=True)
        return X / lengths.where(lengths > 0, 1.0)
    if sp.issparse(X):
        return normalize(X, norm="l2", axis=1)
    X = np.asarray(X)
    out = np.empty(X.shape, dtype=np.result_type(X, np.float32))

    def scale(rows: slice) -> None:
        lengths = np.sqrt(np.einsum("ij,ij->i", X[rows], X[rows], dtype=out.dtype))
        np.divide(X[rows], np.where(lengths > 0, lengths, 1.0)[:, None], out=out[rows])

    in_blocks(scale, X)
    return out


def products(A: Any, B: Any, buffer: Any = None) -> Any:
    """A B' as a dense table, in the memory of the buffer if there is one."""
    if buffer is None:
        return dense(A @ B.T)
    return namespace(A).matmul(A, B.T, out=buffer[: len(A) * len(B)].reshape(len(A), len(B)))


def dense(X: Any) -> Any:
    """The same table as a dense array."""
    return X.toarray() if sp.issparse(X) else X
