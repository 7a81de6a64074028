"""MCC: predictions on the target should not confuse classes with one another.

Jin, Wang, Long and Wang, "Minimum class confusion for versatile domain adaptation", 2020.
"""

from __future__ import annotations

from numbers import Real

import torch
from torch import Tensor
from torch.nn import functional

from transferable._sklearn import Interval
from transferable.deep._penalised import PenalisedClassifier, estimator
from transferable.deep._training import Batch, Losses, Training

__all__ = ["MCC", "class_confusion"]


def class_confusion(z: Tensor, temperature: float) -> Tensor:
    """Share of the rows of P'WP that lies off its diagonal, a mean over classes.

    P = softmax(z / temperature); W weighs row i with n (1 + exp(-H_i)) / sum, H_i its entropy, and
    carries no gradient.
    """
    P = functional.softmax(z / temperature, dim=1)
    with torch.no_grad():
        entropy = -torch.xlogy(P, P).sum(dim=1)
        certainty = 1.0 + torch.exp(-entropy)
        w = len(P) * certainty / certainty.sum()
    confusion = (w[:, None] * P).T @ P
    confusion = confusion / confusion.sum(dim=1, keepdim=True)
    n_classes = z.shape[1]
    return (confusion.sum() - confusion.trace()) / n_classes


@estimator
class MCC(PenalisedClassifier):
    """Minimum class confusion: target rows should not lie between classes.

    Adds ``weight`` times the share of the class correlations of target predictions that lies off
    the diagonal to the source's cross-entropy. It takes every class to be in the target.

    A batch should hold several rows of every class.

    Parameters
    ----------
    weight : float, default=1
        Weight of the confusion.
    temperature : float, default=2.5
        Divides the scores before the softmax.
    warmup_epochs : int, default=0
        Epochs, of those given, before the penalty sets in. A network that begins with random
        weights needs some, or it becomes sure of wrong classes.

    References
    ----------
    Y. Jin, X. Wang, M. Long and J. Wang, "Minimum class confusion for versatile domain adaptation",
    ECCV 2020.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import MCC
    >>> task = load_printed_to_handwritten()
    >>> model = MCC(epochs=3).adapt(task.Xs[::7], task.ys[::7], task.Xt[::7])
    >>> model.predict(task.Xt).shape
    (1797,)
    """

    temperature: float = 2.5

    _parameter_constraints = PenalisedClassifier._parameter_constraints | {
        "temperature": [Interval(Real, 0, None, closed="neither")],
    }

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        return {"confusion": self.weight * class_confusion(batch.zt, self.temperature)}
