"""Methods that compare classes by pseudo-labels of the target, renewed in rounds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted

from transferable._kernel.class_shares import (
    ClassShares,
    EstimatedShares,
    GivenShares,
    Labelling,
    class_log_probabilities,
    estimate_shift,
    given_shares,
)
from transferable._kernel.objective import mean_differences
from transferable._linalg.eigen import Matrix
from transferable._linalg.simplex import minimise_on_simplices
from transferable._sklearn import CLASS_SHARES, POSITIVE, HasMethods
from transferable.base import trained
from transferable.domains import Domains, as_labels
from transferable.events import iterate, rounds
from transferable.limits import LIMITS
from transferable.transformers._bases import COUNT
from transferable.transformers._features import Features, by_row
from transferable.transformers._spectral import (
    Codes,
    Solution,
    Solver,
    SpectralTransformer,
    Times,
)

_SMALLEST = 1e-12  # probability: that of no class is 0 for sure
_JUDGED = 1000  # training rows of NearestRow that are left out in turn
_MIB = 64  # of distances that are held at a time
_LOG_TEMPERATURES = (-5.0, 5.0)
_NEAREST = 0.01  # lower bound of distances, as a share of the usual one: copies of a row


@dataclass(frozen=True)
class Round:
    """Solution and solver of the last round, the embedded rows and their labels.

    `shares` has the class prior assumed of the target in each round.
    """

    values: Matrix
    W: Matrix
    Z: Matrix
    codes: Codes
    solve: Solver
    shares: list[NDArray[np.float64]]


class PseudoLabelTransformer(SpectralTransformer):
    """Base of the methods that relabel the target with a classifier and solve again.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Labels the target in the embedded space, trained on the source there; None is 1-NN.
    max_iter : int, default=10
        Maximum number of rounds of solving and relabelling; fewer if labels settle.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_samples,)
        Labels of the source rows and last pseudo-labels of the target rows, in input order.
    n_iter_ : int
        Rounds that were run.
    """

    # Whether the first pseudo-labels come from the rows as they are; otherwise there are none yet.
    _starts_from_rows: ClassVar[bool] = False
    # Whether a round depends on labels alone, so that settled labels end the rounds.
    _settles: ClassVar[bool] = True

    _parameter_constraints = {  # noqa: RUF012
        "estimator": [HasMethods(["fit", "predict"]), None],
        "max_iter": [COUNT],
    }

    estimator: ClassifierMixin | None = None
    max_iter: int = 10

    def _learn(self, domains: Domains, features: Features) -> Solution:
        self.n_iter_ = 0
        return self._kept(domains, self._rounds(domains, features))

    def _rounds(
        self,
        domains: Domains,
        features: Features,
        codes: Codes | None = None,
        labelling: Any = None,
    ) -> Round:
        """Solve and relabel, max_iter times or until nothing changes.

        `codes` are the first pseudo-labels, None for the method's own; `labelling` labels target
        rows from probabilities, None leaves that to the estimator.
        """
        solve = self._solver(domains, features)
        source = np.arange(len(domains.order)) < domains.n_source
        # Without pseudo-labels, the first solve compares marginals.
        if codes is None and (self._starts_from_rows or domains.n_target == 0):
            codes = self._relabel(domains, domains.X, _weights(solve, domains), None)
        taken = []
        for _ in rounds(self.max_iter):
            self.n_iter_ += 1
            values, W = self._scaled(*solve(codes, self._wanted(features.rank)))
            Z = self._embed(features.times, W, source)
            renewed = self._relabel(domains, Z, _weights(solve, domains), labelling)
            iterate(domains.with_target(renewed), Z)
            taken.append(domains.shares)
            if labelling is not None and labelling.renewals:
                shares = labelling.renewed(domains.shares, domains.counts(renewed)[-1])
                domains = domains.with_shares(shares)
                solve = self._solver(domains, features)
            elif self._settled(codes, float(np.mean(codes != renewed)) if len(renewed) else 0.0):
                break
            codes = renewed
        return Round(values, W, Z, renewed, solve, taken)

    def _kept(self, domains: Domains, last: Round) -> Solution:
        """Return the solution of the last round and set its labels and weights as attributes."""
        self.transduction_ = domains.restore(domains.classes[domains.with_target(last.codes)])
        if isinstance(last.solve, WeighingSolver):
            self.sample_weight_ = domains.restore(last.solve.weights)
        return last.values, last.W

    def _settled(self, codes: Codes | None, changed: float) -> bool:
        """Return whether rounds end after one in which this share of the labels changed."""
        return self._settles and codes is not None and changed < LIMITS.unsettled_share

    @abstractmethod
    def _solver(self, domains: Domains, features: Features) -> Solver:
        """Prepare the parts that pseudo-labels do not change; return the solver of the rest."""

    def _relabel(
        self, domains: Domains, Z: Matrix, weights: Matrix, labelling: Labelling | None
    ) -> Codes:
        """Return labels of the target rows by a classifier trained on embedded labelled rows."""
        if domains.n_target == 0:
            return np.empty(0, dtype=np.intp)
        rows = domains.first_labelled(LIMITS.pool_rows)
        codes = domains.with_target(domains.known)[rows]
        label = labeller(self.estimator, Z[rows], codes, weights[rows])
        return domains.fixed(label(Z[domains.target]))

    def _complete(
        self, rows: Any, ids: NDArray[Any], y: ArrayLike | None, kept: NDArray[np.intp]
    ) -> None:
        labels = as_labels(y).astype(self.transduction_.dtype)  # type: ignore[arg-type]
        labels[kept] = self.transduction_
        asked = np.setdiff1d(np.flatnonzero(ids < 0), kept)
        if len(asked):
            Z: Any = self._transform_rows(rows, ids > 0)
            source = kept[ids[kept] > 0]
            classes, codes = np.unique(labels[source], return_inverse=True)
            label = labeller(self.estimator, Z[source], codes, np.ones(len(codes)))
            labels[asked] = classes[label(Z[asked])]
        self.transduction_ = labels


def labeller(
    estimator: ClassifierMixin | None, Z: Matrix, y: Codes, weights: Matrix
) -> Callable[[Matrix], Codes]:
    """Return the labelling of embedded rows: by the nearest of these, or by a fitted classifier."""
    if estimator is None:
        step = max(1, LIMITS.labelled_pairs // len(Z))
        return partial(_predicted, KNeighborsClassifier(1).fit(Z, y), step)
    return partial(_predicted, trained(estimator, Z, y, weights), None)


def _predicted(fitted: Any, step: int | None, Z: Matrix) -> Codes:
    """Return the predicted codes of rows, a block at a time."""
    step = step or len(Z)
    parts = [fitted.predict(Z[start : start + step]) for start in range(0, len(Z), step)]
    return np.concatenate(parts).astype(np.intp)


def _weights(solve: Solver, domains: Domains) -> Matrix:
    """Return the weights of the rows, or those chosen by the solver."""
    return solve.weights if isinstance(solve, WeighingSolver) else domains.row_weights


class ClassSharesTransformer(PseudoLabelTransformer):
    """Base of JDA, BDA and McDA, which weight the source to the target's class prior.

    Labels come from the estimator's probabilities, corrected to the class prior assumed of the
    target, or with offsets that meet a known one.

    Parameters
    ----------
    class_shares : {"auto", "source"} or mapping or array-like, default="source"
        Class prior of the target: the share of its rows that each class has. "source" assumes that
        of the source, as the authors do. "auto" checks whether the nearest rows, without alignment,
        label target rows with other shares than left-out source rows, and follows a label shift as
        far as the evidence supports it. Known shares are given by label or in the order of the
        labels (in an :class:`~transferable.AdaptedClassifier` in this order): the source is
        weighted to them, and the labels of ``transduction_`` have them to within a row. A
        classifier trained on embedded rows does not use them. They must be right: an error of a
        factor of 1.35 for each class costs TFDF 3 to 6 points.

    Attributes
    ----------
    class_shares_ : ndarray of shape (n_classes,)
        Class prior assumed of the target.
    class_shares_history_ : ndarray of shape (n_iter, n_classes)
        Class prior of each round.
    """

    _parameter_constraints = {"class_shares": CLASS_SHARES}  # noqa: RUF012

    class_shares: ClassShares = "source"

    def _learn(self, domains: Domains, features: Features) -> Solution:
        self.n_iter_ = 0
        shares = given_shares(self.class_shares, domains)
        if shares is not None and domains.n_target > 0:
            last = self._given_rounds(shares, domains, features)
        else:
            last = self._rounds(domains, features)
            if isinstance(self.class_shares, str) and self.class_shares == "auto":
                last = self._followed(last, domains, features)
        self.class_shares_ = last.shares[-1] if shares is None else shares
        self.class_shares_history_ = np.array(last.shares)
        return self._kept(domains, last)

    def _given_rounds(
        self, shares: NDArray[np.float64], domains: Domains, features: Features
    ) -> Round:
        """Run rounds whose labels have this class prior, at the end to within a row."""
        given = GivenShares(shares, 1.0, domains)
        domains = domains.with_shares(given.prior)
        last = self._rounds(domains, features, labelling=given)
        likely = self._log_probabilities(domains, last.Z)
        codes = domains.label_target(lambda rows: given.codes(likely[rows], settled=True))
        return replace(last, codes=codes)

    def _followed(self, last: Round, domains: Domains, features: Features) -> Round:
        """Run rounds that follow the label shift shown by rows and maps, if any."""
        if domains.n_target == 0:
            return last
        alone, aligned = (_by_nearest(domains, Z) for Z in (domains.X, last.Z))
        counts = np.bincount(aligned[0].argmax(axis=1), minlength=domains.n_classes)
        shift = estimate_shift(*alone, counts / domains.n_target, domains)
        if shift.belief == 0.0:
            return last
        log_odds = np.log(shift.shares / domains.prior)
        for weight, (scores, left_out) in ((1.0 - shift.weight, aligned), (shift.weight, alone)):
            y = domains.y[: len(left_out)]
            log_odds = log_odds + weight * class_log_probabilities(left_out, y, scores)
        codes = domains.fixed(log_odds.argmax(axis=1))
        estimated = EstimatedShares(shift.belief, domains.prior)
        other = self._rounds(domains.with_shares(shift.shares), features, codes, estimated)
        return replace(other, shares=last.shares + other.shares)

    def _relabel(
        self, domains: Domains, Z: Matrix, weights: Matrix, labelling: Labelling | None
    ) -> Codes:
        if labelling is None or domains.n_target == 0:
            return super()._relabel(domains, Z, weights, labelling)
        likely = self._log_probabilities(domains, Z)
        return domains.label_target(lambda rows: labelling.codes(likely[rows]))

    def _log_probabilities(self, domains: Domains, Z: Matrix) -> Matrix:
        """Return log-probabilities of the target rows, under its assumed class prior."""
        estimator: Any = NearestRow() if self.estimator is None else self.estimator
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"class_shares needs an estimator with predict_proba, which {estimator!r} has not; "
                'give another, or leave class_shares at "source".'
            )
        rows = domains.labelled
        codes = domains.with_target(domains.known)[rows]
        fitted = trained(estimator, Z[rows], codes, domains.row_weights[rows])
        probabilities = fitted.predict_proba(Z[domains.target])
        return np.log(np.maximum(probabilities, _SMALLEST)) + np.log(domains.ratios)


def _by_nearest(domains: Domains, Z: Matrix) -> tuple[Matrix, Matrix]:
    """Return log-probabilities, by nearest rows, of target rows and of left-out source rows."""
    nearest = NearestRow()
    left_out = nearest.fit_left_out(Z[domains.source], domains.y)
    probabilities = nearest.predict_proba(Z[domains.target])
    return np.log(np.maximum(probabilities, _SMALLEST)), left_out


class PairedMapsTransformer(PseudoLabelTransformer):
    """Base of JGSA and LPJT, with a map for each domain: the source's coefficients come first.

    The first pseudo-labels come from the rows as they are, so a solver always receives some.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the shared space. None is 30, or the number of features if fewer. The two maps
        have twice as many components, of which the last separate the domains and cost accuracy, but
        may be included by a larger number. One that is too large is reduced with a warning.
    regularization : float, default=1.0
        lambda: penalty on the maps' difference, relative to the mean squared length of the rows (of
        their kernel features), which makes it independent of the unit.
    scaling : {"unit", "constraint"}, default="unit"
        "unit" gives each column of W the length 1, as published results need; "constraint" scales
        it so that the numerator is I, as the objective is printed.
    target_variance : float, default=1.0
        mu: weight of the target's variance, and of ||B||^2.
    """

    _needs_factor = True
    _starts_from_rows = True
    _parameter_constraints = {"target_variance": [POSITIVE]}  # noqa: RUF012

    regularization: float = 1.0
    target_variance: float = 1.0

    def _learn(self, domains: Domains, features: Features) -> Solution:
        values, W = super()._learn(domains, features)
        if domains.n_target == 0:  # rows of one domain have one map
            W[features.rank :] = W[: features.rank]
        return values, W

    def _project(self, times: Times, W: Matrix, source: NDArray[np.bool_]) -> Matrix:
        as_source, as_target = np.split(times(np.concatenate(np.split(W, 2), axis=1)), 2, axis=1)
        return np.where(source[:, None], as_source, as_target)


def by_domain(columns: Matrix, domains: Domains) -> Matrix:
    """Return the columns with zeros on target rows, beside those with zeros on source rows."""
    n, width = columns.shape
    apart = np.zeros((n, 2 * width))
    apart[domains.source, :width] = columns[domains.source]
    apart[domains.target, width:] = columns[domains.target]
    return apart


class WeightedDiscrepancy:
    """Distances of LPJT between embedded rows f_i with weights w_i.

    Squared distance of the domains' weighted means, of each class's weighted means, and the mean
    squared distance of all pairs of rows of one class from different domains. Classes absent from
    either domain are left out.

    The mean weight in each class of each domain is `share`. Without `pairs`, as in LDML, only means
    are compared.
    """

    def __init__(
        self, domains: Domains, codes: Codes | None, *, share: float, pairs: bool = True
    ) -> None:
        self.groups, self.counts, self.share = domains.groups(codes), domains.counts(codes), share
        B = mean_differences(self.counts, domains.ratios, domains.source_weights)
        self.means = by_row(B[:, 0], domains, codes) / share
        of_class = self.means[:, 1:] if pairs else self.means[:, :0]
        self.source, self.target = np.maximum(of_class, 0.0), np.maximum(-of_class, 0.0)
        # A pair's |w_i f_i - w_j f_j|^2 counts 1 / (n_s n_t); summed over j, row i counts 1 / n_s.
        self.own = np.abs(of_class).sum(axis=1, keepdims=True) / share

    def apply(self, F: Matrix) -> Matrix:
        """Return S F for rows that already carry their weights."""
        cross = self.source @ (self.target.T @ F) + self.target @ (self.source.T @ F)
        return self.means @ (self.means.T @ F) + self.own * F - cross

    def product_for_weights(self, Z: Matrix, w: Matrix) -> Matrix:
        """Return Q w, where w'Qw is the value of the term for embedded rows Z with weights w."""
        return np.sum(Z * self.apply(w[:, None] * Z), axis=1)

    def least_weights(self, Z: Matrix, start: Matrix) -> Matrix:
        """Return weights of least distance between embedded rows Z, of mean `share` by class."""
        return minimise_on_simplices(
            lambda w: self.product_for_weights(Z, w),
            start,
            self.groups,
            self.share * self.counts.ravel(),
        )


