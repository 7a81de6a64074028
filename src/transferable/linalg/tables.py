"""A table of rows that is read block by block, in double precision whatever it is in."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.linalg.arrays import CPU, Arrays
from transferable.linalg.moments import Moments, row_blocks

__all__ = ["RowTable", "moments_of_blocks", "moments_of_groups"]


class RowTable:
    """Rows as they are, with the products that :class:`FeatureTable` offers of features.

    Parameters
    ----------
    X : array of shape (n, d)
        The rows: an array, or anything that gives one for a slice of rows.
    block_rows : int or None
        Rows of a block; None takes as many as suit caches.
    """

    def __init__(self, X: Any, block_rows: int | None = None) -> None:
        self.X = X
        self.n, self.rank = X.shape
        self._slices = row_blocks(self.n, self.rank, block_rows)

    def part(self, within: slice) -> RowTable:
        """The rows of a slice as a table of their own, not read yet."""
        return RowTable(_Part(self.X, within.start, within.stop))

    def blocks(self, within: slice | None = None) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Slices of rows, all or those within a slice, with the rows."""
        within = within or slice(0, self.n)
        for block in self._slices:
            rows = slice(max(block.start, within.start), min(block.stop, within.stop))
            if rows.start < rows.stop:
                yield rows, np.ascontiguousarray(self.X[rows], dtype=np.float64)

    def times(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """X w."""
        out = np.empty((self.n, w.shape[1]))
        for rows, block in self.blocks():
            np.matmul(block, w, out=out[rows])
        return out

    def transposed_times(self, T: NDArray[np.float64]) -> NDArray[np.float64]:
        """X' T."""
        total = np.zeros((self.rank, T.shape[1]))
        for rows, block in self.blocks():
            total += block.T @ T[rows]
        return total

    def mean(self) -> NDArray[np.float64]:
        """The mean row."""
        return self.transposed_times(np.full((self.n, 1), 1.0 / self.n))[:, 0]


class _Part:
    """Some rows of a table, read when they are asked for."""

    def __init__(self, X: Any, start: int, stop: int) -> None:
        self.X, self.start = X, start
        self.shape = stop - start, X.shape[1]

    def __getitem__(self, rows: slice) -> Any:
        return self.X[self.start + rows.start : self.start + rows.stop]


def moments_of_blocks(table: Any, within: slice, arrays: Arrays = CPU) -> Moments:
    """Moments of the rows of a slice, of a table that gives blocks of its rows."""
    blocks = (Moments.of(block) for _, block in table.blocks(within))
    return reduce(add, blocks, Moments.none(table.rank, arrays))


def moments_of_groups(
    table: Any, codes: NDArray[np.intp], n_groups: int, within: slice, arrays: Arrays = CPU
) -> list[Moments]:
    """The same for the rows of each group, which `codes` tell of all rows."""
    moments = [Moments.none(table.rank, arrays) for _ in range(n_groups)]
    for rows, block in table.blocks(within):
        for code in np.unique(codes[rows]):
            moments[code] += Moments.of(block[np.flatnonzero(codes[rows] == code)])
    return moments
