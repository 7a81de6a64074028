"""Methods that compare classes: the target's labels are guessed, used, and guessed again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.validation import has_fit_parameter

from transferable._sklearn import CLASS_SHARES, POSITIVE, HasMethods
from transferable.domains import Domains, Groups, as_labels
from transferable.engines.nearest_row import NearestRow
from transferable.engines.shares import (
    ClassShares,
    EstimatedShares,
    KnownShares,
    Labelling,
    View,
    find_shift,
    wanted_shares,
)
from transferable.events import iterate, rounds
from transferable.limits import LIMITS
from transferable.linalg.eigen import Matrix
from transferable.linalg.simplex import minimise_on_simplices
from transferable.terms.means import mean_differences
from transferable.transformers._bases import COUNT
from transferable.transformers._features import Features
from transferable.transformers._spectral import (
    Codes,
    Solution,
    Solver,
    SpectralTransformer,
    Times,
)

_SMALLEST = 1e-12  # probability: that of no class is 0 for sure


@dataclass(frozen=True)
class Round:
    """The last of the rounds: its solution, the embedded rows, their labels and weights.

    `shares` has the class prior that was assumed of the target in each of the rounds.
    """

    values: Matrix
    W: Matrix
    Z: Matrix
    codes: Codes
    weights: Matrix | None
    shares: list[NDArray[np.float64]]


class PseudoLabelTransformer(SpectralTransformer):
    """Base of the methods that relabel the target with a classifier and solve again.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Labels the target in the embedded space, trained on the embedded source; None is one nearest
        neighbour.
    max_iter : int, default=10
        Most rounds of solving and relabelling; fewer if labels settle.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_samples,)
        Labels of the source rows and last pseudo-labels of the target rows, in input order.
    n_iter_ : int
        Rounds that were run.
    """

    # Whether the first pseudo-labels come from the rows as they are; otherwise there are none yet.
    _starts_from_rows: ClassVar[bool] = False
    # Whether a round depends on nothing but labels, so that settled labels end the rounds.
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
        labelling: Labelling | None = None,
    ) -> Round:
        """Solve and relabel, max_iter times or until nothing changes.

        `codes` are the first pseudo-labels, None for those that the method begins with;
        `labelling` gives target rows labels from probabilities, None leaves that to the estimator.
        """
        solve = self._solver(domains, features)
        source = np.arange(len(domains.order)) < domains.n_source
        # Without pseudo-labels, the first solve compares whole domains.
        if codes is None and (self._starts_from_rows or domains.n_target == 0):
            codes = self._relabel(domains, domains.X, _weights(solve), None)
        taken = []
        for _ in rounds(self.max_iter):
            self.n_iter_ += 1
            values, W = self._scaled(*solve(codes, self._wanted(features.rank)))
            Z = self._embed(features.times, W, source)
            renewed = self._relabel(domains, Z, _weights(solve), labelling)
            iterate(domains.with_target(renewed), Z)
            taken.append(domains.target_shares)
            shares = None
            if labelling is not None:
                shares = labelling.renewed(domains.groups(renewed).counts[-1])
            if shares is not None:
                domains = domains.with_shares(shares)
                solve = self._solver(domains, features)
            elif self._settled(codes, float(np.mean(codes != renewed)) if len(renewed) else 0.0):
                break
            codes = renewed
        return Round(values, W, Z, renewed, _weights(solve), taken)

    def _kept(self, domains: Domains, last: Round) -> Solution:
        """Return the solution of the last round; its labels and weights become attributes."""
        self.transduction_ = domains.restore(domains.classes[domains.with_target(last.codes)])
        if last.weights is not None:
            self.sample_weight_ = domains.restore(last.weights)
        return last.values, last.W

    def _settled(self, codes: Codes | None, changed: float) -> bool:
        """Return whether rounds end, after one in which this share of the labels changed."""
        return self._settles and codes is not None and changed < LIMITS.unsettled_share

    @abstractmethod
    def _solver(self, domains: Domains, features: Features) -> Solver:
        """Prepare what pseudo-labels do not change; return what solves the rest."""

    def _relabel(
        self, domains: Domains, Z: Matrix, weights: Matrix | None, labelling: Labelling | None
    ) -> Codes:
        """Return labels of the target rows by a classifier trained on embedded labelled rows."""
        if domains.n_target == 0:
            return np.empty(0, dtype=np.intp)
        rows, codes, own = domains.first_labelled(LIMITS.pool_rows)
        weights = own if weights is None else weights[rows]
        label = labeller(self.estimator, Z[rows], codes, weights)
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
            labels[asked] = classes[labeller(self.estimator, Z[source], codes)(Z[asked])]
        self.transduction_ = labels


def _trained(classifier: Any, Z: Matrix, labels: NDArray[Any], weights: Matrix | None) -> Any:
    """Fit a classifier, with weights of rows if there are any and it takes them."""
    if weights is not None and has_fit_parameter(classifier, "sample_weight"):
        return classifier.fit(Z, labels, sample_weight=weights)
    return classifier.fit(Z, labels)


def labeller(
    estimator: ClassifierMixin | None, Z: Matrix, y: Codes, weights: Matrix | None = None
) -> Callable[[Matrix], Codes]:
    """Return what labels embedded rows: the nearest of these, or a classifier fitted to them."""
    if estimator is None:
        step = max(1, LIMITS.labelled_pairs // len(Z))
        return partial(_predicted, KNeighborsClassifier(1).fit(Z, y), step)
    return partial(_predicted, _trained(clone(estimator), Z, y, weights), None)


def _predicted(fitted: Any, step: int | None, Z: Matrix) -> Codes:
    """Return the predicted codes of rows, so many at a time."""
    step = step or len(Z)
    parts = [fitted.predict(Z[start : start + step]) for start in range(0, len(Z), step)]
    return np.concatenate(parts).astype(np.intp)


def _weights(solve: Solver) -> Matrix | None:
    """Return the weights of the rows, if the solver gives them any."""
    return solve.weights if isinstance(solve, WeighingSolver) else None


class ClassSharesTransformer(PseudoLabelTransformer):
    """Base of JDA, BDA and McDA, whose means and covariances are weighted to the target's shares.

    Labels then come from the estimator's probabilities: of the source's classes corrected to the
    shares that the target is taken to have, or with offsets that meet known shares.

    Parameters
    ----------
    class_shares : {"auto", "source"} or mapping or array-like, default="source"
        What share of the target's rows each class has. "source" takes the classes to be as frequent
        as in the source, as the authors do. "auto" looks whether the nearest rows, without
        alignment, label target rows with other shares than left-out source rows, and follows a
        shift as far as it is sure of one. If you know the shares, give them, by label or in the
        order of the labels (in an :class:`~transferable.AdaptedClassifier` in this order): the
        source is weighted to them, and the labels of ``transduction_`` have them to within a row.
        A classifier that is trained on embedded rows does not know of them. They must be right: an
        error of a factor of 1.35 for each class costs TFDF 3 to 6 points.

    Attributes
    ----------
    class_shares_ : ndarray of shape (n_classes,)
        The shares that the target's classes were taken to have.
    class_shares_history_ : ndarray of shape (n_iter, n_classes)
        Those of each round.
    """

    _parameter_constraints = {"class_shares": CLASS_SHARES}  # noqa: RUF012

    class_shares: ClassShares = "source"

    def _learn(self, domains: Domains, features: Features) -> Solution:
        self.n_iter_ = 0
        shares = wanted_shares(self.class_shares, domains)
        if shares is not None and domains.n_target > 0:
            last = self._known_rounds(shares, domains, features)
        else:
            last = self._rounds(domains, features)
            if isinstance(self.class_shares, str) and self.class_shares == "auto":
                last = self._followed(last, domains, features)
        self.class_shares_ = last.shares[-1] if shares is None else shares
        self.class_shares_history_ = np.array(last.shares)
        return self._kept(domains, last)

    def _known_rounds(
        self, shares: NDArray[np.float64], domains: Domains, features: Features
    ) -> Round:
        """Run rounds whose labels have these shares, at the end to within a row."""
        known = KnownShares(shares, softness=1.0)
        domains = domains.with_shares(known.in_solve(domains.source_shares))
        known = known.among(domains)
        last = self._rounds(domains, features, labelling=known)
        likely = self._log_probabilities(domains, last.Z)
        return replace(
            last, codes=domains.label_target(lambda rows: known.codes(likely[rows], settled=True))
        )

    def _followed(self, last: Round, domains: Domains, features: Features) -> Round:
        """Run rounds that follow the label shift that rows and maps show, if they show one."""
        if domains.n_target == 0:
            return last
        alone, aligned = _view(domains, domains.X), _view(domains, last.Z)
        shift = find_shift(alone, aligned.label_shares, domains)
        if shift is None:
            return last
        log_odds = (1.0 - shift.weight) * aligned.log_probabilities
        log_odds = log_odds + shift.weight * alone.log_probabilities
        codes = (log_odds + np.log(shift.shares / domains.source_shares)).argmax(axis=1)
        estimated, codes = EstimatedShares(shift, domains.source_shares), domains.fixed(codes)
        other = self._rounds(domains.with_shares(shift.shares), features, codes, estimated)
        return replace(other, shares=last.shares + other.shares)

    def _relabel(
        self, domains: Domains, Z: Matrix, weights: Matrix | None, labelling: Labelling | None
    ) -> Codes:
        if labelling is None or domains.n_target == 0:
            return super()._relabel(domains, Z, weights, labelling)
        likely = self._log_probabilities(domains, Z)
        return domains.label_target(lambda rows: labelling.codes(likely[rows]))

    def _log_probabilities(self, domains: Domains, Z: Matrix) -> Matrix:
        """Return those of the target rows, under the class prior that is assumed of the target."""
        fitted: Any = NearestRow() if self.estimator is None else clone(self.estimator)
        if not hasattr(fitted, "predict_proba"):
            raise ValueError(
                f"class_shares needs an estimator with predict_proba, which {fitted!r} has not; "
                'give another, or leave class_shares at "source".'
            )
        weights = domains.row_weights
        own = None if weights is None else weights[domains.labelled]
        _trained(fitted, Z[domains.labelled], domains.labels, own)
        probabilities = fitted.predict_proba(Z[domains.target])
        return np.log(np.maximum(probabilities, _SMALLEST)) + np.log(domains.ratios)


def _view(domains: Domains, Z: Matrix) -> View:
    """Return the target's log-probabilities by nearest rows."""
    nearest = NearestRow()
    left_out = nearest.fit_left_out(Z[domains.source], domains.y)
    probabilities = nearest.predict_proba(Z[domains.target])
    return View.of(np.log(np.maximum(probabilities, _SMALLEST)), left_out, domains)


