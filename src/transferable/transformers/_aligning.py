"""Pseudo-labels and the means of several sources: what JDA and BDA take."""

from __future__ import annotations

from typing import Literal

from numpy.random import RandomState
from sklearn.base import ClassifierMixin

from transferable._sklearn import StrOptions
from transferable.base import Takes, WeightedTransformer
from transferable.engines.shares import ClassShares
from transferable.engines.sources import SOURCE_WEIGHTS, SourceWeights
from transferable.linalg.kernels import Kernel
from transferable.transformers._class_shares import ClassSharesTransformer

__all__ = ["AligningTransformer"]


class AligningTransformer(WeightedTransformer, ClassSharesTransformer):
    """Base of JDA and BDA, which align every source with the target."""

    takes = Takes(several_sources=True, sample_weight=True, target_labels=True)
    _parameter_constraints = {  # noqa: RUF012
        **ClassSharesTransformer._parameter_constraints,
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
        class_shares: ClassShares = "source",
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
            class_shares=class_shares,
        )
        self.source_weights = source_weights
        self.target_labels = target_labels
