"""The engine of TFDF, TFDF-V, MEDA and ARTL: regularised least squares on a kernel.

With scores F = K beta of all rows, every method minimises

    ||A (F - Y)||^2 + eta tr(beta' K beta) + tr(F' (lambda V + rho L + delta H) F) + xi ||B - I||^2

where A keeps the source rows. Without the last term, beta solves (S K + eta I) beta = A Y with
S = A + lambda V + rho L + delta H. V depends on pseudo-labels, which the scores renew: a few
rounds of solve and relabel. What pseudo-labels change has low rank (a column for each class), so
one factorisation serves all rounds; only MMCD's second-order part needs a new one each time.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from transferable.classifiers._auto import graph_weight
from transferable.classifiers._balance import Balance
from transferable.linalg.neighbors import cosine_neighbors
from transferable.linalg.reuse import canonical, remember
from transferable.linalg.systems import UpdatedSystem, effective_ridge
from transferable.terms.base import LowRankTerm, Matrix, Term
from transferable.terms.confusion import ClassConfusion
from transferable.terms.laplacian import Laplacian
from transferable.terms.mmcd import CovarianceDiscrepancy, SecondOrder
from transferable.terms.mmd import MeanDiscrepancy
from transferable.terms.risk import SourceLoss, Variance

if TYPE_CHECKING:
    from transferable.classifiers._base import RiskClassifier
    from transferable.domains import Domains

__all__ = ["Alignment", "RiskProblem"]


class Alignment:
    """lambda V for one set of pseudo-labels: a mean part and, if asked for, a covariance part."""

    def __init__(
        self, balance: float, means: MeanDiscrepancy, covariances: CovarianceDiscrepancy | None
    ) -> None:
        self.balance = balance
        self.means = means
        self.covariances = covariances

    @property
    def terms(self) -> dict[str, Term]:
        """The parts by name."""
        parts: dict[str, Term] = {"means": self.means}
        if self.covariances is not None:
            parts["covariances"] = self.covariances
        return parts


class RiskProblem:
    """One problem with everything that stays the same while pseudo-labels change."""

    def __init__(self, spec: RiskClassifier, domains: Domains, Z: Any, K: Matrix) -> None:
        self.spec = spec
        self.domains = domains
        self.K = K
        self.Y = canonical(domains.one_hot())
        self.ridge = effective_ridge(spec.ridge, K)
        self.fixed: dict[str, Term] = {"source": remember(SourceLoss, domains.n_source)}
        self.manifold = (
            graph_weight(Z[: domains.n_source], domains.y, spec._kernel, spec.ridge)
            if spec.manifold == "auto"
            else float(spec.manifold)
        )
        if self.manifold > 0:
            graph = remember(cosine_neighbors, Z, spec.n_neighbors, spec._self_loops)
            self.fixed["manifold"] = remember(Laplacian, graph, self.manifold)
        if spec.variance > 0:
            self.fixed["variance"] = remember(Variance, spec.variance)
        self.second_order = (
            SecondOrder(K, domains.n_source)
            if spec.alignment * spec.second_order > 0 and domains.n_target > 0
            else None
        )
        self.balance = Balance(spec.balance, Z, domains, spec.random_state)
        self.confusion = ClassConfusion(spec.confusion, spec.confusion_form)
        self._system: UpdatedSystem | None = None
        self._covariances: CovarianceDiscrepancy | None = None

    def source_only_codes(self) -> NDArray[np.intp]:
        """Classes of the target rows by the source's regularised risk alone."""
        return remember(_source_only_codes, self.K, self.Y, self.domains.n_source, self.ridge)

    def target_codes(self, F: Matrix) -> NDArray[np.intp]:
        """Pseudo-labels of the target rows by their highest score."""
        return F[self.domains.n_source :].argmax(axis=1)

    def alignment(self, target: NDArray[np.intp]) -> Alignment:
        """lambda V for the given pseudo-labels, with its balance."""
        spec, domains = self.spec, self.domains
        codes = domains.with_target(target)
        balance = self.balance(codes)
        normalised = spec.alignment_form == "normalised"
        means = MeanDiscrepancy(
            codes,
            domains.n_source,
            domains.n_classes,
            weight=spec.alignment,
            balance=balance,
            normalised=normalised,
        )
        if self.second_order is None:
            return Alignment(balance, means, None)
        covariances = CovarianceDiscrepancy(
            self.second_order,
            codes,
            domains.n_classes,
            weight=spec.alignment * spec.second_order,
            balance=balance,
            normalised=normalised,
        )
        return Alignment(balance, means, covariances)

    def solve(
        self, alignment: Alignment, extra: LowRankTerm | None = None, rhs: Matrix | None = None
    ) -> Matrix:
        """Beta of (S K + eta I) beta = rhs, with `extra` added to S; rhs is A Y unless given."""
        columns = alignment.means.columns
        if extra is not None:
            columns = np.hstack([columns, extra.columns])
        return self._factored(alignment).solve(self.Y if rhs is None else rhs, columns)

    def _factored(self, alignment: Alignment) -> UpdatedSystem:
        """The system without its low-rank part, factored; the same object while it can serve."""
        covariances = alignment.covariances
        if self._system is None or self._covariances is not covariances:
            if covariances is None:
                terms = self.fixed.values()
                self._system = remember(_factored_system, self.K, self.ridge, *terms)
            else:
                P = self._shared_system + covariances.times_kernel()
                self._system = UpdatedSystem(P, self.K)
            self._covariances = covariances
        return self._system

    @cached_property
    def _shared_system(self) -> Matrix:
        """The fixed part, kept where a system has to be factored in every round."""
        return _fixed_system(self.K, self.ridge, *self.fixed.values())

    def objective(
        self, beta: Matrix, F: Matrix, alignment: Alignment
    ) -> tuple[dict[str, float], Matrix]:
        """Value of each term, and S F - A Y + eta beta: half the slope of all but confusion."""
        values = {"ridge": self.ridge * float(np.vdot(beta, F))}
        slope = self.ridge * beta - self.Y
        for name, term in (self.fixed | alignment.terms).items():
            SF = term.apply(F)
            slope += SF
            values[name] = float(np.vdot(F, SF))
        # ||A (F - Y)||^2 = tr(F' A F) - 2 tr(F' A Y) + tr(Y' A Y)
        values["source"] += float(np.vdot(self.Y, self.Y) - 2 * np.vdot(F, self.Y))
        if self.confusion.weight > 0:
            values["confusion"] = self.confusion.value(F)
        return values, slope


def _fixed_system(K: Matrix, ridge: float, *terms: Term) -> Matrix:
    """S K + eta I of the terms that no pseudo-label changes."""
    P = ridge * np.eye(len(K))
    for term in terms:
        P += term.apply(K)
    return P


def _factored_system(K: Matrix, ridge: float, *terms: Term) -> UpdatedSystem:
    return UpdatedSystem(_fixed_system(K, ridge, *terms), K)


def _source_only_codes(K: Matrix, Y: Matrix, n_source: int, ridge: float) -> NDArray[np.intp]:
    """Classes of the target rows by the solution with no term that looks at the target."""
    factor = remember(_source_factor, K, n_source, ridge)
    return (K[n_source:, :n_source] @ cho_solve(factor, Y[:n_source])).argmax(axis=1)


def _source_factor(K: Matrix, n_source: int, ridge: float) -> tuple[Matrix, bool]:
    """Cholesky factor of the kernel of the source rows with the ridge on its diagonal."""
    inner = K[:n_source, :n_source].copy()
    inner.flat[:: n_source + 1] += ridge
    return cho_factor(inner, overwrite_a=True)
