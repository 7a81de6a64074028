"""Terms that need neither pseudo-labels nor a graph: the source's loss and the variance."""

from __future__ import annotations

from transferable.linalg.arrays import namespace
from transferable.linalg.reuse import remember
from transferable.terms.base import Matrix, Term

__all__ = ["SourceLoss", "Variance"]


class SourceLoss(Term):
    """A: squared error on the source rows, which come first."""

    def __init__(self, n_source: int) -> None:
        self.n_source = n_source

    def apply(self, F: Matrix) -> Matrix:
        """A F: the source rows of F, zero elsewhere."""
        out = namespace(F).zeros_like(F)
        out[: self.n_source] = F[: self.n_source]
        return out


class Variance(Term):
    """delta H: what is left of the constraint F'HF = I once it is relaxed."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def apply(self, F: Matrix) -> Matrix:
        """delta (F - mean of F)."""
        return self.weight * (F - namespace(F).mean(F, axis=0))

    def times_shared(self, K: Matrix) -> Matrix:
        """delta H K, the same table for all fits that share K."""
        return remember(self.apply, K)
