"""Training loop: phases of epochs, epochs of steps, with the method's own steps.

A method passes :class:`Phase` objects; the loop draws batches, sets the learning rate, records the
losses, keeps the weights of the last whole epoch and writes the checkpoint. Losses are read once an
epoch, so that a step never waits for the device.

A checkpoint is a safetensors file: weights, the optimisers' state and the states of random numbers
as tensors, the history as JSON. Reading it runs no code, and a file of another fit is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn
from torch.nn import functional

from transferable._files import replacing
from transferable.deep._data import Rows, draw
from transferable.deep.networks import Domain, DomainNorm
from transferable.domains import Domains, row_hash
from transferable.events import rounds

_JUDGED = 1024  # target rows that the history's entropy and shares are taken from

Losses = dict[str, Tensor]


@dataclass
class Batch:
    """Rows of a step, and their features and scores once :meth:`Training.forward` has run."""

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
    """Epochs of steps of one kind.

    ``step(training, batch)`` makes one step and returns its losses by name; ``begin(training)``
    prepares the phase, such as its optimisers. A phase whose span of the learning rate's schedule
    does not start at 0 continues with the optimisers of the phase before.
    """

    name: str
    epochs: int
    step: Callable[[Training, Batch], Losses]
    with_target: bool  # whether batches hold target rows
    begin: Callable[[Training], None]
    span: tuple[float, float] = (0.0, 1.0)


class Training:
    """State of one fit of the estimator `spec`: the network, its domains, the optimisers.

    `parts` are modules that are trained beside the network and needed in training only.
    """

    def __init__(
        self,
        spec: Any,
        network: nn.Module,
        parts: dict[str, nn.Module],
        domains: Domains,
        device: torch.device,
        seed: int,
    ) -> None:
        self.spec, self.network, self.domains, self.device = spec, network, domains, device
        self.modules = nn.ModuleDict({"network": network, **parts}).to(device)
        self.source, self.target = (
            Rows(domains.X, spec.input_shape_, device, *ends)
            for ends in ((0, domains.n_source), (domains.n_source, None))
        )
        self.codes = torch.as_tensor(domains.y, device=device)
        self.optimizers: list[torch.optim.Optimizer] = []
        # A generator for each domain: the target's draws do not change the source's batches.
        self.generators = [
            torch.Generator(self.device).manual_seed(seed + domain) for domain in (1, 2)
        ]
        self.history: list[dict[str, Any]] = []
        # The domain whose statistics suit target rows: the target once training has seen any.
        self.domain: Domain = "source"
        self.guide: Any = None  # values that a phase prepared for its steps
        self.notes: dict[str, Any] = {}  # of a phase, for the next epoch's history
        larger = max(len(self.source), len(self.target))
        self.steps = spec.epoch_steps or -(-larger // spec.batch_size)
        torch.manual_seed(seed)

    def optimizer(self, *modules: nn.Module, **options: Any) -> torch.optim.Optimizer:
        """Return an optimiser of the estimator's kind over the weights of modules.

        Options are those of the group of weights; ``rate_scale`` multiplies the learning rate.
        """
        spec = self.spec
        unique = {id(p): p for module in modules for p in module.parameters()}
        groups = [{"params": list(unique.values()), "rate_scale": 1.0, **options}]
        settings: dict[str, Any] = {"lr": spec.learning_rate, "weight_decay": spec.weight_decay}
        if spec.optimizer == "sgd":
            return torch.optim.SGD(groups, momentum=spec.momentum, **settings)
        return torch.optim.Adam(groups, fused=self.device.type == "cuda", **settings)

    def forward(self, batch: Batch) -> None:
        """Compute features and scores, in one pass unless statistics differ by domain."""
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
        """Make one step of the optimisers, all if none is named, down the sum of the losses."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        torch.stack(list(losses.values())).sum().backward()
        for optimizer in optimizers or self.optimizers:
            optimizer.step()

    def run(self, phases: Sequence[Phase]) -> None:
        """Train all phases, from the checkpoint if it holds an earlier part of this fit."""
        self.modules.train()
        fit = "" if self.spec.checkpoint is None else _fingerprint(self.spec, self.domains)
        done = _read_checkpoint(self, fit) if fit else 0
        before = 0
        for phase in phases:
            first = max(0, done - before)
            before += phase.epochs
            if first >= phase.epochs:
                continue
            goes_on = phase.span[0] > 0
            resumed = first > 0 or (goes_on and not self.optimizers)
            if resumed or not goes_on:
                phase.begin(self)
            if resumed:
                _read_checkpoint(self, fit)  # restore what `begin` reset
            for epoch in rounds(phase.epochs, f"{type(self.spec).__name__}: {phase.name}"):
                if epoch < first:
                    continue
                if not self._epoch(phase, epoch):
                    return
                if fit:
                    _write_checkpoint(self, fit)

    def _epoch(self, phase: Phase, epoch: int) -> bool:
        """Train one epoch; return False if losses were not finite and the last one was restored."""
        started = perf_counter()
        good = {name: value.clone() for name, value in self.modules.state_dict().items()}
        spec = self.spec
        augment = spec.augment or (lambda x, generator: x)
        source_rows = draw(len(self.source), self.steps, spec.batch_size, self.generators[0])
        if phase.with_target:
            self.domain = "target"
            target_rows = draw(len(self.target), self.steps, spec.batch_size, self.generators[1])
        values = []
        for step, index_s in enumerate(source_rows):
            share = (epoch * self.steps + step) / (phase.epochs * self.steps)
            progress = phase.span[0] + share * (phase.span[1] - phase.span[0])
            rate = float(spec.learning_rate * schedule(spec.schedule, progress))
            for optimizer in self.optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = rate * group["rate_scale"]
            xs = augment(self.source.take(index_s), self.generators[0])
            xt = index = None
            if phase.with_target:
                index = target_rows[step]
                xt = augment(self.target.take(index), self.generators[1])
            losses = phase.step(self, Batch(xs, self.codes[index_s], xt, index, share))
            values.append(torch.stack([value.detach() for value in losses.values()]))
        table = torch.stack(values).cpu()
        if not bool(torch.isfinite(table).all()):
            self.modules.load_state_dict(good)
            self._report_infinity(table, list(losses), phase)
            return False
        means = dict(zip(losses, table.double().mean(dim=0).tolist(), strict=True))
        self.history.append(
            {"epoch": len(self.history) + 1, "phase": phase.name, **means, "learning_rate": rate}
            | {"seconds": perf_counter() - started}
            | self._predictions()
            | self.notes
        )
        self.notes = {}
        return True

    def _predictions(self) -> dict[str, Any]:
        """Return mean entropy and class prior of predictions on some target rows."""
        if not len(self.target):
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

    def _report_infinity(self, table: Tensor, names: list[str], phase: Phase) -> None:
        finite = torch.isfinite(table)
        step = int((~finite.all(dim=1)).nonzero()[0])
        terms = [name for name, good in zip(names, finite[step].tolist(), strict=True) if not good]
        total = len(self.history) * self.steps + step + 1
        remedy = "learning_rate" if terms == ["source"] else "learning_rate or weight"
        message = (
            f"The loss was not finite at step {total} ({phase.name}): {' and '.join(terms)}. "
            f"Lower {remedy}, or look for extreme values in X."
        )
        if not self.history:
            raise ValueError(message)
        warnings.warn(
            f"{message} Training ended with the weights of epoch {len(self.history)}.",
            ConvergenceWarning,
            stacklevel=2,
        )


