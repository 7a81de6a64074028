"""What the methods share that add a penalty to the source's cross-entropy."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral

from torch.nn import functional

from transferable._sklearn import Interval
from transferable.deep._base import DeepClassifier
from transferable.deep._parameters import WEIGHT, estimator
from transferable.deep._training import Batch, Losses, Phase, Training

__all__ = ["PenalisedClassifier", "estimator"]


@estimator
class PenalisedClassifier(DeepClassifier):
    """Base of the methods that add a penalty to the source's cross-entropy.

    With ``weight=0`` nothing but the source is trained on, as in
    :class:`~transferable.deep.SourceOnly`.

    Parameters
    ----------
    warmup_epochs : int, default=0
        Epochs, of those given, before the penalty sets in.
    """

    weight: float = 1.0
    warmup_epochs: int = 0

    _parameter_constraints = DeepClassifier._parameter_constraints | {
        "weight": [WEIGHT],
        "warmup_epochs": [Interval(Integral, 0, None, closed="left")],
    }

    def _phases(self, has_target: bool) -> list[Phase]:
        if self.weight == 0 or not has_target:
            return super()._phases(has_target)
        return self._adapting_phases(self.warmup_epochs)

    def _step(self, training: Training, batch: Batch) -> Losses:
        """Cross-entropy of the source rows and the penalty."""
        training.forward(batch)
        losses = {"source": functional.cross_entropy(batch.zs, batch.ys)}
        if batch.xt is not None:
            losses |= self._penalty(training, batch)
        training.descend(losses)
        return losses

    @abstractmethod
    def _penalty(self, training: Training, batch: Batch) -> Losses:
        """What is added to the loss, by name and with its weight."""
