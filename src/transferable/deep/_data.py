"""Batches from rows of any kind, arrays, memory maps and torch datasets, and augmentation.

A table has two axes: pictures are flat until a batch is made, in single precision and, if they were
bytes, in [0, 1]. An array is moved to the device once; a memory map or a dataset, which may not
fit, is read batch by batch, by the workers of one ``DataLoader`` if there are any. Every batch of a
dataset is read under a seed of its own, so that random transforms do not depend on the workers.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn import functional
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset

from transferable._linalg.arrays import Reordered, on_host

_HELD_BYTES = 2**32  # larger arrays are not moved to the device whole
_BLOCK_ROWS = 1024  # that are predicted at once,
_BLOCK_VALUES = 2**22  # and the values in them: 27 pictures of 3 x 224 x 224

Transform = Callable[[Any], Any]


class StackedTable:
    """Stack of arrays, memory maps and datasets with rows of one shape, read in place.

    `transforms` make rows of a dataset's pictures in training and in prediction.
    """

    def __init__(self, *tables: Any, transforms: Sequence[Transform | None] = (None, None)) -> None:
        self.tables, self.transforms = tables, tuple(transforms)
        first = tables[0]
        if isinstance(first, Dataset):
            row = _row(_items(first, [0])[0], self.transforms[1])
            self.row_shape, self.dtype = tuple(row.shape), row.dtype
        else:
            self.row_shape, self.dtype = tuple(np.shape(first)[1:]), first.dtype
        self.starts = np.cumsum([0, *map(len, tables)])
        self.shape = (int(self.starts[-1]), int(np.prod(self.row_shape)))
        self.nbytes = 2**62  # more than can be copied

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return self.read(np.arange(len(self))[rows])

    def read(self, positions: NDArray[np.intp], *, training: bool = False) -> NDArray[Any]:
        """Return flat rows, with the transform for training or for prediction."""
        owner = np.searchsorted(self.starts, positions, side="right") - 1
        out = np.empty((len(positions), self.shape[1]), dtype=self.dtype)
        for k in np.unique(owner):
            mine, table = np.flatnonzero(owner == k), self.tables[k]
            inside = positions[mine] - self.starts[k]
            if isinstance(table, Dataset):
                for place, item in zip(mine, _items(table, inside.tolist()), strict=True):
                    row = _row(item, self.transforms[0 if training else 1])
                    if row.shape != self.row_shape:
                        raise ValueError(
                            f"A dataset gives rows of shape {row.shape} and {self.row_shape}; "
                            "resize or crop all pictures alike in prepare."
                        )
                    out[place] = row.ravel()
            else:
                out[mine] = table[inside].reshape(len(inside), -1)
        return out


class GivenOrder(StackedTable):
    """Stack with datasets, whose rows are neither compared nor sorted by content."""

    def row_keys(self) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
        """Return places in the given order, and hashes of positions and file names."""
        names = [name for table in self.tables for name in _file_names(table)]
        hashes = (
            int.from_bytes(blake2b(f"{k} {name}".encode(), digest_size=8).digest(), "little")
            for k, name in enumerate(names)
        )
        return np.arange(len(self)) / len(self), np.fromiter(hashes, np.uint64, len(self))


def streamed(X: Any) -> bool:
    """Return whether rows are read in place; refuse anything but a table of rows."""
    if isinstance(X, str | os.PathLike):
        raise TypeError(
            f"{os.fspath(X)!r} was given for rows; pass a dataset of its pictures, such as "
            "torchvision.datasets.ImageFolder(path), or label folders with "
            "transferable.images.ImageClassifier."
        )
    if isinstance(X, IterableDataset):
        raise TypeError(
            "An IterableDataset was given for rows; pass a dataset with __len__ and __getitem__: "
            "batches are drawn at random."
        )
    if isinstance(X, DataLoader):
        raise TypeError(
            "A DataLoader was given for rows; pass its dataset (loader.dataset) instead: batches "
            "are drawn here, see the parameters batch_size and num_workers."
        )
    return isinstance(X, Dataset | np.memmap)


def stacked(tables: Sequence[Any], transforms: Sequence[Transform | None]) -> StackedTable:
    """Return rows that are read in place, one table above the other."""
    for table in tables:
        if isinstance(table, Dataset) and not (hasattr(table, "__len__") and len(table)):
            raise ValueError("A dataset must have a length and at least one row.")
    kind = GivenOrder if any(isinstance(table, Dataset) for table in tables) else StackedTable
    return kind(*tables, transforms=transforms)


def _items(dataset: Any, positions: list[int]) -> list[Any]:
    many = getattr(dataset, "__getitems__", None)
    return list(many(positions) if many else map(dataset.__getitem__, positions))


def _row(item: Any, transform: Transform | None) -> NDArray[Any]:
    """Return the row of a dataset's item, which is (row) or (row, label)."""
    row = item[0] if isinstance(item, tuple | list) else item
    if transform is not None:
        row = transform(row)
    if hasattr(row, "getbands"):
        raise TypeError(
            "The dataset gives pictures of pillow; pass what makes tensors of one size of them, "
            "such as prepare=torchvision.transforms.ToTensor()."
        )
    return np.asarray(row)


