"""Base of the deep methods, and the two simplest: SourceOnly and AdaBN."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from torch import nn
from torch.nn import functional

from transferable._linalg.arrays import on_host
from transferable._sklearn import Interval, StrOptions
from transferable.base import DomainClassifier, DomainTransformer, refuse_text_and_gaps
from transferable.deep._data import Rows, StackedTable, Transform, opened, pooled, stacked, streamed
from transferable.deep._training import SCORES, Batch, Losses, Phase, Training, outputs
from transferable.deep.networks import Domain, DomainNorm, build, device_called, feature_width
from transferable.domains import Domains, check_order

COUNT = Interval(Integral, 1, None, closed="left")
EPOCHS = Interval(Integral, 0, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
WEIGHT = Interval(Real, 0, None, closed="left")
Augment = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
MakeOptimizer = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]


class DeepClassifier(DomainClassifier, DomainTransformer):
    """Base of the deep methods; alone, it trains a network on the source.

    Its attributes are described in :class:`~transferable.deep.SourceOnly`.

    Parameters
    ----------
    network : str or callable, default="mlp"
        "mlp", "mlp-bn", "lenet", "lenet-bn", or a network of a library that is installed, such as
        "timm:resnet50" or "torchvision:resnet50"; see :mod:`transferable.deep.networks`. A callable
        is given the shape of a row and the number of classes and returns a ``torch.nn.Module`` with
        ``features`` and ``head``; such a model cannot be saved, since loading runs no code.
    weights : str, path-like or None, default=None
        A safetensors file of weights to start from, those of the head left out or replaced, or
        "pretrained" for those that timm or torchvision publishes.
    input_shape : tuple of int or None, default=None
        The shape of a row for the network, where X holds it flat; (1, 28, 28) for digits in 784
        columns. None takes rows as they are, and gives pictures without channels one.
    epochs : int, default=20
        Epochs of training. The last one is the result, unless `scoring` chooses one.
    epoch_steps : int or None, default=None
        Steps of an epoch; None is the number of batches of the larger domain.
    batch_size : int, default=128
        Rows of each domain in a step; all rows of a smaller domain.
    optimizer : {"adam", "adamw", "sgd"} or callable, default="adam"
        The optimiser. A callable is given groups of weights and returns a
        ``torch.optim.Optimizer``, as ``torch.optim.RMSprop`` does.
    learning_rate : float, default=0.001
        Initial learning rate.
    backbone_rate : float, default=1
        Factor of the learning rate for the network's features; 0.1 for pretrained ones.
    schedule : {"cosine", "inverse", "constant"} or callable, default="cosine"
        Decay over the share t of the steps: cosine to 0, divided by (1 + 10 t)^0.75, or constant. A
        callable returns the factor of the learning rate, given t.
    momentum : float, default=0.9
        Momentum of "sgd".
    weight_decay : float, default=0.0005
        Weight of half the squared weights.
    prepare : callable, pair of callables or None, default=None
        Makes a tensor of each picture of a Dataset, as those of torchvision do; of a pair, the
        first in training and the second in prediction.
    augment : callable or None, default=None
        Changes the rows of both domains at random before every step, given a batch and a
        ``torch.Generator``: :class:`RandomAffine` for small pictures.
    num_workers : int, default=0
        Processes that read a Dataset or a memory map; 0 reads in this one.
    precision : {"float32", "bf16"}, default="float32"
        Arithmetic of the features in training; losses and predictions are in single precision.
    scoring : str or None, default=None
        A label-free score, of :mod:`transferable.model_selection`, of the target's predictions
        after every epoch that adapts: "agreement", "confusion", "density", "entropy",
        "information", "neighbors" or "silhouette". The epoch with the highest one is the result;
        with None, the last.
    patience : int or None, default=None
        With `scoring`, epochs without a higher score after which training ends.
    callback : callable or None, default=None
        Called with the entry of ``history_`` after every epoch; True ends training.
    device : str, default="auto"
        "cpu", "cuda" or "auto": a GPU if there is one.
    deterministic : bool, default=False
        Whether a GPU must give equal bits for the same seed, at some cost. One CPU does anyway.
    checkpoint : str, path-like or None, default=None
        A file written after every epoch. A fit with the same rows and parameters resumes from it;
        it is removed when the fit is done.
    random_state : int, RandomState instance or None, default=0
        Seed of weights, batches, dropout and augmentation.
    verbose : bool, default=False
        Whether to show progress: a bar on a terminal, lines elsewhere.
    """

    network: Any = "mlp"
    weights: str | os.PathLike[str] | None = None
    input_shape: tuple[int, ...] | None = None
    epochs: int = 20
    epoch_steps: int | None = None
    batch_size: int = 128
    optimizer: str | MakeOptimizer = "adam"
    learning_rate: float = 1e-3
    backbone_rate: float = 1.0
    schedule: str | Callable[[float], float] = "cosine"
    momentum: float = 0.9
    weight_decay: float = 5e-4
    prepare: Transform | tuple[Transform, Transform] | None = None
    augment: Augment | None = None
    num_workers: int = 0
    precision: str = "float32"
    scoring: str | None = None
    patience: int | None = None
    callback: Callable[[dict[str, Any]], object] | None = None
    device: str = "auto"
    deterministic: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    random_state: int | RandomState | None = 0
    verbose: bool = False

    _preserves_dtype = ["float64"]  # noqa: RUF012
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "network": [str, callable],
        "weights": [str, os.PathLike, None],
        "input_shape": [tuple, list, None],
        "epochs": [COUNT],
        "epoch_steps": [COUNT, None],
        "batch_size": [COUNT],
        "optimizer": [StrOptions({"adam", "adamw", "sgd"}), callable],
        "learning_rate": [POSITIVE],
        "backbone_rate": [WEIGHT],
        "schedule": [StrOptions({"constant", "cosine", "inverse"}), callable],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [WEIGHT],
        "prepare": [callable, tuple, list, None],
        "augment": [callable, None],
        "num_workers": [EPOCHS],
        "precision": [StrOptions({"float32", "bf16"})],
        "scoring": [StrOptions(set(SCORES)), None],
        "patience": [COUNT, None],
        "callback": [callable, None],
        "device": [str],
        "deterministic": ["boolean"],
        "checkpoint": [str, os.PathLike, None],
    }

    def adapt(
        self,
        Xs: Any,
        ys: ArrayLike | None,
        Xt: Any,
        sample_weight: Any = None,
        *,
        yt: ArrayLike | None = None,
    ) -> Self:
        """Learn from source rows ``Xs``, their labels ``ys`` and target rows ``Xt``.

        Parameters
        ----------
        Xs : array, memory map or torch Dataset, or list of such
            Source rows: of shape (n_source, n_features), pictures of shape (n_source, height,
            width) or (n_source, channels, height, width), or a dataset of (row, label). Several
            sources are pooled.
        ys : array-like of shape (n_source,), list of such, or None
            Their labels; None takes those of the dataset, the names of the classes if it is a
            folder of classes.
        Xt : array, memory map or torch Dataset
            Target rows of the same shape; labels of a dataset are never used.
        sample_weight, yt : None, default=None
            Not supported.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        for what, given in (("sample_weight", sample_weight), ("target labels, yt", yt)):
            if given is not None:
                raise ValueError(f"{type(self).__name__} takes no {what}; leave it out.")
        sources, labels = pooled(Xs, ys)
        names = ["Xs"] if len(sources) == 1 else [f"Xs[{k}]" for k in range(len(sources))]
        tables: list[Any] = [*sources, Xt]
        transforms = _transforms(self.prepare)
        in_place = max(map(streamed, tables))  # looks at all of them
        if not in_place:
            if len(sources) == 1:
                check_order(Xs, ys, Xt)
            tables = [np.asarray(on_host(table)) for table in tables]
        parts = [stacked([table], transforms) for table in tables] if in_place else tables
        shapes = [part.row_shape if in_place else part.shape[1:] for part in parts]
        for name, shape in zip([*names, "Xt"], shapes, strict=True):
            if shape != shapes[0]:
                raise ValueError(
                    f"{name} has rows of shape {shape}, but {names[0]} has rows of shape "
                    f"{shapes[0]}; both domains must be described alike."
                )
        for name, table, own in zip(names, tables, labels, strict=False):
            if own.shape[:1] != (len(table),):
                raise ValueError(
                    f"{name.replace('X', 'y')} has shape {own.shape}, but {name} has {len(table)} "
                    "rows; give one label each."
                )
        X: Any = stacked(tables, transforms) if in_place else np.concatenate(tables)
        n_target = len(tables[-1])
        y = np.concatenate([*labels, np.repeat(labels[0][:1], n_target)])
        return self.fit(X, y, np.repeat([1, -1], [len(X) - n_target, n_target]))

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return probabilities of the classes, the softmax of the network's scores.

        Parameters
        ----------
        X : array, memory map or torch Dataset
            Rows, treated as target rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            A distribution over ``classes_`` for each row.
        """
        rows = self._validate_rows(X)
        return self._outputs(lambda f, z: functional.softmax(z, dim=1), rows, self._statistics)

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        """Return rows as a table of two axes, with the shape of a row set aside."""
        table: Any = stacked([X], _transforms(self.prepare)) if streamed(X) else X
        if isinstance(table, StackedTable):
            shape = table.row_shape
            if reset:
                self.n_features_in_ = shape[0]
        else:
            least = {"ensure_min_samples": 2} if reset else {}
            try:
                rows = validate_data(
                    self, on_host(X), dtype="numeric", allow_nd=True, reset=reset, **least
                )
            except (TypeError, ValueError) as error:
                refuse_text_and_gaps(self, on_host(X), error)
                raise
            table, shape = rows.reshape(rows.shape[0], -1), tuple(rows.shape[1:])
        if reset:
            self.row_shape_ = shape
        if self.input_shape is not None:
            wanted = tuple(int(side) for side in self.input_shape)
            if np.prod(wanted) != np.prod(shape):
                raise ValueError(
                    f"input_shape={wanted} has {np.prod(wanted)} values, but rows of X have "
                    f"{np.prod(shape)}."
                )
            shape = wanted
        elif len(shape) == 2:  # a picture has channels
            shape = (1, *shape)
        if reset:
            self.input_shape_ = shape
        elif shape != self.input_shape_:
            raise ValueError(
                f"X has rows of shape {shape}, but the network was fitted on {self.input_shape_}."
            )
        return table

    def _fit_domains(self, domains: Domains) -> None:
        _refuse_item_transform(self.augment)
        if self.patience is not None and self.scoring is None:
            raise ValueError(
                f"patience={self.patience} waits for a higher score; name one, such as "
                'scoring="information".'
            )
        device = device_called(self.device)
        seed = int(check_random_state(self.random_state).randint(2**31 - 2))
        n_classes = domains.n_classes
        with _seeded(seed, device, deterministic=self.deterministic):
            network = self._build(self.input_shape_, n_classes, self.weights)
            width = feature_width(network.features, self.input_shape_)
            parts = self._parts(width, n_classes) if domains.n_target else {}
            training = Training(self, network, parts, domains, device, seed)
            training.run(self._phases(domains.n_target > 0))
            self._finish(training)
        self._statistics = training.domain
        self.network_ = training.network.cpu().eval()
        self._n_features_out = width
        self.classes_ = domains.classes
        self.history_ = training.history
        scores = self._outputs(lambda f, z: z, domains.X, self._statistics, domains.n_source)
        found = scores.argmax(axis=1)
        self.transduction_ = domains.restore(domains.classes[np.append(domains.y, found)])
        if self.checkpoint is not None:
            Path(self.checkpoint).unlink(missing_ok=True)

    def _build(self, input_shape: Sequence[int], n_classes: int, weights: Any = None) -> nn.Module:
        """Return the network with first weights, for training and for loading."""
        return build(self.network, input_shape, n_classes, weights)

    def _parts(self, width: int, n_classes: int) -> dict[str, nn.Module]:
        """Return modules that training needs beside the network."""
        return {}

    def _phases(self, has_target: bool) -> list[Phase]:
        return [Phase("training", self.epochs, self._step, False, self._begin)]

    def _begin(self, training: Training) -> None:
        training.optimizers = [training.optimizer(*training.modules.values())]

    def _step(self, training: Training, batch: Batch) -> Losses:
        """Descend the cross-entropy of the source rows and, with target rows, the penalty."""
        training.forward(batch)
        losses = {"source": functional.cross_entropy(batch.zs, batch.ys)}
        if batch.xt is not None:
            losses |= self._penalty(training, batch)
        training.descend(losses)
        return losses

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        """Return the additions to the loss, by name and with their weights."""
        return {}

    def _finish(self, training: Training) -> None:
        """Run the final step after training."""

    def _scores(self, rows: Any) -> NDArray[np.float64]:
        return self._outputs(lambda f, z: z.double(), rows, self._statistics)

    def _transform_rows(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        out = self._outputs(lambda f, z: f, rows, self._statistics)
        source = np.flatnonzero(ids > 0)
        if self._statistics == "target" and len(source):
            out[source] = self._outputs(lambda f, z: f, rows[source], "source")
        return out

    def _outputs(
        self,
        pick: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        rows: Any,
        domain: Domain,
        start: int = 0,
    ) -> NDArray[Any]:
        """Return the result of `pick` on features and scores, on the CPU in the rows' precision."""
        device = device_called(self.device)
        double = device.type == "cpu" and rows.dtype == np.float64
        dtype = torch.float64 if double else torch.float32
        network = copy.deepcopy(self.network_).to(device, dtype)
        stream = opened(rows, device, self.num_workers)
        table = Rows(rows, self.input_shape_, device, start, stream=stream)
        blocks = outputs(network, table, domain, dtype)
        return np.concatenate([pick(f, z).cpu().numpy() for f, z in blocks])

    def __getstate__(self) -> dict[str, Any]:
        """Store the fitted network as the bytes of a safetensors file, and paths as text."""
        state = dict(super().__getstate__())
        state |= {k: os.fspath(v) for k, v in state.items() if isinstance(v, os.PathLike)}
        network = state.pop("network_", None)
        if network is not None:
            tensors = {name: v.clone().contiguous() for name, v in network.state_dict().items()}
            state["_weights"] = np.frombuffer(save(tensors), dtype=np.uint8).copy()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        stored = state.pop("_weights", None)
        super().__setstate__(state)
        if stored is None:
            return
        with torch.device("meta"):  # takes no memory, whatever sizes a file states
            network = self._build(self.input_shape_, len(self.classes_))
        try:
            network.load_state_dict(load(stored.tobytes()), assign=True)
        except (RuntimeError, SafetensorError) as error:
            raise ValueError(
                f"the stored weights do not fit the network {self.network!r} for rows of shape "
                f"{self.input_shape_} and {len(self.classes_)} classes: {error}"
            ) from error
        self.network_ = network.eval()


