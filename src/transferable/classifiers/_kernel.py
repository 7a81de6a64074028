"""Base of ARTL, MEDA, TFDF-V and TFDF: from a problem to a solution, and prediction.

A method lists its terms in ``_objective``; :mod:`transferable._kernel` does the rest.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone

from transferable._kernel import choose
from transferable._kernel.class_shares import ClassShares, GivenShares, LabelRule, given_shares
from transferable._kernel.objective import Objective
from transferable._kernel.rounds import Rounds
from transferable._kernel.solvers import ExactSolver, Solver, landmark_solver
from transferable._linalg.arrays import CPU, Arrays, is_torch_array, to_numpy, unit_rows
from transferable._linalg.kernels import KERNELS, Kernel, KernelFunction
from transferable._linalg.search import nearest
from transferable._sklearn import (
    CLASS_SHARES,
    COUNT,
    POSITIVE,
    WEIGHT,
    Interval,
    StrOptions,
)
from transferable.base import DomainClassifier, Takes, trained
from transferable.domains import Domains
from transferable.events import stage
from transferable.limits import LIMITS

_WIDE = 0.9  # share of the variance in one column from which the others hardly count
SOFTNESS = 0.2  # softness of labels that must meet a given class prior, in units of the scores


class KernelClassifier(DomainClassifier):
    """Base of ARTL, MEDA, TFDF-V and TFDF.

    Parameters
    ----------
    ridge : float, default=0.1
        eta, the weight of the squared norm of the classifier.
    alignment : float, default=10
        lambda, the weight of the discrepancy between the domains. 0 switches it off.
    graph : {"auto", "neighbors", "anchors"} or int, default="auto"
        "neighbors" joins rows that are nearest by cosine, found by a search. "anchors" joins rows
        that are near the same of a few anchors, in time linear in the rows and without a search:
        one anchor for five rows, at most 1,000, placed by k-means; a row is tied to its three
        nearest. An integer is the number of anchors. "auto" takes anchors where landmarks are taken
        and there are 10,000 rows or more.
    kernel : {"rbf", "linear", "poly"} or callable, default="rbf"
        Kernel between feature rows, which have unit length; "poly" is (gamma x'y + 1)^3. A model
        with a callable cannot be saved.
    gamma : float, default=0.5
        Coefficient of the "rbf" and "poly" kernels.
    max_iter : int, default=10
        T, the maximum number of rounds of solving and relabelling; fewer if no label changes.
    n_landmarks : "auto", int, float or None, default="auto"
        None solves over all rows, at a cost cubic in their number. An integer expands the
        classifier over that many landmark rows, half of them from each domain, at a cost linear in
        the number of rows. A float below 1 takes 500 or 1,000 of them, at most a third of the rows:
        the fewer if they leave that share of the kernel (``residual_``) or less. Where neither
        does, or there are fewer than 2,000 rows, it solves over all rows, up to 8,000 that fit
        ``max_memory``; beyond it takes the most that fit, with a warning. "auto" is 0.03.
    max_memory : int, str or None, default=None
        Memory for a fit, in bytes or as text such as "4GB"; None is half of the free memory. A fit
        that needs more is refused before it begins. Features of all rows that do not fit are
        computed block by block whenever they are needed.
    device : str, default="cpu"
        "cpu" computes with numpy, "torch" with torch on the CPU, "cuda" on a GPU, "auto" on a GPU
        if there is one. A fitted model can be used on any device.
    random_state : int, RandomState instance or None, default=0
        Seed of the random steps: the choice of landmarks, and randomised iterations for the leading
        directions in which A-distances of rows with more than 256 features are measured.
    class_shares : {"auto", "estimated", "source"} or mapping or array-like, default="auto"
        Class prior of the target: the share of its rows that each class has. "source" assumes that
        of the source; where it is wrong, surplus rows of a class are pulled into others.
        "estimated" checks whether the labels of target rows, without alignment, have other shares
        than those of left-out source rows, follows a label shift as far as the evidence supports
        it, and keeps small classes from shrinking; with fewer than 30 target rows it follows none.
        "auto" does the same and reverts the shift unless its labels keep half of the agreement with
        those of the source alone that labels with the source's shares have. Known shares are given
        by label or in the order of ``classes_``: they are met to within a row on the fitted rows,
        and a class of share 0 is never predicted. They must be right: an error of a factor of 1.35
        for each class costs 3 to 6 points.
    source_weights : "auto", mapping or array-like, default="auto"
        Weight of each of several sources in the loss and in the alignment, by id or in the order
        of the ids; only ratios matter. "auto" takes the squared share of target rows whose nearest
        row is of that source, as many rows of each compared.

    Attributes
    ----------
    n_iter_ : int
        Rounds made.
    balance_ : float
        The balance of the last round.
    manifold_ : float
        The weight of the graph used.
    manifold_dim_ : int or None
        The dimension of the subspaces used, None without a flow.
    n_landmarks_ : int or None
        The number of landmarks used, None for the exact solve.
    residual_ : float or None
        The mean share of a row's own kernel value that the landmarks leave, of 500 rows; None for
        the exact solve.
    n_anchors_ : int or None
        The number of anchors of the graph, None for one of neighbours or none.
    temperature_ : float
        The divisor of the scores in ``predict_proba``: the higher, more cautious of two fitted by
        maximum likelihood, one to left-out source rows and one to the target rows with their first
        labels. Neither uses the target's labels: where domains differ much, expect confidence to
        exceed accuracy.
    class_shares_ : ndarray of shape (n_classes,)
        Class prior assumed of the target.
    class_shares_history_ : ndarray of shape (n_iter, n_classes)
        Class prior of each round.
    source_weights_ : ndarray of shape (n_sources,)
        Weight of each source, in the order of the ids, 1 on average over their rows.
    history_ : list of dict
        For each round the objective, its terms, the balance and the share of labels that changed.
    """

    family = "objective"
    ridge: float = 0.1
    alignment: float = 10.0
    manifold: Any = 1.0
    n_neighbors: int = 8
    graph: choose.Graph = "auto"
    kernel: Kernel = "rbf"
    gamma: float = 0.5
    max_iter: int = 10
    estimator: ClassifierMixin | None = None
    n_landmarks: float | Literal["auto"] | None = "auto"
    max_memory: int | str | None = None
    device: str = "cpu"
    random_state: int | RandomState | None = 0
    class_shares: ClassShares = "source"
    source_weights: choose.SourceWeights = "auto"
    target_labels: Literal["ignore", "use"] = "ignore"
    verbose: bool = False

    _centred = False  # whether rows are centred
    _nearest_start = False  # whether first labels are those of the nearest source rows

    takes = Takes(several_sources=True, sample_weight=True, target_labels=True)
    _accept_sparse = True
    _takes_tensors = True
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "ridge": [WEIGHT],
        "alignment": [WEIGHT],
        "manifold": [WEIGHT],
        "n_neighbors": [COUNT],
        "graph": [
            StrOptions({"auto", "neighbors", "anchors"}),
            Interval(Integral, 2, None, closed="left"),
        ],
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [POSITIVE],
        "n_landmarks": [
            StrOptions({"auto"}),
            Interval(Integral, 2, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            None,
        ],
        "device": [str],
        "class_shares": [StrOptions({"estimated"}), *CLASS_SHARES],
    }

    @abstractmethod
    def _objective(self, problem: choose.Problem) -> Objective:
        """Return the terms that the method minimises."""

    def _fit_domains(self, domains: Domains) -> None:
        given = None
        if not isinstance(self.class_shares, str):
            given = given_shares(self.class_shares, domains)
        if domains.store is None and isinstance(domains.X, np.ndarray):
            spread = domains.X[: LIMITS.pool_rows].var(axis=0, dtype=np.float64)
            widest = int(spread.argmax())
            if (spread > 0).sum() > 2 and spread[widest] > _WIDE * spread.sum():
                names = getattr(self, "feature_names_in_", range(len(spread)))
                warnings.warn(
                    f"Column {names[widest]!r} has {spread[widest] / spread.sum():.0%} of the "
                    f"variance of all {len(spread)} columns, so that the others hardly count. "
                    "Scale the columns first, by PerDomainScaler or StandardScaler in a pipeline, "
                    "or pass data frames to TableClassifier, which does.",
                    UserWarning,
                    stacklevel=2,
                )
        problem = choose.parameters(self, domains)
        objective = self._objective(problem)
        make = ExactSolver if problem.nystrom is None else landmark_solver
        rounds = self._solve(make(problem, objective.fixed), objective, given)
        self._keep(rounds, given)
        source = LabelRule.codes(rounds.labelling, rounds.F[domains.source])
        codes = np.concatenate([source, rounds.target.codes])
        self.transduction_ = domains.restore(domains.classes[codes])

    def _solve(
        self, solver: Solver, objective: Objective, given: NDArray[np.float64] | None
    ) -> Rounds:
        """Run all rounds, with the class prior that is given, estimated or the source's."""
        d, follow = solver.problem.domains, self.class_shares if given is None else "source"
        labelling, prior = LabelRule(np.zeros(d.n_classes)), d.prior
        if given is not None and d.n_target:
            labelling = GivenShares(given, SOFTNESS, d)
            prior = labelling.prior
        learner = self._nearest_start and partial(NearestSource, arrays=solver.problem.arrays)
        if self.estimator is not None:
            learner = partial(_labeller, self.estimator)
        if learner and given is None and d.n_target:
            first = solver.label_by(learner)
        else:
            key = "source only", solver.key, d.y.tobytes(), d.known.tobytes()
            w, F = d.share(key, solver.source_only)
            first = solver.label(w, F, labelling)
        rounds = Rounds(solver, objective, first, labelling, prior)
        rounds.run(self.max_iter)
        if follow != "source":
            rounds.follow_shift(self.max_iter, check=follow == "auto")
        if objective.confusion:
            count, step = objective.confusion_rounds, objective.step
            rounds.run(count, objective.confusion, step, until_settled=False)
        if follow != "source":
            rounds.keep_small_classes()
        elif given is not None:
            rounds.settle(labelling)
        return rounds

    def _keep(self, rounds: Rounds, given: NDArray[np.float64] | None) -> None:
        """Set the fitted attributes except those of the fitted rows."""
        stage("Calibrating probabilities")
        solver, d = rounds.solver, rounds.domains
        problem = solver.problem
        found = np.nan, np.nan  # in a search by labels alone
        if not getattr(d.store, "labels_only", False):
            found = rounds.temperatures()
        self._source_temperature, self.temperature_ = found
        self.classes_ = d.classes
        self.source_weights_ = d.source_weights
        self.class_shares_ = rounds.shares if given is None else given
        self.n_iter_ = len(rounds.history)
        self.balance_ = rounds.balance
        self.manifold_ = problem.manifold
        self.manifold_dim_ = problem.features.flow.shape[1] // 2 or None
        self.n_anchors_ = problem.n_anchors or None
        self.n_landmarks_, self.residual_ = solver.n_landmarks, problem.residual
        self.history_ = rounds.history
        self.class_shares_history_ = np.array(rounds.shares_history)
        w = rounds.w if solver.whitening is None else solver.whitening @ rounds.w
        absent = np.isneginf(rounds.labelling.offsets)
        self._machine = KernelMachine(
            **problem.features._asdict(),
            rows=solver.expanded,
            coefficients=to_numpy(w),
            offsets=np.where(absent, 0.0, rounds.labelling.offsets),
            absent=np.flatnonzero(absent),
        )

    def _way_back(self, domains: Domains, target: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return classes of the source rows predicted from the given classes of the target rows.

        The target rows act as the source. Features, kernel, ridge and graph are those of the fitted
        model, so that one factorisation serves all models that share them. Nothing is aligned:
        aligning led to no better choice of settings on real tasks.
        """
        resolved = {"manifold": self.manifold_, "source_weights": "auto"}
        plain = clone(self).set_params(alignment=0.0, **resolved)
        machine = self._machine
        features = choose.Features(machine.flow, machine.centre, machine.beside)
        problem = choose.parameters(plain, domains.reversed(target), features=features)
        make = ExactSolver if problem.nystrom is None else landmark_solver
        fixed, d = plain._objective(problem).fixed, problem.domains
        solver = make(problem, fixed).reweighted(np.ones(d.n_classes))
        w, x, *_ = solver.updated([])
        return solver.label(w, solver.scores(w, x), LabelRule(np.zeros(d.n_classes))).codes

    def _probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = scores / self.temperature_
        scores[:, self._machine.absent] = -np.inf
        return super()._probabilities(scores)

    def _scores(self, rows: Any) -> NDArray[np.float64]:
        """Return the scores of validated rows, in blocks that suit the device."""
        arrays, device = CPU, self.device
        if is_torch_array(rows) or device != "cpu":
            arrays = Arrays.of(rows) if is_torch_array(rows) else Arrays.on(device)
            rows = to_numpy(rows) if is_torch_array(rows) else rows
        machine, kernel = self._machine, KernelFunction(self.kernel, self.gamma)
        fitted, beta = arrays.table(machine.rows, "float64"), arrays.table(machine.coefficients)
        on_cpu = arrays.device in (None, "cpu")
        values = LIMITS.block_values if on_cpu else LIMITS.gpu_block_values
        step, parts = max(1, values // fitted.shape[0]), []
        for start in range(0, rows.shape[0], step):
            some = rows[start : start + step]
            Z = unit_rows(some, machine.flow, machine.centre, machine.beside)
            Z = arrays.table(Z, "float64")
            parts.append(arrays.table(kernel(Z, fitted)) @ beta)
        if arrays.device is not None:
            parts = [to_numpy(part) for part in parts]
        scores: NDArray[np.float64] = np.concatenate(parts) + machine.offsets
        if len(machine.absent):  # lowest for classes that are never predicted
            present = np.delete(scores, machine.absent, axis=1)
            scores[:, machine.absent] = present.min(axis=1, keepdims=True) - 1.0
        return scores


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """Scores of a fitted classifier: an expansion over rows, with offsets of the classes."""

    # the map from rows to features, as in `choose.Features`
    flow: NDArray[np.float64]
    centre: Any
    beside: float
    rows: Any  # (m, d): features of all fitted rows, or of landmarks
    coefficients: NDArray[np.float64]  # (m, n_classes)
    offsets: NDArray[np.float64]  # (n_classes,): additions to the scores, 0 for absent classes
    absent: NDArray[np.intp]  # classes that are never predicted


def _labeller(*learnt: Any) -> Any:
    """Return the labelling of rows by an estimator once trained."""
    return trained(*learnt).predict


@dataclass(frozen=True)
class NearestSource:
    """Labels of unit rows from the nearest labelled row by cosine; weights are ignored."""

    rows: Any
    codes: NDArray[np.intp]
    weights: Any = None
    arrays: Arrays = CPU

    def __call__(self, Z: Any) -> NDArray[np.intp]:
        """Return class codes, searched in double precision however many rows there are."""
        step = max(1, LIMITS.double_pairs // len(self.codes))
        base, found = self.arrays.table(self.rows), [np.empty(0, dtype=np.intp)]
        for start in range(0, Z.shape[0], step):
            indices = nearest(self.arrays.table(Z[start : start + step]), base).indices
            found.append(self.codes[to_numpy(indices).ravel()])
        return np.concatenate(found)
