"""Class confusion: no row should score high for two classes at once.

B = F'F gathers how much any two classes overlap; the term is ||B - I||^2 (Eq. 19 of the paper).
Perfect one-hot scores have class sizes on B's diagonal, not ones, so the printed form also shrinks
F. The normalised form takes cosines between the columns of F instead, whose diagonal is 1 by
construction, and leaves only the overlap between classes to minimise.
"""

from __future__ import annotations

from typing import Literal

from transferable.linalg.arrays import inner, namespace
from transferable.linalg.systems import add_to_diagonal
from transferable.terms.base import LowRankTerm, Matrix

__all__ = ["ClassConfusion", "ConfusionForm"]

ConfusionForm = Literal["printed", "normalised"]


class ClassConfusion:
    """xi ||B - I||^2 in the printed or in the normalised form."""

    def __init__(self, weight: float, form: ConfusionForm) -> None:
        self.weight = weight
        self.form = form

    def _columns(self, F: Matrix) -> tuple[Matrix, Matrix]:
        """The columns whose products make B, and the lengths they were divided by."""
        xp = namespace(F)
        if self.form == "printed":
            return F, xp.ones_like(F[0])
        lengths = xp.linalg.vector_norm(F, axis=0)
        lengths = xp.where(lengths > 0, lengths, xp.ones_like(lengths))
        return F / lengths, lengths

    def value(self, F: Matrix) -> float:
        """The term itself."""
        G, _ = self._columns(F)
        excess = add_to_diagonal(G.T @ G, -1.0)
        return self.weight * inner(excess, excess)

    def gradient(self, F: Matrix, *, as_printed: bool = False) -> Matrix:
        """Derivative of the term with respect to F.

        The paper's Eq. 22 has a factor 2 where the derivative of its printed form has 4;
        `as_printed` gives the paper's.
        """
        G, lengths = self._columns(F)
        if self.form == "printed":
            return (2.0 if as_printed else 4.0) * self.weight * (G @ (G.T @ G) - G)
        slope = 4.0 * self.weight * (G @ (G.T @ G) - G)
        return (slope - G * namespace(F).sum(G * slope, axis=0)) / lengths

    def around(self, F: Matrix) -> tuple[LowRankTerm, Matrix]:
        """The quadratic that stands for the term near the last scores F: its S and its pull.

        With G the columns above and D their lengths, ||G'F - D||^2 asks of the new scores what
        the term asks of F, and is quadratic in them: it adds a multiple of G G' to S and of G D to
        the right-hand side. The multiple makes its slope that of the term: 2 xi in the printed
        form, 2 xi over the mean squared length in the normalised one.
        """
        G, lengths = self._columns(F)
        weight = 2.0 * self.weight * len(lengths) / inner(lengths, lengths)
        return LowRankTerm(weight**0.5 * G), weight * G * lengths
