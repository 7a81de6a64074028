"""DDC: the distance between the domains' mean features.

Tzeng, Hoffman, Zhang, Saenko and Darrell, "Deep domain confusion", 2014.
"""

from __future__ import annotations

from torch import Tensor

from transferable.deep._penalised import PenalisedClassifier, estimator
from transferable.deep._training import Batch, Losses, Training

__all__ = ["DDC", "mean_distance"]


def mean_distance(fs: Tensor, ft: Tensor) -> Tensor:
    """||mean fs - mean ft||^2."""
    return (fs.mean(dim=0) - ft.mean(dim=0)).square().sum()


@estimator
class DDC(PenalisedClassifier):
    """Deep domain confusion: bring the mean features of the domains together.

    Adds ``weight ||mean f_s - mean f_t||^2`` to the source's cross-entropy, over the features of a
    batch.

    Parameters
    ----------
    weight : float, default=0.1
        Weight of the distance. It is not scale-free: the more and the larger the features, the
        smaller it has to be. Published for one layer of 256: 0.25.

    References
    ----------
    E. Tzeng, J. Hoffman, N. Zhang, K. Saenko and T. Darrell, "Deep domain confusion: maximizing for
    domain invariance", 2014.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import DDC
    >>> task = load_printed_to_handwritten()
    >>> model = DDC(epochs=3).adapt(task.Xs[::7], task.ys[::7], task.Xt[::7])
    >>> model.predict(task.Xt).shape
    (1797,)
    """

    weight: float = 0.1

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        return {"means": self.weight * mean_distance(batch.fs, batch.ft)}
