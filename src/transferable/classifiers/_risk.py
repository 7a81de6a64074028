"""The objective of TFDF, TFDF-V, MEDA and ARTL: regularised least squares on a kernel.

With scores F of all rows, every method minimises

    ||A (F - Y)||^2 + eta ||f||^2 + tr(F' (lambda V + rho L + delta H) F) + xi ||B - I||^2

where A keeps the source rows and ||f|| is the norm of the classifier in the kernel's space. V
depends on pseudo-labels, which the scores renew: a few rounds of solve and relabel.

There are two ways to write the classifier down, each with its own file. `_exact.py` expands it over
all rows, F = K beta, which needs K whole; `_landmarks.py` over the features of a few landmarks,
F = Phi w, at a cost linear in the number of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transferable.classifiers._auto import graph_weight
from transferable.classifiers._balance import Balance
from transferable.events import stage
from transferable.linalg.arrays import Arrays, inner, namespace, to_numpy
from transferable.linalg.neighbors import neighbor_graph
from transferable.linalg.reuse import canonical, remember
from transferable.terms.base import LowRankTerm, Matrix, Term
from transferable.terms.confusion import ClassConfusion
from transferable.terms.laplacian import Laplacian
from transferable.terms.mmd import MeanDiscrepancy
from transferable.terms.risk import SourceLoss, Variance

if TYPE_CHECKING:
    from transferable.classifiers._base import RiskClassifier
    from transferable.domains import Domains

__all__ = ["Alignment", "RiskProblem"]


class Alignment:
    """lambda V for one set of pseudo-labels: a mean part and, if asked for, a covariance part.

    The covariance part is a quadratic form of whatever the classifier's coefficients are.
    """

    def __init__(self, balance: float, means: LowRankTerm, covariances: Any) -> None:
        self.balance = balance
        self.means = means
        self.covariances = covariances


class RiskProblem(ABC):
    """One problem with everything that stays the same while pseudo-labels change.

    Parameters
    ----------
    spec : RiskClassifier
        The estimator, for its parameters.
    domains : Domains
        The problem.
    Z : array or sparse matrix of shape (n, d)
        Features of all rows, of unit length.
    arrays : Arrays
        Where the algebra is done.
    """

    ridge: float

    def __init__(self, spec: RiskClassifier, domains: Domains, Z: Any, arrays: Arrays) -> None:
        self.spec = spec
        self.domains = domains
        self.Z = Z
        self.arrays = arrays
        self.Y = remember(arrays.table, canonical(domains.one_hot()))
        self.graph_recall = 1.0
        self.fixed: dict[str, Term] = {"source": remember(SourceLoss, domains.n_source)}
        self.manifold = (
            graph_weight(Z, domains, spec._kernel, spec.ridge)
            if spec.manifold == "auto"
            else float(spec.manifold)
        )
        if self.manifold > 0:
            stage("Finding neighbours")
            rows = remember(arrays.table, Z)
            graph = remember(neighbor_graph, rows, spec.n_neighbors, spec._self_loops)
            self.graph_recall = graph.recall
            weights = remember(arrays.sparse, graph.weights)
            self.fixed["manifold"] = remember(Laplacian, weights, self.manifold)
        if spec.variance > 0:
            self.fixed["variance"] = remember(Variance, spec.variance)
        self.balance = Balance(spec.balance, Z, domains, spec.random_state)
        self.confusion = ClassConfusion(spec.confusion, spec.confusion_form)

    @property
    def _has_second_order(self) -> bool:
        return self.spec.alignment * self.spec.second_order > 0 and self.domains.n_target > 0

    @abstractmethod
    def zero(self) -> Matrix:
        """The coefficients of the classifier that scores zero everywhere."""

    @abstractmethod
    def scores(self, coefficients: Matrix) -> Matrix:
        """F, the scores of all rows."""

    @abstractmethod
    def solve(
        self, alignment: Alignment, extra: LowRankTerm | None = None, pull: Matrix | None = None
    ) -> Matrix:
        """The least of ||A (F - Y)||^2 + eta ||f||^2 + tr(F' S F) - 2 tr(F' pull).

        S holds the fixed terms, the alignment and `extra`.
        """

    @abstractmethod
    def source_only_codes(self) -> NDArray[np.intp]:
        """Classes of the target rows by the source's regularised risk alone."""

    @abstractmethod
    def own_weights(self, alignment: Alignment, count: int) -> Matrix:
        """How much each of the first source rows' own label weighs in its score."""

    @abstractmethod
    def pull_back(self, slope: Matrix, coefficients: Matrix, alignment: Alignment) -> Matrix:
        """Slope in the coefficients of eta ||f||^2 and of a function with this slope in F."""

    @abstractmethod
    def expansion(self, coefficients: Matrix) -> tuple[Any, NDArray[np.float64]]:
        """Rows and coefficients with which new rows are scored: K(new, rows) times these."""

    @abstractmethod
    def _covariances(self, codes: NDArray[np.intp], balance: float) -> Any:
        """The covariance part of lambda V."""

    @abstractmethod
    def _quadratics(
        self, coefficients: Matrix, F: Matrix, alignment: Alignment
    ) -> dict[str, float]:
        """The ridge and, if there is one, the covariance part."""

    def source_codes(self, F: Matrix) -> NDArray[np.intp]:
        """Classes of the source rows by their highest score."""
        return to_numpy(namespace(F).argmax(F[: self.domains.n_source], axis=1))

    def target_codes(self, F: Matrix) -> NDArray[np.intp]:
        """Pseudo-labels of the target rows by their highest score."""
        return to_numpy(namespace(F).argmax(F[self.domains.n_source :], axis=1))

    def alignment(self, target: NDArray[np.intp]) -> Alignment:
        """lambda V for the given pseudo-labels, with its balance."""
        spec, domains = self.spec, self.domains
        codes = domains.with_target(target)
        balance = self.balance(codes)
        means = MeanDiscrepancy(
            self.arrays.table(codes),
            domains.n_source,
            domains.n_classes,
            weight=spec.alignment,
            balance=balance,
            normalised=spec.alignment_form == "normalised",
        )
        covariances = self._covariances(codes, balance) if self._has_second_order else None
        return Alignment(balance, means, covariances)

    def objective(
        self, coefficients: Matrix, F: Matrix, alignment: Alignment
    ) -> tuple[dict[str, float], Matrix]:
        """Value of each term, and S F - A Y: half the slope in F of what is quadratic in it."""
        values = self._quadratics(coefficients, F, alignment)
        slope = -self.Y
        for name, term in (self.fixed | {"means": alignment.means}).items():
            SF = term.apply(F)
            slope += SF
            values[name] = inner(F, SF)
        # ||A (F - Y)||^2 = tr(F' A F) - 2 tr(F' A Y) + tr(Y' A Y)
        values["source"] += inner(self.Y, self.Y) - 2 * inner(F, self.Y)
        if self.confusion.weight > 0:
            values["confusion"] = self.confusion.value(F)
        return values, slope
