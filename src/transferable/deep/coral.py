"""DeepCORAL: the distance between the domains' covariances.

Sun and Saenko, "Deep CORAL: correlation alignment for deep domain adaptation", 2016.
"""

from __future__ import annotations

from torch import Tensor

from transferable.deep._penalised import PenalisedClassifier, estimator
from transferable.deep._training import Batch, Losses, Training

__all__ = ["DeepCORAL", "covariance_distance"]


def covariance_distance(fs: Tensor, ft: Tensor) -> Tensor:
    """||Cov fs - Cov ft||_F^2 / (4 d^2)."""
    difference = _covariance(fs) - _covariance(ft)
    return difference.square().sum() / (4 * fs.shape[1] ** 2)


def _covariance(f: Tensor) -> Tensor:
    centred = f - f.mean(dim=0)
    return centred.T @ centred / max(len(f) - 1, 1)


@estimator
class DeepCORAL(PenalisedClassifier):
    """Deep CORAL: bring the covariances of the domains' features together.

    Adds ``weight ||Cov f_s - Cov f_t||_F^2 / (4 d^2)`` to the source's cross-entropy, over the d
    features of a batch.

    Parameters
    ----------
    weight : float, default=100
        Weight of the distance. With 500 features the factor 1 / (4 d^2) is 1e-6, so that weights
        near 1 do nothing.

    References
    ----------
    B. Sun and K. Saenko, "Deep CORAL: correlation alignment for deep domain adaptation", ECCV
    workshops 2016. Theirs compares the scores; ours the features below them, which adapts better.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import DeepCORAL
    >>> task = load_printed_to_handwritten()
    >>> model = DeepCORAL(epochs=3).adapt(task.Xs[::7], task.ys[::7], task.Xt[::7])
    >>> model.predict(task.Xt).shape
    (1797,)
    """

    weight: float = 100.0

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        return {"covariances": self.weight * covariance_distance(batch.fs, batch.ft)}
