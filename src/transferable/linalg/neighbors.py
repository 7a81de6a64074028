"""The cosine p-nearest-neighbour graph and its normalised Laplacian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from transferable.linalg.arrays import is_torch_array, namespace, sparse_tensor
from transferable.linalg.rows import unit_rows
from transferable.linalg.search import nearest

__all__ = ["Graph", "cosine_neighbors", "neighbor_graph", "normalised_adjacency"]


@dataclass(frozen=True)
class Graph:
    """Weights of the edges, and how the neighbours were found."""

    weights: Any
    recall: float  # share of the nearest rows that were found; 1 for an exact search
    method: str


def neighbor_graph(X: Any, n_neighbors: int, self_loops: bool = False) -> Graph:
    """Symmetric graph that joins i and j if either is among the other's nearest by cosine.

    Parameters
    ----------
    X : array, sparse matrix or torch tensor of shape (n, d)
        Rows; their length does not matter.
    n_neighbors : int
        Neighbours for each row, fewer than n.
    self_loops : bool
        Whether each row is joined to itself too, with weight 1, as in the code of ARTL and MEDA.

    Returns
    -------
    Graph
        The weights are a CSR array of shape (n, n), or a sparse CSR tensor on the device of X: the
        cosines on the edges; rows at an obtuse angle are not joined.
    """
    found = nearest(unit_rows(X), None, n_neighbors)
    join = _join_on_device if is_torch_array(X) else _join
    return Graph(join(found.indices, found.similarities, self_loops), found.recall, found.method)


def cosine_neighbors(X: Any, n_neighbors: int, self_loops: bool = False) -> Any:
    """The weights of :func:`neighbor_graph`."""
    return neighbor_graph(X, n_neighbors, self_loops).weights


def _join(indices: Any, cosines: Any, self_loops: bool) -> sp.csr_array:
    n, k = indices.shape
    starts = np.arange(0, n * k + 1, k)
    weights = np.maximum(cosines, 0.0, dtype=np.float64)
    W = sp.csr_array((weights.ravel(), indices.ravel(), starts), shape=(n, n))
    W = W.maximum(W.T)
    return (W + sp.eye_array(n)).tocsr() if self_loops else W.tocsr()


def _join_on_device(indices: Any, cosines: Any, self_loops: bool) -> Any:
    """The same without leaving the device: edges in both directions, sorted, the larger kept."""
    n, k = indices.shape
    xp = namespace(indices)
    everyone = xp.arange(n, device=indices.device)
    tails, heads, weights = everyone.repeat_interleave(k), indices.ravel(), cosines.ravel()
    acute = weights > 0
    tails, heads, weights = tails[acute], heads[acute], weights[acute]
    edges = xp.concat([tails * n + heads, heads * n + tails])
    weights = xp.concat([weights, weights])
    if self_loops:
        edges = xp.concat([edges, everyone * (n + 1)])
        weights = xp.concat([weights, xp.ones_like(everyone, dtype=weights.dtype)])
    edges, order = edges.sort()
    weights = weights[order]
    # An edge that both of its ends chose is there twice, in a row.
    again = edges[1:] == edges[:-1]
    weights[:-1] = xp.where(again, xp.maximum(weights[:-1], weights[1:]), weights[:-1])
    first = xp.ones_like(edges, dtype=xp.bool)
    first[1:] = ~again
    edges, weights = edges[first], weights[first]
    starts = xp.searchsorted(edges, xp.arange(n + 1, device=edges.device) * n)
    return _csr(starts, edges % n, weights)


def normalised_adjacency(W: Any) -> Any:
    """G^-1/2 W G^-1/2 with G the degrees; rows without edges stay empty."""
    on_device = is_torch_array(W)
    starts, columns = (W.crow_indices(), W.col_indices()) if on_device else (W.indptr, W.indices)
    weights = W.values() if on_device else W.data
    xp = namespace(weights)
    degrees = W @ xp.ones_like(starts[1:], dtype=weights.dtype)
    scale = xp.where(degrees > 0, degrees, 1.0) ** -0.5
    counts = starts[1:] - starts[:-1]
    tails = scale.repeat_interleave(counts) if on_device else np.repeat(scale, counts)
    return _csr(starts, columns, tails * weights * scale[columns])


def _csr(starts: Any, columns: Any, weights: Any) -> Any:
    """A square matrix in compressed rows."""
    n = len(starts) - 1
    if is_torch_array(weights):
        return sparse_tensor(starts, columns, weights, shape=(n, n))
    return sp.csr_array((weights, columns, starts), shape=(n, n))
