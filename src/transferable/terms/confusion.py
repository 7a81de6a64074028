"""Class confusion: no row should score high for two classes at once.

B = F'F gathers how much any two classes overlap; the term is ||B - I||^2 (Eq. 19 of the paper).
Perfect one-hot scores have class sizes on B's diagonal, not ones, so the printed form also shrinks
F. The normalised form takes cosines between the columns of F instead, whose diagonal is 1 by
construction, and leaves only the overlap between classes to minimise.

All that is asked of the rows is B. Slopes and columns are linear in F and are given of F itself or
of any image P'F of it, which is how they are needed where the classifier has other coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from transferable.linalg.arrays import namespace
from transferable.terms.base import Matrix

__all__ = ["ClassConfusion", "ConfusionForm"]

ConfusionForm = Literal["printed", "normalised"]


@dataclass(frozen=True)
class ClassConfusion:
    """xi ||B - I||^2 in the printed or in the normalised form."""

    weight: float
    form: ConfusionForm = "normalised"

    def _lengths(self, B: Matrix) -> Matrix:
        """What the columns of F are divided by."""
        xp = namespace(B)
        squares = xp.linalg.diagonal(B)
        if self.form == "printed":
            return xp.ones_like(squares)
        return xp.where(squares > 0, squares, xp.ones_like(squares)) ** 0.5

    def value(self, B: Matrix) -> float:
        """The term itself, for B = F'F."""
        lengths = self._lengths(B)
        cosines = B / (lengths[:, None] * lengths)
        # ||C - I||^2 = ||C||^2 - 2 tr C + n
        diagonal = namespace(B).linalg.diagonal(cosines)
        return self.weight * float((cosines * cosines).sum() - 2.0 * diagonal.sum() + len(B))

    def gradient(self, F: Matrix, B: Matrix, *, as_printed: bool = False) -> Matrix:
        """Derivative of the term with respect to F, as an image if F is one.

        The paper's Eq. 22 has a factor 2 where the derivative of its printed form has 4;
        `as_printed` gives the paper's.
        """
        lengths = self._lengths(B)
        G, cosines = F / lengths, B / (lengths[:, None] * lengths)
        if self.form == "printed":
            return (2.0 if as_printed else 4.0) * self.weight * (G @ cosines - G)
        along = (cosines * cosines).sum(axis=0) - namespace(B).linalg.diagonal(cosines)
        return (4.0 * self.weight) * (G @ cosines - G - G * along) / lengths

    def around(self, F: Matrix, B: Matrix) -> tuple[Matrix, Matrix]:
        """The quadratic that stands for the term near the last scores: columns E of S, and a pull.

        With G the columns of F at the lengths D, ||G'F - D||^2 asks of the new scores what the term
        asks of F, and is quadratic in them: it adds a multiple of G G' to S and of G D to the
        right-hand side. The multiple makes its slope that of the term: 2 xi in the printed form,
        2 xi over the mean squared length in the normalised one.
        """
        lengths = self._lengths(B)
        weight = 2.0 * self.weight * len(lengths) / float((lengths * lengths).sum())
        return weight**0.5 * (F / lengths), weight * F
