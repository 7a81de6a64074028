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
        parts.append(largest(S, k))
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


def largest(S: Any, k: int) -> tuple[Any, Any]:
    """Values and columns of the k largest entries of each row, in any order.

    Columns are put into groups. The k largest entries lie in the k groups of the largest maxima,
    so one pass over S for the maxima leaves few entries to compare.
    """
    n, width = S.shape
    if width <= _DIRECT * k:
        return _select(S, k)
    xp = namespace(S)
    depth = math.isqrt(width // k)
    groups = width // depth
    full = depth * groups
    maxima = xp.max(xp.reshape(S[:, :full], (n, depth, groups)), axis=1)
    columns = xp.arange(width, device=device(S))
    members = xp.reshape(columns[:full], (depth, groups)).T
    inside = xp.reshape(members[_select(maxima, k)[1]], (n, k * depth))
    outside = xp.broadcast_to(columns[full:], (n, width - full))
    columns = xp.concat([inside, outside], axis=1)
    values, best = _select(xp.take_along_axis(S, columns, axis=1), k)
    return values, xp.take_along_axis(columns, best, axis=1)


def _select(S: Any, k: int) -> tuple[Any, Any]:
    """The same by comparing all entries."""
    if is_torch_array(S):
        top = S.topk(k, dim=1, sorted=False)
        return top.values, top.indices
    columns = np.argpartition(S, S.shape[1] - k, axis=1)[:, S.shape[1] - k :]
    return np.take_along_axis(S, columns, axis=1), columns


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
