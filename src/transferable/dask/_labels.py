"""Labels that workers give their target rows: they stay there, and are counted and summed here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from transferable.dask._workers import Workers, summed
from transferable.terms.base import Matrix

__all__ = ["BlockLabels", "Labelled", "Tally", "small_codes", "tallied", "tally_of"]


@dataclass(frozen=True)
class BlockLabels:
    """Labels of the target rows of a block, with sums of their features by class."""

    codes: NDArray[np.integer]
    sums: Matrix


@dataclass(frozen=True)
class Tally:
    """Rows of each label, their sums, and how many labels are not what they were."""

    counts: NDArray[np.float64]
    sums: Matrix
    changed: int

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.counts + other.counts, self.sums + other.sums, self.changed + other.changed
        )


@dataclass(eq=False)
class Labelled:
    """Labels of all target rows: with the workers, in sums, and of the pool's rows.

    Attributes
    ----------
    blocks : list of Delayed
        Those of each block.
    tally : Tally
        Counts and sums of all; `changed` is against the labels made before.
    codes : ndarray or None
        Those of the pool, if anybody asks.
    before : object
        The labels made before.
    """

    blocks: list[Delayed]
    tally: Tally
    codes: Any = None
    before: Labelled | None = None


def tallied(
    tasks: list[Delayed],
    before: Labelled | None,
    n_classes: int,
    workers: Workers,
    codes: NDArray[np.intp] | None = None,
) -> Labelled:
    """What tasks label, which stays there, counted, summed and compared with labels before."""
    *blocks, total = workers.persist([*tasks, tally_of(tasks, before, n_classes)])
    if before is not None:  # of labels before those nobody asks any more
        before.before = None
    return Labelled(blocks, workers.compute(total), codes, before)


def tally_of(blocks: list[Delayed], before: Labelled | None, n_classes: int) -> Delayed:
    old = [None] * len(blocks) if before is None else before.blocks
    pairs = zip(blocks, old, strict=True)
    return summed([_tally(labels, others, n_classes) for labels, others in pairs])


@delayed
def _tally(labels: BlockLabels, before: BlockLabels | None, n_classes: int) -> Tally:
    counts = np.bincount(labels.codes, minlength=n_classes).astype(np.float64)
    changed = len(labels.codes) if before is None else int((labels.codes != before.codes).sum())
    return Tally(counts, labels.sums, changed)


def small_codes(codes: NDArray[np.intp], n_classes: int) -> NDArray[np.integer]:
    """Codes in as many bytes as the classes need."""
    return codes.astype(np.int16 if n_classes < 2**15 else np.int32)
