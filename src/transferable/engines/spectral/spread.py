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
    def of(cls, X: Any, weights: NDArray[np.float64] | None = None) -> Spread:
        """Of a table that is read block by block, whose rows may have weights."""
        table = RowTable(X)
        if weights is None:
            weights = np.ones(table.n)
        total = sum(float(weights[some] @ rows.sum(axis=1)) for some, rows in table.blocks())
        mean = total / (float(weights.sum()) * table.rank)
        parts = (Extent.of(rows, mean, weights[some]) for some, rows in table.blocks())
        return reduce(add, parts).spread


@dataclass(frozen=True)
class Extent:
    """Lowest and highest values of each feature, and squares about a mean: they add up."""

    count: float
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    squares: float

    @classmethod
    def of(
        cls, rows: NDArray[np.float64], mean: float, weights: NDArray[np.float64] | None = None
    ) -> Extent:
        """That of a few rows."""
        lowest, highest = rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf)
        squares = (rows - mean) ** 2
        if weights is None:
            return cls(len(rows), lowest, highest, float(np.sum(squares)))
        return cls(float(weights.sum()), lowest, highest, float(weights @ squares.sum(axis=1)))

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