def schedule(kind: str, progress: float) -> float:
    """Return the factor of the learning rate after this share of the steps."""
    if kind == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * progress))
    if kind == "inverse":
        return float((1.0 + 10.0 * progress) ** -0.75)
    return 1.0


def outputs(
    network: nn.Module, rows: Rows, domain: Domain, dtype: torch.dtype = torch.float32
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield features and scores of rows, treated as rows of this domain, block by block."""
    DomainNorm.switch(network, domain)
    network.eval()
    for x in rows.blocks(dtype):
        with torch.no_grad():
            features = network.features(x)
            scores = network.head(features)
        yield features, scores


def _write_checkpoint(training: Training, fit: str) -> None:
    """Write the state after an epoch; the file is written completely or not at all."""
    found = {f"modules.{name}": value for name, value in training.modules.state_dict().items()}
    for k, optimizer in enumerate(training.optimizers):
        for i, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                if isinstance(value, Tensor):
                    found[f"optimizers.{k}.{i}.{name}"] = value
    found["random"] = torch.get_rng_state()
    if training.device.type == "cuda":
        found["random.cuda"] = torch.cuda.get_rng_state(training.device)
    for k, generator in enumerate(training.generators):
        found[f"random.{k}"] = generator.get_state()
    tensors = {name: value.detach().cpu().clone() for name, value in found.items()}
    notes = {"fit": fit, "domain": training.domain, "history": training.history}
    with replacing(training.spec.checkpoint, "wb") as file:
        file.write(save(tensors, {"transferable": json.dumps(notes)}))


def _read_checkpoint(training: Training, fit: str) -> int:
    """Restore the state and return its number of epochs; 0 if there is no file."""
    path = Path(training.spec.checkpoint)
    if not path.exists():
        return 0
    try:
        with safe_open(path, "pt") as file:
            notes = json.loads((file.metadata() or {})["transferable"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"checkpoint={str(path)!r} is no checkpoint ({error}); remove it, or name another file."
        ) from error
    if notes["fit"] != fit:
        raise ValueError(
            f"checkpoint={str(path)!r} is of a fit with other rows or parameters; remove it to "
            "begin anew, or name another file."
        )
    prefix = "modules."
    training.modules.load_state_dict(
        {name.removeprefix(prefix): v for name, v in tensors.items() if name.startswith(prefix)}
    )
    for k, optimizer in enumerate(training.optimizers):
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith(f"optimizers.{k}."):
                i, entry = name.removeprefix(f"optimizers.{k}.").split(".", 1)
                state.setdefault(int(i), {})[entry] = value
        optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
    torch.set_rng_state(tensors["random"])
    if training.device.type == "cuda":
        torch.cuda.set_rng_state(tensors["random.cuda"], training.device)
    for k, generator in enumerate(training.generators):
        generator.set_state(tensors[f"random.{k}"])
    training.history = notes["history"]
    training.domain = notes["domain"]
    return len(training.history)


def _fingerprint(spec: Any, domains: Domains) -> str:
    """Hash everything that two fits must share for one to resume the other."""
    about = {
        name: repr(value)
        for name, value in spec.get_params(deep=False).items()
        if name not in ("checkpoint", "verbose")
    }
    digest = hashlib.sha256(json.dumps([type(spec).__name__, about], sort_keys=True).encode())
    digest.update(np.ascontiguousarray(domains.y).tobytes())
    digest.update(json.dumps([*domains.X.shape, int(row_hash(domains.X).sum())]).encode())
    return digest.hexdigest()
