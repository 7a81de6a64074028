"""The objective over all rows: scores F = K beta with the kernel matrix K whole.

Without class confusion, beta solves (S K + eta I) beta = A Y with S = A + lambda V + rho L +
delta H. What pseudo-labels change in S has low rank (a column for each class), so one factorisation
serves all rounds; only MMCD's second-order part needs a new one each time.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.engines.risk.objective import Objective
from transferable.engines.risk.rows import Rows
from transferable.engines.risk.solver import Labelled, Solver
from transferable.engines.shares import Labelling
from transferable.events import stage
from transferable.linalg.arrays import namespace, to_numpy
from transferable.linalg.systems import (
    LU,
    Cholesky,
    Update,
    UpdatedSystem,
    add_to_diagonal,
    effective_ridge,
    symmetric_times,
)
from transferable.terms.base import FixedForm, Matrix
from transferable.terms.covariances import CovarianceDiscrepancy, Covariances, SecondOrder

__all__ = ["ExactSolver"]


class ExactSolver(Solver):
    """The objective in coefficients beta of all rows."""

    def __init__(self, objective: Objective, rows: Rows, known: ExactSolver | None = None) -> None:
        """`known` solved the same with other class shares, which change nothing but the loss."""
        super().__init__(objective, rows, known)
        self._known = known
        if known is None:
            stage("Comparing all rows")
        self.K: Matrix = rows.kernel_matrix() if known is None else known.K
        self.ridge = effective_ridge(objective.ridge, self.K, self.domains.weights)
        self._kernel = rows.place, rows.kernel
        weights = tuple((form.key, form.weight) for form in self.fixed.values())
        self._key = self._kernel, self.ridge, weights
        self._units: Matrix | None = None

    def with_shares(self, shares: NDArray[np.float64] | None) -> ExactSolver:
        """The same objective, where the target's classes are taken to have these shares."""
        return ExactSolver(self.objective, self.rows.with_shares(shares), self._known or self)

    def zero(self) -> Matrix:
        """The coefficients of the classifier that scores zero everywhere."""
        return namespace(self.Y).zeros_like(self.Y)

    def _compute_scores(self, coefficients: Matrix) -> Matrix:
        """F = K beta."""
        return symmetric_times(self.K, coefficients)

    def solve(self, labelled: Labelled, around: Matrix | None = None) -> Matrix:
        """Beta of (S K + eta I) beta = A Y, with class confusion's columns and pull if asked."""
        system = self._system(labelled)
        if around is None or self.confusion is None:
            columns = list(self._columns(labelled).values())
            if labelled.covariances is not None and columns:
                return system.solve(self.AY, namespace(self.AY).concat(columns, axis=1))
            if labelled.covariances is not None:
                return system.P.solve(self.AY)
            key = self._key, self.domains.labels_key
            solved = self.domains.share("solution", key, system.P.solve, self.AY)
            return self._updated(labelled, solved)
        F = self.scores(around)
        separating, pull = self.confusion.around(*self._images(F))
        E = namespace(F).concat([*self._columns(labelled).values(), separating], axis=1)
        return Update(system, E).apply(system.P.solve(self.AY + pull))

    def _columns(self, labelled: Labelled) -> dict[str, Matrix]:
        """The columns of each term that has few."""
        if not labelled.projected:
            for name, form in labelled.low_rank.items():
                labelled.projected[name] = form.columns
        return labelled.projected

    def _updated(self, labelled: Labelled, solved: Matrix) -> Matrix:
        """Solutions of the system without the terms of few columns, corrected for these."""
        system, forms = self._system(labelled), list(labelled.low_rank.values())
        if not forms:
            return solved
        if len(forms) > 1:
            E = namespace(solved).concat(list(self._columns(labelled).values()), axis=1)
            return Update(system, E).apply(solved)
        (form,) = forms
        if labelled.covariances is not None:
            return Update(system, form.unit).apply(solved, form.weight)
        # Fits that differ in the weight of the term alone share the correction.
        key = self._key, form.key
        update = self.domains.share("update", key, Update, system, form.unit)
        return update.apply(solved, form.weight)

    def _images(self, F: Matrix) -> tuple[Matrix, Matrix]:
        """F with its rows weighted as the loss weights them, and F'F so weighted."""
        image = F if self.row_weights is None else F * self.row_weights
        return image, F.T @ image

    def source_only_labels(self, labelling: Labelling | None = None) -> NDArray[np.intp]:
        """Labels of the target rows by the regularised risk of labelled rows alone."""
        key = self._kernel, self.ridge, self.domains.labels_key
        scores = self.domains.share("source-only scores", key, self._source_only_scores)
        by = labelling or Labelling()
        return self.domains.label_target(lambda rows: by.codes(scores[rows]))

    def _source_only_scores(self) -> Matrix:
        labelled, weights = self.domains.labelled, self.domains.row_weights
        inside = namespace(self.K).asarray(self.K[labelled][:, labelled], copy=True)
        ridge: Any = self.ridge
        if weights is not None:  # (W K + eta I) b = W Y, divided by W
            ridge = self.rows.arrays.table(self.ridge / weights[labelled])
        factor = Cholesky(add_to_diagonal(inside, ridge))
        return self.K[self.domains.target][:, labelled] @ factor.solve(self.Y[labelled])

    def own_weights(self, labelled: Labelled, count: int) -> Matrix:
        """How much each of the first source rows' own label weighs in its score."""
        if labelled.covariances is not None:
            solved = self._updated(labelled, self._unit_solutions(labelled, count))
        else:
            if self._units is None or self._units.shape[1] < count:
                self._units = self._unit_solutions(labelled, count)
            solved = self._updated(labelled, self._units[:, :count])
        return self.own_counts(count) * namespace(solved).sum(self.K[:, :count] * solved, axis=0)

    def _unit_solutions(self, labelled: Labelled, count: int) -> Matrix:
        """Solutions of the system without the terms of few columns for the first unit vectors."""
        units = self.rows.arrays.table(np.eye(len(self.K), count))
        return self._system(labelled).P.solve(units)

    def values(self, coefficients: Matrix, labelled: Labelled) -> dict[str, float]:
        """Value of each entry of the objective."""
        F = self.scores(coefficients)
        values = {"ridge": self.ridge * float((coefficients * F).sum())}
        for name, form in (self.fixed | labelled.low_rank).items():
            values[name] = float((F * form.apply(F)).sum())
        if "source" in values:
            # tr((F - Y)' A (F - Y)) = tr(F' A F) - 2 tr(F' A Y) + tr(Y' A Y)
            values["source"] += float((self.AY * (self.Y - 2.0 * F)).sum())
        if labelled.covariances is not None:
            values["covariances"] = labelled.covariances.value(F)
        if self.confusion is not None:
            values["confusion"] = self.confusion.value(self._images(F)[1])
        return values

    def gradient(
        self, coefficients: Matrix, labelled: Labelled, *, as_printed: bool = False
    ) -> Matrix:
        """K times the slope in F, and that of the ridge."""
        F = self.scores(coefficients)
        slope = self.ridge * coefficients - self.AY
        for form in (self.fixed | labelled.low_rank).values():
            slope += form.apply(F)
        if labelled.covariances is not None:
            slope += labelled.covariances.apply(F)
        slope *= 2.0
        if self.confusion is not None:
            slope += self.confusion.gradient(*self._images(F), as_printed=as_printed)
        return self.K @ slope

    def expansion(self, coefficients: Matrix) -> tuple[Any, NDArray[np.float64]]:
        """All rows and their coefficients."""
        return self.rows.Z, to_numpy(coefficients)

    def _covariances(self, term: Covariances, labelled: Labelled) -> CovarianceDiscrepancy:
        return term.over_kernel(self.rows, labelled.groups, self._second_order)

    def _system(self, labelled: Labelled) -> UpdatedSystem:
        """The system without its low-rank part, factored."""
        if labelled.covariances is None:
            return self._fixed_system
        if labelled.system is None:
            P = labelled.covariances.times_kernel()
            P += self._kept_fixed
            labelled.system = UpdatedSystem(LU(P), self.K)
        return labelled.system

    def _fixed(self) -> Matrix:
        """S K + eta I of the terms that no pseudo-label changes."""
        P = next(iter(self.fixed.values())).apply(self.K)
        P += self._beside_loss
        return add_to_diagonal(P, self.ridge)

    @cached_property
    def _beside_loss(self) -> Matrix:
        """S K of the fixed terms but the first, the loss."""
        if self._known is not None:
            return self._known._beside_loss
        _, *others = self.fixed.values()
        total: Any = 0.0
        for form in others:
            total = form.weight * self._product(form) + total
        return total

    def _product(self, form: FixedForm) -> Matrix:
        """U K of a form without its weight, in which settings of a search differ most."""
        key = self._kernel, form.key
        return self.domains.share("product", key, form.weighted(1.0).apply, self.K)

    @cached_property
    def _fixed_system(self) -> UpdatedSystem:
        return self.domains.share("factor", self._key, self._factored)

    def _factored(self) -> UpdatedSystem:
        return UpdatedSystem(LU(self._fixed()), self.K)

    @cached_property
    def _kept_fixed(self) -> Matrix:
        """The fixed part, kept where a system has to be factored in every round."""
        return self._fixed()

    @cached_property
    def _second_order(self) -> SecondOrder:
        K2 = None if self._known is None else self._known._second_order.K2
        return SecondOrder.of(self.K, self.domains.groups(None), self.rows.arrays, K2)
