"""Range and variance of a table of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.linalg.row_tables import RowTable

__all__ = ["Spread"]


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
        n = float(weights.sum())
        lowest, highest = np.full(table.rank, np.inf), np.full(table.rank, -np.inf)
        total = 0.0
        for some, rows in table.blocks():
            np.minimum(lowest, rows.min(axis=0), out=lowest)
            np.maximum(highest, rows.max(axis=0), out=highest)
            total += float(weights[some] @ rows.sum(axis=1))
        mean = total / (n * table.rank)
        spread = sum(
            float(weights[some] @ np.sum((rows - mean) ** 2, axis=1))
            for some, rows in table.blocks()
        )
        spread /= n
        return cls(
            range=float(np.max(highest - lowest)),
            largest=float(max(highest.max(), -lowest.min())),
            gamma=1.0 / spread if spread > 0 else 1.0,
        )
