"""The objective of TFDF, TFDF-V, MEDA and ARTL: regularised least squares on a kernel.

With scores F of all rows, every method minimises

    ||A (F - Y)||^2 + eta ||f||^2 + tr(F' (lambda V + rho L + delta H) F) + xi ||B - I||^2

or what is left of it once entries are removed: A keeps the source rows and ||f|| is the norm of the
classifier in the kernel's space. V depends on pseudo-labels, which the scores renew: a few rounds
of solve and relabel.

There are two ways to write the classifier down, each with its own solver. `exact.py` expands it
over all rows, F = K beta, which needs K whole; `landmarks.py` over the features of a few landmarks,
F = Phi w, at a cost linear in the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from transferable.terms.base import Term
from transferable.terms.confusion import ClassConfusion

__all__ = ["Objective"]

Kind = TypeVar("Kind", bound=Term)


@dataclass(frozen=True)
class Objective:
    """What a method minimises, as a value.

    Attributes
    ----------
    ridge : float
        eta, the weight of the squared norm of the classifier.
    terms : tuple of Term
        The other entries; those of weight 0 are left out.
    confusion : ClassConfusion or None
        The entry that is not quadratic; None without one.
    """

    ridge: float
    terms: tuple[Term, ...]
    confusion: ClassConfusion | None = None

    def __init__(
        self, ridge: float, terms: Iterable[Term], confusion: ClassConfusion | None = None
    ) -> None:
        kept = tuple(term for term in terms if term.weight != 0)
        separates = confusion is not None and confusion.weight > 0
        object.__setattr__(self, "ridge", ridge)
        object.__setattr__(self, "terms", kept)
        object.__setattr__(self, "confusion", confusion if separates else None)

    def find(self, kind: type[Kind]) -> Kind | None:
        """The term of this kind, None if there is none."""
        for term in self.terms:
            if isinstance(term, kind):
                return term
        return None

    def without(self, *kinds: type[Term]) -> Objective:
        """The objective with the terms of these kinds removed."""
        kept = [term for term in self.terms if not isinstance(term, kinds)]
        return Objective(self.ridge, kept, self.confusion)

    def replacing(self, term: Term) -> Objective:
        """The objective with this term in place of the one of its kind."""
        terms = [term if type(other) is type(term) else other for other in self.terms]
        return Objective(self.ridge, terms, self.confusion)
