"""What every term has in common: declared in an objective, bound to rows by a solver.

A declared term is a small value, its weights and forms and nothing else. A solver binds it:

* a :class:`FixedTerm` once, to the rows, which gives a :class:`FixedForm`;
* a :class:`LabelledTerm` for each labelling of the target, which gives a :class:`LowRank` update of
  a few columns.

Covariances fit neither mould and say so themselves (`terms/covariances.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from copy import copy
from typing import Any, ClassVar, Self

from transferable.domains import Groups

__all__ = ["FixedForm", "FixedTerm", "LabelledTerm", "LowRank", "Matrix", "Quadratic", "Term"]

Matrix = Any  # a two-dimensional array of numpy or of torch


class Quadratic(ABC):
    """A quadratic form tr(F' S F) with S symmetric and positive semi-definite."""

    @abstractmethod
    def apply(self, F: Matrix) -> Matrix:
        """S F for any table F of n rows."""

    def value(self, F: Matrix) -> float:
        """tr(F' S F)."""
        return float((F * self.apply(F)).sum())


class FixedForm(Quadratic):
    """A form S = w U that stays the same from round to round.

    Attributes
    ----------
    weight : float
        w.
    key : hashable
        The same for the same U, whatever the weight.
    """

    weight: float = 1.0
    key: Hashable

    def weighted(self, weight: float) -> Self:
        """The same form with another weight."""
        other = copy(self)
        other.weight = weight
        return other

    def projected(self, sums: Any) -> Matrix | None:
        """Phi' S Phi from sums of the features over each domain, None if these do not tell."""
        return None


class LowRank(Quadratic):
    """A form S = w E E' with few columns, which a solver can add to a factored system.

    Attributes
    ----------
    unit : array of shape (n, n_columns)
        E.
    weight : float
        w.
    key : hashable
        The same for the same E, whatever the weight.
    """

    def __init__(self, unit: Matrix, weight: float = 1.0) -> None:
        self.unit, self.weight = unit, weight

    @property
    def key(self) -> Hashable:
        """None where nothing is known of other forms."""
        return None

    @property
    def columns(self) -> Matrix:
        """The root of w times E."""
        return self.unit if self.weight == 1.0 else self.weight**0.5 * self.unit

    def apply(self, F: Matrix) -> Matrix:
        """S F for any table F of n rows."""
        return self.weight * (self.unit @ (self.unit.T @ F))


class Term(ABC):
    """One entry of an objective.

    Attributes
    ----------
    name : str
        What histories call it.
    weight : float or str
        What the term counts in the objective; 0 leaves it out.
    """

    name: ClassVar[str]
    weight: Any


class FixedTerm(Term):
    """A term that no pseudo-label changes."""

    @abstractmethod
    def bind(self, rows: Any) -> FixedForm:
        """The form over these rows (:class:`transferable.engines.risk.rows.Rows`)."""


class LabelledTerm(Term):
    """A term that depends on the target's labels and is renewed with them."""

    @abstractmethod
    def at(self, rows: Any, groups: Groups) -> LowRank:
        """The form for rows that are grouped like this."""
