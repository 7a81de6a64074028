"""Counts, sums and Gram matrices of rows, and rows that are read block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from transferable._linalg.arrays import (
    CACHED_VALUES,
    CPU,
    Arrays,
    dense,
    in_threads,
    namespace,
    row_blocks,
)
from transferable.limits import LIMITS

_NARROW = 512  # columns up to which a product of a few rows is worth a thread
_PARTS = 64


@dataclass(frozen=True)
class Moments:
    """Number of rows, their sum and X'X, always in float64.

    Moments are additive over tables, in any grouping, so that rows can be read block by block, by
    one worker or by many. A row of weight w counts as w rows.
    """

    count: float
    total: Any
    gram: Any

    @classmethod
    def none(cls, width: int, arrays: Arrays = CPU) -> Moments:
        """Return moments of no rows."""
        return cls(0, arrays.table(np.zeros(width)), arrays.table(np.zeros((width, width))))

    @classmethod
    def of(cls, X: Any, weights: Any = None) -> Moments:
        """Return the moments of a table small enough for one block."""
        double = np.float64 if sp.issparse(X) else namespace(X).float64
        if weights is None or bool((weights == 1.0).all()):  # needs no weighted copy
            count, total, R = X.shape[0], X.sum(axis=0, dtype=double), X
        elif sp.issparse(X):
            count, total = float(weights.sum()), X.T @ weights
            R = sp.diags_array(np.sqrt(weights)) @ X
        else:
            xp = namespace(X)
            count = float(weights.sum())
            total = xp.astype(weights, xp.float64) @ xp.astype(X, xp.float64, copy=False)
            R = xp.astype(weights**0.5, X.dtype)[:, None] * X
        gram = dense(R.T @ R)  # BLAS computes half of a table times itself
        if sp.issparse(X):
            return cls(count, np.asarray(total, dtype=np.float64).ravel(), gram.astype(np.float64))
        return cls(count, total, namespace(X).astype(gram, double, copy=False))

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.count + other.count, self.total + other.total, self.gram + other.gram)

    @property
    def mean(self) -> Any:
        """Mean row."""
        return self.total / (self.count or 1)

    @property
    def covariance(self) -> Any:
        """Covariance of the rows, divided by their number; zero if there are none."""
        mean = self.mean
        return self.gram / (self.count or 1) - mean[:, None] * mean[None, :]


def moments_of_blocks(
    table: Any, within: slice, arrays: Arrays = CPU, weights: NDArray[np.float64] | None = None
) -> Moments:
    """Return moments of the rows of a slice, of a table that yields blocks of its rows.

    `weights`, if any, are those of all rows.
    """
    if weights is not None and (weights[within] == 1.0).all():
        weights = None  # without a copy to the device
    blocks = (
        Moments.of(block, None if weights is None else arrays.table(weights[rows]))
        for rows, block in table.blocks(within)
    )
    first = next(blocks, None)
    return Moments.none(table.rank, arrays) if first is None else reduce(add, blocks, first)


def moments_of_rows(X: Any, weights: NDArray[np.float64] | float = 1.0) -> Moments:
    """Return moments of a table of any size, dense or sparse, in double precision throughout.

    Parts of a narrow table are summed by threads; their number depends on its shape alone.
    """
    n, width = X.shape
    weights = np.broadcast_to(weights, n)
    narrow = not sp.issparse(X) and width <= _NARROW and n * width > LIMITS.block_values
    step, parts = (CACHED_VALUES // max(width, 1), _PARTS) if narrow else (None, 1)

    def summed(part: slice) -> Moments:
        total = Moments.none(width)
        for block in row_blocks(part.stop - part.start, width, step):
            rows = slice(part.start + block.start, part.start + block.stop)
            total += Moments.of(X[rows].astype(np.float64), weights[rows])
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
    """Return the moments of each group of rows; `codes` are the groups of all rows."""
    moments = [Moments.none(table.rank, arrays) for _ in range(n_groups)]
    if weights is not None and (weights[within] == 1.0).all():
        weights = None  # without copies to the device
    for rows, block in table.blocks(within):
        for code in np.unique(codes[rows]):
            some = np.flatnonzero(codes[rows] == code)
            own = None if weights is None else arrays.table(weights[rows.start + some])
            moments[code] += Moments.of(block[some], own)
    return moments


class RowTable:
    """Rows as they are, with the products that :class:`FeatureTable` offers of features.

    `X` is an array, or anything that gives one for a slice of rows; it is read by blocks of
    `block_rows` rows, or of as many as suit caches.
    """

    def __init__(self, X: Any, block_rows: int | None = None) -> None:
        self.X = X
        self.n, self.rank = X.shape
        self._slices = row_blocks(self.n, self.rank, block_rows)

    def part(self, within: slice | NDArray[np.intp]) -> RowTable:
        """Return the rows of a slice, or at some positions, as an unread table."""
        if isinstance(within, slice):
            return RowTable(_Part(self.X, within.start, within.stop))
        return RowTable(_Some(self.X, within))

    def blocks(self, within: slice | None = None) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield slices of rows, all or those within a slice, with the rows."""
        within = within or slice(0, self.n)
        for block in self._slices:
            rows = slice(max(block.start, within.start), min(block.stop, within.stop))
            if rows.start < rows.stop:
                yield rows, np.ascontiguousarray(self.X[rows], dtype=np.float64)

    def times(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return X w."""
        out = np.empty((self.n, w.shape[1]))
        for rows, block in self.blocks():
            np.matmul(block, w, out=out[rows])
        return out

    def transposed_times(self, T: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return X' T."""
        total = np.zeros((self.rank, T.shape[1]))
        for rows, block in self.blocks():
            total += block.T @ T[rows]
        return total

    def mean(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted mean row."""
        return self.transposed_times((weights / weights.sum())[:, None])[:, 0]


class _Part:
    """Some rows of a table, read on request."""

    def __init__(self, X: Any, start: int, stop: int) -> None:
        self.X, self.start = X, start
        self.shape = stop - start, X.shape[1]

    def __getitem__(self, rows: slice) -> Any:
        return self.X[self.start + rows.start : self.start + rows.stop]


class _Some:
    """Rows at some positions of a table, read on request."""

    def __init__(self, X: Any, positions: NDArray[np.intp]) -> None:
        self.X, self.positions = X, positions
        self.shape = len(positions), X.shape[1]

    def __getitem__(self, rows: slice) -> Any:
        return self.X[self.positions[rows]]
