"""Graphs over rows in groups: nearest rows inside a group, nearest pairs between groups."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from transferable.linalg.moments import row_blocks

__all__ = ["nearest_between", "nearest_inside"]

Groups = NDArray[np.intp]


def nearest_inside(X: NDArray[np.float64], groups: Groups, n_neighbors: int) -> sp.csr_array:
    """Joins each row to its nearest rows of the same group, with weight 1 in both directions."""
    heads, tails = [], []
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        k = min(n_neighbors, len(rows) - 1)
        if k > 0:
            nearest = NearestNeighbors(n_neighbors=k).fit(X[rows]).kneighbors()[1]
            heads.append(np.repeat(rows, k))
            tails.append(rows[nearest.ravel()])
    return _joined(heads, tails, len(X))


def nearest_between(X: NDArray[np.float64], groups: Groups, n_pairs: int) -> sp.csr_array:
    """Joins the `n_pairs` closest pairs of rows from different groups, with weight 1."""
    heads, tails, distances = [], [], []
    for group in np.unique(groups)[:-1]:
        # Each pair of groups is looked at once: from the one that comes first.
        members, others = np.flatnonzero(groups == group), np.flatnonzero(groups > group)
        for block in row_blocks(len(members), len(others)):
            rows = members[block]
            apart = pairwise_distances(X[rows], X[others])
            k = min(n_pairs, apart.size)
            closest = np.argpartition(apart, k - 1, axis=None)[:k]
            first, second = np.unravel_index(closest, apart.shape)
            heads.append(rows[first])
            tails.append(others[second])
            distances.append(apart.flat[closest])
    if not heads:
        return _joined([], [], len(X))
    order = np.argsort(np.concatenate(distances), kind="stable")[:n_pairs]
    return _joined([np.concatenate(heads)[order]], [np.concatenate(tails)[order]], len(X))


def _joined(heads: list[Groups], tails: list[Groups], n: int) -> sp.csr_array:
    """The symmetric graph with these edges."""
    i = np.concatenate([*heads, *tails]) if heads else np.empty(0, dtype=np.intp)
    j = np.concatenate([*tails, *heads]) if heads else np.empty(0, dtype=np.intp)
    graph = sp.csr_array((np.ones(len(i)), (i, j)), shape=(n, n))
    graph.data[:] = 1.0
    return graph
