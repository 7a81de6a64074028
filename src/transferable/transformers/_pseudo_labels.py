"""Methods that compare classes: the target's labels are guessed, used, and guessed again."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import has_fit_parameter

from transferable._sklearn import HasMethods
from transferable.domains import Domains, as_labels
from transferable.engines.shares import Labelling
from transferable.engines.spectral.features import Features
from transferable.events import iterate, rounds
from transferable.limits import LIMITS
from transferable.linalg.eigen import Matrix
from transferable.linalg.kernels import Kernel
from transferable.linalg.nearest_labels import nearest_labels
from transferable.transformers._spectral import (
    COUNT,
    Codes,
    Labeller,
    Solution,
    Solver,
    SpectralTransformer,
    WeighingSolver,
)

__all__ = ["PseudoLabelTransformer", "Round", "labeller", "trained"]


@dataclass(frozen=True)
class Round:
    """The last of the rounds: its solution, the embedded rows, their labels and weights.

    `shares` has for each of the rounds the class shares that the target was taken to have.
    """

    values: Matrix
    W: Matrix
    Z: Matrix
    codes: Codes
    weights: Matrix | None
    shares: list[NDArray[np.float64]]

    def labelled(self, codes: Codes) -> Round:
        """The same with other labels."""
        return replace(self, codes=codes)

    def after(self, other: Round) -> Round:
        """The same, with the history of rounds before it."""
        return replace(self, shares=other.shares + self.shares)


class PseudoLabelTransformer(SpectralTransformer):
    """Base of the methods that relabel the target with a classifier and solve again.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Labels the target in the embedded space, trained on the embedded source; None is one nearest
        neighbour.
    max_iter : int, default=10
        Most rounds of solving and relabelling; fewer if labels settle.
    """

    # Whether the first pseudo-labels come from the rows as they are; otherwise there are none yet.
    _starts_from_rows: ClassVar[bool] = False
    # Whether a round depends on nothing but labels, so that settled labels end the rounds.
    _settles: ClassVar[bool] = True

    _parameter_constraints = {  # noqa: RUF012
        **SpectralTransformer._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "max_iter": [COUNT],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Kernel | None = None,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        regularization: float = 0.1,
        scaling: str = "unit",
        normalize: bool = False,
        estimator: ClassifierMixin | None = None,
        max_iter: int = 10,
        n_landmarks: int | str | None = "auto",
        max_memory: int | str | None = None,
        random_state: int | RandomState | None = 0,
    ) -> None:
        super().__init__(
            n_components,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            regularization=regularization,
            scaling=scaling,
            normalize=normalize,
            n_landmarks=n_landmarks,
            max_memory=max_memory,
            random_state=random_state,
        )
        self.estimator = estimator
        self.max_iter = max_iter

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

        Parameters
        ----------
        domains, features : Domains, Features
            The problem, with the class shares that it begins with.
        codes : ndarray of shape (n_target,) or None
            The first pseudo-labels; None for those that the method begins with.
        labelling : Labelling or None
            How target rows get labels from probabilities; None leaves that to the estimator.
        """
        solve = self._solver(domains, features)
        source = np.arange(len(domains.order)) < domains.n_source
        if codes is None:
            codes = self._first_codes(domains, _weights(solve))
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
            elif self._settled(codes, _changed(codes, renewed)):
                break
            codes = renewed
        return Round(values, W, Z, renewed, _weights(solve), taken)

    def _kept(self, domains: Domains, last: Round) -> Solution:
        """The solution of the last round, whose labels and weights become attributes."""
        self.transduction_ = domains.restore(domains.classes[domains.with_target(last.codes)])
        if last.weights is not None:
            self.sample_weight_ = domains.restore(last.weights)
        return last.values, last.W

    def _settled(self, codes: Codes | None, changed: float) -> bool:
        """Whether rounds end, after one in which this share of the labels changed."""
        return self._settles and codes is not None and changed < LIMITS.unsettled_share

    @abstractmethod
    def _solver(self, domains: Domains, features: Features) -> Solver:
        """Prepare what pseudo-labels do not change; return what solves the rest."""

    def _first_codes(self, domains: Domains, weights: Matrix | None) -> Codes | None:
        """Pseudo-labels before the first solve; without any it compares whole domains."""
        if self._starts_from_rows or domains.n_target == 0:
            return self._relabel(domains, domains.X, weights, None)
        return None

    def _relabel(
        self, domains: Domains, Z: Matrix, weights: Matrix | None, labelling: Labelling | None
    ) -> Codes:
        """Labels of the target rows by a classifier trained on the embedded labelled rows."""
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


def trained(classifier: Any, Z: Matrix, labels: NDArray[Any], weights: Matrix | None) -> Any:
    """The classifier, fitted, with weights of rows if there are any and it takes them."""
    if weights is not None and has_fit_parameter(classifier, "sample_weight"):
        return classifier.fit(Z, labels, sample_weight=weights)
    return classifier.fit(Z, labels)


def labeller(
    estimator: ClassifierMixin | None, Z: Matrix, y: Codes, weights: Matrix | None = None
) -> Labeller:
    """What labels embedded rows: the nearest of these, or a classifier that is fitted to them."""
    if estimator is None:
        return partial(_nearest, Z, y)
    return partial(_predicted, trained(clone(estimator), Z, y, weights))


def _nearest(base: Matrix, y: Codes, Z: Matrix) -> Codes:
    """Classes of the nearest rows, of so many at a time that the search is exact."""
    step = max(1, LIMITS.labelled_pairs // len(base))
    starts = range(0, len(Z), step)
    return np.concatenate([nearest_labels(base, y, Z[start : start + step]) for start in starts])


def _predicted(fitted: ClassifierMixin, Z: Matrix) -> Codes:
    return np.asarray(fitted.predict(Z), dtype=np.intp)


def _weights(solve: Solver) -> Matrix | None:
    """Weights of the rows, if the solver gives them any."""
    return solve.weights if isinstance(solve, WeighingSolver) else None


def _changed(codes: Codes | None, renewed: Codes) -> float:
    """Share of the labels that are not what they were."""
    return float(np.mean(codes != renewed)) if len(renewed) else 0.0
