"""Nearest rows by cosine, exact or approximate, on a CPU or a GPU, and their graph.

Few rows are compared with all others, in blocks of bounded memory. Of many, only rows in nearby
clusters are compared: k-means on a sample makes a few times sqrt(n) clusters, and one matrix
product compares the rows of a cluster with the members of the clusters nearest to it. The number of
clusters follows from a sample of rows with an exact search, within a bound on the candidates that
keeps the time linear, and the recall is measured on a second sample. Searching only the nearest
cells of a coarse quantiser is the idea of the inverted file:

Sivic and Zisserman, "Video Google: a text retrieval approach to object matching in videos",
ICCV 2003; Jegou, Douze and Schmid, "Product quantization for nearest neighbor search", TPAMI 2011.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from transferable._linalg.arrays import (
    Arrays,
    device,
    in_threads,
    is_torch_array,
    n_threads,
    namespace,
    products,
    row_blocks,
    sparse_tensor,
    to_numpy,
    unit_rows,
)
from transferable.limits import LIMITS


@dataclass(frozen=True)
class Neighbors:
    """Nearest rows of each query, in any order, and how they were found."""

    indices: Any
    similarities: Any
    recall: float  # share of the nearest rows that were found; 1 for an exact search
    method: Literal["exact", "clustered"]


def nearest(
    queries: Any, base: Any | None = None, k: int = 1, *, random_state: int = 0
) -> Neighbors:
    """Return the k rows of `base` with the largest inner products with each query.

    Parameters
    ----------
    queries, base : arrays, sparse matrices or torch tensors of shapes (n_queries, d), (n_base, d)
        Rows of unit length or zero, both tables of the same kind; tensors are searched on their
        device. None for `base` searches among the queries, for other rows than the query.
    k : int
        Neighbours of each row.
    random_state : int
        Seed of the samples that the approximate search draws.

    Returns
    -------
    Neighbors
        Exact for sparse rows, where the numbers of rows multiply to at most 2^30, and where one
        of them is at most 4,096; else found in single precision by clusters, with a recall that is
        aimed at 0.97, as far as about 8,192 candidates for each row allow, and measured.
        Of rows that are equally near up to rounding, those of the lowest indices are taken; the
        similarities are returned as computed.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable._linalg.search import nearest
    >>> nearest(np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])).indices.ravel()
    array([1, 2, 1])
    """
    n_queries = queries.shape[0]
    n_base = n_queries if base is None else base.shape[0]
    available = n_base - (base is None)
    if k > available:
        raise ValueError(f"k={k} must be at most {available}, the number of other rows.")
    few = n_queries * n_base <= LIMITS.exact_pairs
    if few or min(n_queries, n_base) <= LIMITS.short_rows or sp.issparse(queries):
        own = None
        if base is None:
            own = np.arange(n_queries)
            if is_torch_array(queries):
                own = namespace(queries).asarray(own, device=device(queries))
        found = exact_search(queries, queries if base is None else base, k, own)
        return Neighbors(*found, 1.0, "exact")
    return Neighbors(*clustered_search(queries, base, k, random_state), "clustered")


_KMEANS_ROUNDS = 5
_DIRECT = 64  # rows of up to so many values for each one wanted are searched without groups


def exact_search(queries: Any, base: Any, k: int, own: Any = None) -> tuple[Any, Any]:
    """Return indices and inner products of the k rows of `base` nearest to each query, unsorted.

    Of rows that are equally near up to rounding, the first ones of `base` are taken.

    Parameters
    ----------
    queries, base : arrays or sparse matrices of shapes (n_queries, d) and (n_base, d)
        In one precision.
    k : int
        At most the number of rows of `base`, less one if `own` is given.
    own : array of shape (n_queries,), optional
        The row of `base` that each query is, which is not its own neighbour.
    """
    n, width = queries.shape[0], base.shape[0]
    on_gpu = is_torch_array(queries) and queries.is_cuda
    most = LIMITS.gpu_similarity_values if on_gpu else LIMITS.similarity_values
    step, buffer = min(n, max(LIMITS.fewest_queries, most // width)), None
    if not sp.issparse(queries) and not sp.issparse(base):
        xp = namespace(queries)
        buffer = xp.empty(step * width, dtype=queries.dtype, device=device(queries))
    parts = []
    began = perf_counter()
    for start in range(0, n, step):
        rows = slice(start, start + step)
        S = products(queries[rows], base, buffer)
        if own is not None:
            S[namespace(S).arange(len(S), device=device(S)), own[rows]] = -math.inf
        parts.append(largest(S, k, queries.shape[1]))
        seconds = (perf_counter() - began) * n / step
        if len(parts) == 1 and seconds > LIMITS.announced_seconds:
            _warn_of_time(seconds, n, width)
    values, columns = zip(*parts, strict=True)
    xp = namespace(values[0])
    return xp.concat(columns), xp.concat(values)


def block_rows(like: Any, width: int) -> int:
    """Return how many rows to compare with `width` others at a time, where the table lives."""
    on_gpu = Arrays.of(like).on_gpu
    values = LIMITS.gpu_similarity_values if on_gpu else LIMITS.similarity_values
    return max(LIMITS.fewest_queries, values // width)


def largest(S: Any, k: int, n_summed: int = 0, ids: Any = None) -> tuple[Any, Any]:
    """Return values and columns of the k largest entries of each row, in any order.

    Parameters
    ----------
    S : array of shape (n, width)
        Inner products of rows of unit length.
    k : int
        At most the width.
    n_summed : int
        Products that each entry is the sum of. Entries that their rounding can have parted from
        the k-th largest are equal to it, and of these the first are taken.
    ids : array of shape (width,), optional
        Ids that order the columns; else their numbers do.
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
        columns[tied[rows]] = _first_of_equal(some, lowest[tied[rows]][:, None], margin, k, ids)
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


