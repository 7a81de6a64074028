"""Engine of TCA, JDA, BDA, McDA, TJM, SCA, JGSA, LPJT and LDML.

Each method finds maps W that maximise tr(W'BW) / tr(W'AW), where B and A are sums of terms of the
embedded rows and of a penalty on W. The solution is the leading eigenvectors of B v = w A v.
Methods that compare classes label the target in this space and solve again, in rounds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import check_random_state

from transferable._kernel.choose import source_weights
from transferable._kernel.class_shares import (
    ClassShares,
    EstimatedShares,
    GivenShares,
    LabelRule,
    class_log_probabilities,
    estimate_shift,
    given_shares,
)
from transferable._kernel.objective import Means
from transferable._linalg.arrays import CPU, unit_rows
from transferable._linalg.kernels import FeatureTable, Kernel, Nystrom, draw_landmarks
from transferable._linalg.memory import Plan, memory_budget, warn_of_landmarks
from transferable._linalg.systems import Matrix, Root, leading_updated
from transferable._sklearn import (
    COUNT,
    POSITIVE,
    Interval,
    StrOptions,
)
from transferable.base import trained
from transferable.domains import Domains
from transferable.events import LISTENERS, iterate, stage
from transferable.exceptions import warn_of_fewer
from transferable.limits import LIMITS
from transferable.transformers._features import (
    Features,
    KernelParameters,
    RowMap,
    Spread,
    by_row,
    farthest,
    kernel_features,
    row_features,
    table_features,
)
from transferable.transformers._nearest_row import SMALLEST, NearestRow

_DEFAULT_COMPONENTS = 30

Codes = NDArray[np.intp]
# Eigenvalues in falling order, and coefficients of Phi with v'Av = 1.
Solution = tuple[Matrix, Matrix]
# From pseudo-labels of the target (None if there are none yet) and the number of vectors.
Solver = Callable[[Codes | None, int], Solution]
# From coefficients to embedded rows.
Times = Callable[[Matrix], Matrix]


@dataclass(frozen=True)
class Embedded:
    """Scaled maps, the fitted rows embedded by them, and weights of the rows for a classifier."""

    values: Matrix
    W: Matrix
    Z: Matrix
    weights: Matrix


# From pseudo-labels of the target, None if there are none yet.
Embed = Callable[[Codes | None], Embedded]


class SpectralTransformer(KernelParameters):
    """Base of the spectral methods; a subclass solves its problem in ``_learn``.

    Parameters that only some methods have are described here, too.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the shared space. None is 30, or as many as there are if fewer; a number that
        is too large is reduced with a warning.
    kernel : {"linear", "rbf", "poly"}, callable or None, default=None
        None learns a linear map of the features. A kernel learns an expansion over the fitted rows;
        a callable receives two tables and returns their kernel matrix.
    regularization : float, default=0.1
        lambda: penalty on ||W||^2, relative to the mean squared length of the rows (of their kernel
        features), which makes it independent of the unit.
    scaling : {"unit", "constraint"}, default="unit"
        "unit" gives each column of W the length 1, as published results need; "constraint" scales
        it so that the numerator, or the constrained side, is I, as the objective is printed.
    normalize : bool, default=False
        Scale embedded rows to unit length, which helps 1-NN on histograms and deep features.
    n_landmarks : int, "auto" or None, default="auto"
        Landmark rows, drawn from both domains alike, for a Nystrom approximation of the kernel
        matrix in time and memory linear in the rows. None takes all rows. "auto" takes all up to
        8,000 rows if memory allows, else 1,000, with a warning. None and "linear" need none.
    estimator : classifier or None, default=None
        Labels the target in the embedded space, trained on the source there; None is 1-NN.
    max_iter : int, default=10
        Maximum number of rounds of solving and relabelling; fewer if labels settle.
    class_shares : {"auto", "source"} or mapping or array-like, default="source"
        Class prior of the target: the share of its rows that each class has. "source" assumes that
        of the source, as the authors do. "auto" checks whether the nearest rows, without alignment,
        label target rows with other shares than left-out source rows, and follows a label shift as
        far as the evidence supports it. Known shares are given by label or in the order of the
        labels (in an :class:`~transferable.AdaptedClassifier` in this order): the source is
        weighted to them, and the labels of ``transduction_`` have them to within a row. A
        classifier trained on embedded rows does not use them. They must be right: an error of a
        factor of 1.35 for each class costs TFDF 3 to 6 points.
    source_weights : "auto", mapping or array-like, default="auto"
        Weight of each of several sources, by id or in the order of the ids; only ratios matter.
        "auto" takes the squared share of target rows whose nearest row is of that source.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Ratio of the two sides of the objective for each component, largest first.
    n_landmarks_ : int or None
        Number of landmarks; None if the solution is exact.
    """

    family = "components"
    _needs_factor: ClassVar[bool] = False
    _power: ClassVar[int | None] = None
    # Tables of the size of all rows' features that `_learn` forms.
    _feature_tables: ClassVar[int] = 0
    # Whether each domain has a map of its own; the source's coefficients come first.
    _paired: ClassVar[bool] = False

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "n_components": [COUNT, None],
        "kernel": [*KernelParameters._parameter_constraints["kernel"], None],
        "regularization": [POSITIVE],
        "scaling": [StrOptions({"unit", "constraint"})],
        "normalize": ["boolean"],
        "n_landmarks": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left"), None],
    }

    n_components: int | None = field(default=None, kw_only=False)
    kernel: Kernel | None = None
    regularization: float = 0.1
    scaling: str = "unit"
    normalize: bool = False
    n_landmarks: int | str | None = "auto"
    max_memory: int | str | None = None

    def _fit_domains(self, domains: Domains) -> None:
        weights: Any = getattr(self, "source_weights", "auto")
        if domains.n_sources > 1 or not isinstance(weights, str):
            domains = replace(domains, source_weights=source_weights(weights, domains))
        spread = Spread.of_rows(domains.X, domains.row_weights)
        largest = np.maximum(spread.highest, -spread.lowest).max()
        if np.max(spread.highest - spread.lowest) <= 1e-10 * largest:
            raise ValueError(
                f"All {len(domains.order)} rows are the same, of {domains.X.shape[1]} feature(s); "
                f"{type(self).__name__} needs rows that differ."
            )
        self.n_landmarks_: int | None = None
        power = self._power or (1 if self.kernel is None else 2)
        if self.kernel is None or self.kernel == "linear":
            features = row_features(domains, power)
        else:
            features = self._features_of_kernel(domains, spread, power)
        values, W = self._learn(domains, features)
        if self._paired and domains.n_target == 0:  # rows of one domain have one map
            W[features.rank :] = W[: features.rank]
        if len(values) < (self.n_components or 0):
            warn_of_fewer(int(self.n_components or 0), len(values))
        if self.takes.sample_weight:
            # Coefficients do not determine the signs where rows are repeated or weighted.
            W = W * np.sign(farthest(features.times(W)))
        self.eigenvalues_ = values
        self._map = replace(features.map, coefficients=features.expand(W))
        self._n_features_out = W.shape[1]
        if features.map.anchors is not None:
            self._widest = len(features.map.anchors)

    def _features_of_kernel(self, domains: Domains, spread: Spread, power: int) -> Features:
        """Return features of the kernel with all rows or with landmarks."""
        kernel = self._kernel(spread)
        sizes = SpectralSizes(
            n_rows=len(domains.order),
            n_classes=domains.n_classes,
            n_components=self._wanted(len(domains.order)),
            itemsize=domains.X.dtype.itemsize,
            factored=self._needs_factor,
            tables=self._feature_tables,
        )
        budget = memory_budget(self.max_memory, CPU)
        plan = Plan.make(sizes, self.n_landmarks, budget)
        self.n_landmarks_ = plan.n_landmarks
        if plan.n_landmarks is None:
            return kernel_features(domains, kernel, power, factored=self._needs_factor)
        if self.n_landmarks == "auto":
            warn_of_landmarks(sizes, plan.n_landmarks, budget)
        rng = check_random_state(self.random_state)
        drawn = draw_landmarks(domains.X, domains.n_source, plan.n_landmarks, rng)
        nystrom = Nystrom(domains.X[drawn], kernel, CPU)
        table = FeatureTable(domains.X, nystrom, CPU, held=plan.held)
        row_map = RowMap(kernel, nystrom.landmarks)
        return table_features(table, domains, power, row_map, nystrom.whitening)

    @abstractmethod
    def _learn(self, domains: Domains, features: Features) -> Solution:
        """Return eigenvalues and scaled coefficients."""

    def _solved(
        self, solve: Solver, features: Features, domains: Domains, codes: Codes | None = None
    ) -> Embedded:
        """Return the scaled solution for pseudo-labels of the target, and the rows it embeds."""
        values, W = self._scaled(*solve(codes, self._wanted(features.rank)))
        source = np.arange(len(domains.order)) < domains.n_source
        Z = self._embed(features.times, W, source)
        return Embedded(values, W, Z, getattr(solve, "weights", domains.row_weights))

    def _relabelled(
        self,
        domains: Domains,
        features: Features,
        solver: Callable[[Domains], Solver],
        weights: Matrix,
        *,
        settles: bool = True,
    ) -> Solution:
        """Solve in rounds, from labels by the rows as they are, and set what the last leaves."""

        def prepare(domains: Domains) -> Embed:
            return partial(self._solved, solver(domains), features, domains)

        estimator, max_iter = self.estimator, self.max_iter
        first = label_target(domains, domains.X, weights, estimator)
        found = relabelled(domains, prepare, estimator, max_iter, first, settles=settles)
        self.n_iter_, codes = len(found.history), domains.with_target(found.codes)
        self.transduction_ = domains.restore(domains.classes[codes])
        return found.last.values, found.last.W

    def _wanted(self, rank: int) -> int:
        """Return the number of components to find; two maps could give twice the rank."""
        return self.n_components or min(_DEFAULT_COMPONENTS, rank)

    def _scaled(self, values: Matrix, vectors: Matrix, lengths: Matrix | None = None) -> Solution:
        """Return coefficients of maps of unit length, or such that W'BW = I.

        The maps have the length of their coefficients unless `lengths` are given.
        """
        if len(values) == 0:
            raise ValueError(
                f"{type(self).__name__} has nothing to maximise with these parameters: its "
                "numerator is zero on these rows."
            )
        if self.scaling == "constraint":
            lengths = np.sqrt(values)
        elif lengths is None:
            lengths = np.linalg.norm(vectors, axis=0)
        return values, vectors * (np.sign(farthest(vectors)) / lengths)

    def _embed(self, times: Times, W: Matrix, source: NDArray[np.bool_]) -> Matrix:
        """Return rows in the shared space, from products with the table that W multiplies."""
        if self._paired:
            both = times(np.concatenate(np.split(W, 2), axis=1))
            Z = np.where(source[:, None], *np.split(both, 2, axis=1))
        else:
            Z = times(W)
        return unit_rows(Z) if self.normalize else Z

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> Matrix:
        mapped = self._map(rows)
        return self._embed(lambda w: mapped @ w, self._map.coefficients, ids > 0)


# -- solvers ---------------------------------------------------------------------------------------


def means_solver(
    domains: Domains,
    features: Features,
    means: Callable[[Domains, Codes | None], Matrix],
    regularization: float,
) -> Solver:
    """Return the solver for B = Phi'HPhi, A = Phi'M Phi + ridge I, M = E E' with E of `means`."""
    scaled = partial(np.multiply, 1.0 / np.sqrt(regularization * features.scale))
    root = Root(scaled, scaled)

    def solve(codes: Codes | None, k: int) -> Solution:
        columns = features.transposed_times(means(domains, codes))
        return leading_updated(features.total_scatter, root, columns, k)

    return solve


