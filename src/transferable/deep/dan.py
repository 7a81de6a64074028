"""DAN: the distance of the domains' features and scores under several kernels.

Long, Cao, Wang and Jordan, "Learning transferable features with deep adaptation networks", 2015.
"""

from __future__ import annotations

import torch
from torch import Tensor

from transferable.deep._penalised import PenalisedClassifier, estimator
from transferable.deep._training import Batch, Losses, Training

__all__ = ["DAN", "kernel_distance"]


def kernel_distance(a: Tensor, b: Tensor, factors: tuple[float, ...]) -> Tensor:
    """MMD^2 of two samples under the mean of Gaussian kernels exp(-d^2 / (factor m)).

    m is the mean squared distance of all pairs of different rows of the joint batch; it carries no
    gradient.
    """
    rows = torch.cat([a, b])
    squares = rows.square().sum(dim=1)
    distances = (squares[:, None] + squares[None, :] - 2 * rows @ rows.T).clamp_min(0.0)
    n = len(rows)
    mean = (distances.detach().sum() / (n * n - n)).clamp_min(torch.finfo(rows.dtype).tiny)
    kernels = [torch.exp(-distances / (factor * mean)) for factor in factors]
    K = torch.stack(kernels).mean(dim=0)
    m = len(a)
    return K[:m, :m].mean() + K[m:, m:].mean() - 2 * K[:m, m:].mean()


@estimator
class DAN(PenalisedClassifier):
    """Deep adaptation network: maximum mean discrepancy under several kernels, on two layers.

    Adds ``weight (MMD^2(f_s, f_t) + MMD^2(z_s, z_t))`` of the features f and the scores z of a
    batch to the source's cross-entropy.

    Parameters
    ----------
    weight : float, default=1
        Weight of the distances; ten times as much collapsed on digits.
    kernel_factors : tuple of float, default=(0.25, 0.5, 1, 2, 4)
        Bandwidths of the Gaussian kernels, of which the mean is taken, in units of the mean squared
        distance of the rows of a batch.

    References
    ----------
    M. Long, Y. Cao, J. Wang and M. I. Jordan, "Learning transferable features with deep adaptation
    networks", ICML 2015.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import DAN
    >>> task = load_printed_to_handwritten()
    >>> model = DAN(epochs=3).adapt(task.Xs[::7], task.ys[::7], task.Xt[::7])
    >>> model.predict(task.Xt).shape
    (1797,)
    """

    kernel_factors: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)

    _parameter_constraints = PenalisedClassifier._parameter_constraints | {
        "kernel_factors": [tuple, list],
    }

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        factors = tuple(self.kernel_factors)
        return {
            "features": self.weight * kernel_distance(batch.fs, batch.ft, factors),
            "scores": self.weight * kernel_distance(batch.zs, batch.zt, factors),
        }