def _first_of_equal(S: Any, lowest: Any, margin: float, k: int, ids: Any) -> Any:
    """Return the columns of all entries above the lowest, and the first of those equal to it."""
    xp = namespace(S)
    order = None if ids is None else xp.argsort(ids)
    if order is not None:
        S = S[:, order]
    above = lowest + margin < S
    equal = (lowest - margin <= S) & ~above
    wanted = k - xp.count_nonzero(above, axis=1, keepdims=True)
    taken = above | (equal & (xp.cumulative_sum(equal, axis=1, dtype=xp.int32) <= wanted))
    columns = xp.reshape(xp.nonzero(taken)[1], (len(S), k))
    return columns if order is None else order[columns]


def _warn_of_time(seconds: float, n: int, width: int) -> None:
    warnings.warn(
        f"The exact search for the nearest of {width:,} rows to each of {n:,} will take about "
        f"{seconds / 60:.0f} minutes, by the time of its first block. Sparse rows are always "
        "searched exactly; reduced to a few hundred dense features (for example by "
        "sklearn.decomposition.TruncatedSVD) they are searched by clusters, much faster.",
        UserWarning,
        stacklevel=4,
    )


# Clusters for each root of the number of rows; on a GPU a few large products cost less than many.
_CLUSTERS, _GPU_CLUSTERS = 4.0, 1.0
_ROWS_PER_CENTER = 32  # in the sample that k-means sees
# Rows whose neighbours are searched exactly, or more if they have few; once to choose the number of
# clusters, once to measure the recall. The required share of the first sample's neighbours leaves
# room for the difference between the two samples.
_CHECKED_ROWS, _CHECKED_NEIGHBORS = 500, 2000
_TARGET = 0.97


@dataclass(frozen=True)
class _Groups:
    """Rows sorted by the centre nearest to them."""

    rows: Any  # in that order
    order: Any  # their places in the table
    labels: Any  # of the table's rows
    starts: Any  # of each group among the sorted rows, and the end

    @classmethod
    def around(cls, X: Any, centers: Any) -> _Groups:
        """Group the rows of X by their nearest centre."""
        xp = namespace(X)
        labels = _closest(X, centers)
        order = xp.argsort(labels, stable=True)
        starts = xp.searchsorted(labels[order], xp.arange(len(centers) + 1, device=device(X)))
        return cls(X[order], order, labels, starts)


