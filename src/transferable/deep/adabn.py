"""AdaBN: the target's own statistics in every batch normalisation.

Li, Wang, Shi, Hou and Liu, "Adaptive batch normalization for practical domain adaptation", 2018.
"""

from __future__ import annotations

from typing import Any

import torch

from transferable.deep._base import DeepClassifier
from transferable.deep._parameters import estimator
from transferable.deep._training import Training
from transferable.deep.networks import DomainNorm

__all__ = ["AdaBN"]

_BLOCK = 1024  # rows whose statistics are taken at once


@estimator
class AdaBN(DeepClassifier):
    """Train on the source, then give the batch normalisations the target's means and variances.

    Needs a network with batch normalisation, such as ``network="convm"``.

    Parameters
    ----------
    network : {"convm"} or callable, default="convm"
        A network with batch normalisation.

    References
    ----------
    Y. Li, N. Wang, J. Shi, X. Hou and J. Liu, "Adaptive batch normalization for practical domain
    adaptation", Pattern Recognition 80, 2018.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import AdaBN
    >>> task = load_printed_to_handwritten()
    >>> model = AdaBN(input_shape=(1, 8, 8), epochs=2, epoch_steps=2)
    >>> model.adapt(task.Xs[::7], task.ys[::7], task.Xt[::7]).predict(task.Xt[:5]).shape
    (5,)
    """

    network: Any = "convm"

    def _finish(self, training: Training) -> None:
        norms = [m.target for m in training.network.modules() if isinstance(m, DomainNorm)]
        if not norms:
            raise ValueError(
                f"AdaBN needs a network with batch normalisation; {self.network!r} has none. Take "
                'network="convm" for pictures, or one of your own.'
            )
        if training.target is None:
            return
        network = training.network.eval()
        DomainNorm.switch(network, "target")
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the mean over all blocks
            norm.train()
        with torch.no_grad():
            for x in training.target.blocks(_BLOCK):
                network.features(x)
        training.saw_target = True