def mean_columns(
    domains: Domains, codes: Codes | None, balance: float = 0.5, *, class_weighted: bool = False
) -> Matrix:
    """Return the columns E with M = E E' of JDA for the target's pseudo-labels.

    Without any, M compares marginals only. `class_weighted` weights a class's mean by the root of
    its share of the domain, as weighted BDA does.
    """
    balance = 0.0 if codes is None else balance
    term = Means(1.0, class_weighted)
    B = term.by_group(domains, domains.counts(codes), domains.ratios, balance)
    return by_row(B, domains, codes)


def between_columns(domains: Domains) -> Matrix:
    """Return E with E E' the form sum_c n_c |mean_c - mean|^2 over the source's classes."""
    E = np.zeros((len(domains.order), domains.n_classes))
    sizes = np.bincount(domains.y)
    E[np.arange(domains.n_source), domains.y] = 1.0 / sizes[domains.y]
    E[domains.source] -= 1.0 / domains.n_source
    return np.sqrt(sizes) * E


# -- rounds ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relabelled:
    """Last round: maps and embedded rows, and labels of the target.

    `history` has the class prior assumed of the target in every round, `shares` in the end.
    """

    last: Embedded
    codes: Codes
    history: list[NDArray[np.float64]]
    shares: NDArray[np.float64]