def clustered_search(
    queries: Any, base: Any | None, k: int, random_state: int = 0
) -> tuple[Any, Any, float]:
    """Return indices and inner products of about the k nearest rows of `base`, and the recall.

    Parameters
    ----------
    queries, base : arrays of shapes (n_queries, d) and (n_base, d)
        Rows of unit length or zero. None for `base` searches among the queries, for other rows.
    k : int
        Fewer than the rows of `base`.
    random_state : int
        Seed of the samples.

    Returns
    -------
    indices, similarities : arrays of shape (n_queries, k)
        In any order; the similarities in single precision. Of rows compared that are equally near
        up to rounding, the first ones of `base` are taken.
    recall : float
        Share of the nearest rows found, over a sample of queries.
    """
    xp = namespace(queries)
    queries = xp.astype(queries, xp.float32, copy=False)
    alone = base is None
    base = queries if alone else xp.astype(base, xp.float32, copy=False)
    rng = np.random.default_rng(random_state)
    per_root = _GPU_CLUSTERS if Arrays.of(base).on_gpu else _CLUSTERS
    centers = _centers(base, min(len(base), round(per_root * math.sqrt(len(base)))), rng)
    cells = _Groups.around(base, centers)
    asking = cells if alone else _Groups.around(queries, centers)

    half = min(len(queries) // 2, max(_CHECKED_ROWS, _CHECKED_NEIGHBORS // k))
    picked = rng.choice(len(queries), 2 * half, replace=False)
    picked = xp.asarray(picked, device=device(queries))
    known, cosines = exact_search(queries[picked], base, k, picked if alone else None)
    pairs = asking.labels[picked[:half]], cells.labels[known[:half]], cosines[:half] > 0
    most = max(1, round(LIMITS.candidates * len(centers) / len(base)) - 1)
    probes = _probes(centers, cells, min(most, _n_others(centers, *pairs)), k)
    indices, similarities = _search(asking, cells, probes, k, alone)
    found = similarities[picked[half:]] >= xp.min(cosines[half:], axis=1)[:, None] - 1e-6
    return indices, similarities, float(xp.mean(xp.astype(found, xp.float32)))


def _centers(X: Any, count: int, rng: np.random.Generator) -> Any:
    """Return centres of unit length by k-means on a sample of the rows."""
    xp = namespace(X)
    picked = rng.choice(len(X), min(len(X), _ROWS_PER_CENTER * count), replace=False)
    sample = X[xp.asarray(picked, device=device(X))]
    return spherical_means(sample, sample[:count])


def _closest(X: Any, centers: Any) -> Any:
    """Return the centre nearest to each row, the first of those that are as near up to rounding.

    Equal rows are in one group, whatever their places in a product do to their last digits.
    """
    xp, found = namespace(X), []
    step = min(len(X), block_rows(X, len(centers)))
    buffer = xp.empty(step * len(centers), dtype=X.dtype, device=device(X))
    margin = (4 + math.sqrt(X.shape[1]) / 2) * float(xp.finfo(X.dtype).eps)  # as in `largest`
    for rows in row_blocks(len(X), len(centers), step):
        S = products(X[rows], centers, buffer)
        near = xp.max(S, axis=1, keepdims=True) - margin <= S
        found.append(xp.argmax(xp.astype(near, xp.int8), axis=1))
    return xp.concat(found)


def _n_others(centers: Any, own: Any, others: Any, counted: Any) -> int:
    """Return how many other clusters a row of cluster `own` must search to find those of `others`.

    Clusters are numbered by the distance of their centres from that of `own`; the number is the
    quantile of those of the known neighbours, of which only some are `counted`.
    """
    xp = namespace(centers)
    near = centers[own] @ centers.T
    ranks = [
        xp.sum(near > xp.take_along_axis(near, others[:, j : j + 1], axis=1), axis=1)
        * (others[:, j] != own)
        for j in range(others.shape[1])
    ]
    ranked = np.sort(to_numpy(xp.stack(ranks, axis=1)[counted]))
    return max(1, int(ranked[math.ceil(_TARGET * len(ranked)) - 1])) if len(ranked) else 1


def _probes(centers: Any, cells: _Groups, n_others: int, k: int) -> Any:
    """Return, for each cluster, itself and those nearest to it: more than k rows altogether."""
    xp = namespace(centers)
    itself = xp.arange(len(centers), device=device(centers))
    near = centers @ centers.T
    near[itself, itself] = -math.inf
    sizes = cells.starts[1:] - cells.starts[:-1]
    while True:
        others = largest(near, min(n_others, len(centers) - 1))[1]
        probes = xp.concat([itself[:, None], others], axis=1)
        if n_others >= len(centers) - 1 or int(xp.min(xp.sum(sizes[probes], axis=1))) > k:
            return probes
        n_others *= 2


def _search(asking: _Groups, cells: _Groups, probes: Any, k: int, alone: bool) -> tuple[Any, Any]:
    """Return indices and similarities of the k nearest rows in the clusters probed from each."""
    xp = namespace(probes)
    sizes = (cells.starts[1:] - cells.starts[:-1])[probes]
    shifts = cells.starts[probes] - xp.cumulative_sum(sizes, axis=1) + sizes
    totals, bounds = to_numpy(xp.sum(sizes, axis=1)).tolist(), to_numpy(asking.starts).tolist()
    counting = xp.arange(max(totals), device=device(probes))
    shape = (len(asking.rows), k)
    indices = xp.empty(shape, dtype=cells.order.dtype, device=device(probes))
    similarities = xp.empty(shape, dtype=asking.rows.dtype, device=device(probes))

    def search(clusters: range) -> None:
        buffer = xp.empty(0, dtype=asking.rows.dtype, device=device(probes))
        for c in clusters:
            n, total = bounds[c + 1] - bounds[c], totals[c]
            step = min(n, block_rows(asking.rows, total))
            if len(buffer) < step * total:
                buffer = xp.empty(step * total, dtype=buffer.dtype, device=device(buffer))
            places = _repeated(shifts[c], sizes[c], total) + counting[:total]
            candidates, ids = cells.rows[places], cells.order[places]
            for block in row_blocks(n, total, step):
                here = slice(bounds[c] + block.start, bounds[c] + block.stop)
                S = products(asking.rows[here], candidates, buffer)
                if alone:  # the cluster's own rows come first among the candidates
                    S[counting[: len(S)], block.start + counting[: len(S)]] = -math.inf
                values, best = largest(S, k, candidates.shape[1], ids)
                similarities[asking.order[here]] = values
                indices[asking.order[here]] = ids[best]

    threads = 1 if is_torch_array(probes) else n_threads()
    list(in_threads(search, [range(first, len(totals), threads) for first in range(threads)]))
    return indices, similarities


def _repeated(values: Any, counts: Any, total: int) -> Any:
    """Repeat each value by its count; the total spares a GPU a synchronisation."""
    if is_torch_array(values):
        return values.repeat_interleave(counts, output_size=total)
    return np.repeat(values, counts)


@dataclass(frozen=True)
class Graph:
    """Weights of the edges, and how the neighbours were found."""

    weights: Any
    recall: float  # share of the nearest rows that were found; 1 for an exact search


def neighbor_graph(X: Any, n_neighbors: int, self_loops: bool = False) -> Graph:
    """Return the symmetric graph that joins rows if either is among the other's nearest by cosine.

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
    if is_torch_array(X):
        return Graph(_join_on_device(found.indices, found.similarities, self_loops), found.recall)
    n, k = found.indices.shape
    weights = np.maximum(found.similarities, 0.0, dtype=np.float64)
    starts = np.arange(0, n * k + 1, k)
    W = sp.csr_array((weights.ravel(), found.indices.ravel(), starts), shape=(n, n))
    W = W.maximum(W.T)
    W = (W + sp.eye_array(n)).tocsr() if self_loops else W.tocsr()
    return Graph(W, found.recall)


def cosine_neighbors(X: Any, n_neighbors: int, self_loops: bool = False) -> Any:
    """Return the weights of :func:`neighbor_graph`."""
    return neighbor_graph(X, n_neighbors, self_loops).weights


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
