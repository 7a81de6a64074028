"""Methods that compare classes: the target's labels are guessed, used, and guessed again."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import has_fit_parameter

from transferable._sklearn import HasMethods, StrOptions
from transferable.domains import Domains
from transferable.engines.sources import SOURCE_WEIGHTS, SourceWeights
from transferable.engines.spectral.features import Features
from transferable.events import iterate, rounds
from transferable.linalg.eigen import Matrix
from transferable.linalg.kernels import Kernel
from transferable.linalg.nearest_labels import nearest_labels
from transferable.marks import as_labels
from transferable.takes import Takes
from transferable.transformers._spectral import (
    COUNT,
    Codes,
    Solution,
    Solver,
    SpectralTransformer,
    WeighingSolver,
)
from transferable.weighted import WeightedTransformer

__all__ = ["AligningTransformer", "PseudoLabelTransformer"]

# Labels have settled if a smaller share of them changes: none of up to 10,000.
_UNSETTLED = 1e-4


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
            if self._settles and codes is not None and _changed(codes, renewed) < _UNSETTLED:
                break
            codes = renewed
        self.transduction_ = domains.restore(domains.classes[domains.with_target(renewed)])
        weights = _weights(solve)
        if weights is not None:
            self.sample_weight_ = domains.restore(weights)
        return values, W

    @abstractmethod
    def _solver(self, domains: Domains, features: Features) -> Solver:
        """Prepare what pseudo-labels do not change; return what solves the rest."""

    def _first_codes(self, domains: Domains, weights: Matrix | None) -> Codes | None:
        """Pseudo-labels before the first solve; without any it compares whole domains."""
        if self._starts_from_rows or domains.n_target == 0:
            return self._relabel(domains, domains.X, weights)
        return None

    def _relabel(self, domains: Domains, Z: Matrix, weights: Matrix | None) -> Codes:
        """Labels of the target rows by a classifier trained on the embedded labelled rows."""
        if domains.n_target == 0:
            return np.empty(0, dtype=np.intp)
        if weights is None:
            weights = domains.row_weights
        own = None if weights is None else weights[domains.labelled]
        codes = self._label(Z[domains.labelled], domains.labels, own, Z[domains.target])
        return domains.fixed(codes)

    def _label(
        self, Z: Matrix, labels: NDArray[Any], weights: Matrix | None, new: Matrix
    ) -> NDArray[Any]:
        """Labels of new embedded rows by a classifier trained on others."""
        if self.estimator is None:
            return nearest_labels(Z, labels, new)
        fitted = clone(self.estimator)
        if weights is not None and has_fit_parameter(fitted, "sample_weight"):
            fitted.fit(Z, labels, sample_weight=weights)
        else:
            fitted.fit(Z, labels)
        return np.asarray(fitted.predict(new), dtype=labels.dtype)

    def _complete(self, rows: Any, ids: NDArray[Any], y: ArrayLike, kept: NDArray[np.intp]) -> None:
        labels = as_labels(y).astype(self.transduction_.dtype)
        labels[kept] = self.transduction_
        asked = np.setdiff1d(np.flatnonzero(ids < 0), kept)
        if len(asked):
            Z, source = self._transform_rows(rows, ids > 0), kept[ids[kept] > 0]
            labels[asked] = self._label(Z[source], labels[source], None, Z[asked])
        self.transduction_ = labels


def _weights(solve: Solver) -> Matrix | None:
    """Weights of the rows, if the solver gives them any."""
    return solve.weights if isinstance(solve, WeighingSolver) else None


def _changed(codes: Codes, renewed: Codes) -> float:
    """Share of the labels that are not what they were."""
    return float(np.mean(codes != renewed)) if len(codes) else 0.0


class AligningTransformer(WeightedTransformer, PseudoLabelTransformer):
    """Base of JDA and BDA, which align every source with the target."""

    takes = Takes(several_sources=True, sample_weight=True, target_labels=True)
    _parameter_constraints = {  # noqa: RUF012
        **PseudoLabelTransformer._parameter_constraints,
        "source_weights": SOURCE_WEIGHTS,
        "target_labels": [StrOptions({"ignore", "use"})],
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
        source_weights: SourceWeights = "auto",
        target_labels: Literal["ignore", "use"] = "ignore",
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
            estimator=estimator,
            max_iter=max_iter,
            n_landmarks=n_landmarks,
            max_memory=max_memory,
            random_state=random_state,
        )
        self.source_weights = source_weights
        self.target_labels = target_labels