class SourceOnly(DeepClassifier):
    """Network trained on the labelled source rows and used on the target as it is.

    Its parameters are those of every deep method.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the source.
    transduction_ : ndarray of shape (n_samples,)
        The label of every fitted row, in input order: source rows have their given one.
    network_ : torch.nn.Module
        The trained network, on the CPU.
    input_shape_, row_shape_ : tuple of int
        The shape of a row for the network, and of a row of X.
    history_ : list of dict
        For each epoch the parts of the loss, the learning rate, the seconds, and the mean entropy
        and class prior of predictions on some target rows.

    Notes
    -----
    X may be an array, a memory map, which is read batch by batch, or a torch Dataset. Bytes are
    scaled to [0, 1]; nothing else is. ``predict`` treats rows as target rows, which matters only to
    networks with batch normalisation: they keep statistics for each domain, here only the source's.
    On the CPU, rows in double precision are predicted in it.

    Examples
    --------
    >>> from transferable.datasets import make_shifted
    >>> from transferable.deep import SourceOnly
    >>> task = make_shifted()
    >>> SourceOnly(epochs=3).adapt(task.Xs, task.ys, task.Xt).predict_proba(task.Xt).shape
    (200, 2)
    """

    _without_target = None


class AdaBN(DeepClassifier, example="epochs=3"):
    """Network trained on the source, with batch normalisation statistics of the target.

    Parameters
    ----------
    network : str or callable, default="mlp-bn"
        A network with batch normalisation, such as "lenet-bn" for small pictures.

    References
    ----------
    Y. Li, N. Wang, J. Shi, X. Hou and J. Liu, "Adaptive batch normalization for practical domain
    adaptation", Pattern Recognition 80, 2018.
    """

    network: Any = "mlp-bn"

    def _finish(self, training: Training) -> None:
        norms = [m.target for m in training.network.modules() if isinstance(m, DomainNorm)]
        if not norms:
            raise ValueError(
                f"AdaBN needs a network with batch normalisation; {self.network!r} has none. Take "
                'network="lenet-bn" for small pictures, or one of your own.'
            )
        if not len(training.target):
            return
        network = training.network.eval()
        DomainNorm.switch(network, "target")
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the mean over all blocks
            norm.train()
        with torch.no_grad():
            for x in training.target.blocks():
                network.features(x)
        training.domain = "target"


