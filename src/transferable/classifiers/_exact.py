"""The objective over all rows: scores F = K beta with the kernel matrix K whole.

Without class confusion, beta solves (S K + eta I) beta = A Y with S = A + lambda V + rho L +
delta H. What pseudo-labels change in S has low rank (a column for each class), so one factorisation
serves all rounds; only MMCD's second-order part needs a new one each time.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transferable.classifiers._risk import Alignment, RiskProblem
from transferable.events import stage
from transferable.linalg.arrays import Arrays, inner, namespace, to_numpy
from transferable.linalg.reuse import remember
from transferable.linalg.systems import (
    LU,
    Cholesky,
    UpdatedSystem,
    add_to_diagonal,
    effective_ridge,
    symmetric_times,
)
from transferable.terms.base import LowRankTerm, Matrix, Term
from transferable.terms.mmcd import CovarianceDiscrepancy, SecondOrder

if TYPE_CHECKING:
    from transferable.classifiers._base import RiskClassifier
    from transferable.domains import Domains

__all__ = ["ExactProblem"]


class ExactProblem(RiskProblem):
    """The problem in coefficients beta of all rows."""

    def __init__(self, spec: RiskClassifier, domains: Domains, Z: Any, arrays: Arrays) -> None:
        super().__init__(spec, domains, Z, arrays)
        stage("Comparing all rows")
        rows = remember(arrays.table, Z, "float64")
        self.K = remember(arrays.table, remember(spec._kernel, rows, rows))
        self.ridge = effective_ridge(spec.ridge, self.K)
        self._system: UpdatedSystem | None = None
        self._system_covariances: CovarianceDiscrepancy | None = None

    def zero(self) -> Matrix:
        """The coefficients of the classifier that scores zero everywhere."""
        return namespace(self.Y).zeros_like(self.Y)

    def scores(self, coefficients: Matrix) -> Matrix:
        """F = K beta."""
        return symmetric_times(self.K, coefficients)

    def solve(
        self, alignment: Alignment, extra: LowRankTerm | None = None, pull: Matrix | None = None
    ) -> Matrix:
        """Beta of (S K + eta I) beta = A Y + pull."""
        means, system = alignment.means, self._factored(alignment)
        rhs = self.Y if pull is None else self.Y + pull
        if extra is None:
            return system.solve(rhs, means.unit, means.weight)
        return system.solve(rhs, namespace(rhs).concat([means.columns, extra.columns], axis=1))

    def source_only_codes(self) -> NDArray[np.intp]:
        """Classes of the target rows by the source's regularised risk alone."""
        return remember(_source_only_codes, self.K, self.Y, self.domains.n_source, self.ridge)

    def own_weights(self, alignment: Alignment, count: int) -> Matrix:
        """How much each of the first source rows' own label weighs in its score."""
        units = remember(self.arrays.table, remember(np.eye, len(self.K), count))
        means = alignment.means
        solved = self._factored(alignment).solve(units, means.unit, means.weight)
        return namespace(solved).sum(self.K[:, :count] * solved, axis=0)

    def pull_back(self, slope: Matrix, coefficients: Matrix, alignment: Alignment) -> Matrix:
        """Slope in beta of eta ||f||^2 and of a function with this slope in F."""
        slope = slope + 2.0 * self.ridge * coefficients
        if alignment.covariances is not None:
            slope = slope + 2.0 * alignment.covariances.apply(self.scores(coefficients))
        return self.K @ slope

    def expansion(self, coefficients: Matrix) -> tuple[Any, NDArray[np.float64]]:
        """All rows and their coefficients."""
        return self.Z, to_numpy(coefficients)

    def _covariances(self, codes: NDArray[np.intp], balance: float) -> CovarianceDiscrepancy:
        spec = self.spec
        return CovarianceDiscrepancy(
            self._second_order,
            codes,
            self.domains.n_classes,
            weight=spec.alignment * spec.second_order,
            balance=balance,
            normalised=spec.alignment_form == "normalised",
        )

    def _quadratics(
        self, coefficients: Matrix, F: Matrix, alignment: Alignment
    ) -> dict[str, float]:
        values = {"ridge": self.ridge * inner(coefficients, F)}
        if alignment.covariances is not None:
            values["covariances"] = alignment.covariances.value(F)
        return values

    def _factored(self, alignment: Alignment) -> UpdatedSystem:
        """The system without its low-rank part, factored; the same object while it can serve."""
        covariances = alignment.covariances
        if self._system is None or self._system_covariances is not covariances:
            if covariances is None:
                terms = self.fixed.values()
                self._system = remember(_factored_system, self.K, self.ridge, *terms)
            else:
                P = covariances.times_kernel()
                P += self._shared_system
                self._system = UpdatedSystem(LU(P), self.K)
            self._system_covariances = covariances
        return self._system

    @cached_property
    def _second_order(self) -> SecondOrder:
        return SecondOrder(self.K, self.domains.n_source)

    @cached_property
    def _shared_system(self) -> Matrix:
        """The fixed part, kept where a system has to be factored in every round."""
        return _fixed_system(self.K, self.ridge, *self.fixed.values())


def _fixed_system(K: Matrix, ridge: float, *terms: Term) -> Matrix:
    """S K + eta I of the terms that no pseudo-label changes."""
    first, *others = terms
    P = first.apply(K)
    for term in others:
        P += term.times_shared(K)
    return add_to_diagonal(P, ridge)


def _factored_system(K: Matrix, ridge: float, *terms: Term) -> UpdatedSystem:
    return UpdatedSystem(LU(_fixed_system(K, ridge, *terms)), K)


def _source_only_codes(K: Matrix, Y: Matrix, n_source: int, ridge: float) -> NDArray[np.intp]:
    """Classes of the target rows by the solution with no term that looks at the target."""
    factored = remember(_source_factor, K, n_source, ridge)
    scores = K[n_source:, :n_source] @ factored.solve(Y[:n_source])
    return to_numpy(namespace(scores).argmax(scores, axis=1))


def _source_factor(K: Matrix, n_source: int, ridge: float) -> Cholesky:
    """The kernel of the source rows with the ridge on its diagonal, factored."""
    inside = namespace(K).asarray(K[:n_source, :n_source], copy=True)
    return Cholesky(add_to_diagonal(inside, ridge))
