"""CMD: the distance between the domains' central moments.

Zellinger, Grubinger, Lughofer, Natschlaeger and Saminger-Platz, "Central moment discrepancy (CMD)
for domain-invariant representation learning", 2017.
"""

from __future__ import annotations

from numbers import Integral

import torch
from torch import Tensor

from transferable._sklearn import Interval
from transferable.deep._penalised import PenalisedClassifier, estimator
from transferable.deep._training import Batch, Losses, Training

__all__ = ["CMD", "moment_distance"]

_FLAT = 1e-12  # under the root: a norm has no slope at zero


def moment_distance(fs: Tensor, ft: Tensor, n_moments: int) -> Tensor:
    """||mean fs - mean ft|| + sum of ||c_k(fs) - c_k(ft)|| for k = 2 .. n_moments.

    c_k are the central moments of each feature, which must lie in an interval of length 1.
    """
    ms, mt = fs.mean(dim=0), ft.mean(dim=0)
    cs, ct = fs - ms, ft - mt
    central = (cs.pow(k).mean(dim=0) - ct.pow(k).mean(dim=0) for k in range(2, n_moments + 1))
    return torch.stack([_norm(ms - mt), *map(_norm, central)]).sum()


def _norm(x: Tensor) -> Tensor:
    return (x.square().sum() + _FLAT).sqrt() - _FLAT**0.5


@estimator
class CMD(PenalisedClassifier):
    """Central moment discrepancy: bring the moments of every feature together.

    Adds ``weight (||m_s - m_t|| + sum_k ||c_k,s - c_k,t||)`` of the features' means m and central
    moments c_k to the source's cross-entropy. It is a distance on bounded features only: these are
    taken through ``tanh(f) / 2``, of length 1.

    Parameters
    ----------
    weight : float, default=0.1
        Weight of the distance; 1 collapsed with 500 features.
    n_moments : int, default=5
        The highest moment.

    References
    ----------
    W. Zellinger, T. Grubinger, E. Lughofer, T. Natschlaeger and S. Saminger-Platz, "Central moment
    discrepancy (CMD) for domain-invariant representation learning", ICLR 2017.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import CMD
    >>> task = load_printed_to_handwritten()
    >>> model = CMD(epochs=3).adapt(task.Xs[::7], task.ys[::7], task.Xt[::7])
    >>> model.predict(task.Xt).shape
    (1797,)
    """

    weight: float = 0.1
    n_moments: int = 5

    _parameter_constraints = PenalisedClassifier._parameter_constraints | {
        "n_moments": [Interval(Integral, 1, None, closed="left")],
    }

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        fs, ft = torch.tanh(batch.fs) / 2, torch.tanh(batch.ft) / 2
        return {"moments": self.weight * moment_distance(fs, ft, self.n_moments)}
