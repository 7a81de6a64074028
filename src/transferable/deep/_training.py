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
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from scipy.special import entr
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn
from torch.nn import functional

from transferable._files import replacing
from transferable.deep._data import Order, Rows, draw, opened
from transferable.deep.networks import Domain, DomainNorm
from transferable.domains import Domains, digest, row_hash
from transferable.events import rounds
from transferable.model_selection.scorers import SCORERS, Evidence

_JUDGED_VALUES = 2**24  # in target rows that the history's entropy and shares are taken from;
_JUDGED_ROWS = 1024  # at most so many, as of those that a score is taken from
# Scores that a model gets without being fitted again.
SCORES = ("agreement", "confusion", "density", "entropy", "information", "neighbors", "silhouette")
_NOT_OF_THE_FIT = ("callback", "checkpoint", "num_workers", "verbose")

Losses = dict[str, Tensor]


@dataclass
class Batch:
    """Rows of a step, and their features and scores once :meth:`Training.forward` has run.

    Attributes
    ----------
    xs, xt : Tensor
        Rows of the source and of the target; `xt` is None where a phase trains on the source.
    ys : Tensor
        Class codes of the source rows.
    index : Tensor or None
        Positions of the target rows.
    progress : float
        Share of the phase that is done.
    fs, ft : Tensor
        Features of the rows.
    zs, zt : Tensor
        Class scores of the rows.

    Examples
    --------
    >>> import torch
    >>> from transferable.deep import Batch
    >>> Batch(torch.zeros(8, 3), torch.zeros(8, dtype=int), None, None, 0.5).progress
    0.5
    """

    xs: Tensor
    ys: Tensor
    xt: Tensor | None
    index: Tensor | None
    progress: float
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

    A method of your own gets it in ``_penalty(training, batch)`` or ``_step(training, batch)``; it
    uses :meth:`forward`, :meth:`features` and :meth:`descend`.

    Attributes
    ----------
    network : Module
        The network in training, with ``features`` and ``head``.
    modules : ModuleDict
        The network and the modules that the method's ``_parts`` returned, by name.
    optimizers : list of Optimizer
        As the method's ``_begin`` has set them.
    domains : Domains
        Rows and class codes of both domains.
    history : list of dict
        One entry for each epoch that is done.

    Examples
    --------
    >>> from transferable.deep import PenalisedClassifier
    >>> class MeanScores(PenalisedClassifier):
    ...     def _penalty(self, training, batch):
    ...         gap = (batch.zs.mean(dim=0) - batch.zt.mean(dim=0)).square().sum()
    ...         return {"gap": self.weight * gap}
    >>> MeanScores(weight=0.1).weight
    0.1
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
        self.stream = opened(domains.X, device, spec.num_workers)
        self.source, self.target = (
            Rows(domains.X, spec.input_shape_, device, start, stop, self.stream)
            for start, stop in ((0, domains.n_source), (domains.n_source, None))
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
        self.best: dict[str, Tensor] = {}  # state of the epoch with the highest score
        larger = max(len(self.source), len(self.target))
        self.steps = spec.epoch_steps or -(-larger // spec.batch_size)
        self.seed = seed
        torch.manual_seed(seed)

    def optimizer(self, *modules: nn.Module, **options: Any) -> torch.optim.Optimizer:
        """Return an optimiser of the estimator's kind over the weights of modules.

        Options are those of the groups of weights; ``rate_scale`` multiplies the learning rate, and
        so does the estimator's ``backbone_rate`` for weights of the features.
        """
        spec = self.spec
        backbone = {id(p) for p in self.network.features.parameters()}
        unique = {id(p): p for module in modules for p in module.parameters()}
        groups = []
        for inside, factor in ((True, spec.backbone_rate), (False, 1.0)):
            weights = [p for key, p in unique.items() if (key in backbone) == inside]
            scale = factor * options.get("rate_scale", 1.0)
            if weights:
                rate = spec.learning_rate * scale
                own = {"params": weights, "lr": rate, "weight_decay": spec.weight_decay}
                groups.append(own | options | {"rate_scale": scale})
        if callable(spec.optimizer):
            return spec.optimizer(groups)
        if spec.optimizer == "sgd":
            return torch.optim.SGD(groups, momentum=spec.momentum)
        kind = torch.optim.AdamW if spec.optimizer == "adamw" else torch.optim.Adam
        return kind(groups, fused=self.device.type == "cuda")

    def features(self, x: Tensor, domain: Domain, module: nn.Module | None = None) -> Tensor:
        """Return features of rows of this domain, by the network or another module."""
        module = self.network.features if module is None else module
        DomainNorm.switch(module, domain)
        with self.autocast():
            return module(x).float()

    def autocast(self) -> Any:
        """Return the context in which features are computed in the estimator's precision."""
        half = self.spec.precision == "bf16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=half)

    def forward(self, batch: Batch) -> None:
        """Compute features and scores, in one pass unless statistics differ by domain."""
        network, xt = self.network, batch.xt
        if xt is None or DomainNorm.switch(network, "source"):
            batch.fs = self.features(batch.xs, "source")
            batch.zs = network.head(batch.fs)
            if xt is not None:
                batch.ft = self.features(xt, "target")
                batch.zt = network.head(batch.ft)
            return
        sizes = [len(batch.xs), len(xt)]
        features = self.features(torch.cat([batch.xs, xt]), "source")
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
        judge = _Judge(self) if self.spec.scoring is not None and len(self.target) else None
        fit = "" if self.spec.checkpoint is None else _fingerprint(self.spec, self.domains)
        done = _read_checkpoint(self, fit) if fit else 0
        self._train(phases, fit, done, judge)
        if self.best:
            self.modules.load_state_dict(self.best)

    def _train(self, phases: Sequence[Phase], fit: str, done: int, judge: _Judge | None) -> None:
        adapts = any(phase.with_target for phase in phases)
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
                over = phase.with_target == adapts and judge is not None and judge.is_over(self)
                if fit:
                    _write_checkpoint(self, fit)
                callback = self.spec.callback
                if over | bool(callback is not None and callback(self.history[-1])):
                    return

    def _epoch(self, phase: Phase, epoch: int) -> bool:
        """Train one epoch; return False if losses were not finite and the last one was restored."""
        started = perf_counter()
        good = self.state()
        spec = self.spec
        augment = spec.augment or (lambda x, generator: x)
        source_rows = draw(len(self.source), self.steps, spec.batch_size, self.generators[0])
        target_rows = None
        if phase.with_target:
            self.domain = "target"
            target_rows = draw(len(self.target), self.steps, spec.batch_size, self.generators[1])
        values = []
        for step, (xs, xt) in enumerate(self._read(source_rows, target_rows)):
            share = (epoch * self.steps + step) / (phase.epochs * self.steps)
            progress = phase.span[0] + share * (phase.span[1] - phase.span[0])
            rate = float(spec.learning_rate * schedule(spec.schedule, progress))
            for optimizer in self.optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = rate * group["rate_scale"]
            xs = augment(xs, self.generators[0])
            index = None
            if xt is not None and target_rows is not None:
                index, xt = target_rows[step], augment(xt, self.generators[1])
            losses = phase.step(self, Batch(xs, self.codes[source_rows[step]], xt, index, share))
            values.append(torch.stack([value.detach() for value in losses.values()]))
        table = torch.stack(values).cpu()
        if not bool(torch.isfinite(table).all()):
            self.modules.load_state_dict(good)
            self._report_infinity(table, list(losses), phase)
            return False
        means = dict(zip(losses, table.double().mean(dim=0).tolist(), strict=True))
        self.history.append(
            {"epoch": len(self.history) + 1, "phase": phase.name, **means, "learning_rate": rate}
            | {"seconds": perf_counter() - started, "bytes": self._bytes()}
            | self._predictions()
            | self.notes
        )
        self.notes = {}
        return True

    def _read(
        self, source_rows: Tensor, target_rows: Tensor | None
    ) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield the rows of an epoch's batches."""
        if self.stream is None:
            for step, index in enumerate(source_rows):
                xt = None if target_rows is None else self.target.take(target_rows[step])
                yield self.source.take(index), xt
            return
        places = [self.source.positions(source_rows)]
        if target_rows is not None:
            places.append(self.target.positions(target_rows))
        first = self.seed + len(self.history) * self.steps
        parts = enumerate(zip(*places, strict=True), start=first)
        for xs, *rest in self.stream.read(Order(seed, True, rows) for seed, rows in parts):
            yield self.source.shaped(xs), self.target.shaped(rest[0]) if rest else None

    def state(self) -> dict[str, Tensor]:
        """Return a copy of all weights and statistics."""
        return {name: value.clone() for name, value in self.modules.state_dict().items()}

    def _bytes(self) -> int:
        """Return the memory in use: the most on a GPU, that of the process on a CPU."""
        if self.device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self.device))
        return int(psutil.Process().memory_info().rss)

    def probabilities(self, most: int) -> NDArray[np.float64]:
        """Return class probabilities of some rows of the target."""
        DomainNorm.switch(self.network, self.domain)
        self.network.eval()
        with torch.no_grad(), self.autocast():
            blocks = self.target.blocks(index=self.target.some(most))
            scores = torch.cat([self.network(x).double() for x in blocks])
        self.network.train()
        return functional.softmax(scores, dim=1).cpu().numpy()

    def _predictions(self) -> dict[str, Any]:
        """Return mean entropy and class prior of predictions on some target rows."""
        if not len(self.target):
            return {}
        width = math.prod(self.target.shape)
        P = self.probabilities(min(_JUDGED_ROWS, max(64, _JUDGED_VALUES // width)))
        shares = np.bincount(P.argmax(axis=1), minlength=P.shape[1]) / len(P)
        return {"entropy": float(entr(P).sum(axis=1).mean()), "shares": shares.tolist()}

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


class _Judge:
    """Score of the network without target labels, after every epoch that adapts.

    Where a score compares rows, it does so by their features before any training: those of a
    pretrained network, or random ones. Later ones would favour the labels that they came with.
    """

    def __init__(self, training: Training) -> None:
        spec, domains = training.spec, training.domains
        training.network.eval()
        found = []
        with torch.no_grad():
            for rows in (training.source, training.target):
                blocks = rows.blocks(index=rows.some(_JUDGED_ROWS))
                found += [training.features(x, "source").cpu() for x in blocks]
        training.network.train()
        X, codes = torch.cat(found).double().numpy(), domains.y[training.source.some(_JUDGED_ROWS)]
        self.domains = Domains(X, codes, np.arange(domains.n_classes), np.arange(len(X)))
        self.scorer, self.patience = SCORERS[spec.scoring], spec.patience

    def is_over(self, training: Training) -> bool:
        """Score the last epoch, keep its weights if they are the best; return whether to end."""
        self.P = training.probabilities(_JUDGED_ROWS)
        score = self.scorer.score(Evidence(self, None, (), split=(self.domains, None, None)))
        entry = training.history[-1]
        entry["score"] = score
        scores = [e["score"] for e in training.history if "score" in e]
        if score >= max(scores):
            training.best = training.state()
        best = max(k for k, value in enumerate(scores) if value == max(scores))
        return self.patience is not None and len(scores) - 1 - best >= self.patience

    def predict_proba(self, _: Any) -> NDArray[np.float64]:
        """Return the probabilities of the last epoch."""
        return self.P

    def predict(self, _: Any) -> NDArray[np.intp]:
        """Return the classes of the last epoch."""
        return self.P.argmax(axis=1)


def schedule(kind: Any, progress: float) -> float:
    """Return the factor of the learning rate after this share of the steps."""
    if callable(kind):
        return float(kind(progress))
    if kind == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * progress))
    if kind == "inverse":
        return float((1.0 + 10.0 * progress) ** -0.75)
    return 1.0


def outputs(
    network: nn.Module,
    rows: Rows,
    domain: Domain,
    dtype: torch.dtype = torch.float32,
    autocast: Callable[[], Any] = nullcontext,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield features and scores of rows, treated as rows of this domain, block by block."""
    DomainNorm.switch(network, domain)
    network.eval()
    for x in rows.blocks(dtype):
        with torch.no_grad():
            with autocast():
                features = network.features(x)
            features = features.to(dtype)
            scores = network.head(features)
        yield features, scores


def _write_checkpoint(training: Training, fit: str) -> None:
    """Write the state after an epoch; the file is written completely or not at all."""
    found = {f"modules.{name}": value for name, value in training.modules.state_dict().items()}
    found |= {f"best.{name}": value for name, value in training.best.items()}
    for k, optimizer in enumerate(training.optimizers):
        for i, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                if value is not None and not isinstance(value, Tensor):
                    raise ValueError(
                        f"checkpoint= cannot keep {name!r} of {type(optimizer).__name__}, which is "
                        "not a tensor; take an optimiser of torch, or checkpoint=None."
                    )
                if value is not None:
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
            f"checkpoint={str(path)!r} is not a checkpoint ({error}); remove it, or name "
            "another file."
        ) from error
    if notes["fit"] != fit:
        raise ValueError(
            f"checkpoint={str(path)!r} is of a fit with other rows or parameters; remove it to "
            "begin anew, or name another file."
        )
    modules, training.best = (
        {name.removeprefix(prefix): v for name, v in tensors.items() if name.startswith(prefix)}
        for prefix in ("modules.", "best.")
    )
    training.modules.load_state_dict(modules)
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
    """Hash everything that two fits must share for one to resume the other.

    Functions and objects count by their names, and pictures of a dataset by those of their files.
    """
    about = {
        name: re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))
        for name, value in spec.get_params(deep=False).items()
        if name not in _NOT_OF_THE_FIT
    }
    text = json.dumps([type(spec).__name__, about, *domains.X.shape], sort_keys=True)
    hashes = row_hash(domains.X) if domains.hashes is None else domains.hashes
    rows = digest(np.ascontiguousarray(domains.y), hashes)
    return hashlib.sha256(text.encode() + rows).hexdigest()