class PairedMapsTransformer(PseudoLabelTransformer):
    """Base of JGSA and LPJT, with a map for each domain: the source's coefficients come first.

    The first pseudo-labels come from the rows as they are, so a solver always receives some.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the shared space. None means 30, or as many as there are features if
        fewer. The two maps have twice as many components: those beyond tell the domains apart and
        cost accuracy, but a number may be given that takes them in. One that is too large is
        reduced with a warning.
    regularization : float, default=1.0
        lambda: penalty on the maps' difference, relative to the mean squared length of the rows (of
        their kernel features), so that it means the same in any unit.
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
    """Return the columns with zeros on target rows, beside the same with zeros on source rows."""
    n, width = columns.shape
    apart = np.zeros((n, 2 * width))
    apart[domains.source, :width] = columns[domains.source]
    apart[domains.target, width:] = columns[domains.target]
    return apart


class WeightedDiscrepancy:
    """The three distances of LPJT between embedded rows f_i with weights w_i.

    Squared distance of the domains' weighted means, of each class's weighted means, and the mean
    squared distance of all pairs of rows of one class from different domains. A class that is
    absent from either domain counts in none.

    The mean of the weights in each class of each domain is `share`. Without `pairs`, only means are
    compared, as in LDML.
    """

    def __init__(self, groups: Groups, *, share: float, pairs: bool = True) -> None:
        self.groups, self.share = groups, share
        self.means = groups.spread(mean_differences(groups)) / share
        of_class = self.means[:, 1:] if pairs else self.means[:, :0]
        self.source, self.target = np.maximum(of_class, 0.0), np.maximum(-of_class, 0.0)
        # A pair's |w_i f_i - w_j f_j|^2 counts 1 / (n_s n_t); summed over j, row i counts 1 / n_s.
        self.own = np.abs(of_class).sum(axis=1, keepdims=True) / share

    def apply(self, F: Matrix) -> Matrix:
        """Return S F for rows that carry their weights already."""
        cross = self.source @ (self.target.T @ F) + self.target @ (self.source.T @ F)
        return self.means @ (self.means.T @ F) + self.own * F - cross

    def product_for_weights(self, Z: Matrix, w: Matrix) -> Matrix:
        """Return Q w, where w'Qw is the term's value for embedded rows Z with weights w."""
        return np.sum(Z * self.apply(w[:, None] * Z), axis=1)

    def least_weights(self, Z: Matrix, start: Matrix) -> Matrix:
        """Return weights for which embedded rows Z differ least, of mean `share` in each class."""
        return minimise_on_simplices(
            lambda w: self.product_for_weights(Z, w),
            start,
            self.groups.index,
            self.share * self.groups.counts.ravel(),
        )


class WeighingSolver:
    """A solver of LDML or LPJT: weights of rows from the last embedding, then maps from these.

    `times` goes from coefficients to embedded rows, `solve` from the discrepancy, the weights of
    the rows and the number of vectors to a solution.
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
        groups = self.domains.groups(codes)
        discrepancy = WeightedDiscrepancy(groups, share=self.share, pairs=self.pairs)
        if self.Z is not None:
            self.weights = discrepancy.least_weights(self.Z, self.weights)
        values, vectors = self.solve(discrepancy, self.weights, k)
        self.Z = self.times(vectors / np.linalg.norm(vectors, axis=0))
        return values, vectors
