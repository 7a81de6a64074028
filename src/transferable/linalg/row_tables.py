"""Rows that are read block by block, in double precision whatever it is in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.linalg.moments import row_blocks

__all__ = ["RowTable"]


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

    def part(self, within: slice | NDArray[np.intp]) -> RowTable:
        """The rows of a slice, or at some positions, as a table of their own, not read yet."""
        if isinstance(within, slice):
            return RowTable(_Part(self.X, within.start, within.stop))
        return RowTable(_Some(self.X, within))

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

    def mean(self, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The mean row, of rows with weights if there are any."""
        shares = np.full(self.n, 1.0 / self.n) if weights is None else weights / weights.sum()
        return self.transposed_times(shares[:, None])[:, 0]


class _Part:
    """Some rows of a table, read when they are asked for."""

    def __init__(self, X: Any, start: int, stop: int) -> None:
        self.X, self.start = X, start
        self.shape = stop - start, X.shape[1]

    def __getitem__(self, rows: slice) -> Any:
        return self.X[self.start + rows.start : self.start + rows.stop]


class _Some:
    """Rows at some positions of a table, read when they are asked for."""

    def __init__(self, X: Any, positions: NDArray[np.intp]) -> None:
        self.X, self.positions = X, positions
        self.shape = len(positions), X.shape[1]

    def __getitem__(self, rows: slice) -> Any:
        return self.X[self.positions[rows]]
