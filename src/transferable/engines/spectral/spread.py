"""Range and variance of a table of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.linalg.row_tables import RowTable

__all__ = ["Extent", "Spread"]


@dataclass(frozen=True)
class Spread:
    """How far apart the rows of a table are.

    Attributes
    ----------
    range : float
        The largest difference between two values of one feature.
    largest : float
        The largest value, by its size.
    gamma : float
        1 / (n_features * variance of all values), or 1 if they do not vary: gamma="scale".
    """

    range: float
    largest: float
    gamma: float

    @classmethod
    def of(cls, X: Any) -> Spread:
        """Of a table that is read block by block."""
        table = RowTable(X)
        total = sum(float(rows.sum()) for _, rows in table.blocks())
        mean = total / (table.n * table.rank)
        return reduce(add, (Extent.of(rows, mean) for _, rows in table.blocks())).spread


@dataclass(frozen=True)
class Extent:
    """Lowest and highest values of each feature, and squares about a mean: they add up."""

    count: int
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    squares: float

    @classmethod
    def of(cls, rows: NDArray[np.float64], mean: float) -> Extent:
        """That of a few rows."""
        lowest, highest = rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf)
        return cls(len(rows), lowest, highest, float(np.sum((rows - mean) ** 2)))

    def __add__(self, other: Extent) -> Extent:
        return Extent(
            self.count + other.count,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            self.squares + other.squares,
        )

    @property
    def spread(self) -> Spread:
        """What it says of the rows."""
        spread = self.squares / self.count
        return Spread(
            range=float(np.max(self.highest - self.lowest)),
            largest=float(max(self.highest.max(), -self.lowest.min())),
            gamma=1.0 / spread if spread > 0 else 1.0,
        )
