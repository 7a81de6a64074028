"""A file from which a fit that was stopped goes on, after its last whole epoch.

It is a safetensors file: weights, the optimisers' state and the states of random numbers as
tensors, the history as JSON. Reading it runs no code, and a file of another fit is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from transferable._files import replacing
from transferable.domains import Domains, row_hash

if TYPE_CHECKING:
    from transferable.deep._training import Training

__all__ = ["Checkpoint"]


class Checkpoint:
    """The checkpoint of one fit.

    Parameters
    ----------
    path : str or path-like
        The file.
    spec : DeepClassifier
        The estimator.
    domains : Domains
        What is fitted.
    """

    def __init__(self, path: str | os.PathLike[str], spec: Any, domains: Domains) -> None:
        self.path = Path(path)
        self.fit = _fingerprint(spec, domains)

    def write(self, training: Training, epoch: int) -> None:
        """Keep the state after an epoch; the file is there whole or not at all."""
        notes = {"fit": self.fit, "epoch": epoch, "saw_target": training.saw_target}
        text = json.dumps(notes | {"history": training.history})
        with replacing(self.path, "wb") as file:
            file.write(save(_tensors(training), {"transferable": text}))

    def read(self, training: Training) -> int:
        """Bring the state back and tell after which epoch it was; 0 if there is no file."""
        if not self.path.exists():
            return 0
        try:
            with safe_open(self.path, "pt") as file:
                notes = json.loads((file.metadata() or {})["transferable"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, KeyError, ValueError, OSError) as error:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is no checkpoint ({error}); remove it, or name "
                "another file."
            ) from error
        if notes["fit"] != self.fit:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is of a fit with other rows or parameters; remove "
                "it to begin anew, or name another file."
            )
        _restore(training, tensors)
        training.history = notes["history"]
        training.saw_target = notes["saw_target"]
        return int(notes["epoch"])

    def remove(self) -> None:
        """The fit is done."""
        self.path.unlink(missing_ok=True)


def _tensors(training: Training) -> dict[str, Tensor]:
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
    return {name: value.detach().cpu().clone() for name, value in found.items()}


def _restore(training: Training, tensors: dict[str, Tensor]) -> None:
    prefix = "modules."
    training.modules.load_state_dict(
        {name.removeprefix(prefix): v for name, v in tensors.items() if name.startswith(prefix)}
    )
    for k, optimizer in enumerate(training.optimizers):
        whole = optimizer.state_dict()
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith(f"optimizers.{k}."):
                i, entry = name.removeprefix(f"optimizers.{k}.").split(".", 1)
                state.setdefault(int(i), {})[entry] = value
        optimizer.load_state_dict(whole | {"state": state})
    torch.set_rng_state(tensors["random"])
    if training.device.type == "cuda":
        torch.cuda.set_rng_state(tensors["random.cuda"], training.device)
    for k, generator in enumerate(training.generators):
        generator.set_state(tensors[f"random.{k}"])


def _fingerprint(spec: Any, domains: Domains) -> str:
    """What two fits must share for one to go on where the other stopped."""
    about = {
        name: repr(value)
        for name, value in spec.get_params(deep=False).items()
        if name not in ("checkpoint", "verbose")
    }
    digest = hashlib.sha256(json.dumps([type(spec).__name__, about], sort_keys=True).encode())
    digest.update(np.ascontiguousarray(domains.y).tobytes())
    digest.update(json.dumps([*domains.X.shape, int(row_hash(domains.X).sum())]).encode())
    return digest.hexdigest()
