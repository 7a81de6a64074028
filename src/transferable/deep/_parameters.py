"""The parameters of every deep method, and how a method declares its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

import torch
from numpy.random import RandomState

from transferable._docstrings import complete_parameters
from transferable._sklearn import Interval, StrOptions
from transferable.deep.networks import NETWORKS

__all__ = ["WEIGHT", "NetworkParameters", "estimator"]

_COUNT = Interval(Integral, 1, None, closed="left")
_POSITIVE = Interval(Real, 0, None, closed="neither")
WEIGHT = Interval(Real, 0, None, closed="left")
Augment = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
Estimator = TypeVar("Estimator")


@dataclass_transform(kw_only_default=True, eq_default=False)
def estimator(cls: type[Estimator]) -> type[Estimator]:
    """Make parameters of a class's fields, and describe those that its bases describe."""
    made = dataclass(kw_only=True, eq=False, repr=False)(cls)
    complete_parameters(made)
    return made


@estimator
class NetworkParameters:
    """What every deep method is told about its network and its training.

    Parameters
    ----------
    network : {"mlp", "lenet", "alexnet", "convm"} or callable, default="mlp"
        The network, see :mod:`transferable.deep.networks`. A callable is given the shape of a row
        and the number of classes and returns a ``torch.nn.Module`` with ``features`` and ``head``;
        such a model can be used but not saved, since loading runs no code.
    weights : str, path-like or None, default=None
        A safetensors file of weights to start from, those of the head left out or replaced.
    input_shape : tuple of int or None, default=None
        The shape of a row for the network, where X holds it flat; (1, 28, 28) for digits in 784
        columns. None takes rows as they come, and gives pictures without channels one.
    epochs : int, default=20
        Epochs of training. The last one is the result, always.
    epoch_steps : int or None, default=None
        Steps that make an epoch; None makes as many as the larger domain has batches.
    batch_size : int, default=128
        Rows of each domain in a step; all rows of a domain that has fewer.
    optimizer : {"adam", "sgd"}, default="adam"
        How weights follow the loss.
    learning_rate : float, default=0.001
        Where the learning rate begins.
    schedule : {"cosine", "inverse", "constant"}, default="cosine"
        How it goes on over the share t of the steps: down to 0 along a cosine, divided by
        (1 + 10 t)^0.75, or not at all.
    momentum : float, default=0.9
        Of "sgd".
    weight_decay : float, default=0.0005
        Weight of half the squared weights.
    augment : callable or None, default=None
        Changes the rows of both domains at random before every step, given a batch and a
        ``torch.Generator``: :class:`RandomAffine` for small pictures.
    device : str, default="auto"
        "cpu", "cuda" or "auto": a GPU if there is one.
    deterministic : bool, default=False
        Whether a GPU must give the same result to the bit for the same seed, at some cost. One CPU
        does so anyway.
    checkpoint : str, path-like or None, default=None
        A file that is written after every epoch. A fit with the same rows and parameters that finds
        it goes on from there; the file is removed when the fit is done.
    random_state : int, RandomState instance or None, default=0
        Seed of weights, batches, dropout and augmentation.
    verbose : bool, default=False
        Whether to show a progress bar.
    """

    network: Any = "mlp"
    weights: str | os.PathLike[str] | None = None
    input_shape: tuple[int, ...] | None = None
    epochs: int = 20
    epoch_steps: int | None = None
    batch_size: int = 128
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    schedule: str = "cosine"
    momentum: float = 0.9
    weight_decay: float = 5e-4
    augment: Augment | None = None
    device: str = "auto"
    deterministic: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    random_state: int | RandomState | None = 0
    verbose: bool = False

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "network": [StrOptions(set(NETWORKS)), callable],
        "weights": [str, os.PathLike, None],
        "input_shape": [tuple, list, None],
        "epochs": [_COUNT],
        "epoch_steps": [_COUNT, None],
        "batch_size": [_COUNT],
        "optimizer": [StrOptions({"adam", "sgd"})],
        "learning_rate": [_POSITIVE],
        "schedule": [StrOptions({"constant", "cosine", "inverse"})],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [WEIGHT],
        "augment": [callable, None],
        "device": [str],
        "deterministic": ["boolean"],
        "checkpoint": [str, os.PathLike, None],
        "random_state": ["random_state"],
        "verbose": ["boolean"],
    }
