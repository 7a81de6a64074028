"""CDAN: a discriminator that sees features together with what they are taken for.

Long, Cao, Wang and Jordan, "Conditional adversarial domain adaptation", 2018.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from transferable.deep._penalised import PenalisedClassifier, estimator
from transferable.deep._training import Batch, Losses, Training
from transferable.deep.dann import discriminator, domain_loss, reversal, reversal_strength

__all__ = ["CDAN", "joint_features"]


def joint_features(f: Tensor, p: Tensor) -> Tensor:
    """The products of all features with all class probabilities."""
    return (p[:, :, None] * f[:, None, :]).flatten(1)


@estimator
class CDAN(PenalisedClassifier):
    """Conditional adversarial network: domains are confused class by class.

    As :class:`DANN`, but the discriminator sees the products of features and class probabilities,
    and sure rows weigh more: 1 + exp(-entropy).

    Parameters
    ----------
    weight : float, default=0.1
        Strength of the reversed gradient at the end.
    entropy : bool, default=True
        Whether sure rows weigh more (the paper's CDAN+E).

    References
    ----------
    M. Long, Z. Cao, J. Wang and M. I. Jordan, "Conditional adversarial domain adaptation", NeurIPS
    2018.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import CDAN
    >>> task = load_printed_to_handwritten()
    >>> model = CDAN(epochs=4).adapt(task.Xs[::7], task.ys[::7], task.Xt[::7])
    >>> model.predict(task.Xt).shape
    (1797,)
    """

    weight: float = 0.1
    entropy: bool = True

    _parameter_constraints = PenalisedClassifier._parameter_constraints | {
        "entropy": ["boolean"],
    }

    def _parts(self, width: int, n_classes: int) -> dict[str, nn.Module]:
        return {"discriminator": discriminator(width * n_classes)}

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        strength = self.weight * reversal_strength(batch.progress)
        p = functional.softmax(torch.cat([batch.zs, batch.zt]), dim=1).detach()
        f = reversal(torch.cat([batch.fs, batch.ft]), strength)
        scores = training.modules["discriminator"](joint_features(f, p))
        weights = 1.0 + torch.exp(torch.xlogy(p, p).sum(dim=1)) if self.entropy else None
        n = len(batch.fs)
        return {"domain": domain_loss(scores[:n], scores[n:], weights)}
