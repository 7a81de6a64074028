"""Terms that need neither pseudo-labels nor a graph: the source's loss and the variance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

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
        return SourceError(rows.domains.n_source)


class SourceError(FixedForm):
    """A: the quadratic part of the squared error on the source rows, which come first."""

    key = "source"

    def __init__(self, n_source: int) -> None:
        self.n_source = n_source

    def apply(self, F: Matrix) -> Matrix:
        """A F: the source rows of F, zero elsewhere."""
        out = namespace(F).zeros_like(F)
        out[: self.n_source] = F[: self.n_source]
        return out

    def projected(self, sums: Any) -> Matrix:
        """Phi' A Phi: the products of the source's features."""
        return sums.source.gram


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
