"""What every quadratic term has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

__all__ = ["LowRankTerm", "Matrix", "Term"]

Matrix = NDArray[np.float64]


class Term(ABC):
    """A quadratic form tr(F' S F) with S symmetric and positive semi-definite."""

    @abstractmethod
    def apply(self, F: Matrix) -> Matrix:
        """S F for any table F of n rows."""

    def project(self, Phi: Matrix) -> Matrix:
        """Phi' S Phi: the term as a quadratic form of coefficients of the features Phi."""
        return Phi.T @ self.apply(Phi)

    def value(self, F: Matrix) -> float:
        """tr(F' S F)."""
        return float(np.vdot(F, self.apply(F)))


class LowRankTerm(Term):
    """A term S = E E' with few columns."""

    def __init__(self, columns: Matrix) -> None:
        self.columns = columns

    def apply(self, F: Matrix) -> Matrix:
        """S F for any table F of n rows."""
        return self.columns @ (self.columns.T @ F)

    def project(self, Phi: Matrix) -> Matrix:
        """Phi' S Phi from the few projected columns."""
        columns = Phi.T @ self.columns
        return columns @ columns.T
