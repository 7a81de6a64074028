"""Methods that train features against a discriminator of the domains, or against two heads."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from transferable.deep._training import Batch, Losses, Phase, Training
from transferable.deep.base import (
    COUNT,
    EPOCHS,
    POSITIVE,
    DeepClassifier,
    PenalisedClassifier,
    adapting_phases,
)
from transferable.deep.networks import reset


def reversal(x: Tensor, strength: float) -> Tensor:
    """Return the values unchanged; gradients are reversed, times the strength."""
    out = x.view_as(x)
    if out.requires_grad:
        out.register_hook(lambda gradient: -strength * gradient)
    return out


def reversal_strength(progress: float) -> float:
    """Return 2 / (1 + exp(-10 t)) - 1: from 0 to 1 over the steps."""
    return 2.0 / (1.0 + math.exp(-10.0 * progress)) - 1.0


def _domain_classifier(width: int) -> nn.Module:
    """Return two layers of 500 units that discriminate source from target features."""
    return nn.Sequential(
        nn.Linear(width, 500), nn.ReLU(), nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 1)
    )


def domain_loss(of_source: Tensor, of_target: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the mean cross-entropy of the domains; 0.69 if they are indistinguishable."""
    scores = torch.cat([of_source, of_target]).squeeze(1)
    truth = torch.cat([torch.ones(len(of_source)), torch.zeros(len(of_target))]).to(scores)
    each = functional.binary_cross_entropy_with_logits(scores, truth, reduction="none")
    weights = torch.ones_like(each) if weights is None else weights
    means = [(each * weights * t).sum() / (weights * t).sum() for t in (truth, 1 - truth)]
    return (means[0] + means[1]) / 2


class DANN(PenalisedClassifier, example="epochs=4"):
    """Domain-adversarial network: features trained to confuse a domain discriminator.

    Adds the discriminator's cross-entropy to the source's. Its gradient reaches the features
    reversed, times ``weight (2 / (1 + exp(-10 t)) - 1)``, t the share of steps that are done; the
    discriminator itself learns at full weight. A domain loss that ends near 0.69 is the aim: the
    domains are then indistinguishable.

    Published for SGD: learning rate 0.01, schedule "inverse".

    Parameters
    ----------
    weight : float, default=0.1
        Strength of the reversed gradient at the end.

    References
    ----------
    Y. Ganin et al., "Domain-adversarial training of neural networks", JMLR 17, 2016.
    """

    weight: float = 0.1

    def _parts(self, width: int, n_classes: int) -> dict[str, nn.Module]:
        return {"discriminator": _domain_classifier(width)}

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        strength = self.weight * reversal_strength(batch.progress)
        discriminator = training.modules["discriminator"]
        scores = discriminator(reversal(torch.cat([batch.fs, batch.ft]), strength))
        return {"domain": domain_loss(scores[: len(batch.fs)], scores[len(batch.fs) :])}


def joint_features(f: Tensor, p: Tensor) -> Tensor:
    """Return the products of all features with all class probabilities."""
    return (p[:, :, None] * f[:, None, :]).flatten(1)


class CDAN(PenalisedClassifier, example="epochs=4"):
    """Conditional adversarial network: domains are confused class by class.

    As :class:`DANN`, but the discriminator sees the products of features and class probabilities,
    and confident rows weigh more: 1 + exp(-entropy).

    Parameters
    ----------
    weight : float, default=0.1
        Strength of the reversed gradient at the end.
    entropy : bool, default=True
        Whether confident rows weigh more (the paper's CDAN+E).

    References
    ----------
    M. Long, Z. Cao, J. Wang and M. I. Jordan, "Conditional adversarial domain adaptation", NeurIPS
    2018.
    """

    weight: float = 0.1
    entropy: bool = True

    _parameter_constraints = {"entropy": ["boolean"]}  # noqa: RUF012

    def _parts(self, width: int, n_classes: int) -> dict[str, nn.Module]:
        return {"discriminator": _domain_classifier(width * n_classes)}

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        strength = self.weight * reversal_strength(batch.progress)
        p = functional.softmax(torch.cat([batch.zs, batch.zt]), dim=1).detach()
        f = reversal(torch.cat([batch.fs, batch.ft]), strength)
        scores = training.modules["discriminator"](joint_features(f, p))
        weights = 1.0 + torch.exp(torch.xlogy(p, p).sum(dim=1)) if self.entropy else None
        n = len(batch.fs)
        return {"domain": domain_loss(scores[:n], scores[n:], weights)}