def relabelled(
    domains: Domains,
    prepare: Callable[[Domains], Embed],
    estimator: ClassifierMixin | None,
    max_iter: int,
    codes: Codes | None = None,
    *,
    labelling: Any = None,
    settles: bool = True,
) -> Relabelled:
    """Solve and relabel the target, `max_iter` times or until labels settle.

    `prepare` does once what pseudo-labels do not change, for a class prior of the target, and
    returns the map from pseudo-labels to maps and embedded rows. Without first pseudo-labels, the
    first solve compares marginals. A `labelling` makes labels of log-probabilities, and the class
    prior of the next round. Settled labels end the rounds where these depend on labels alone.
    """
    solve, taken = prepare(domains), []
    codes = codes if domains.n_target else domains.known
    unsettled = LIMITS.unsettled_share * max(domains.n_target, 1)
    for i in range(max_iter):
        last = solve(codes)
        if labelling is None:
            renewed = label_target(domains, last.Z, last.weights, estimator)
        else:
            renewed = _corrected(domains, last.Z, estimator, labelling)
        if LISTENERS.get():
            stage("Adapting", i / max_iter)
            iterate(domains.with_target(renewed), last.Z)
        taken.append(domains.shares)
        if labelling is not None and labelling.renewals:
            shares = labelling.renewed(domains.shares, domains.counts(renewed)[-1])
            domains = domains.with_shares(shares)
            solve = prepare(domains)
        elif settles and codes is not None and np.sum(codes != renewed) < unsettled:
            break
        codes = renewed
    return Relabelled(last, renewed, taken, taken[-1])


