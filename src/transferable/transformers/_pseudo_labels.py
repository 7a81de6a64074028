"""Methods that compare classes: the target's labels are guessed, used, and guessed again."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.random import RandomState
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import has_fit_parameter

from transferable._sklearn import HasMethods
from transferable.domains import Domains
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

__all__ = ["PseudoLabelTransformer", "labeller"]


class PseudoLabelTransformer(SpectralTransformer):
    """Base of the methods that relabel the target with a classifier and solve again."""

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
        solve = self._solver(domains, features)
        source = np.arange(len(domains.order)) < domains.n_source
        codes = self._first_codes(domains, _weights(solve))
        self.n_iter_ = 0
        for _ in rounds(self.max_iter):
            self.n_iter_ += 1
            values, W = self._scaled(*solve(codes, self._wanted(features.rank)))
            Z = self._embed(features.times, W, source)
            renewed = self._relabel(domains, Z, _weights(solve))
            iterate(domains.with_target(renewed), Z)
            if self._settled(codes, _changed(codes, renewed)):
                break
            codes = renewed
        self.transduction_ = domains.restore(domains.classes[domains.with_target(renewed)])
        weights = _weights(solve)
        if weights is not None:
            self.sample_weight_ = domains.restore(weights)
        return values, W

    def _settled(self, codes: Codes | None, changed: float) -> bool:
        """Whether rounds end, after one in which this share of the labels changed."""
        return self._settles and codes is not None and changed < LIMITS.unsettled_share

    @abstractmethod
    def _solver(self, domains: Domains, features: Features) -> Solver:
        """Prepare what pseudo-labels do not change; return what solves the rest."""

    def _first_codes(self, domains: Domains, weights: Matrix | None) -> Codes | None:
        """Pseudo-labels before the first solve; without any it compares whole domains."""
        if self._starts_from_rows or domains.n_target == 0:
            return self._relabel(domains, domains.X, weights)
        return None

    def _relabel(self, domains: Domains, Z: Matrix, weights: Matrix | None) -> Codes:
        """Labels of the target rows by a classifier trained on the embedded source rows."""
        if domains.n_target == 0:
            return np.empty(0, dtype=np.intp)
        first = slice(0, min(domains.n_source, LIMITS.pool_rows))
        weights = None if weights is None else weights[first]
        label = labeller(self.estimator, Z[first], domains.y[first], weights)
        return label(Z[domains.target])


def labeller(
    estimator: ClassifierMixin | None, Z: Matrix, y: Codes, weights: Matrix | None = None
) -> Labeller:
    """What labels embedded rows: the nearest of these, or a classifier that is fitted to them."""
    if estimator is None:
        return partial(_nearest, Z, y)
    fitted = clone(estimator)
    weighs = weights is not None and has_fit_parameter(fitted, "sample_weight")
    fitted.fit(Z, y, **({"sample_weight": weights} if weighs else {}))
    return partial(_predicted, fitted)


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
