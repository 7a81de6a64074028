"""What the risk classifiers share: parameters, the rounds of solve and relabel, prediction."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from transferable.classifiers._auto import choose_features
from transferable.classifiers._embedding import ManifoldFeatures
from transferable.classifiers._risk import RiskProblem
from transferable.classifiers._rounds import Rounds
from transferable.classifiers._scores import ScoreClassifier
from transferable.classifiers._steps import solve
from transferable.classifiers._temperature import cautious_temperature
from transferable.domains import Domains
from transferable.linalg.kernels import KERNELS, Kernel, KernelFunction
from transferable.linalg.reuse import canonical, remember
from transferable.terms.base import Matrix
from transferable.terms.confusion import ConfusionForm

__all__ = ["RiskClassifier"]

_WEIGHT = Interval(Real, 0, None, closed="left")
_COUNT = Interval(Integral, 1, None, closed="left")


class RiskClassifier(ScoreClassifier):
    """Base of ARTL, MEDA, TFDF-V and TFDF.

    A subclass's ``__init__`` takes the parameters its method has. Those it does not have keep the
    values below, with which the term they belong to is absent.
    """

    ridge: float = 0.1
    alignment: float = 10.0
    manifold: float | str = 1.0
    variance: float = 0.0
    confusion: float = 0.0
    second_order: float = 0.0
    balance: str | float = 0.5
    alignment_form: str = "normalised"
    confusion_form: ConfusionForm = "normalised"
    manifold_dim: int | Literal["auto"] | None = None
    n_neighbors: int
    kernel: Kernel
    gamma: float
    degree: int
    coef0: float
    max_iter: int
    estimator: ClassifierMixin | None
    random_state: int | RandomState | None = 0
    record_history: bool
    verbose: bool
    _self_loops: ClassVar[bool] = False
    _starts_from_neighbor: ClassVar[bool] = False
    _accept_sparse = True

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "ridge": [_WEIGHT],
        "alignment": [_WEIGHT],
        "manifold": [_WEIGHT],
        "n_neighbors": [_COUNT],
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "degree": [_COUNT],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "max_iter": [_COUNT],
        "estimator": [HasMethods(["fit", "predict"]), None],
        "record_history": ["boolean"],
        "verbose": ["boolean"],
    }

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes: softmax of the scores over a fitted temperature.

        Two temperatures are fitted by maximum likelihood, one to left-out source rows and one to
        the target rows with the labels the fit began with; the higher, more cautious one is
        used. Neither knows the target's labels: where domains differ much, expect confidence to
        exceed accuracy.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, those that were fitted or new ones.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            A distribution over ``classes_`` for each row.
        """
        return super().predict_proba(X)

    def _probabilities(self, scores: Matrix) -> Matrix:
        return super()._probabilities(scores / self.temperature_)

    def _scores(self, rows: Any) -> Matrix:
        Z = self._features.transform(canonical(rows))
        return remember(self._kernel, Z, self._fitted_features) @ self._beta

    @property
    def _kernel(self) -> KernelFunction:
        return KernelFunction(self.kernel, self.gamma, self.degree, self.coef0)

    def _fit_domains(self, domains: Domains) -> None:
        n = len(domains.order)
        if self.manifold != 0.0 and self.n_neighbors >= n:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} must be smaller than the number of rows, {n}; "
                "lower it, or set manifold=0 to do without the graph."
            )
        domains = replace(domains, X=canonical(domains.X))
        features = (
            choose_features(domains, self._kernel, self.ridge)
            if self.manifold_dim == "auto"
            else ManifoldFeatures.fit(domains, self.manifold_dim)
        )
        Z = features.transform(domains.X)
        problem = RiskProblem(self, domains, Z, remember(self._kernel, Z, Z))
        rounds = Rounds(problem, self._first_codes(problem, Z))
        self._run(rounds)

        self.temperature_ = cautious_temperature(rounds)
        self.classes_ = domains.classes
        self.transduction_ = domains.restore(domains.classes[rounds.scores.argmax(axis=1)])
        self.n_iter_ = rounds.n_iter
        self.balance_ = rounds.alignment.balance
        self.manifold_ = problem.manifold
        self.manifold_dim_ = features.manifold_dim
        if self.record_history:
            self.history_ = rounds.history
        self._features, self._fitted_features, self._beta = features, Z, rounds.beta

    def _first_codes(self, problem: RiskProblem, Z: Any) -> NDArray[np.intp]:
        """The first pseudo-labels, by the base classifier or by the model's own source-only fit."""
        domains = problem.domains
        if domains.n_target == 0:
            return np.empty(0, dtype=np.intp)
        if self.estimator is None and not self._starts_from_neighbor:
            return problem.source_only_codes()
        estimator = KNeighborsClassifier(1) if self.estimator is None else clone(self.estimator)
        estimator.fit(Z[: domains.n_source], domains.y)
        return np.asarray(estimator.predict(Z[domains.n_source :]), dtype=np.intp)

    def _run(self, rounds: Rounds) -> None:
        """Solve and relabel, max_iter times or until nothing changes."""
        rounds.run(solve, self.max_iter)
