"""The cosine p-nearest-neighbour graph and its normalised Laplacian."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from transferable.linalg.rows import dense, unit_rows

__all__ = ["cosine_neighbors", "normalised_adjacency"]

_BLOCK_VALUES = 2**24  # similarities held at once by the blocked search: 128 MB


def cosine_neighbors(X: Any, n_neighbors: int, self_loops: bool = False) -> sp.csr_array:
    """Symmetric graph that joins i and j if either is among the other's nearest by cosine.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Rows; their length does not matter.
    n_neighbors : int
        Neighbours for each row, fewer than n.
    self_loops : bool
        Whether each row is joined to itself too, with weight 1, as in the code of ARTL and MEDA.

    Returns
    -------
    W : CSR array of shape (n, n)
        The cosines on the edges; rows at an obtuse angle are not joined.
    """
    unit = unit_rows(X)
    n = unit.shape[0]
    block = max(1, _BLOCK_VALUES // n)
    nearest = np.empty((n, n_neighbors), dtype=np.intp)
    cosines = np.empty((n, n_neighbors))
    for start in range(0, n, block):
        similarity = dense(unit[start : start + block] @ unit.T)
        rows = np.arange(len(similarity))
        similarity[rows, start + rows] = -np.inf
        best = np.argpartition(similarity, n - n_neighbors, axis=1)[:, n - n_neighbors :]
        nearest[start + rows] = best
        cosines[start + rows] = np.take_along_axis(similarity, best, axis=1)
    starts = np.arange(0, n * n_neighbors + 1, n_neighbors)
    W = sp.csr_array((np.maximum(cosines, 0.0).ravel(), nearest.ravel(), starts), shape=(n, n))
    W = W.maximum(W.T)
    return (W + sp.eye_array(n)).tocsr() if self_loops else W.tocsr()


def normalised_adjacency(W: sp.csr_array) -> sp.csr_array:
    """G^-1/2 W G^-1/2 with G the degrees; rows without edges stay empty."""
    degrees = np.asarray(W.sum(axis=1)).ravel()
    positive = degrees > 0
    scale = np.where(positive, 1.0 / np.sqrt(np.where(positive, degrees, 1.0)), 0.0)
    root = sp.dia_array((scale[None, :], [0]), shape=W.shape)
    return (root @ W @ root).tocsr()
