"""What the deep methods share: parameters, the way from rows to a trained network, prediction."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from torch import nn
from torch.nn import functional

from transferable.base import DomainClassifier, DomainTransformer
from transferable.deep._checkpoint import Checkpoint
from transferable.deep._data import (
    DatasetTable,
    Rows,
    StackedTable,
    dataset_labels,
    is_dataset,
)
from transferable.deep._parameters import NetworkParameters, estimator
from transferable.deep._training import Batch, Losses, Phase, Training, outputs
from transferable.deep.networks import Domain, build, feature_width, load_weights
from transferable.domains import Domains
from transferable.linalg.arrays import on_host

__all__ = ["DeepClassifier"]


@estimator
class DeepClassifier(NetworkParameters, DomainClassifier, DomainTransformer):
    """Base of the deep methods; alone, it trains a network on the source.

    Its attributes are described in :class:`~transferable.deep.SourceOnly`.
    """

    def adapt(self, Xs: Any, ys: ArrayLike | None, Xt: Any, sample_weight: Any = None) -> Self:
        """Learn from source rows ``Xs``, their labels ``ys`` and target rows ``Xt``.

        Parameters
        ----------
        Xs : array, memory map or torch Dataset
            Source rows: of shape (n_source, n_features), pictures of shape (n_source, height,
            width) or (n_source, channels, height, width), or a dataset of (row, label).
        ys : array-like of shape (n_source,) or None
            Their labels; None takes those of the dataset.
        Xt : array, memory map or torch Dataset
            Target rows of the same shape; labels of a dataset are never looked at.
        sample_weight : None, default=None
            Weights are not taken.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if sample_weight is not None:
            raise ValueError(f"{type(self).__name__} takes no sample_weight; leave it out.")
        if ys is None and is_dataset(Xs):
            ys = dataset_labels(Xs)
        if not any(is_dataset(X) or isinstance(X, np.memmap) for X in (Xs, Xt)):
            Xs, Xt = np.asarray(on_host(Xs)), np.asarray(on_host(Xt))
        shapes = [_row_shape(X) for X in (Xs, Xt)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"Xt has rows of shape {shapes[1]}, but Xs has rows of shape {shapes[0]}; both "
                "domains must be described alike."
            )
        labels = np.asarray(on_host(ys))
        n_source, n_target = len(Xs), len(Xt)
        if labels.shape[:1] != (n_source,):
            raise ValueError(
                f"ys has shape {labels.shape}, but Xs has {n_source} rows; give one label each."
            )
        if isinstance(Xs, np.ndarray) and not isinstance(Xs, np.memmap):
            X: Any = np.concatenate([Xs, Xt])
        else:
            X = _Lazy(StackedTable(_flat(Xs), _flat(Xt)), shapes[0])
        y = np.concatenate([labels, np.repeat(labels[:1], n_target)])
        return self.fit(X, y, np.repeat([1, -1], [n_source, n_target]))

    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Probabilities of the classes, the softmax of the network's scores.

        Parameters
        ----------
        X : array, memory map or torch Dataset
            Rows, taken for target rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            A distribution over ``classes_`` for each row.
        """
        blocks = self._outputs(self._validate_rows(X), self._statistics)
        return torch.cat([functional.softmax(z, dim=1).cpu() for _, z in blocks]).numpy()

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        """Rows as a table of two axes, with the shape of a row set aside."""
        if is_dataset(X):
            X = _Lazy(StackedTable(DatasetTable(X)), _row_shape(X))
        if isinstance(X, np.memmap):
            X = _Lazy(StackedTable(_flat(X)), X.shape[1:])
        if isinstance(X, _Lazy):
            table, shape = X.table, X.row_shape
            if reset:
                self.n_features_in_ = shape[0]
        else:
            least = {"ensure_min_samples": 2} if reset else {}
            rows = validate_data(
                self, on_host(X), dtype="numeric", allow_nd=True, reset=reset, **least
            )
            table, shape = _flat(rows), rows.shape[1:]
        shape = self._as_input(tuple(shape))
        if reset:
            self.input_shape_ = shape
        elif shape != self.input_shape_:
            raise ValueError(
                f"X has rows of shape {shape}, but the network was fitted on {self.input_shape_}."
            )
        return table

    def _as_input(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """What the network takes a row of X to be: pictures have channels."""
        if self.input_shape is not None:
            wanted = tuple(int(side) for side in self.input_shape)
            if np.prod(wanted) != np.prod(shape):
                raise ValueError(
                    f"input_shape={wanted} has {np.prod(wanted)} values, but rows of X have "
                    f"{np.prod(shape)}."
                )
            return wanted
        return (1, *shape) if len(shape) == 2 else shape

    def _fit_domains(self, domains: Domains) -> None:
        device = _device(self.device)
        seed = int(check_random_state(self.random_state).randint(2**31 - 2))
        with _seeded(seed, device, deterministic=self.deterministic):
            n_classes = domains.n_classes
            network = self._build(self.input_shape_, n_classes)
            if self.weights is not None:
                load_weights(network, self.weights)
            width = feature_width(network, self.input_shape_)
            parts = self._parts(width, n_classes) if domains.n_target else {}
            source, target = (
                Rows(domains.X, self.input_shape_, device, *ends)
                for ends in ((0, domains.n_source), (domains.n_source, None))
            )
            codes = torch.as_tensor(domains.y, device=device)
            training = Training(
                self, network, parts, source, codes, target if len(target) else None, seed
            )
            checkpoint = None
            if self.checkpoint is not None:
                checkpoint = Checkpoint(self.checkpoint, self, domains)
            training.run(self._phases(domains.n_target > 0), checkpoint)
            self._finish(training)
        self._statistics = training.domain
        self.network_ = training.network.cpu().eval()
        self._n_features_out = width
        self.classes_ = domains.classes
        self.history_ = training.history
        codes_of_rows = np.concatenate(
            [
                self._codes(domains.X, "source", 0, domains.n_source),
                self._codes(domains.X, self._statistics, domains.n_source),
            ]
        )
        self.transduction_ = domains.restore(domains.classes[codes_of_rows])
        if checkpoint is not None:
            checkpoint.remove()

    def _build(self, input_shape: Sequence[int], n_classes: int) -> nn.Module:
        """The network with new weights, as training and loading need it."""
        return build(self.network, input_shape, n_classes)

    def _parts(self, width: int, n_classes: int) -> dict[str, nn.Module]:
        """Networks that training needs beside the one it is about."""
        return {}

    def _phases(self, has_target: bool) -> list[Phase]:
        return [Phase("training", self.epochs, self._step, False, self._begin)]

    def _adapting_phases(self, warmup: int) -> list[Phase]:
        """Epochs of the source alone, then with the target; learning rate and optimisers go on."""
        if warmup >= self.epochs:
            raise ValueError(
                f"warmup_epochs={warmup} leaves none of the {self.epochs} epochs to adapt in; "
                "lower it, or raise epochs."
            )
        met = warmup / self.epochs
        source = Phase("source", warmup, self._step, False, self._begin, (0.0, met))
        begin = None if warmup else self._begin
        adapting = Phase("adapting", self.epochs - warmup, self._step, True, begin, (met, 1.0))
        return [source, adapting] if warmup else [adapting]

    def _begin(self, training: Training) -> None:
        training.optimizers = [training.optimizer(*training.modules.values())]

    def _step(self, training: Training, batch: Batch) -> Losses:
        """Cross-entropy of the source rows."""
        training.forward(batch)
        losses = {"source": functional.cross_entropy(batch.zs, batch.ys)}
        training.descend(losses)
        return losses

    def _finish(self, training: Training) -> None:
        """What is left to do after the last step."""

    def _predict_codes(self, rows: Any) -> NDArray[np.intp]:
        return self._codes(rows, self._statistics)

    def _codes(
        self, rows: Any, domain: Domain, start: int = 0, stop: int | None = None
    ) -> NDArray[np.intp]:
        blocks = self._outputs(rows, domain, start, stop)
        return np.concatenate([[], *(z.argmax(dim=1).cpu().numpy() for _, z in blocks)]).astype(
            np.intp
        )

    def _transform_rows(self, rows: Any, source: NDArray[np.bool_]) -> NDArray[np.floating]:
        out = torch.cat([f.cpu() for f, _ in self._outputs(rows, self._statistics)]).numpy()
        if self._statistics == "target" and source.any():
            blocks = self._outputs(rows[np.flatnonzero(source)], "source")
            out[source] = torch.cat([f.cpu() for f, _ in blocks]).numpy()
        return out

    def _outputs(
        self, rows: Any, domain: Domain, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Features and scores of checked rows, on the CPU in the precision of the rows."""
        device = _device(self.device)
        double = device.type == "cpu" and rows.dtype == np.float64
        dtype = torch.float64 if double else torch.float32
        network = copy.deepcopy(self.network_).to(device, dtype)
        table = Rows(rows, self.input_shape_, device, start, stop)
        return outputs(network, table, domain, dtype)

    def __getstate__(self) -> dict[str, Any]:
        """The fitted network travels as the bytes of a safetensors file."""
        state = dict(super().__getstate__())
        network = state.pop("network_", None)
        if network is not None:
            tensors = {name: v.clone().contiguous() for name, v in network.state_dict().items()}
            state["_weights"] = np.frombuffer(tensors_to_bytes(tensors), dtype=np.uint8).copy()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        stored = state.pop("_weights", None)
        super().__setstate__(state)
        if stored is None:
            return
        with torch.random.fork_rng(devices=[]):
            network = self._build(self.input_shape_, len(self.classes_))
        try:
            network.load_state_dict(tensors_from_bytes(stored.tobytes()))
        except (RuntimeError, SafetensorError) as error:
            raise ValueError(
                f"the stored weights do not fit the network {self.network!r} for rows of shape "
                f"{self.input_shape_} and {len(self.classes_)} classes: {error}"
            ) from error
        self.network_ = network.eval()


@dataclass(frozen=True)
class _Lazy:
    """A table that is read where it lies, and the shape of its rows."""

    table: StackedTable
    row_shape: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.table.shape[0], *self.row_shape)


def _row_shape(X: Any) -> tuple[int, ...]:
    return DatasetTable(X).row_shape if is_dataset(X) else tuple(np.shape(X)[1:])


def _flat(X: Any) -> Any:
    return DatasetTable(X) if is_dataset(X) else X.reshape(X.shape[0], -1)


def _device(name: str) -> torch.device:
    """The device that was asked for, if it is there."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(
            f'device="{name}" was asked for, but torch sees no CUDA GPU here; device="cpu" trains '
            'on the CPU, device="auto" on a GPU if there is one.'
        )
    return torch.device(name)


@contextmanager
def _seeded(seed: int, device: torch.device, *, deterministic: bool) -> Iterator[None]:
    """Within, torch's random numbers begin at the seed; after, all is as it was."""
    devices = [device] if device.type == "cuda" else []
    before = torch.are_deterministic_algorithms_enabled()
    if deterministic and devices:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        torch.use_deterministic_algorithms(deterministic or before)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before)
