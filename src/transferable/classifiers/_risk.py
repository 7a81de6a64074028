"""What the risk classifiers share: parameters, the way from rows to a solution, prediction.

A method states what it minimises in ``_objective``; everything else is done here, by the engine of
:mod:`transferable.engines.risk`, which never sees the estimator.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from transferable.base import Takes, WeightedFit
from transferable.classifiers._risk_parameters import RiskParameters
from transferable.classifiers._scores import ScoreClassifier
from transferable.domains import Domains, table_key
from transferable.engines.risk.calibration import temperatures
from transferable.engines.risk.exact import ExactSolver
from transferable.engines.risk.features import ManifoldFeatures
from transferable.engines.risk.graphs import with_graph
from transferable.engines.risk.landmarks import LandmarkSolver
from transferable.engines.risk.objective import Objective
from transferable.engines.risk.rounds import Rounds, solve
from transferable.engines.risk.rows import Rows, choose_features
from transferable.engines.risk.shares import (
    SOFTNESS,
    doubt_shift,
    follow_target,
    keep_small_classes,
)
from transferable.engines.risk.sizes import RiskSizes
from transferable.engines.risk.solver import Labels, Solver
from transferable.engines.shares import KnownShares, Labelling, wanted_shares
from transferable.engines.sources import weigh_sources
from transferable.events import stage
from transferable.linalg.arrays import Arrays, is_torch_array, like, to_numpy
from transferable.linalg.feature_tables import FeatureTable
from transferable.linalg.kernels import KernelFunction
from transferable.linalg.memory import Plan, memory_budget
from transferable.linalg.moments import row_blocks
from transferable.linalg.nystrom import Nystrom, draw_landmarks
from transferable.terms.base import Matrix
from transferable.terms.covariances import Covariances
from transferable.terms.means import Means
from transferable.terms.smoothness import AnchorLaplacian, Smoothness
from transferable.workspace import shared

__all__ = ["ManifoldClassifier", "RiskClassifier"]


class RiskClassifier(RiskParameters, WeightedFit, ScoreClassifier):
    """Base of ARTL, MEDA, TFDF-V and TFDF."""

    takes = Takes(several_sources=True, sample_weight=True, target_labels=True)
    _accept_sparse = True

    @abstractmethod
    def _objective(self) -> Objective:
        """What the method minimises."""

    @abstractmethod
    def _map(self, domains: Domains) -> ManifoldFeatures:
        """The features the method works on."""

    def _start(self, solver: Solver) -> Labels:
        """The first pseudo-labels where no estimator gives them."""
        return solver.source_only_labels()

    def _align(self, rounds: Rounds) -> None:
        """Solve and relabel, max_iter times or until nothing changes."""
        rounds.run(solve, self.max_iter)

    def _refine(self, rounds: Rounds) -> None:
        """What the method does once labels and shares have settled."""

    def _fit_domains(self, domains: Domains) -> None:
        objective = self._objective()
        _check_neighbors(objective, len(domains.order))
        domains = weigh_sources(domains, self.source_weights)
        stage("Finding the domains' directions")
        shares = wanted_shares(self.class_shares, domains)
        solver = self._solver(objective, self._rows(domains, self._map(domains)))
        rounds = self._rounds(solver, shares)
        self._keep(rounds, shares)
        source = self._decisive(to_numpy(rounds.scores[domains.source]))
        codes = np.concatenate([source.argmax(axis=1), rounds.target])
        self.transduction_ = domains.restore(domains.classes[codes])

    def _keep(self, rounds: Rounds, shares: NDArray[np.float64] | None) -> None:
        """Set the fitted attributes but those of the fitted rows."""
        solver, domains = rounds.solver, rounds.solver.domains
        stage("Calibrating probabilities")
        labels_only = domains.workspace.labels_only
        none = float("nan"), float("nan")
        self._source_temperature, self.temperature_ = none if labels_only else temperatures(rounds)
        self.classes_ = domains.classes
        found = rounds.labelling.offsets
        offsets = np.zeros(domains.n_classes) if found is None else found
        self._absent = np.flatnonzero(np.isneginf(offsets))
        self._offsets = np.where(np.isneginf(offsets), 0.0, offsets)
        self.source_weights_ = domains.weights_of_sources
        self.class_shares_ = solver.domains.target_shares if shares is None else shares
        self.n_iter_ = rounds.n_iter
        self.balance_ = rounds.labelled.balance
        graph = solver.fixed.get(Smoothness.name)
        self.manifold_ = 0.0 if graph is None else graph.weight
        self.n_anchors_ = len(graph.anchors) if isinstance(graph, AnchorLaplacian) else None
        self.graph_recall_ = solver.rows.graph_recall
        self.n_landmarks_ = solver.n_landmarks
        if self.record_history:
            self.history_ = rounds.history
            self.class_shares_history_ = np.array(rounds.shares)
        self._features = solver.rows.features
        self.manifold_dim_ = self._features.manifold_dim
        self._fitted_features, self._beta = solver.expansion(rounds.coefficients)

    def _rounds(self, solver: Solver, shares: NDArray[np.float64] | None) -> Rounds:
        """All rounds of the method, with the class shares that are given, found or the source's."""
        history = self.record_history
        if shares is not None and solver.domains.n_target > 0:
            known = KnownShares(shares, SOFTNESS)
            solver = solver.with_shares(known.in_solve(solver.domains.source_shares))
            known = known.among(solver.domains)
            first = solver.source_only_labels(known)
            rounds = Rounds(solver, first, known, record_history=history)
            self._align(rounds)
            self._refine(rounds)
            rounds.settle()
            return rounds
        rounds = Rounds(solver, self._first_labels(solver), record_history=history)
        self._align(rounds)
        asked = self.class_shares if isinstance(self.class_shares, str) else "source"
        follows = asked != "source"
        before = rounds.coefficients, rounds.target
        if follows and follow_target(rounds):
            self._align(rounds)
            if asked == "auto" and doubt_shift(rounds, *before):
                self._align(rounds)
        self._refine(rounds)
        if follows:
            keep_small_classes(rounds)
        return rounds

    def _rows(self, domains: Domains, features: ManifoldFeatures) -> Rows:
        arrays = Arrays(domains.device) if domains.device else Arrays.on(self.device)
        return Rows(domains, features, self._kernel, self.ridge, arrays, self.random_state)

    def _solver(self, objective: Objective, rows: Rows) -> Solver:
        """The objective over all rows or over landmarks, whichever was asked for or fits."""
        plan = self._plan(objective, rows)
        term, by_landmarks = objective.find(Smoothness), plan.n_landmarks is not None
        if term is not None:
            asked = self.graph, self.n_anchors, sum(rows.domains.sizes)
            objective = objective.replacing(with_graph(term, *asked, by_landmarks=by_landmarks))
        if plan.n_landmarks is None:
            return ExactSolver(objective, rows)
        stage("Comparing rows with landmarks")
        Z, arrays = rows.Z, rows.arrays
        rng = check_random_state(self.random_state)
        drawn = draw_landmarks(Z, rows.domains.n_source, plan.n_landmarks, rng)
        nystrom = rows.domains.share(
            "landmarks",
            (rows.place, rows.kernel, drawn.tobytes()),
            Nystrom,
            *(Z[drawn], rows.kernel, arrays),
        )
        table = FeatureTable(rows.table, nystrom, arrays, held=plan.held, chunk=plan.chunk)
        return LandmarkSolver(objective, rows, table)

    def _plan(self, objective: Objective, rows: Rows) -> Plan:
        graph, X = objective.find(Smoothness), rows.domains.X
        sizes = RiskSizes(
            n_rows=X.shape[0],
            width=rows.features.width(X.shape[1]),
            n_classes=rows.domains.n_classes,
            n_neighbors=0 if graph is None else graph.n_neighbors,
            itemsize=X.dtype.itemsize,
            second_order=objective.find(Covariances) is not None,
        )
        return Plan.make(sizes, self.n_landmarks, memory_budget(self.max_memory, rows.arrays))

    def _first_labels(self, solver: Solver) -> Labels:
        """The first pseudo-labels, by the base classifier or by the method's own start."""
        domains = solver.domains
        if domains.n_target == 0:
            return np.empty(0, dtype=np.intp)
        if self.estimator is None:
            return self._start(solver)
        return solver.labels_by(partial(_trained, self.estimator))

    def _way_back(self, domains: Domains, target: NDArray[np.intp]) -> NDArray[np.intp]:
        """Classes of the source rows, as the given classes of the target rows lead to them.

        The target rows take the place of the source. Features, kernel, ridge and graph are those of
        the fitted model, so that one factorisation serves all models that agree in them. Nothing is
        aligned: on real tasks, aligning too led to no better choices of settings.
        """
        objective = replace(self._objective().without(Means, Covariances), confusion=None)
        graph = objective.find(Smoothness)
        if graph is not None:
            objective = objective.replacing(replace(graph, weight=self.manifold_))
        rows = self._rows(domains.reversed(target), self._features)
        solver = self._solver(objective, rows)
        unlabelled = solver.at(np.zeros(domains.n_source, dtype=np.intp))
        return solver.codes(solver.relabel(solver.solve(unlabelled), Labelling()))

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
        scores = scores / self.temperature_
        scores[:, self._absent] = -np.inf
        return super()._probabilities(scores)

    def _validate_rows(self, X: Any) -> Any:
        """Rows to predict, on the device of a tensor that was passed in."""
        return like(X, super()._validate_rows(X))

    def _scores(self, rows: Any) -> Matrix:
        return np.concatenate(list(self._blocks_of_scores(rows)))

    def _predict_codes(self, rows: Any) -> NDArray[np.intp]:
        return np.concatenate([F.argmax(axis=1) for F in self._blocks_of_scores(rows)])

    def _blocks_of_scores(self, rows: Any) -> Iterator[Matrix]:
        """Scores of rows, as many at a time as suit the device."""
        arrays = Arrays.of(rows) if is_torch_array(rows) else Arrays.on(self.device)
        anchors = arrays.table(self._fitted_features, "float64")
        beta = arrays.table(self._beta)
        blocks = row_blocks(rows.shape[0], anchors.shape[0], on_gpu=arrays.on_gpu)
        workspace = shared() if len(blocks) == 1 else None
        for block in blocks:
            some = to_numpy(rows[block]) if is_torch_array(rows) else rows[block]

            def kernel(some: Any = some) -> Matrix:
                Z = arrays.table(self._features.transform(some), "float64")
                return arrays.table(self._kernel(Z, anchors))

            if workspace is None:
                yield self._decisive(to_numpy(kernel() @ beta))
                continue
            # Models of one search are asked for the same rows, and differ in beta as a rule.
            key = table_key(some), table_key(self._fitted_features), self._kernel, arrays
            yield self._decisive(to_numpy(workspace.get("scored rows", key, kernel) @ beta))

    def _decisive(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores as they decide: with offsets, and below all others for classes that are absent."""
        scores = scores + self._offsets
        if len(self._absent):
            present = np.delete(scores, self._absent, axis=1)
            scores[:, self._absent] = present.min(axis=1, keepdims=True) - 1.0
        return scores

    @property
    def _kernel(self) -> KernelFunction:
        return KernelFunction(self.kernel, self.gamma, self.degree, self.coef0)


class ManifoldClassifier(RiskClassifier):
    """Base of those that work on the geodesic flow between the domains' subspaces."""

    manifold_dim: int | Literal["auto"] | None

    def _map(self, domains: Domains) -> ManifoldFeatures:
        if self.manifold_dim == "auto":
            return choose_features(domains, self._kernel, self.ridge)
        return ManifoldFeatures.fit(domains, self.manifold_dim)


def _trained(estimator: Any, Z: Any, codes: NDArray[np.intp], weights: Any) -> Any:
    """How an estimator that learnt these classes labels rows."""
    estimator = clone(estimator)
    if weights is not None and has_fit_parameter(estimator, "sample_weight"):
        return estimator.fit(Z, codes, sample_weight=weights).predict
    return estimator.fit(Z, codes).predict


def _check_neighbors(objective: Objective, n_rows: int) -> None:
    graph = objective.find(Smoothness)
    if graph is not None and graph.n_neighbors >= n_rows:
        raise ValueError(
            f"n_neighbors={graph.n_neighbors} must be smaller than the number of rows, {n_rows}; "
            "lower it, or set manifold=0 to do without the graph."
        )
