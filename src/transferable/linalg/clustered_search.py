"""Approximate search for the nearest of many rows: only in the clusters near a row's own.

Rows are put into a few times sqrt(n) clusters by k-means on a sample. The rows of one cluster are
then compared at once, by one matrix product, with the members of the clusters whose centres are
nearest to its own. How many clusters that takes is read off a sample of rows whose neighbours are
known from an exact search, as far as the rows to compare with stay within a bound, which keeps the
time linear; and the recall is measured on a second sample. The idea of searching the nearest cells
of a coarse quantiser only is that of the inverted file:

Sivic and Zisserman, "Video Google: a text retrieval approach to object matching in videos",
ICCV 2003; Jegou, Douze and Schmid, "Product quantization for nearest neighbor search", TPAMI 2011.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from transferable.limits import LIMITS
from transferable.linalg.anchors import spherical_means
from transferable.linalg.arrays import Arrays, device, is_torch_array, namespace, to_numpy
from transferable.linalg.blocked_search import block_rows, exact_search, largest
from transferable.linalg.moments import row_blocks
from transferable.linalg.rows import products
from transferable.threads import in_threads, n_threads

__all__ = ["clustered_search"]

# Clusters for each root of the number of rows; on a GPU a few large products cost less than many.
_CLUSTERS, _GPU_CLUSTERS = 4.0, 1.0
_ROWS_PER_CENTER = 32  # in the sample that k-means sees
# Rows whose neighbours are searched exactly, or more if they have few; once to choose how many
# clusters to search, once to measure the recall. The share of the first ones' neighbours that must
# be found leaves room for the difference between the two samples.
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
        """Rows of X around their nearest centre."""
        xp = namespace(X)
        labels = _closest(X, centers)
        order = xp.argsort(labels, stable=True)
        starts = xp.searchsorted(labels[order], xp.arange(len(centers) + 1, device=device(X)))
        return cls(X[order], order, labels, starts)


def clustered_search(
    queries: Any, base: Any | None, k: int, random_state: int = 0
) -> tuple[Any, Any, float]:
    """Indices and inner products of about the k nearest rows of `base`, and the recall.

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
    """Centres of unit length by k-means on a sample of the rows."""
    xp = namespace(X)
    picked = rng.choice(len(X), min(len(X), _ROWS_PER_CENTER * count), replace=False)
    sample = X[xp.asarray(picked, device=device(X))]
    return spherical_means(sample, sample[:count])


def _closest(X: Any, centers: Any) -> Any:
    """The centre nearest to each row."""
    xp = namespace(X)
    step = min(len(X), block_rows(X, len(centers)))
    buffer = xp.empty(step * len(centers), dtype=X.dtype, device=device(X))
    blocks = row_blocks(len(X), len(centers), step)
    return xp.concat([xp.argmax(products(X[rows], centers, buffer), axis=1) for rows in blocks])


def _n_others(centers: Any, own: Any, others: Any, counted: Any) -> int:
    """How many other clusters to search, so that a row of cluster `own` finds those of `others`.

    Clusters are numbered by how near their centres are to that of `own`; the number is the
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
    """For each cluster itself first, then those nearest to it: more than k rows altogether."""
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
    """Indices and similarities of the k nearest rows in the clusters probed from each cluster."""
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
    """Each value as often as counted; the total spares a GPU from telling its host."""
    if is_torch_array(values):
        return values.repeat_interleave(counts, output_size=total)
    return np.repeat(values, counts)
