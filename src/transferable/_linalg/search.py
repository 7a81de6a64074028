"""Nearest rows by cosine, on a CPU or a GPU, and their graph.

All rows are compared, in blocks of bounded memory.

In the graph of anchors, rows are joined through the few centres that they are tied to. Each row has
weights on its s nearest anchors that sum to one, a row of Z, and the graph is W = Z diag(Z'1)^-1
Z'. All degrees are one, so that its Laplacian is I - W, and Phi' W Phi needs only Z'Phi and Z'1,
which add up over blocks of rows.

Liu, He and Chang, "Large graph construction for scalable semi-supervised learning", ICML 2010.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from transferable._linalg.arrays import (
    CPU,
    Arrays,
    device,
    is_torch_array,
    namespace,
    products,
    row_blocks,
    sparse_tensor,
    unit_rows,
)
from transferable.limits import LIMITS

_KMEANS_ROUNDS = 5
_DIRECT = 64  # rows of up to so many values for each one wanted are searched without groups


class Neighbors(NamedTuple):
    """Nearest rows of each query, in any order."""

    indices: Any
    similarities: Any


def nearest(queries: Any, base: Any | None = None, k: int = 1) -> Neighbors:
    """Return the k rows of `base` with the largest inner products with each query.

    Parameters
    ----------
    queries, base : arrays, sparse matrices or torch tensors of shapes (n_queries, d), (n_base, d)
        Rows of unit length or zero, both tables of the same kind; tensors are searched on their
        device. None for `base` searches among the queries, for other rows than the query.
    k : int
        Neighbours of each row.

    Returns
    -------
    Neighbors
        In single precision where dense tables have more than 2^30 pairs of rows. Of rows that are
        equally near up to rounding, those of the lowest indices are taken; the similarities are
        returned as computed.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable._linalg.search import nearest
    >>> nearest(np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])).indices.ravel()
    array([1, 2, 1])
    """
    alone = base is None
    n, width = queries.shape[0], (queries if base is None else base).shape[0]
    if k > width - alone:
        raise ValueError(
            f"k={k} neighbours of each row are requested, but there are {width - alone}."
        )
    if n * width > LIMITS.double_pairs and not sp.issparse(queries):
        xp = namespace(queries)
        queries = xp.astype(queries, xp.float32, copy=False)
        base = None if base is None else xp.astype(base, xp.float32, copy=False)
    base = queries if base is None else base
    on_gpu = is_torch_array(queries) and queries.is_cuda
    most = LIMITS.gpu_similarity_values if on_gpu else LIMITS.similarity_values
    step, buffer = min(n, max(LIMITS.fewest_queries, most // width)), None
    if not sp.issparse(queries) and not sp.issparse(base):
        xp = namespace(queries)
        buffer = xp.empty(step * width, dtype=queries.dtype, device=device(queries))
    parts = []
    began = perf_counter()
    for start in range(0, n, step):
        S = products(queries[start : start + step], base, buffer)
        if alone:
            own = namespace(S).arange(len(S), device=device(S))
            S[own, start + own] = -math.inf
        parts.append(largest(S, k, queries.shape[1]))
        seconds = (perf_counter() - began) * n / step
        if len(parts) == 1 and seconds > LIMITS.announced_seconds:
            _warn_of_time(seconds, n, width)
    values, columns = zip(*parts, strict=True)
    xp = namespace(values[0])
    return Neighbors(xp.concat(columns), xp.concat(values))


def block_rows(like: Any, width: int) -> int:
    """Return how many rows to compare with `width` others at a time, where the table lives."""
    on_gpu = Arrays.of(like).on_gpu
    values = LIMITS.gpu_similarity_values if on_gpu else LIMITS.similarity_values
    return max(LIMITS.fewest_queries, values // width)


def largest(S: Any, k: int, n_summed: int = 0) -> tuple[Any, Any]:
    """Return values and columns of the k largest entries of each row, in any order.

    Entries are inner products of rows of unit length, sums of `n_summed` products. Those that their
    rounding can have parted from the k-th largest are equal to it, and the first are taken.
    """
    xp, (n, width) = namespace(S), S.shape
    if width == k:
        return xp.asarray(S, copy=True), xp.broadcast_to(xp.arange(k, device=device(S)), (n, k))
    values, columns, left = _select(S, k) if width <= _DIRECT * k else _select_by_groups(S, k)
    lowest = xp.min(values, axis=1)
    # Equal rows were measured to differ by up to 3.5 units for 10 features, 27 for 4,096.
    margin = (4 + math.sqrt(n_summed) / 2) * float(xp.finfo(S.dtype).eps)
    tied = xp.nonzero(left >= lowest - margin)[0]
    step = max(1, LIMITS.similarity_values // (8 * width))
    for start in range(0, len(tied), step):
        rows = slice(start, start + step)
        some = S[tied[rows]]
        columns[tied[rows]] = _first_of_equal(some, lowest[tied[rows]][:, None], margin, k)
        values[tied[rows]] = xp.take_along_axis(some, columns[tied[rows]], axis=1)
    return values, columns


def _select(S: Any, k: int) -> tuple[Any, Any, Any]:
    """Return values and columns of the k largest entries of each row, and the largest left over."""
    if is_torch_array(S):
        top = S.topk(k + 1, dim=1)
        return top.values[:, :k], top.indices[:, :k], top.values[:, k]
    columns = np.argpartition(S, S.shape[1] - k - 1, axis=1)[:, S.shape[1] - k - 1 :]
    values = np.take_along_axis(S, columns, axis=1)
    return values[:, 1:], columns[:, 1:], values[:, 0]


def _select_by_groups(S: Any, k: int) -> tuple[Any, Any, Any]:
    """Return the result of :func:`_select` for rows of many entries.

    Columns form groups. The k largest entries lie in the k groups of the largest maxima, so one
    pass over S for the maxima leaves few entries to compare.
    """
    xp, (n, width) = namespace(S), S.shape
    depth = math.isqrt(width // k)
    groups = width // depth
    full = depth * groups
    maxima = xp.max(xp.reshape(S[:, :full], (n, depth, groups)), axis=1)
    columns = xp.arange(width, device=device(S))
    members = xp.reshape(columns[:full], (depth, groups)).T
    _, chosen, left = _select(maxima, k)
    inside = xp.reshape(members[chosen], (n, k * depth))
    outside = xp.broadcast_to(columns[full:], (n, width - full))
    columns = xp.concat([inside, outside], axis=1)
    values, best, next_best = _select(xp.take_along_axis(S, columns, axis=1), k)
    return values, xp.take_along_axis(columns, best, axis=1), xp.maximum(left, next_best)


def _first_of_equal(S: Any, lowest: Any, margin: float, k: int) -> Any:
    """Return the columns of all entries above the lowest, and the first of those equal to it."""
    xp = namespace(S)
    above = lowest + margin < S
    equal = (lowest - margin <= S) & ~above
    wanted = k - xp.count_nonzero(above, axis=1, keepdims=True)
    taken = above | (equal & (xp.cumulative_sum(equal, axis=1, dtype=xp.int32) <= wanted))
    return xp.reshape(xp.nonzero(taken)[1], (len(S), k))


def _warn_of_time(seconds: float, n: int, width: int) -> None:
    warnings.warn(
        f"The search for the nearest of {width:,} rows to each of {n:,} will take about "
        f"{seconds / 60:.0f} minutes, by the time of its first block. Sparse rows reduced to a few "
        "hundred dense features (for example by sklearn.decomposition.TruncatedSVD) are searched "
        'much faster; a graph="anchors" needs no search.',
        UserWarning,
        stacklevel=3,
    )


def cosine_neighbors(X: Any, n_neighbors: int, self_loops: bool = False) -> Any:
    """Return the symmetric graph that joins rows if either is among the other's nearest by cosine.

    It is sparse, on the device of X, with the cosines on its edges; rows at an obtuse angle are not
    joined. With `self_loops` each row is joined to itself too, with weight 1, as in the code of
    ARTL and MEDA.
    """
    found = nearest(unit_rows(X), None, n_neighbors)
    if is_torch_array(X):
        return _join_on_device(found.indices, found.similarities, self_loops)
    n, k = found.indices.shape
    weights = np.maximum(found.similarities, 0.0, dtype=np.float64)
    starts = np.arange(0, n * k + 1, k)
    W = sp.csr_array((weights.ravel(), found.indices.ravel(), starts), shape=(n, n))
    W = W.maximum(W.T)
    return (W + sp.eye_array(n)).tocsr() if self_loops else W.tocsr()


def _join_on_device(indices: Any, cosines: Any, self_loops: bool) -> Any:
    """Join neighbours on their device: edges in both directions, sorted, the larger kept."""
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
    return sparse_tensor(starts, edges % n, weights, shape=(n, n))


def normalised_adjacency(W: Any) -> Any:
    """Return G^-1/2 W G^-1/2 with G the degrees; rows without edges stay empty."""
    on_device = is_torch_array(W)
    starts, columns = (W.crow_indices(), W.col_indices()) if on_device else (W.indptr, W.indices)
    weights = W.values() if on_device else W.data
    xp = namespace(weights)
    degrees = W @ xp.ones_like(starts[1:], dtype=weights.dtype)
    scale = xp.where(degrees > 0, degrees, 1.0) ** -0.5
    counts = starts[1:] - starts[:-1]
    tails = scale.repeat_interleave(counts) if on_device else np.repeat(scale, counts)
    values, n = tails * weights * scale[columns], len(starts) - 1
    if on_device:
        return sparse_tensor(starts, columns, values, shape=(n, n))
    return sp.csr_array((values, columns, starts), shape=(n, n))


def membership_table(weights: Any, columns: Any, k: int) -> Any:
    """Return a table of k columns with these weights in each row.

    A GPU multiplies by a table of mostly zeros faster than by a sparse one.
    """
    n, s = weights.shape
    if is_torch_array(weights):
        xp = namespace(weights)
        table = xp.zeros((n, k), dtype=weights.dtype, device=device(weights))
        return table.scatter_(1, columns, weights)
    starts = np.arange(0, n * s + 1, s)
    return sp.csr_array((weights.ravel(), columns.ravel(), starts), shape=(n, k))


def spherical_means(rows: Any, centers: Any, rounds: int = _KMEANS_ROUNDS) -> Any:
    """Return centres of unit length by k-means on dense rows, from given ones.

    A centre that no row is nearest to stays where it is.
    """
    xp, k = namespace(rows), len(centers)
    blocks = row_blocks(len(rows), k, block_rows(rows, k))
    for _ in range(rounds):
        totals = xp.zeros(centers.shape, dtype=xp.float64, device=device(rows))
        for block in blocks:
            nearest = xp.argmax(products(rows[block], centers), axis=1)[:, None]
            members = membership_table(xp.ones_like(nearest, dtype=rows.dtype), nearest, k)
            totals += members.T @ rows[block]
        lengths = xp.linalg.vector_norm(totals, axis=1, keepdims=True)
        moved = xp.astype(totals / xp.where(lengths > 0, lengths, 1.0), centers.dtype)
        centers = xp.where(lengths > 0, moved, centers)
    return centers


@dataclass(frozen=True)
class AnchorSums:
    """Z'1 and Z'Phi in float64, additive over tables."""

    counts: Any
    totals: Any

    @classmethod
    def none(cls, n_anchors: int, width: int, arrays: Arrays = CPU) -> AnchorSums:
        """Return sums over no rows."""
        totals = arrays.table(np.zeros((n_anchors, width)))
        return cls(arrays.table(np.zeros(n_anchors)), totals)

    @classmethod
    def of(cls, Z: Any, features: Any) -> AnchorSums:
        """Return the sums of a table small enough for one block."""
        totals, counts = Z.T @ features, Z.sum(axis=0)
        xp = namespace(totals)
        return cls(xp.astype(counts, xp.float64), xp.astype(totals, xp.float64))

    def __add__(self, other: AnchorSums) -> AnchorSums:
        return AnchorSums(self.counts + other.counts, self.totals + other.totals)

    @property
    def means(self) -> Any:
        """Mean features of each anchor, diag(Z'1)^-1 Z'Phi; zero for anchors without rows."""
        xp, some = namespace(self.counts), self.counts > 0
        return self.totals * xp.where(some, 1.0 / xp.where(some, self.counts, 1.0), 0.0)[:, None]

    @property
    def gram(self) -> Any:
        """Product Phi' W Phi."""
        return self.totals.T @ self.means


@dataclass(frozen=True)
class Anchors:
    """Centres that rows are tied to."""

    centers: Any  # (n_anchors, d): centres of unit length, as the rows are
    n_nearest: int  # s, anchors of a row; fewer than there are
    arrays: Arrays = CPU  # library and device of the algebra

    def __len__(self) -> int:
        return int(self.centers.shape[0])

    def ties(self, rows: Any) -> Any:
        """Return Z of some rows: sparse in compressed rows with numpy, dense with torch."""
        k = len(self)
        step, buffer = block_rows(rows, k), None
        if not is_torch_array(rows) and not sp.issparse(rows):
            step = min(step, LIMITS.mapped_rows)
            buffer = np.empty(step * k, dtype=np.result_type(rows, self.centers))
        blocks = row_blocks(rows.shape[0], k, step) or [slice(0, 0)]
        cosines = (self.arrays.table(products(rows[b], self.centers, buffer)) for b in blocks)
        parts = [largest(some, self.n_nearest + 1) for some in cosines]
        xp = namespace(parts[0][0])
        cosines, columns = (xp.concat(list(part)) for part in zip(*parts, strict=True))
        return membership_table(_weights(cosines), columns, k)

    def sums(self, blocks: Iterable[tuple[Any, Any]], width: int) -> AnchorSums:
        """Return sums over blocks of rows, each with the features of its rows and their number."""
        parts = (AnchorSums.of(self.ties(rows), features) for rows, features in blocks)
        return reduce(add, parts, AnchorSums.none(len(self), width, self.arrays))


def _weights(cosines: Any) -> Any:
    """Return weights that sum to one, by distance relative to the farthest of the anchors given.

    As a row moves away from an anchor its weight falls to zero before another anchor replaces it,
    so that Z is continuous in the rows.
    """
    xp = namespace(cosines)
    eps = float(xp.finfo(cosines.dtype).eps)  # where all are as near, all count alike
    weights = cosines - xp.min(cosines, axis=1, keepdims=True) + eps
    return weights / xp.sum(weights, axis=1, keepdims=True)