def label_target(
    domains: Domains, Z: Matrix, weights: Matrix, estimator: ClassifierMixin | None
) -> Codes:
    """Return class codes of the target rows by a classifier trained on embedded labelled rows."""
    codes = domains.known.copy()
    if len(domains.unknown):
        rows = domains.first_labelled(LIMITS.pool_rows)
        y = domains.with_target(domains.known)[rows]
        asked = Z[domains.n_source + domains.unknown]
        codes[domains.unknown] = predicted(estimator, Z[rows], y, weights[rows], asked)
    return codes


def predicted(
    estimator: ClassifierMixin | None, Z: Matrix, y: Codes, weights: Matrix, asked: Matrix
) -> Codes:
    """Return codes of rows by a classifier trained on others; without one, by their nearest."""
    if estimator is not None:
        return np.asarray(trained(estimator, Z, y, weights).predict(asked), dtype=np.intp)
    nearest, step = KNeighborsClassifier(1).fit(Z, y), max(1, LIMITS.labelled_pairs // len(Z))
    starts = range(0, len(asked), step)
    parts = [nearest.predict(asked[start : start + step]) for start in starts]
    return np.concatenate(parts).astype(np.intp)


# -- class prior of the target ---------------------------------------------------------------------


def follow_shares(
    class_shares: ClassShares,
    domains: Domains,
    prepare: Callable[[Domains], Embed],
    estimator: ClassifierMixin | None,
    max_iter: int,
) -> Relabelled:
    """Run rounds of JDA, BDA or McDA with the class prior that is given, estimated or the source's.

    Labels come from the estimator's probabilities, corrected to the class prior assumed of the
    target, or with offsets that meet a known one to within a row at the end.
    """
    run = partial(relabelled, prepare=prepare, estimator=estimator, max_iter=max_iter)
    if isinstance(class_shares, str):
        found = run(domains)
        return found if class_shares == "source" else follow_shift(found, domains, run)
    shares = given_shares(class_shares, domains)
    if domains.n_target == 0:
        return replace(run(domains), shares=shares)
    given = GivenShares(shares, 1.0, domains)
    domains = domains.with_shares(given.prior)
    found = run(domains, labelling=given)
    codes = _corrected(domains, found.last.Z, estimator, given, settled=True)
    return replace(found, codes=codes, shares=shares)


def follow_shift(found: Relabelled, domains: Domains, run: Callable[..., Relabelled]) -> Relabelled:
    """Run rounds that follow the label shift shown by rows and maps, if any."""
    if domains.n_target == 0:
        return found
    alone, aligned = (_by_nearest(domains, Z) for Z in (domains.X, found.last.Z))
    counts = domains.counts(aligned[0].argmax(axis=1))[-1]
    shift = estimate_shift(*alone, counts / counts.sum(), domains)
    if shift.belief == 0.0:
        return found
    log_odds = np.log(shift.shares / domains.prior)
    for weight, (scores, left_out) in ((1.0 - shift.weight, aligned), (shift.weight, alone)):
        y = domains.y[: len(left_out)]
        own = domains.weights[: len(y)]
        log_odds = log_odds + weight * class_log_probabilities(left_out, y, own, scores)
    codes = domains.fixed(log_odds.argmax(axis=1))
    none = np.zeros(domains.n_classes)
    estimated = EstimatedShares(none, belief=shift.belief, prior=domains.prior)
    other = run(domains.with_shares(shift.shares), codes=codes, labelling=estimated)
    return replace(other, history=found.history + other.history)


def _corrected(
    domains: Domains,
    Z: Matrix,
    estimator: ClassifierMixin | None,
    labelling: LabelRule,
    *,
    settled: bool = False,
) -> Codes:
    """Return class codes of the target rows by probabilities, under its assumed class prior."""
    if domains.n_target == 0:
        return domains.known
    learner: Any = NearestRow() if estimator is None else estimator
    if not hasattr(learner, "predict_proba"):
        raise ValueError(
            f"class_shares needs an estimator with predict_proba, which {learner!r} has not; "
            'give another, or leave class_shares at "source".'
        )
    rows = domains.labelled
    codes = domains.with_target(domains.known)[rows]
    fitted = trained(learner, Z[rows], codes, domains.row_weights[rows])
    probabilities = fitted.predict_proba(Z[domains.target])
    likely = np.log(np.maximum(probabilities, SMALLEST)) + np.log(domains.ratios)
    return domains.label_target(lambda rows: labelling.codes(likely[rows], settled))


def _by_nearest(domains: Domains, Z: Matrix) -> tuple[Matrix, Matrix]:
    """Return log-probabilities, by nearest rows, of target rows and of left-out source rows."""
    nearest = NearestRow()
    left_out = nearest.fit_left_out(Z[domains.source], domains.y, domains.weights[domains.source])
    probabilities = nearest.predict_proba(Z[domains.target])
    return np.log(np.maximum(probabilities, SMALLEST)), left_out


@dataclass(frozen=True)
class SpectralSizes:
    """Sizes that determine the memory of a fit besides its rows."""

    n_rows: int
    n_classes: int
    n_components: int
    itemsize: int  # of a number of the rows
    factored: bool  # whether the kernel matrix is decomposed
    tables: int = 0  # of all rows' features that a method forms for itself

    @property
    def growth(self) -> str:
        """Growth of the time of the exact solve with the rows."""
        return "cube" if self.factored else "square"

    @property
    def row_bytes(self) -> int:
        """Bytes of a few tables of embedded rows, and of columns for each class."""
        return 8 * (6 * self.n_components + 4 * (self.n_classes + 1))

    @property
    def matrices(self) -> int:
        """Number of matrices as large as the kernel matrix, with its eigenvectors, as measured."""
        return (14 if self.factored else 3) + self.tables

    def landmark_bytes(self, m: int, *, held: bool, chunk: int) -> int:
        """Return the bytes of m landmarks: features, blocks, and m x m matrices by class."""
        matrices = 10 + (2 * self.n_classes if self.factored else 0)
        row = m * ((self.itemsize if held else 0) + 8 * self.tables) + self.row_bytes
        return 8 * matrices * m * m + self.n_rows * row + 4 * 8 * LIMITS.block_values
