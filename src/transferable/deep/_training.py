"""The one training loop: phases of epochs, epochs of steps, whatever a method does in a step.

A method hands over :class:`Phase` objects; the loop draws batches, sets the learning rate, notes
the losses, keeps the weights of the last whole epoch and writes the checkpoint. Losses are looked
at once an epoch, so that a step never waits for the device.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn
from torch.nn import functional

from transferable.deep._checkpoint import Checkpoint
from transferable.deep._data import Rows, draw
from transferable.deep.networks import Domain, DomainNorm
from transferable.events import rounds

__all__ = ["Batch", "Losses", "Phase", "Training", "outputs", "schedule"]

_JUDGED = 1024  # target rows that the history's entropy and shares are taken from
_BLOCK = 1024  # rows that are predicted at once

Losses = dict[str, Tensor]


@dataclass
class Batch:
    """Rows of a step, and what the network made of them once :meth:`Training.forward` has run."""

    xs: Tensor
    ys: Tensor
    xt: Tensor | None
    index: Tensor | None  # positions of the target rows
    progress: float  # share of the phase that is done
    fs: Tensor = field(init=False)
    zs: Tensor = field(init=False)
    ft: Tensor = field(init=False)
    zt: Tensor = field(init=False)


@dataclass(frozen=True)
class Phase:
    """Some epochs of the same kind of step.

    Parameters
    ----------
    name : str
        What history and progress call it.
    epochs : int
        How many.
    step : callable
        ``step(training, batch)`` makes one step and returns its losses by name.
    with_target : bool
        Whether batches hold target rows.
    begin : callable or None
        ``begin(training)`` prepares the phase, its optimisers for one; None goes on with those of
        the phase before.
    span : tuple of float
        Between which shares of the learning rate's schedule the phase lies.
    """

    name: str
    epochs: int
    step: Callable[[Training, Batch], Losses]
    with_target: bool
    begin: Callable[[Training], None] | None
    span: tuple[float, float] = (0.0, 1.0)


class Training:
    """The state of one fit.

    Parameters
    ----------
    spec : DeepClassifier
        The estimator, for its parameters.
    network : Module
        What is trained.
    parts : dict of Module
        What is trained beside it and needed in training only.
    source, target : Rows
        Rows of the domains; None without a target.
    codes : Tensor of shape (n_source,)
        Classes of the source rows.
    seed : int
        Of batches and of all other random numbers.
    """

    def __init__(
        self,
        spec: Any,
        network: nn.Module,
        parts: dict[str, nn.Module],
        source: Rows,
        codes: Tensor,
        target: Rows | None,
        seed: int,
    ) -> None:
        self.spec = spec
        self.device = source.device
        self.modules = nn.ModuleDict({"network": network, **parts}).to(self.device)
        self.source, self.codes, self.target = source, codes, target
        self.n_classes = int(codes.max()) + 1
        self.optimizers: list[torch.optim.Optimizer] = []
        # A generator for each domain: what the target draws does not change the source's batches.
        self.generators = [
            torch.Generator(self.device).manual_seed(seed + domain) for domain in (1, 2)
        ]
        self.history: list[dict[str, Any]] = []
        self.saw_target = False
        self.guide: Any = None  # what a phase prepared for its steps
        self.notes: dict[str, Any] = {}  # what it wants told in the next epoch's history
        larger = max(len(source), 0 if target is None else len(target))
        self.steps = spec.epoch_steps or -(-larger // spec.batch_size)
        torch.manual_seed(seed)

    @property
    def network(self) -> nn.Module:
        """The network, in training."""
        return self.modules["network"]

    @property
    def domain(self) -> Domain:
        """Whose statistics suit target rows: the target's once training has seen any."""
        return "target" if self.saw_target else "source"

    def optimizer(self, *modules: nn.Module, **options: Any) -> torch.optim.Optimizer:
        """An optimiser of the estimator's kind over the weights of modules."""
        spec = self.spec
        unique = {id(p): p for module in modules for p in module.parameters()}
        settings: dict[str, Any] = {"lr": spec.learning_rate, "weight_decay": spec.weight_decay}
        if spec.optimizer == "sgd":
            return torch.optim.SGD(
                unique.values(), **settings | {"momentum": spec.momentum} | options
            )
        fused = self.device.type == "cuda"
        return torch.optim.Adam(unique.values(), **settings | {"fused": fused} | options)

    def forward(self, batch: Batch) -> None:
        """Features and scores of a batch, in one pass unless statistics differ by domain."""
        network, xt = self.network, batch.xt
        per_domain = DomainNorm.switch(network, "source")
        if xt is None or per_domain:
            batch.fs = network.features(batch.xs)
            batch.zs = network.head(batch.fs)
            if xt is not None:
                DomainNorm.switch(network, "target")
                batch.ft = network.features(xt)
                batch.zt = network.head(batch.ft)
            return
        sizes = [len(batch.xs), len(xt)]
        features = network.features(torch.cat([batch.xs, xt]))
        batch.fs, batch.ft = features.split(sizes)
        batch.zs, batch.zt = network.head(features).split(sizes)

    def descend(self, losses: Losses, *optimizers: torch.optim.Optimizer) -> None:
        """One step of the optimisers, all if none is named, down the sum of the losses."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        torch.stack(list(losses.values())).sum().backward()
        for optimizer in optimizers or self.optimizers:
            optimizer.step()

    def run(self, phases: Sequence[Phase], checkpoint: Checkpoint | None) -> None:
        """All phases, from the checkpoint on if it holds an earlier part of this fit."""
        self.modules.train()
        done = 0 if checkpoint is None else checkpoint.read(self)
        before = 0
        begin = phases[0].begin
        for phase in phases:
            first = max(0, done - before)
            before += phase.epochs
            begin = phase.begin or begin
            if first >= phase.epochs:
                continue
            goes_on = first > 0 or (phase.begin is None and not self.optimizers)
            if begin is not None and (phase.begin is not None or goes_on):
                begin(self)
            if goes_on and checkpoint is not None:
                checkpoint.read(self)  # what `begin` made anew is as it was
            for epoch in rounds(phase.epochs, f"{type(self.spec).__name__}: {phase.name}"):
                if epoch < first:
                    continue
                if not self._epoch(phase, epoch):
                    return
                if checkpoint is not None:
                    checkpoint.write(self, len(self.history))

    def _epoch(self, phase: Phase, epoch: int) -> bool:
        """One epoch; False if its losses were not finite and the one before was restored."""
        started = perf_counter()
        good = {name: value.clone() for name, value in self.modules.state_dict().items()}
        target = self.target if phase.with_target else None
        self.saw_target |= target is not None
        size = self.spec.batch_size
        source_rows = draw(len(self.source), self.steps, size, self.generators[0])
        target_rows: Tensor | None = None
        if target is not None:
            target_rows = draw(len(target), self.steps, size, self.generators[1])
        names: list[str] = []
        values = []
        for step in range(self.steps):
            share = (epoch * self.steps + step) / (phase.epochs * self.steps)
            rate = self._set_rate(phase.span[0] + share * (phase.span[1] - phase.span[0]))
            index = None if target_rows is None else target_rows[step]
            losses = phase.step(self, self._batch(source_rows[step], target, index, share))
            names = list(losses)
            values.append(torch.stack([value.detach() for value in losses.values()]))
        table = torch.stack(values).cpu()
        if not bool(torch.isfinite(table).all()):
            self.modules.load_state_dict(good)
            self._tell_of_infinity(table, names, phase)
            return False
        means = dict(zip(names, table.double().mean(dim=0).tolist(), strict=True))
        self.history.append(
            {"epoch": len(self.history) + 1, "phase": phase.name, **means, "learning_rate": rate}
            | {"seconds": perf_counter() - started}
            | self._of_target()
            | self.notes
        )
        self.notes = {}
        return True

    def _batch(
        self, source_rows: Tensor, target: Rows | None, index: Tensor | None, progress: float
    ) -> Batch:
        augment = self.spec.augment or (lambda x, generator: x)
        xs = augment(self.source.take(source_rows), self.generators[0])
        xt = None
        if target is not None and index is not None:
            xt = augment(target.take(index), self.generators[1])
        return Batch(xs, self.codes[source_rows], xt, index, progress)

    def _set_rate(self, progress: float) -> float:
        rate = self.spec.learning_rate * schedule(self.spec.schedule, progress)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * group.get("rate_scale", 1.0)
        return float(rate)

    def _of_target(self) -> dict[str, Any]:
        """Mean entropy and class shares of predictions on some target rows."""
        if self.target is None:
            return {}
        some = torch.arange(min(_JUDGED, len(self.target)), device=self.device)
        DomainNorm.switch(self.network, self.domain)
        self.network.eval()
        with torch.no_grad():
            scores = self.network(self.target.take(some))
        self.network.train()
        log_p = functional.log_softmax(scores.double(), dim=1)
        entropy = -(log_p.exp() * log_p).sum(dim=1).mean()
        shares = torch.bincount(scores.argmax(dim=1), minlength=scores.shape[1]) / len(some)
        return {"entropy": float(entropy), "shares": shares.tolist()}

    def _tell_of_infinity(self, table: Tensor, names: list[str], phase: Phase) -> None:
        finite = torch.isfinite(table)
        step = int((~finite.all(dim=1)).nonzero()[0])
        terms = [name for name, good in zip(names, finite[step].tolist(), strict=True) if not good]
        total = len(self.history) * self.steps + step + 1
        remedy = "learning_rate" if terms == ["source"] else "learning_rate or weight"
        told = (
            f"The loss was not finite at step {total} ({phase.name}): {' and '.join(terms)}. "
            f"Lower {remedy}, or look for extreme values in X."
        )
        if not self.history:
            raise ValueError(told)
        warnings.warn(
            f"{told} Training ended with the weights of epoch {len(self.history)}.",
            ConvergenceWarning,
            stacklevel=2,
        )


def schedule(kind: str, progress: float) -> float:
    """The factor of the learning rate after this share of the steps."""
    if kind == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * progress))
    if kind == "inverse":
        return float((1.0 + 10.0 * progress) ** -0.75)
    return 1.0


def outputs(
    network: nn.Module, rows: Rows, domain: Domain, dtype: torch.dtype = torch.float32
) -> Iterator[tuple[Tensor, Tensor]]:
    """Features and scores of rows, taken for those of this domain, block by block."""
    DomainNorm.switch(network, domain)
    network.eval()
    for x in rows.blocks(_BLOCK, dtype):
        with torch.no_grad():
            features = network.features(x)
            scores = network.head(features)
        yield features, scores