def _file_names(table: Any) -> Iterable[str]:
    """Return the names of a folder's files, without the path to it; empty for other tables."""
    samples = getattr(table, "samples", None)
    if samples is None or len(samples) != len(table):
        return [""] * len(table)
    return (os.path.basename(sample[0]) for sample in samples)


def dataset_labels(dataset: Any) -> NDArray[Any]:
    """Return the labels of a dataset: its ``targets``, or the second part of every item.

    Those of a folder of classes are the names of the classes.
    """
    if isinstance(dataset, Subset):
        return dataset_labels(dataset.dataset)[np.asarray(dataset.indices)]
    if isinstance(dataset, ConcatDataset):
        return np.concatenate([dataset_labels(part) for part in dataset.datasets])
    if hasattr(dataset, "targets"):
        targets = np.asarray(on_host(dataset.targets))
        folders = hasattr(dataset, "samples") and hasattr(dataset, "classes")
        return np.asarray(dataset.classes)[targets] if folders else targets
    items = (dataset[i] for i in range(len(dataset)))
    labels = [
        item[1] if isinstance(item, tuple | list) and len(item) > 1 else None for item in items
    ]
    if any(label is None for label in labels):
        raise ValueError(
            "The source dataset gives rows without labels; let its items be (row, label), or pass "
            "the labels: adapt(source, labels, target)."
        )
    return np.asarray(labels)


def pooled(Xs: Any, ys: Any) -> tuple[list[Any], list[Any]]:
    """Return the tables of the sources, of which there may be a list, and their labels."""
    several = isinstance(Xs, list | tuple) and len(Xs) > 0
    if several and not isinstance(Xs[0], Dataset):  # rows of one source may be a list too
        listed = isinstance(ys, list | tuple) and len(ys) > 0
        several = listed and np.ndim(ys[0]) == 1 and np.ndim(Xs[0]) >= 2
    if not several:
        Xs, ys = [Xs], [ys]
    labels = [None] * len(Xs) if ys is None else list(ys)
    if len(labels) != len(Xs):
        raise ValueError(
            f"Xs is a list of {len(Xs)} sources, so ys must be a list of as many arrays of labels; "
            f"got {len(labels)}."
        )
    for k, table in enumerate(Xs):
        if streamed(table) and isinstance(table, Dataset) and labels[k] is None:
            labels[k] = dataset_labels(table)
    return list(Xs), [np.asarray(on_host(part)) for part in labels]


class Order(NamedTuple):
    """Batch to be read: its seed, whether to train on it, and positions for each part of it."""

    seed: int
    training: bool
    parts: tuple[NDArray[np.intp], ...]