class WeighingSolver:
    """Solver of LDML or LPJT: weights of rows from the last embedding, then maps from these.

    `times` maps coefficients to embedded rows; `solve` maps the discrepancy, the weights of the
    rows and the number of vectors to a solution.
    """

    def __init__(
        self,
        domains: Domains,
        times: Times,
        solve: Callable[[WeightedDiscrepancy, Matrix, int], Solution],
        *,
        share: float,
        pairs: bool,
    ) -> None:
        self.domains, self.times, self.solve = domains, times, solve
        self.share, self.pairs = share, pairs
        self.weights = np.full(len(domains.order), float(share))
        self.Z: Matrix | None = None

    def __call__(self, codes: Codes | None, k: int) -> Solution:
        """Solve for the target's pseudo-labels."""
        discrepancy = WeightedDiscrepancy(self.domains, codes, share=self.share, pairs=self.pairs)
        if self.Z is not None:
            self.weights = discrepancy.least_weights(self.Z, self.weights)
        values, vectors = self.solve(discrepancy, self.weights, k)
        self.Z = self.times(vectors / np.linalg.norm(vectors, axis=0))
        return values, vectors


class NearestRow(ClassifierMixin, BaseEstimator):
    """Nearest-neighbour classifier with probabilities from distances.

    With d_c the distance to the nearest row of class c, its probability is proportional to
    d_c^(-1/T): it depends on the relative distances of the classes, not on the unit. The
    temperature T is fitted to training rows left out in turn.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    temperature_ : float
        T, the most likely one for left-out rows if one more of them were mislabelled, which keeps
        it finite where none is.
    """

    _centre: Matrix | None = None

    def fit(self, X: Any, y: NDArray[Any], sample_weight: Matrix | None = None) -> Self:
        """Store the rows and fit the temperature; a row of weight 2 has a copy beside it."""
        self.fit_left_out(X, y, sample_weight)
        return self

    def fit_left_out(self, X: Any, y: NDArray[Any], sample_weight: Matrix | None = None) -> Matrix:
        """Fit, and return log-probabilities of the first rows, each left out in turn."""
        X = check_array(X, accept_sparse="csr")
        self._centre = None if sp.issparse(X) else X.mean(axis=0)
        X = self._centred(X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._neighbor = KNeighborsClassifier(1).fit(X, y)
        order = np.argsort(codes, kind="stable")
        self._rows = X[order]
        self._starts = np.searchsorted(codes[order], np.arange(len(self.classes_)))
        judged = min(_JUDGED, len(codes))
        own = np.argsort(order, kind="stable")[:judged]
        weights = np.asarray(np.ones(judged) if sample_weight is None else sample_weight)[:judged]
        # Copies of a left-out row are left out too.
        distances = self._distances(X[:judged], np.where(weights < 2.0, own, -1))
        farthest = distances[np.isfinite(distances)].max(initial=0.0)
        distances[np.isinf(distances)] = farthest  # of classes with no other row
        usual = np.average(distances.min(axis=1), weights=weights) or distances.mean() or 1.0
        self._floor = _NEAREST * usual
        scores = self._closeness(distances)
        self.temperature_ = _temperature(scores, codes[:judged], weights)
        return log_softmax(scores / self.temperature_, axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of the nearest row."""
        check_is_fitted(self)
        return self._neighbor.predict(self._centred(X))

    def predict_proba(self, X: Any) -> Matrix:
        """Return the probability of each class; none is above that of the predicted one."""
        codes = np.searchsorted(self.classes_, self.predict(X))
        scores = self._closeness(self._distances(self._centred(X)))
        # Among equally near classes, the label is that of whichever row was found first.
        rows, likeliest = np.arange(len(scores)), scores.argmax(axis=1)
        own, best = scores[rows, codes], scores[rows, likeliest]
        scores[rows, likeliest], scores[rows, codes] = own, best
        probabilities = softmax(scores / self.temperature_, axis=1)
        tied = np.flatnonzero(probabilities.argmax(axis=1) != codes)
        probabilities[tied, codes[tied]] = np.nextafter(probabilities[tied].max(axis=1), 2.0)
        return probabilities

    def _centred(self, X: Any) -> Any:
        """Return rows about the mean of those fitted, against cancellation in their squares."""
        X = check_array(X, accept_sparse="csr")
        return X if self._centre is None else X - self._centre

    def _distances(self, X: Any, own: Codes | None = None) -> Matrix:
        """Return the distance to the nearest row of each class, except X's `own` positions."""

        def nearest(block: Matrix, start: int) -> Matrix:
            if own is not None:
                at = own[start : start + len(block)]
                alone = np.flatnonzero(at >= 0)
                block[alone, at[alone]] = np.inf
            return np.minimum.reduceat(block, self._starts, axis=1)

        blocks = pairwise_distances_chunked(X, self._rows, reduce_func=nearest, working_memory=_MIB)
        return np.concatenate(list(blocks)).astype(np.float64)

    def _closeness(self, distances: Matrix) -> Matrix:
        return -np.log(np.maximum(distances, self._floor))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _temperature(scores: Matrix, codes: Codes, weights: Matrix) -> float:
    """Return the most likely temperature for these classes, had one row more been wrong."""
    n, n_classes = scores.shape
    wrong = 1.0 / (weights.sum() + 1)
    shares = np.full(scores.shape, wrong / max(n_classes - 1, 1))
    shares[np.arange(n), codes] = 1.0 - wrong

    def loss(log_temperature: float) -> float:
        likely = shares * log_softmax(scores / np.exp(log_temperature), axis=1)
        return -float(np.average(np.mean(likely, axis=1), weights=weights))

    return float(np.exp(minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded").x))
