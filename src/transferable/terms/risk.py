"""Terms that need neither pseudo-labels nor a graph: the source's loss and the variance.

Where the target's class shares are taken to differ from the source's, a row of the source counts by
the ratio of its class's shares, which makes the source's risk that of the target.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from transferable.linalg.arrays import namespace
from transferable.terms.base import FixedForm, FixedTerm, Matrix

__all__ = ["SourceError", "SourceLoss", "Spread", "Variance"]


@dataclass(frozen=True)
class SourceLoss(FixedTerm):
    """||A (F - Y)||^2: squared error on the source rows."""

    weight: float = field(default=1.0, init=False)
    name: ClassVar[str] = "source"

    def bind(self, rows: Any) -> SourceError:
        """A for these rows."""
        domains = rows.domains
        if domains.shares is None:
            return SourceError(domains.n_source)
        row_weights = rows.arrays.table(domains.ratios[domains.y][:, None])
        return SourceError(domains.n_source, domains.ratios, row_weights)


class SourceError(FixedForm):
    """A: the quadratic part of the squared error on the source rows, which come first.

    Parameters
    ----------
    n_source : int
        Number of source rows.
    class_weights : ndarray of shape (n_classes,) or None
        What the rows of each class count, 1 on average over the rows; None if all count the same.
    row_weights : array of shape (n_source, 1) or None
        The same for each row.
    """

    def __init__(
        self,
        n_source: int,
        class_weights: NDArray[np.float64] | None = None,
        row_weights: Matrix | None = None,
    ) -> None:
        self.n_source, self.class_weights, self._row_weights = n_source, class_weights, row_weights
        self.key = "source", None if class_weights is None else class_weights.tobytes()

    def apply(self, F: Matrix) -> Matrix:
        """A F: the source rows of F times their weights, zero elsewhere."""
        out = namespace(F).zeros_like(F)
        out[: self.n_source] = F[: self.n_source]
        if self._row_weights is not None:
            out[: self.n_source] *= self._row_weights
        return out

    def projected(self, sums: Any) -> Matrix | None:
        """Phi' A Phi: the products of the source's features, by class where weights differ."""
        if self.class_weights is None:
            return sums.source.gram
        return sums.weighted_gram(self.class_weights)


@dataclass(frozen=True)
class Variance(FixedTerm):
    """delta tr(F'HF): what is left of the constraint F'HF = I once it is relaxed."""

    weight: float
    name: ClassVar[str] = "variance"

    def bind(self, rows: Any) -> Spread:
        """delta H."""
        return Spread(self.weight)


class Spread(FixedForm):
    """delta H, with H the matrix that takes the mean off."""

    key = "variance"

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def apply(self, F: Matrix) -> Matrix:
        """delta (F - mean of F)."""
        return self.weight * (F - namespace(F).mean(F, axis=0))

    def projected(self, sums: Any) -> Matrix:
        """delta Phi' H Phi."""
        return (self.weight * sums.whole.count) * sums.whole.covariance