class _Reader(Dataset):
    """Table as the dataset of a DataLoader, whose items are whole batches."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __getitems__(self, order: Order) -> list[Tensor]:
        table: Any = self.table
        with _seeded(order.seed):
            found = []
            for rows in order.parts:
                if isinstance(table, Reordered) and isinstance(table.table, StackedTable):
                    read = table.table.read(table.order[rows], training=order.training)
                elif isinstance(table, StackedTable):
                    read = table.read(rows, training=order.training)
                else:
                    read = table[rows]
                found.append(torch.as_tensor(_readable(read)))
        return found


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed all that transforms draw from within; restore it after."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 (transforms use it)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002


def _collate(batch: list[Tensor]) -> list[Tensor]:
    return batch


class Stream:
    """Table that is read batch by batch; its workers are started once and read ahead."""

    def __init__(self, table: Any, device: torch.device, num_workers: int) -> None:
        self._orders: list[Order] = []
        self._loader = DataLoader(
            _Reader(table),
            batch_sampler=self._orders,
            collate_fn=_collate,
            num_workers=num_workers,
            persistent_workers=num_workers > 0,
            pin_memory=device.type == "cuda",
            generator=Generator(),  # else it would draw from torch's own
        )

    def read(self, orders: Iterable[Order]) -> Iterator[list[Tensor]]:
        """Yield batches, each a list of the parts that were ordered."""
        self._orders[:] = orders
        yield from self._loader


class Rows:
    """Rows `start` to `stop` of a flat table, as tensors of this shape on the device."""

    def __init__(
        self,
        table: Any,
        shape: Sequence[int],
        device: torch.device,
        start: int = 0,
        stop: int | None = None,
        stream: Stream | None = None,
    ) -> None:
        self.shape, self.device, self.stream = tuple(shape), device, stream
        self.start, self.stop = start, table.shape[0] if stop is None else stop
        if stream is None:
            self._held = torch.as_tensor(_readable(table[self.start : self.stop])).to(device)

    def __len__(self) -> int:
        return self.stop - self.start

    def take(self, index: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the rows at these positions of a table that is held."""
        return self.shaped(self._held[index], dtype)

    def shaped(self, rows: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return flat rows as the network takes them."""
        rows = rows.to(self.device, non_blocking=True)
        rows = rows.to(dtype) / 255 if rows.dtype == torch.uint8 else rows.to(dtype)
        return rows.view(-1, *self.shape)

    def positions(self, index: Tensor) -> NDArray[np.intp]:
        """Return the positions in the table of rows of this domain."""
        return index.cpu().numpy() + self.start

    def some(self, most: int) -> Tensor:
        """Return the positions of at most `most` rows, evenly spaced."""
        n = min(most, len(self))
        return torch.arange(n) * len(self) // max(n, 1)

    def blocks(
        self, dtype: torch.dtype = torch.float32, index: Tensor | None = None
    ) -> Iterator[Tensor]:
        """Yield all rows in their order, or those at these positions, block by block."""
        size = max(1, min(_BLOCK_ROWS, _BLOCK_VALUES // max(1, math.prod(self.shape))))
        indices = (torch.arange(len(self)) if index is None else index).split(size)
        if self.stream is None:
            yield from (self.take(index.to(self.device), dtype) for index in indices)
        else:
            orders = [Order(0, False, (self.positions(index),)) for index in indices]
            yield from (self.shaped(rows, dtype) for (rows,) in self.stream.read(orders))


def opened(table: Any, device: torch.device, num_workers: int) -> Stream | None:
    """Return a stream of rows that are not moved to the device whole; None for the others."""
    held = isinstance(table, np.ndarray) and table.nbytes <= _HELD_BYTES
    return None if held else Stream(table, device, num_workers)


def _readable(rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows in memory that torch can share: native byte order, forward strides."""
    native = rows.astype(rows.dtype.newbyteorder("="), copy=False)
    return np.require(native, requirements=["C", "W"])


def draw(n_rows: int, n_steps: int, batch_size: int, generator: Generator) -> Tensor:
    """Draw the positions of an epoch's batches: every row once before any repeats.

    A domain smaller than a batch gives all its rows at every step.
    """
    size = min(batch_size, n_rows)
    passes = -(-n_steps * size // n_rows)
    shuffled = [
        torch.randperm(n_rows, generator=generator, device=generator.device) for _ in range(passes)
    ]
    return torch.cat(shuffled)[: n_steps * size].view(n_steps, size)


@dataclass(frozen=True)
class RandomAffine:
    """Random rotation, scale and shift of every picture of a batch.

    Parameters
    ----------
    rotation : float, default=10
        Largest rotation in degrees, either way.
    scale : tuple of float, default=(0.8, 1.2)
        Smallest and largest factor.
    shift : float, default=2
        Largest shift in pixels along each axis, either way.

    Examples
    --------
    >>> import torch
    >>> from transferable.deep import RandomAffine
    >>> pictures = torch.zeros(4, 1, 28, 28)
    >>> RandomAffine()(pictures, torch.Generator().manual_seed(0)).shape
    torch.Size([4, 1, 28, 28])
    """

    rotation: float = 10.0
    scale: tuple[float, float] = (0.8, 1.2)
    shift: float = 2.0

    def __call__(self, x: Tensor, generator: Generator) -> Tensor:
        """Return changed copies of pictures of shape (n, channels, height, width)."""
        if x.ndim != 4:
            raise ValueError(
                f"RandomAffine changes pictures of shape (n, channels, height, width); got "
                f"{tuple(x.shape)}. Set augment=None for rows of numbers."
            )
        n, _, height, width = x.shape
        u = 2.0 * torch.rand(4, n, generator=generator, device=x.device, dtype=x.dtype) - 1.0
        angle = u[0] * math.radians(self.rotation)
        middle, spread = sum(self.scale) / 2, (self.scale[1] - self.scale[0]) / 2
        factor = 1.0 / (middle + spread * u[1])
        cos, sin = factor * torch.cos(angle), factor * torch.sin(angle)
        right, down = 2 * self.shift / width * u[2], 2 * self.shift / height * u[3]
        maps = torch.stack([cos, -sin, right, sin, cos, down], dim=1).view(n, 2, 3)
        grid = functional.affine_grid(maps, list(x.shape), align_corners=False)
        return functional.grid_sample(x, grid, align_corners=False)
