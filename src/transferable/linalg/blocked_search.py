"""Exact search for the rows with the largest inner products, in blocks of bounded memory."""

from __future__ import annotations

import math
import warnings
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from transferable.limits import LIMITS
from transferable.linalg.arrays import Arrays, device, is_torch_array, namespace
from transferable.linalg.moments import row_blocks
from transferable.linalg.rows import products

__all__ = ["block_rows", "exact_search", "largest"]

_DIRECT = 64  # rows of up to so many values for each one wanted are searched without groups


def exact_search(queries: Any, base: Any, k: int, own: Any = None) -> tuple[Any, Any]:
    """Indices and inner products of the k rows of `base` nearest to each query, in any order.

    Of rows that are equally near up to rounding, the first ones of `base` are taken.

    Parameters
    ----------
    queries, base : arrays or sparse matrices of shapes (n_queries, d) and (n_base, d)
        Both dense or both sparse.
    k : int
        At most the number of rows of `base`, less one if `own` is given.
    own : array of shape (n_queries,), optional
        The row of `base` that each query is, and which is no neighbour of its own.
    """
    n, width = queries.shape[0], base.shape[0]
    step = min(n, block_rows(queries, width))
    buffer = None
    if not sp.issparse(queries):
        xp = namespace(queries)
        buffer = xp.empty(step * width, dtype=queries.dtype, device=device(queries))
    parts = []
    began = perf_counter()
    for rows in row_blocks(n, width, step):
        S = products(queries[rows], base, buffer)
        if own is not None:
            S[namespace(S).arange(len(S), device=device(S)), own[rows]] = -math.inf
        parts.append(largest(S, k, queries.shape[1]))
        if len(parts) == 1:
            _warn_if_long((perf_counter() - began) * n / step, n, width)
    values, columns = zip(*parts, strict=True)
    xp = namespace(values[0])
    return xp.concat(columns), xp.concat(values)


def block_rows(like: Any, width: int) -> int:
    """Rows to compare with `width` others at a time, where the table lives."""
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
        By which the columns are first or last; else by their numbers.
    """
    xp, (n, width) = namespace(S), S.shape
    if width == k:
        return xp.asarray(S, copy=True), xp.broadcast_to(xp.arange(k, device=device(S)), (n, k))
    values, columns, left = _select(S, k) if width <= _DIRECT * k else _select_by_groups(S, k)
    lowest = xp.min(values, axis=1)
    # Equal rows were measured to differ by up to 3.5 units for 10 features, 27 for 4,096.
    margin = (4 + math.sqrt(n_summed) / 2) * float(xp.finfo(S.dtype).eps)
    tied = xp.nonzero(left >= lowest - margin)[0]
    for rows in row_blocks(len(tied), width, max(1, LIMITS.similarity_values // (8 * width))):
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
    """Return what :func:`_select` returns, for rows of many entries.

    Columns are put into groups. The k largest entries lie in the k groups of the largest maxima,
    so one pass over S for the maxima leaves few entries to compare.
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


def _warn_if_long(seconds: float, n: int, width: int) -> None:
    if seconds > LIMITS.announced_seconds:
        warnings.warn(
            f"The exact search for the nearest of {width:,} rows to each of {n:,} will take about "
            f"{seconds / 60:.0f} minutes, by the time of its first block. Sparse rows are always "
            "searched exactly; reduced to a few hundred dense features (for example by "
            "sklearn.decomposition.TruncatedSVD) they are searched by clusters, much faster.",
            UserWarning,
            stacklevel=3,
        )