class PenalisedClassifier(DeepClassifier):
    """Base of the methods that add a penalty to the source's cross-entropy, also of your own.

    A method is a class that defines ``_penalty(training, batch)``, which returns losses by name,
    their weights included. Its public annotated fields are parameters. With
    ``weight=0`` it trains on the source alone, as :class:`~transferable.deep.SourceOnly`.

    Parameters
    ----------
    weight : float, default=1
        Weight of what is added.
    warmup_epochs : int, default=0
        Epochs, of those given, before the penalty is added.

    Examples
    --------
    >>> from transferable.datasets import make_shifted
    >>> from transferable.deep import PenalisedClassifier
    >>> class MeanScores(PenalisedClassifier):
    ...     def _penalty(self, training, batch):
    ...         gap = (batch.zs.mean(dim=0) - batch.zt.mean(dim=0)).square().sum()
    ...         return {"gap": self.weight * gap}
    >>> task = make_shifted()
    >>> model = MeanScores(epochs=3).adapt(task.Xs, task.ys, task.Xt)
    >>> model.history_[-1]["gap"] > 0
    True
    """

    weight: float = 1.0
    warmup_epochs: int = 0

    _parameter_constraints = {  # noqa: RUF012
        "weight": [WEIGHT],
        "warmup_epochs": [EPOCHS],
    }

    def _phases(self, has_target: bool) -> list[Phase]:
        if self.weight == 0 or not has_target:
            return super()._phases(has_target)
        return adapting_phases(self, self.warmup_epochs)


