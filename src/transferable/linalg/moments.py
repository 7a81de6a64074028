"""Counts, sums and Gram matrices of rows: statistics that add up over blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from transferable.limits import LIMITS
from transferable.linalg.arrays import CPU, Arrays, namespace
from transferable.linalg.rows import dense
from transferable.threads import in_threads

__all__ = ["Moments", "moments_of_blocks", "moments_of_groups", "moments_of_rows", "row_blocks"]

_NARROW = 512  # columns up to which a product of a few rows is worth a thread
_CACHED_VALUES = 2**18  # 2 MB in float64
_PARTS = 64


@dataclass(frozen=True)
class Moments:
    """How many rows there are, their sum and X'X, in float64 whatever the rows are in.

    Moments of tables add up to those of the stacked tables, in any grouping, so that rows can be
    read block by block, by one worker or by many. A row of weight w counts as w rows.
    """

    count: float
    total: Any
    gram: Any

    @classmethod
    def none(cls, width: int, arrays: Arrays = CPU) -> Moments:
        """Moments of no rows."""
        return cls(0, arrays.table(np.zeros(width)), arrays.table(np.zeros((width, width))))

    @classmethod
    def of(cls, X: Any, weights: Any = None) -> Moments:
        """Moments of a table small enough to be worked on at once, with weights of its rows."""
        if weights is not None:
            return cls._weighted(X, weights)
        gram = dense(X.T @ X)
        if sp.issparse(X):
            total = np.asarray(X.sum(axis=0), dtype=np.float64).ravel()
            return cls(X.shape[0], total, gram.astype(np.float64))
        xp = namespace(X)
        return cls(len(X), xp.sum(X, axis=0, dtype=xp.float64), xp.astype(gram, xp.float64))

    @classmethod
    def _weighted(cls, X: Any, weights: Any) -> Moments:
        if sp.issparse(X):
            total = np.asarray(X.T @ weights, dtype=np.float64)
            gram = dense(X.T @ sp.diags_array(weights) @ X).astype(np.float64)
            return cls(float(weights.sum()), total, gram)
        xp = namespace(X)
        scaled = xp.astype(weights, X.dtype)[:, None] * X
        gram = xp.astype(scaled.T @ X, xp.float64)
        return cls(float(weights.sum()), xp.sum(scaled, axis=0, dtype=xp.float64), gram)

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.count + other.count, self.total + other.total, self.gram + other.gram)

    @property
    def mean(self) -> Any:
        """The mean row."""
        return self.total / (self.count or 1)

    @property
    def covariance(self) -> Any:
        """Covariance of the rows, divided by their number; zero if there are none."""
        mean = self.mean
        return self.gram / (self.count or 1) - mean[:, None] * mean[None, :]


def moments_of_blocks(
    table: Any, within: slice, arrays: Arrays = CPU, weights: NDArray[np.float64] | None = None
) -> Moments:
    """Moments of the rows of a slice, of a table that gives blocks of its rows.

    `weights`, if any, are those of all rows.
    """
    blocks = (
        Moments.of(block, _of_rows(weights, rows, arrays)) for rows, block in table.blocks(within)
    )
    return reduce(add, blocks, Moments.none(table.rank, arrays))


def moments_of_rows(X: Any, weights: NDArray[np.float64] | None = None) -> Moments:
    """Moments of a table of any size, dense or sparse, in double precision throughout.

    Parts of a narrow table are summed by threads; their number depends on its shape alone.
    """
    n, width = X.shape
    narrow = not sp.issparse(X) and width <= _NARROW and n * width > LIMITS.block_values
    step, parts = (_CACHED_VALUES // max(width, 1), _PARTS) if narrow else (None, 1)

    def summed(part: slice) -> Moments:
        total = Moments.none(width)
        for block in row_blocks(part.stop - part.start, width, step):
            rows = slice(part.start + block.start, part.start + block.stop)
            own = None if weights is None else weights[rows]
            total += Moments.of(X[rows].astype(np.float64), own)
        return total

    bounds = np.linspace(0, n, parts + 1).astype(int).tolist()
    return reduce(add, in_threads(summed, [slice(*ends) for ends in pairwise(bounds)]))


def moments_of_groups(
    table: Any,
    codes: NDArray[np.intp],
    n_groups: int,
    within: slice,
    arrays: Arrays = CPU,
    weights: NDArray[np.float64] | None = None,
) -> list[Moments]:
    """The same for the rows of each group, which `codes` tell of all rows."""
    moments = [Moments.none(table.rank, arrays) for _ in range(n_groups)]
    for rows, block in table.blocks(within):
        for code in np.unique(codes[rows]):
            some = np.flatnonzero(codes[rows] == code)
            moments[code] += Moments.of(block[some], _of_rows(weights, rows.start + some, arrays))
    return moments


def _of_rows(weights: NDArray[np.float64] | None, rows: Any, arrays: Arrays) -> Any:
    return None if weights is None else arrays.table(weights[rows])


def row_blocks(n: int, width: int, rows: int | None = None, *, on_gpu: bool = False) -> list[slice]:
    """Slices of n rows, of the number given or as many as suit caches, or a GPU, at this width."""
    values = LIMITS.gpu_block_values if on_gpu else LIMITS.block_values
    step = rows or max(1, values // max(width, 1))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
