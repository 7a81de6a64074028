"""What the risk classifiers share: parameters, the rounds of solve and relabel, prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import check_random_state

from transferable._sklearn import NUMBER, POSITIVE, WEIGHT, HasMethods, Interval, StrOptions
from transferable.classifiers._auto import choose_features
from transferable.classifiers._embedding import ManifoldFeatures
from transferable.classifiers._exact import ExactProblem
from transferable.classifiers._landmarks import LandmarkProblem
from transferable.classifiers._plan import Plan, Problem, memory_budget
from transferable.classifiers._risk import RiskProblem
from transferable.classifiers._rounds import Rounds
from transferable.classifiers._scores import ScoreClassifier
from transferable.classifiers._steps import solve
from transferable.classifiers._temperature import cautious_temperature
from transferable.domains import Domains, Reordered
from transferable.events import stage
from transferable.linalg.arrays import Arrays, to_numpy
from transferable.linalg.features import FeatureTable
from transferable.linalg.kernels import KERNELS, Kernel, KernelFunction
from transferable.linalg.moments import row_blocks
from transferable.linalg.nystrom import Nystrom, draw_landmarks
from transferable.linalg.reuse import canonical, remember
from transferable.linalg.search import nearest
from transferable.terms.base import Matrix
from transferable.terms.confusion import ConfusionForm

__all__ = ["RiskClassifier"]

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
    n_landmarks: int | Literal["auto"] | None = "auto"
    max_memory: int | str | None = None
    device: str = "cpu"
    random_state: int | RandomState | None = 0
    record_history: bool
    verbose: bool
    _self_loops: ClassVar[bool] = False
    _starts_from_neighbor: ClassVar[bool] = False
    _accept_sparse = True

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "ridge": [WEIGHT],
        "alignment": [WEIGHT],
        "manifold": [WEIGHT],
        "n_neighbors": [_COUNT],
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [POSITIVE],
        "degree": [_COUNT],
        "coef0": [NUMBER],
        "max_iter": [_COUNT],
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_landmarks": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left"), None],
        "max_memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "device": [str],
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
        return np.concatenate(list(self._blocks_of_scores(rows)))

    def _predict_codes(self, rows: Any) -> NDArray[np.intp]:
        return np.concatenate([F.argmax(axis=1) for F in self._blocks_of_scores(rows)])

    def _blocks_of_scores(self, rows: Any) -> Iterator[Matrix]:
        """Scores of rows, as many at a time as suit the device."""
        arrays = Arrays.on(self.device)
        anchors = remember(arrays.table, self._fitted_features, "float64")
        beta = remember(arrays.table, self._beta)
        blocks = row_blocks(rows.shape[0], anchors.shape[0], on_gpu=arrays.on_gpu)
        for block in blocks:
            # Only rows that are scored at once are worth remembering.
            some = canonical(rows) if len(blocks) == 1 else rows[block]
            yield to_numpy(self._kernel_with(anchors, some, arrays) @ beta)

    def _kernel_with(self, anchors: Any, rows: Any, arrays: Arrays) -> Matrix:
        """Kernel of rows with those that the classifier is expanded over."""
        Z = remember(arrays.table, self._features.transform(rows), "float64")
        return arrays.table(remember(self._kernel, Z, anchors))

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
        if not isinstance(domains.X, Reordered):
            domains = replace(domains, X=canonical(domains.X))
        stage("Finding the domains' directions")
        features = (
            choose_features(domains, self._kernel, self.ridge)
            if self.manifold_dim == "auto"
            else ManifoldFeatures.fit(domains, self.manifold_dim)
        )
        problem = self._problem(domains, features)
        rounds = Rounds(problem, self._first_codes(problem))
        self._run(rounds)

        stage("Calibrating probabilities")
        self.temperature_ = cautious_temperature(rounds)
        self.classes_ = domains.classes
        codes = np.concatenate([problem.source_codes(rounds.scores), rounds.target])
        self.transduction_ = domains.restore(domains.classes[codes])
        self.n_iter_ = rounds.n_iter
        self.balance_ = rounds.alignment.balance
        self.manifold_ = problem.manifold
        self.manifold_dim_ = features.manifold_dim
        self.graph_recall_ = problem.graph_recall
        if self.record_history:
            self.history_ = rounds.history
        self._features = features
        self._fitted_features, self._beta = problem.expansion(rounds.coefficients)

    def _problem(self, domains: Domains, features: ManifoldFeatures) -> RiskProblem:
        """The objective over all rows or over landmarks, whichever was asked for or fits."""
        arrays = Arrays.on(self.device)
        n, d = domains.X.shape
        sizes = Problem(
            n_rows=n,
            width=features.width(d),
            n_classes=domains.n_classes,
            n_neighbors=0 if self.manifold == 0.0 else self.n_neighbors,
            itemsize=domains.X.dtype.itemsize,
            second_order=self.alignment * self.second_order > 0,
        )
        plan = Plan.make(sizes, self.n_landmarks, memory_budget(self.max_memory, arrays))
        self.n_landmarks_ = plan.n_landmarks
        stage("Mapping rows to features")
        Z = features.of_domains(domains)
        if plan.n_landmarks is None:
            return ExactProblem(self, domains, Z, arrays)
        stage("Comparing rows with landmarks")
        rng = check_random_state(self.random_state)
        drawn = draw_landmarks(Z, domains.n_source, plan.n_landmarks, rng)
        nystrom = remember(Nystrom, canonical(Z[drawn]), self._kernel, arrays)
        rows = remember(arrays.table, Z)
        table = FeatureTable(rows, nystrom, arrays, held=plan.held, chunk=plan.chunk)
        return LandmarkProblem(self, domains, Z, arrays, table)

    def _first_codes(self, problem: RiskProblem) -> NDArray[np.intp]:
        """The first pseudo-labels, by the base classifier or by the model's own source-only fit."""
        domains, Z = problem.domains, problem.Z
        if domains.n_target == 0:
            return np.empty(0, dtype=np.intp)
        if self.estimator is None and not self._starts_from_neighbor:
            return problem.source_only_codes()
        if self.estimator is None:
            rows = remember(problem.arrays.table, Z)
            source, target = rows[: domains.n_source], rows[domains.n_source :]
            return domains.y[to_numpy(nearest(target, source).indices).ravel()]
        estimator = clone(self.estimator).fit(Z[: domains.n_source], domains.y)
        return np.asarray(estimator.predict(Z[domains.n_source :]), dtype=np.intp)

    def _run(self, rounds: Rounds) -> None:
        """Solve and relabel, max_iter times or until nothing changes."""
        rounds.run(solve, self.max_iter)
