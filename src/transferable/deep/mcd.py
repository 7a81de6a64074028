"""MCD: two heads that agree on the target wherever features are like the source's.

Saito, Watanabe, Ushiku and Harada, "Maximum classifier discrepancy for unsupervised domain
adaptation", 2018.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from numbers import Integral

import torch
from torch import Tensor, nn
from torch.nn import functional

from transferable._sklearn import Interval
from transferable.deep._base import DeepClassifier
from transferable.deep._parameters import estimator
from transferable.deep._training import Batch, Losses, Phase, Training
from transferable.deep.networks import Domain, DomainNorm, reset

__all__ = ["MCD", "discrepancy"]


def discrepancy(z1: Tensor, z2: Tensor) -> Tensor:
    """Mean absolute difference of the class probabilities."""
    return (functional.softmax(z1, dim=1) - functional.softmax(z2, dim=1)).abs().mean()


class _TwinHead(nn.Module):
    """Two heads with weights of their own; the sum of their scores decides."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.first, self.second = head, reset(copy.deepcopy(head))

    def forward(self, f: Tensor) -> Tensor:
        return self.first(f) + self.second(f)


@estimator
class MCD(DeepClassifier):
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
        Epochs, of those given, with A alone; without some, a network with random weights is slow
        to come to anything.

    References
    ----------
    K. Saito, K. Watanabe, Y. Ushiku and T. Harada, "Maximum classifier discrepancy for unsupervised
    domain adaptation", CVPR 2018.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import MCD
    >>> task = load_printed_to_handwritten()
    >>> model = MCD(epochs=4).adapt(task.Xs[::7], task.ys[::7], task.Xt[::7])
    >>> model.predict(task.Xt).shape
    (1797,)
    """

    generator_steps: int = 4
    warmup_epochs: int = 0

    _parameter_constraints = DeepClassifier._parameter_constraints | {
        "generator_steps": [Interval(Integral, 1, None, closed="left")],
        "warmup_epochs": [Interval(Integral, 0, None, closed="left")],
    }

    def _build(self, input_shape: Sequence[int], n_classes: int) -> nn.Module:
        network = super()._build(input_shape, n_classes)
        network.head = _TwinHead(network.head)
        return network

    def _phases(self, has_target: bool) -> list[Phase]:
        if not has_target:
            return super()._phases(has_target)
        return self._adapting_phases(self.warmup_epochs)

    def _begin(self, training: Training) -> None:
        network = training.network
        training.optimizers = [
            training.optimizer(network.features),
            training.optimizer(network.head),
        ]

    def _step(self, training: Training, batch: Batch) -> Losses:
        network = training.network
        of_features, of_heads = training.optimizers
        losses = {"source": _wrong(network, _features(network, batch.xs, "source"), batch.ys)}
        training.descend(losses)
        if batch.xt is None:
            return losses
        with torch.no_grad():
            fs = _features(network, batch.xs, "source")
            ft = _features(network, batch.xt, "target")
        differing = -_difference(network, ft)
        training.descend({"a": _wrong(network, fs, batch.ys), "b": differing}, of_heads)
        for _ in range(self.generator_steps):
            agreeing = _difference(network, _features(network, batch.xt, "target"))
            training.descend({"c": agreeing}, of_features)
        return losses | {"differing": differing, "agreeing": agreeing}


def _features(network: nn.Module, x: Tensor, domain: Domain) -> Tensor:
    DomainNorm.switch(network, domain)
    return network.features(x)


def _wrong(network: nn.Module, f: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of both heads."""
    head = network.head
    return functional.cross_entropy(head.first(f), y) + functional.cross_entropy(head.second(f), y)


def _difference(network: nn.Module, f: Tensor) -> Tensor:
    return discrepancy(network.head.first(f), network.head.second(f))
