"""Range and variance of a table of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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
    def of(cls, X: Any) -> Spread:
        """Of a table that is read block by block."""
        table = RowTable(X)
        lowest, highest = np.full(table.rank, np.inf), np.full(table.rank, -np.inf)
        total = 0.0
        for _, rows in table.blocks():
            np.minimum(lowest, rows.min(axis=0), out=lowest)
            np.maximum(highest, rows.max(axis=0), out=highest)
            total += float(rows.sum())
        mean = total / (table.n * table.rank)
        spread = sum(float(np.sum((rows - mean) ** 2)) for _, rows in table.blocks()) / table.n
        return cls(
            range=float(np.max(highest - lowest)),
            largest=float(max(highest.max(), -lowest.min())),
            gamma=1.0 / spread if spread > 0 else 1.0,
        )
