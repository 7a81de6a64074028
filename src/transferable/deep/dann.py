"""DANN: features from which no classifier can tell the domains apart.

Ganin, Ustinova, Ajakan, Germain, Larochelle, Laviolette, Marchand and Lempitsky,
"Domain-adversarial training of neural networks", 2016.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from transferable.deep._penalised import PenalisedClassifier, estimator
from transferable.deep._training import Batch, Losses, Training

__all__ = ["DANN", "discriminator", "domain_loss", "reversal", "reversal_strength"]


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, strength: float) -> Tensor:
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return -ctx.strength * gradients[0], None


def reversal(x: Tensor, strength: float) -> Tensor:
    """The same values; gradients come back reversed, times the strength."""
    return _Reversal.apply(x, strength)


def reversal_strength(progress: float) -> float:
    """2 / (1 + exp(-10 t)) - 1: from 0 to 1 over the steps."""
    return 2.0 / (1.0 + math.exp(-10.0 * progress)) - 1.0


def discriminator(width: int) -> nn.Module:
    """Two layers of 500 units that tell source from target features."""
    return nn.Sequential(
        nn.Linear(width, 500), nn.ReLU(), nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 1)
    )


def domain_loss(of_source: Tensor, of_target: Tensor, weights: Tensor | None = None) -> Tensor:
    """Cross-entropy of telling domains apart, a mean over the two; 0.69 if they cannot be told."""
    scores = torch.cat([of_source, of_target]).squeeze(1)
    truth = torch.cat([torch.ones(len(of_source)), torch.zeros(len(of_target))]).to(scores)
    each = functional.binary_cross_entropy_with_logits(scores, truth, reduction="none")
    weights = torch.ones_like(each) if weights is None else weights
    means = [(each * weights * t).sum() / (weights * t).sum() for t in (truth, 1 - truth)]
    return (means[0] + means[1]) / 2


@estimator
class DANN(PenalisedClassifier):
    """Domain-adversarial network: a discriminator learns to tell domains apart, features not to.

    Adds the discriminator's cross-entropy to the source's. Its gradient reaches the features
    reversed, times ``weight (2 / (1 + exp(-10 t)) - 1)``, t the share of steps that are done; the
    discriminator itself learns at full weight. A domain loss that ends near 0.69 is the aim: the
    domains can then not be told apart.

    Published for SGD: learning rate 0.01, schedule "inverse".

    Parameters
    ----------
    weight : float, default=0.1
        Strength of the reversed gradient at the end.

    References
    ----------
    Y. Ganin et al., "Domain-adversarial training of neural networks", JMLR 17, 2016.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import DANN
    >>> task = load_printed_to_handwritten()
    >>> model = DANN(epochs=4).adapt(task.Xs[::7], task.ys[::7], task.Xt[::7])
    >>> model.predict(task.Xt).shape
    (1797,)
    """

    weight: float = 0.1

    def _parts(self, width: int, n_classes: int) -> dict[str, nn.Module]:
        return {"discriminator": discriminator(width)}

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        strength = self.weight * reversal_strength(batch.progress)
        tell = training.modules["discriminator"]
        scores = tell(reversal(torch.cat([batch.fs, batch.ft]), strength))
        return {"domain": domain_loss(scores[: len(batch.fs)], scores[len(batch.fs) :])}
