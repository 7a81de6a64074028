"""What every quadratic term has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from transferable.linalg.arrays import inner

__all__ = ["LowRankTerm", "Matrix", "Term"]

Matrix = Any  # a two-dimensional array of numpy or of torch


class Term(ABC):
    """A quadratic form tr(F' S F) with S symmetric and positive semi-definite."""

    @abstractmethod
    def apply(self, F: Matrix) -> Matrix:
        """S F for any table F of n rows."""

    def times_shared(self, K: Matrix) -> Matrix:
        """S K for a kernel matrix that several fits may share; it must not be changed in place."""
        return self.apply(K)

    def value(self, F: Matrix) -> float:
        """tr(F' S F)."""
        return inner(F, self.apply(F))


class LowRankTerm(Term):
    """A term S = w E E' with few columns.

    Attributes
    ----------
    unit : array of shape (n, n_columns)
        E.
    weight : float
        w.
    columns : array of shape (n, n_columns)
        The root of w times E.
    """

    def __init__(self, unit: Matrix, weight: float = 1.0) -> None:
        self.unit, self.weight = unit, weight
        self.columns = unit if weight == 1.0 else weight**0.5 * unit

    def apply(self, F: Matrix) -> Matrix:
        """S F for any table F of n rows."""
        return self.columns @ (self.columns.T @ F)
