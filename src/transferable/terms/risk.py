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
        class_weights = None
        if domains.shares is not None:
            of_sources, ratios = domains.weights_of_sources, domains.ratios
            class_weights = np.multiply.outer(of_sources, ratios).ravel()
        weights = domains.loss_weights
        if weights is not None:
            weights = rows.arrays.table(weights[domains.labelled][:, None])
        return SourceError(domains.n_source, class_weights, weights, domains.labelled)


class SourceError(FixedForm):
    """A: the quadratic part of the squared error on the labelled rows.

    Parameters
    ----------
    n_source : int
        Number of source rows, which come first.
    class_weights : ndarray of shape (n_sources * n_classes,) or None
        What the rows of each source and class count besides their own weights, where the target's
        class shares differ; None if they do not.
    row_weights : array of shape (n_labelled, 1) or None
        What each row counts in all; None if all count the same.
    labelled : slice, ndarray or None
        Where the labelled rows are, if some of the target are among them; None for the sources'.
    """

    def __init__(
        self,
        n_source: int,
        class_weights: NDArray[np.float64] | None = None,
        row_weights: Matrix | None = None,
        labelled: slice | NDArray[np.intp] | None = None,
    ) -> None:
        self._labelled = slice(0, n_source) if labelled is None else labelled
        self.class_weights, self._row_weights = class_weights, row_weights
        self.key = "source", None if class_weights is None else class_weights.tobytes()

    def apply(self, F: Matrix) -> Matrix:
        """A F: the labelled rows of F times their weights, zero elsewhere."""
        out = namespace(F).zeros_like(F)
        rows = F[self._labelled]
        out[self._labelled] = rows if self._row_weights is None else rows * self._row_weights
        return out

    def projected(self, sums: Any) -> Matrix | None:
        """Phi' A Phi: the products of the labelled features, by group where weights differ."""
        gram = sums.source.gram
        if self.class_weights is not None:
            gram = sums.weighted_gram(self.class_weights)
        if gram is None or sums.known is None:
            return gram
        return gram + sums.known.gram


@dataclass(frozen=True)
class Variance(FixedTerm):
    """delta tr(F'HF): what is left of the constraint F'HF = I once it is relaxed."""

    weight: float
    name: ClassVar[str] = "variance"

    def bind(self, rows: Any) -> Spread:
        """delta H."""
        weights = rows.domains.row_weights
        return Spread(self.weight, None if weights is None else rows.arrays.table(weights))


class Spread(FixedForm):
    """delta H, with H the matrix that takes the mean off, rows counting by weights if given."""

    key = "variance"

    def __init__(self, weight: float, row_weights: Matrix | None = None) -> None:
        self.weight, self._row_weights = weight, row_weights

    def apply(self, F: Matrix) -> Matrix:
        """delta (F - mean of F)."""
        weights = self._row_weights
        if weights is None:
            return self.weight * (F - namespace(F).mean(F, axis=0))
        weights = namespace(F).astype(weights, F.dtype)
        return (self.weight * weights)[:, None] * (F - (weights @ F) / weights.sum())

    def projected(self, sums: Any) -> Matrix:
        """delta Phi' H Phi."""
        return (self.weight * sums.whole.count) * sums.whole.covariance
