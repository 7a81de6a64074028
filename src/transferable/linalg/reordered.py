"""Tables too large to be copied, read in another order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Reordered"]


class Reordered:
    """A table too large to be copied, such as a memory map, that is read in another order.

    Parameters
    ----------
    table : ndarray of shape (n, d)
        The rows as they lie.
    order : ndarray of shape (n,)
        ``order[i]`` is the position in the table of row ``i``.
    """

    def __init__(self, table: NDArray[Any], order: NDArray[np.intp]) -> None:
        self.table, self.order = table, order
        self.shape, self.dtype = table.shape, table.dtype

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return np.asarray(self.table[self.order[rows]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("The rows of a reordered table are copied when they are read.")
        return np.asarray(self[:], dtype=dtype)

    def blocks(self, n_rows: int) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """Blocks in the order in which they lie, with the positions of their rows in ours."""
        positions = np.empty_like(self.order)
        positions[self.order] = np.arange(len(self.order))
        for start in range(0, len(self), n_rows):
            yield positions[start : start + n_rows], self.table[start : start + n_rows]
