"""Batches from rows of any kind, arrays, memory maps and torch datasets, and augmentation.

A table has two axes: pictures are flat until a batch is made, in single precision and, if they were
bytes, in [0, 1]. An array is moved to the device once; a memory map or a dataset, which may not
fit, is read batch by batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn import functional
from torch.utils.data import Dataset

_HELD_BYTES = 2**32  # larger arrays are not moved to the device whole
_BLOCK = 1024  # rows that are predicted at once


class StackedTable:
    """Stack of arrays, memory maps and datasets with rows of one shape, read in place."""

    def __init__(self, *tables: Any) -> None:
        self.tables = tables
        self.row_shape = row_shape(tables[0])
        self.starts = np.cumsum([0, *map(len, tables)])
        self.shape = (int(self.starts[-1]), int(np.prod(self.row_shape)))
        first = tables[0]
        self.dtype = _row(first[0]).dtype if isinstance(first, Dataset) else first.dtype
        self.nbytes = 2**62  # more than can be copied

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        positions = np.arange(len(self))[rows]
        owner = np.searchsorted(self.starts, positions, side="right") - 1
        out = np.empty((len(positions), self.shape[1]), dtype=self.dtype)
        for k, table in enumerate(self.tables):
            mine = owner == k
            if not mine.any():
                continue
            inside = positions[mine] - self.starts[k]
            if isinstance(table, Dataset):
                many = getattr(table, "__getitems__", None)
                items = many(inside.tolist()) if many else [table[int(i)] for i in inside]
                out[mine] = np.stack([_row(item).ravel() for item in items])
            else:
                out[mine] = table[inside].reshape(len(inside), -1)
        return out


def _row(item: Any) -> NDArray[Any]:
    """Return the row of a dataset's item, which is (row) or (row, label)."""
    return np.asarray(item[0] if isinstance(item, tuple | list) else item)


def row_shape(X: Any) -> tuple[int, ...]:
    """Return the shape of a row of an array, a memory map or a dataset."""
    if not isinstance(X, Dataset):
        return tuple(np.shape(X)[1:])
    if not hasattr(X, "__len__") or len(X) == 0:
        raise ValueError("A dataset must have a length and at least one row.")
    return tuple(_row(X[0]).shape)


def dataset_labels(dataset: Any) -> NDArray[Any]:
    """Return the labels of a dataset: its ``targets``, or the second part of every item."""
    if hasattr(dataset, "targets"):
        return np.asarray(dataset.targets)
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


class Rows:
    """Rows `start` to `stop` of a flat table, as tensors of this shape on the device."""

    def __init__(
        self,
        table: Any,
        shape: Sequence[int],
        device: torch.device,
        start: int = 0,
        stop: int | None = None,
    ) -> None:
        self.shape, self.device = tuple(shape), device
        self.start, self.stop = start, table.shape[0] if stop is None else stop
        self._table: Any = table
        if isinstance(table, np.ndarray) and table.nbytes <= _HELD_BYTES:
            self._table = torch.as_tensor(_readable(table[self.start : self.stop])).to(device)

    def __len__(self) -> int:
        return self.stop - self.start

    def take(self, index: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the rows at these positions, as the network takes them."""
        if isinstance(self._table, Tensor):
            rows = self._table[index]
        else:
            read = self._table[index.cpu().numpy() + self.start]
            rows = torch.as_tensor(_readable(read)).to(self.device)
        rows = rows.to(dtype) / 255 if rows.dtype == torch.uint8 else rows.to(dtype)
        return rows.view(-1, *self.shape)

    def blocks(self, dtype: torch.dtype = torch.float32) -> Iterator[Tensor]:
        """Yield all rows in their order, block by block."""
        for index in torch.arange(len(self), device=self.device).split(_BLOCK):
            yield self.take(index, dtype)


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