def adapting_phases(model: DeepClassifier, warmup: int) -> list[Phase]:
    """Return epochs of the source alone, then with the target, with the same optimisers."""
    if warmup >= model.epochs:
        raise ValueError(
            f"warmup_epochs={warmup} leaves none of the {model.epochs} epochs to adapt in; "
            "lower it, or raise epochs."
        )
    start = warmup / model.epochs  # of the target, as a part of the schedule
    source = Phase("source", warmup, model._step, False, model._begin, (0.0, start))
    rest = model.epochs - warmup
    adapting = Phase("adapting", rest, model._step, True, model._begin, (start, 1.0))
    return [source, adapting] if warmup else [adapting]


def _transforms(prepare: Any) -> tuple[Transform | None, Transform | None]:
    """Return the transform in training and the one in prediction."""
    if not isinstance(prepare, tuple | list):
        return prepare, prepare
    if len(prepare) != 2:
        raise ValueError(
            f"prepare has {len(prepare)} entries; give one for training and one for prediction."
        )
    return prepare[0], prepare[1]


def _refuse_item_transform(augment: Any) -> None:
    """Refuse an augmentation that is a transform of single pictures."""
    if augment is None:
        return
    of_torchvision = type(augment).__module__.partition(".")[0] == "torchvision"
    with suppress(TypeError, ValueError):  # not every callable has a signature
        called = augment.forward if isinstance(augment, nn.Module) else augment
        signature = inspect.signature(called)
        try:
            signature.bind(None, None)
        except TypeError:
            of_torchvision = True
    if of_torchvision:
        raise TypeError(
            f"augment is called with a batch and a torch.Generator, which {type(augment).__name__} "
            "does not take; pass a transform of single pictures as prepare=."
        )


@contextmanager
def _seeded(seed: int, device: torch.device, *, deterministic: bool) -> Iterator[None]:
    """Seed torch's random numbers within; restore their state after."""
    devices = [device] if device.type == "cuda" else []
    before = torch.are_deterministic_algorithms_enabled()
    if deterministic and devices:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        filled = torch.utils.deterministic.fill_uninitialized_memory
        torch.use_deterministic_algorithms(deterministic or before)
        torch.utils.deterministic.fill_uninitialized_memory = before and filled  # no bit needs it
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before)
            torch.utils.deterministic.fill_uninitialized_memory = filled
