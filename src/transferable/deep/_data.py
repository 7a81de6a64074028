"""Rows of any kind as batches: arrays, memory maps and datasets of torch.

Inside, a table has two axes: pictures lie flat until a batch of them is made, in single precision
and, if they were bytes, between 0 and 1. An array goes to the device once; what may not fit, a
memory map or a dataset, is read batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

__all__ = ["DatasetTable", "Rows", "StackedTable", "dataset_labels", "draw", "is_dataset"]

_HELD_BYTES = 2**32  # an array of more bytes is not brought to the device whole


def is_dataset(X: Any) -> bool:
    """Whether rows come from a dataset of torch, one at a time."""
    return isinstance(X, Dataset)


class DatasetTable:
    """A dataset of (row) or (row, label) as a table that is read row by row.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        With a length, and rows of one shape.
    """

    def __init__(self, dataset: Any) -> None:
        if not hasattr(dataset, "__len__") or len(dataset) == 0:
            raise ValueError("A dataset must have a length and at least one row.")
        self.dataset = dataset
        first = self._row(dataset[0])
        self.row_shape = tuple(first.shape)
        self.dtype = first.dtype
        self.shape = (len(dataset), int(np.prod(self.row_shape)))

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        positions = np.arange(self.shape[0])[rows]
        many = getattr(self.dataset, "__getitems__", None)
        items = many(positions.tolist()) if many else [self.dataset[int(i)] for i in positions]
        return np.stack([self._row(item).ravel() for item in items])

    @staticmethod
    def _row(item: Any) -> NDArray[Any]:
        return np.asarray(item[0] if isinstance(item, tuple | list) else item)


def dataset_labels(dataset: Any) -> NDArray[Any]:
    """The labels of a dataset: its ``targets``, or the second part of every item."""
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


class StackedTable:
    """Tables one below the other that are read where they lie.

    Parameters
    ----------
    *parts : array or DatasetTable of shape (n, d)
        With as many columns each.
    """

    def __init__(self, *parts: Any) -> None:
        self.parts = parts
        self.starts = np.cumsum([0, *(part.shape[0] for part in parts)])
        self.shape = (int(self.starts[-1]), int(parts[0].shape[1]))
        self.dtype = parts[0].dtype
        self.nbytes = 2**62  # more than anybody would copy

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        positions = np.arange(len(self))[rows]
        owner = np.searchsorted(self.starts, positions, side="right") - 1
        out = np.empty((len(positions), self.shape[1]), dtype=self.dtype)
        for k, part in enumerate(self.parts):
            mine = owner == k
            if mine.any():
                out[mine] = part[positions[mine] - self.starts[k]]
        return out


class Rows:
    """Rows of one domain from which batches are taken.

    Parameters
    ----------
    table : array, Reordered or StackedTable of shape (n, d)
        Rows, flat, among them those of the domain.
    shape : tuple of int
        What the network takes a row to be.
    device : torch.device
        Where batches are needed.
    start, stop : int, int or None
        The domain's rows are those from `start` to `stop`.
    """

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
        """The rows at these positions, as the network takes them."""
        if isinstance(self._table, Tensor):
            rows = self._table[index]
        else:
            read = self._table[index.cpu().numpy() + self.start]
            rows = torch.as_tensor(_readable(read)).to(self.device)
        rows = rows.to(dtype) / 255 if rows.dtype == torch.uint8 else rows.to(dtype)
        return rows.view(-1, *self.shape)

    def blocks(self, n_rows: int, dtype: torch.dtype = torch.float32) -> Iterator[Tensor]:
        """All rows in their order, so many at a time."""
        for index in torch.arange(len(self), device=self.device).split(n_rows):
            yield self.take(index, dtype)


def _readable(rows: NDArray[Any]) -> NDArray[Any]:
    """The same rows in memory that torch can share: native byte order, forward strides."""
    native = rows.astype(rows.dtype.newbyteorder("="), copy=False)
    return np.require(native, requirements=["C", "W"])


def draw(n_rows: int, n_steps: int, batch_size: int, generator: torch.Generator) -> Tensor:
    """Positions of an epoch's batches: every row once before any comes again.

    A domain smaller than a batch gives all its rows at every step.
    """
    size = min(batch_size, n_rows)
    passes = -(-n_steps * size // n_rows)
    shuffled = [
        torch.randperm(n_rows, generator=generator, device=generator.device) for _ in range(passes)
    ]
    return torch.cat(shuffled)[: n_steps * size].view(n_steps, size)
