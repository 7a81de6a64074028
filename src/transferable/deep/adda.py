"""ADDA: a copy of the source network learns features that a discriminator takes for the source's.

Tzeng, Hoffman, Saenko and Darrell, "Adversarial discriminative domain adaptation", 2017.
"""

from __future__ import annotations

import copy
from numbers import Integral, Real

import torch
from torch import nn
from torch.nn import functional

from transferable._sklearn import Interval
from transferable.deep._base import DeepClassifier
from transferable.deep._parameters import estimator
from transferable.deep._training import Batch, Losses, Phase, Training
from transferable.deep.dann import discriminator, domain_loss
from transferable.deep.networks import DomainNorm

__all__ = ["ADDA"]


@estimator
class ADDA(DeepClassifier):
    """Adversarial discriminative adaptation, in two stages.

    First a network is trained on the source. Then its features stand still for the source, while a
    copy of them learns on target rows to be taken for the source's by a discriminator; the head is
    shared and stands still. ``predict`` and ``transform`` use the copy for all rows.

    Parameters
    ----------
    adversarial_epochs : int, default=20
        Epochs of the second stage.
    adversarial_rate : float, default=0.0002
        Learning rate of the second stage, whose Adam has a first moment of 0.5.
    epochs : int, default=20
        Epochs of the first stage.

    Notes
    -----
    The second stage is known to vary from run to run; the last step is the result.

    References
    ----------
    E. Tzeng, J. Hoffman, K. Saenko and T. Darrell, "Adversarial discriminative domain adaptation",
    CVPR 2017.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import ADDA
    >>> task = load_printed_to_handwritten()
    >>> model = ADDA(epochs=4, adversarial_epochs=1).adapt(task.Xs[::7], task.ys[::7], task.Xt[::7])
    >>> model.predict(task.Xt).shape
    (1797,)
    """

    adversarial_epochs: int = 20
    adversarial_rate: float = 2e-4

    _parameter_constraints = DeepClassifier._parameter_constraints | {
        "adversarial_epochs": [Interval(Integral, 1, None, closed="left")],
        "adversarial_rate": [Interval(Real, 0, None, closed="neither")],
    }

    def _parts(self, width: int, n_classes: int) -> dict[str, nn.Module]:
        return {
            "discriminator": discriminator(width),
            "source_features": self._build(self.input_shape_, n_classes).features,
        }

    def _phases(self, has_target: bool) -> list[Phase]:
        first = super()._phases(has_target)
        if not has_target:
            return first
        fooling = Phase("fooling", self.adversarial_epochs, self._fool, True, self._begin_to_fool)
        return [*first, fooling]

    def _begin(self, training: Training) -> None:
        training.optimizers = [training.optimizer(training.network)]

    def _begin_to_fool(self, training: Training) -> None:
        frozen = training.modules["source_features"]
        frozen.load_state_dict(copy.deepcopy(training.network.features.state_dict()))
        scale = {"rate_scale": self.adversarial_rate / self.learning_rate}
        options = {"betas": (0.5, 0.999)} if self.optimizer == "adam" else {}
        training.optimizers = [
            training.optimizer(training.modules["discriminator"], **options),
            training.optimizer(training.network.features, **options),
        ]
        for optimizer in training.optimizers:
            for group in optimizer.param_groups:
                group |= scale

    def _fool(self, training: Training, batch: Batch) -> Losses:
        tell = training.modules["discriminator"]
        of_tell, of_features = training.optimizers
        frozen = training.modules["source_features"].eval()
        DomainNorm.switch(frozen, "source")
        DomainNorm.switch(training.network, "target")
        with torch.no_grad():
            fs = frozen(batch.xs)
        ft = training.network.features(batch.xt)
        domain = {"domain": domain_loss(tell(fs), tell(ft.detach()))}
        training.descend(domain, of_tell)
        scores = tell(ft)
        fooled = functional.binary_cross_entropy_with_logits(scores, torch.ones_like(scores))
        training.descend({"fooled": fooled}, of_features)
        return domain | {"fooled": fooled}