class ADDA(DeepClassifier, example="epochs=4, adversarial_epochs=1"):
    """Adversarial discriminative adaptation, in two stages.

    First a network is trained on the source. Then its features are frozen for the source, while a
    copy of them is trained on target rows to pass for the source's with a discriminator; the head
    is shared and frozen. ``predict`` and ``transform`` use the copy for all rows.

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
    Nothing in the second stage ties a class to itself: classes leave their place and come back from
    epoch to epoch, further at higher rates, and one may be out when the rate has decayed. Two of 22
    fits on MNIST and USPS at a rate of 0.0005 ended so, with a quarter of one class lost and the
    accuracy three points lower, for a seed that gave the usual result before.

    References
    ----------
    E. Tzeng, J. Hoffman, K. Saenko and T. Darrell, "Adversarial discriminative domain adaptation",
    CVPR 2017.
    """

    adversarial_epochs: int = 20
    adversarial_rate: float = 2e-4

    _parameter_constraints = {  # noqa: RUF012
        "adversarial_epochs": [COUNT],
        "adversarial_rate": [POSITIVE],
    }

    def _parts(self, width: int, n_classes: int) -> dict[str, nn.Module]:
        return {
            "discriminator": _domain_classifier(width),
            "source_features": self._build(self.input_shape_, n_classes).features,
        }

    def _phases(self, has_target: bool) -> list[Phase]:
        phases = super()._phases(has_target)
        if has_target:
            epochs = self.adversarial_epochs
            phases.append(Phase("fooling", epochs, self._fool, True, self._begin_to_fool))
        return phases

    def _begin(self, training: Training) -> None:
        training.optimizers = [training.optimizer(training.network)]

    def _begin_to_fool(self, training: Training) -> None:
        frozen = training.modules["source_features"]
        frozen.load_state_dict(copy.deepcopy(training.network.features.state_dict()))
        options: dict[str, Any] = {"rate_scale": self.adversarial_rate / self.learning_rate}
        if self.optimizer in ("adam", "adamw"):
            options["betas"] = (0.5, 0.999)
        training.optimizers = [
            training.optimizer(module, **options)
            for module in (training.modules["discriminator"], training.network.features)
        ]

    def _fool(self, training: Training, batch: Batch) -> Losses:
        discriminator = training.modules["discriminator"]
        of_discriminator, of_features = training.optimizers
        frozen = training.modules["source_features"].eval()
        with torch.no_grad():
            fs = training.features(batch.xs, "source", frozen)
        ft = training.features(batch.xt, "target")
        domain = {"domain": domain_loss(discriminator(fs), discriminator(ft.detach()))}
        training.descend(domain, of_discriminator)
        scores = discriminator(ft)
        fooled = functional.binary_cross_entropy_with_logits(scores, torch.ones_like(scores))
        training.descend({"fooled": fooled}, of_features)
        return domain | {"fooled": fooled}


def discrepancy(z1: Tensor, z2: Tensor) -> Tensor:
    """Return the mean absolute difference of the class probabilities."""
    return (functional.softmax(z1, dim=1) - functional.softmax(z2, dim=1)).abs().mean()


class _TwinHead(nn.Module):
    """Two heads with their own weights; the sum of their scores decides."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.first, self.second = head, reset(copy.deepcopy(head))

    def forward(self, f: Tensor) -> Tensor:
        return self.first(f) + self.second(f)


class MCD(DeepClassifier, example="epochs=4"):
    """Maximum classifier discrepancy: two heads and a game between them and the features.

    Each step trains all on the source (A), then the heads to differ on target rows while they stay
    right on the source (B), then, ``generator_steps`` times, the features so that the heads agree
    on target rows (C). The difference is the mean absolute one of class probabilities.

    The published learning rate is 0.0002, over ten times the steps.

    Parameters
    ----------
    generator_steps : int, default=4
        Steps C for one of A and B.
    warmup_epochs : int, default=0
        Epochs, of those given, with A alone; random weights need some.

    References
    ----------
    K. Saito, K. Watanabe, Y. Ushiku and T. Harada, "Maximum classifier discrepancy for unsupervised
    domain adaptation", CVPR 2018.
    """

    generator_steps: int = 4
    warmup_epochs: int = 0

    _parameter_constraints = {  # noqa: RUF012
        "generator_steps": [COUNT],
        "warmup_epochs": [EPOCHS],
    }

    def _build(self, input_shape: Sequence[int], n_classes: int, weights: Any = None) -> nn.Module:
        network = super()._build(input_shape, n_classes, weights)
        network.head = _TwinHead(network.head)
        return network

    def _phases(self, has_target: bool) -> list[Phase]:
        if not has_target:
            return super()._phases(has_target)
        return adapting_phases(self, self.warmup_epochs)

    def _begin(self, training: Training) -> None:
        network = training.network
        training.optimizers = [
            training.optimizer(part) for part in (network.features, network.head)
        ]

    def _step(self, training: Training, batch: Batch) -> Losses:
        network = training.network
        first, second = network.head.first, network.head.second
        of_features, of_heads = training.optimizers

        def wrong(f: Tensor) -> Tensor:
            """Return the cross-entropy of both heads."""
            of_first = functional.cross_entropy(first(f), batch.ys)
            return of_first + functional.cross_entropy(second(f), batch.ys)

        losses = {"source": wrong(training.features(batch.xs, "source"))}
        training.descend(losses)
        if batch.xt is None:
            return losses
        with torch.no_grad():
            fs = training.features(batch.xs, "source")
            ft = training.features(batch.xt, "target")
        differing = -discrepancy(first(ft), second(ft))
        training.descend({"a": wrong(fs), "b": differing}, of_heads)
        for _ in range(self.generator_steps):
            ft = training.features(batch.xt, "target")
            agreeing = discrepancy(first(ft), second(ft))
            training.descend({"c": agreeing}, of_features)
        return losses | {"differing": differing, "agreeing": agreeing}
