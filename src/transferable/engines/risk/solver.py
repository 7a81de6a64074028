"""What both solvers of the objective have in common: terms bound to rows, and what is asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Groups
from transferable.engines.risk.objective import Objective
from transferable.engines.risk.rows import Rows
from transferable.engines.shares import Labelling
from transferable.terms.base import FixedForm, FixedTerm, LabelledTerm, LowRank, Matrix, Quadratic
from transferable.terms.covariances import Covariances
from transferable.terms.risk import SourceLoss

__all__ = ["Labelled", "Labels", "Learner", "Solver"]

# Labels of the target: an array of codes, or whatever stands for one where others hold the rows.
Labels = Any
# From features, class codes and weights of labelled rows to a function that gives others a code.
Learner = Callable[[Any, NDArray[np.intp], Any], Callable[[Any], NDArray[np.intp]]]


@dataclass
class Labelled:
    """The terms that depend on the target's labels, bound to one labelling.

    Attributes
    ----------
    groups : Groups
        The labelling.
    target : object
        The labels of the target that it came from.
    balance : float
        mu of it; 0.5 if no term has one.
    low_rank : dict of LowRank
        By name, those with few columns.
    covariances : Quadratic or None
        The one without, as a form of whatever the solver's coefficients are of.
    projected : dict of arrays
        By name, the columns in the solver's own coordinates; empty until they were needed.
    system : object
        The solver's, factored with the covariances; None until it was needed.
    """

    groups: Groups
    target: Any
    balance: float = 0.5
    low_rank: dict[str, LowRank] = field(default_factory=dict)
    covariances: Any = None
    projected: dict[str, Matrix] = field(default_factory=dict)
    system: Any = None


class Solver(ABC):
    """One objective over given rows, with everything that stays the same while labels change.

    Attributes
    ----------
    fixed : dict of FixedForm
        By name, the terms that no label changes.
    row_weights : array of shape (n, 1) or None
        What rows count in the loss and in class confusion; None if all count the same.
    ridge : float
        eta, or what is needed of it.
    n_landmarks : int or None
        Landmarks the classifier is expanded over; None for all rows.
    """

    ridge: float
    n_landmarks: int | None = None

    def __init__(self, objective: Objective, rows: Rows, known: Solver | None = None) -> None:
        """`known` solved the same with other class shares, on which the loss alone depends."""
        self.objective, self.rows, self.domains = objective, rows, rows.domains
        self.confusion = objective.confusion
        self._scored: tuple[Matrix, Matrix] | None = None
        self._grouped: tuple[Labels, Groups] | None = None
        self.fixed: dict[str, FixedForm] = {}
        for term in objective.terms:
            if known is not None and term.name in known.fixed and not isinstance(term, SourceLoss):
                self.fixed[term.name] = known.fixed[term.name]
            elif isinstance(term, FixedTerm):
                self.fixed[term.name] = term.bind(rows)
            elif not isinstance(term, LabelledTerm | Covariances):
                raise TypeError(
                    f"{type(self).__name__} has no use for the term {term!r}: it is neither fixed "
                    "(FixedTerm) nor of few columns (LabelledTerm)."
                )
        weights = rows.domains.loss_weights
        self.row_weights = None if weights is None else rows.arrays.table(weights[:, None])

    @cached_property
    def Y(self) -> Matrix:
        """The labels of labelled rows, zero elsewhere; made where all of them are asked for."""
        domains, known = self.domains, self.domains.known
        if known is None:
            known = np.full(domains.n_target, -1, dtype=np.intp)
        return self.rows.arrays.one_hot(domains.with_target(known), domains.n_classes)

    @cached_property
    def AY(self) -> Matrix:
        """The same times what the rows count in the loss."""
        return self.Y if self.row_weights is None else self.Y * self.row_weights

    def first_labels(self, count: int) -> Matrix:
        """Y of the first source rows."""
        return self.rows.arrays.one_hot(self.domains.y[:count], self.domains.n_classes)

    def at(self, target: Labels) -> Labelled:
        """The terms that depend on labels, for these of the target."""
        groups, rows = self.groups(target), self.rows
        labelled = Labelled(groups, target)
        for term in self.objective.terms:
            if isinstance(term, FixedTerm):
                continue
            labelled.balance = rows.balance(getattr(term, "balance", labelled.balance), groups)
            if isinstance(term, LabelledTerm):
                labelled.low_rank[term.name] = term.at(rows, groups)
            elif isinstance(term, Covariances) and self.domains.n_target > 0:
                labelled.covariances = self._covariances(term, labelled)
        return labelled

    def own_counts(self, count: int) -> Matrix:
        """What the first source rows' own labels count, of rows that count for several one."""
        arrays, weights = self.rows.arrays, self.domains.row_weights
        if self.row_weights is None:
            counts = arrays.table(np.ones(count))
        else:
            counts = self.row_weights[:count, 0]
        return (
            counts if weights is None else counts / arrays.table(np.maximum(weights[:count], 1.0))
        )

    def unaligned(self, labelled: Labelled) -> Labelled:
        """The same labelling for the objective without the terms that depend on labels."""
        return Labelled(labelled.groups, labelled.target, labelled.balance)

    @abstractmethod
    def with_shares(self, shares: NDArray[np.float64] | None) -> Solver:
        """The same objective, where the target's classes are taken to have these shares."""

    @abstractmethod
    def zero(self) -> Matrix:
        """The coefficients of the classifier that scores zero everywhere."""

    def scores(self, coefficients: Matrix) -> Matrix:
        """F, the scores of all rows at hand; the last are remembered."""
        if self._scored is None or self._scored[0] is not coefficients:
            self._scored = coefficients, self._compute_scores(coefficients)
        return self._scored[1]

    @abstractmethod
    def _compute_scores(self, coefficients: Matrix) -> Matrix:
        """F, the scores of all rows at hand."""

    @abstractmethod
    def solve(self, labelled: Labelled, around: Matrix | None = None) -> Matrix:
        """The coefficients of least objective.

        Class confusion is left out, or stands as a quadratic around given coefficients.
        """

    @abstractmethod
    def own_weights(self, labelled: Labelled, count: int) -> Matrix:
        """How much each of the first source rows' own label weighs in its score."""

    @abstractmethod
    def values(self, coefficients: Matrix, labelled: Labelled) -> dict[str, float]:
        """Value of each entry of the objective."""

    @abstractmethod
    def gradient(
        self, coefficients: Matrix, labelled: Labelled, *, as_printed: bool = False
    ) -> Matrix:
        """Slope of the objective in the coefficients; `as_printed` halves class confusion's."""

    @abstractmethod
    def expansion(self, coefficients: Matrix) -> tuple[Any, NDArray[np.float64]]:
        """Rows and coefficients with which new rows are scored: K(new, rows) times these."""

    @abstractmethod
    def _covariances(self, term: Covariances, labelled: Labelled) -> Quadratic:
        """The second-order term in the solver's own coordinates."""

    @abstractmethod
    def source_only_labels(self, labelling: Labelling | None = None) -> Labels:
        """Labels of the target rows by the regularised risk of labelled rows alone."""

    def relabel(
        self, coefficients: Matrix, labelling: Labelling, *, settled: bool = False
    ) -> Labels:
        """Labels of the target rows by their scores, in a round or, once `settled`, for good."""
        scores = self.scores(coefficients)[self.domains.target]
        return self.domains.label_target(
            lambda rows: labelling.codes(scores[rows], settled=settled)
        )

    def labels_by(self, learn: Learner) -> Labels:
        """Labels of the target rows by what is learnt from the first labelled ones."""
        label = learn(*self.rows.first_labelled())
        codes = np.asarray(label(self.rows.Z[self.domains.target]), dtype=np.intp)
        return self.domains.fixed(codes)

    def codes(self, target: Labels) -> NDArray[np.intp]:
        """The labels of those target rows that are at hand."""
        return np.asarray(target)

    def groups(self, target: Labels) -> Groups:
        """All rows by domain and class, for these labels of the target; the last are remembered."""
        if self._grouped is None or self._grouped[0] is not target:
            self._grouped = target, self.domains.groups(target)
        return self._grouped[1]

    def changed(self, target: Labels, before: Labels) -> float:
        """Share of the labels that are not what they were."""
        return float(np.mean(target != before)) if len(target) else 0.0
