"""Features of the rows, held by the workers, and the sums a landmark fit asks of them.

Every task is a function of one block and of small things that the client sends: the positions of
the landmarks in the pool, the coefficients of a round. Nothing depends on the round before, so a
block that is lost is read, mapped and labelled once, whatever the round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from transferable.dask._labels import BlockLabels, Labelled, small_codes, tallied, tally_of
from transferable.dask._reading import Block
from transferable.dask._scores import BlockScores
from transferable.dask._survey import HeldRows
from transferable.dask._workers import summed
from transferable.domains import digest
from transferable.engines.risk.landmarks import Sums, class_sums
from transferable.engines.risk.solver import Learner
from transferable.linalg.anchors import Anchors
from transferable.linalg.arrays import CPU
from transferable.linalg.feature_tables import FeatureTable
from transferable.linalg.kernels import KernelFunction
from transferable.linalg.moments import Moments, moments_of_groups, row_blocks
from transferable.linalg.nystrom import Nystrom
from transferable.terms.base import Matrix

__all__ = ["FeatureBlocks", "RowTransform"]

_PART = 2**15  # rows whose features several sums are made of, before those of others are made

# From rows to what their kernel is of: the rows, unit rows, their flow.
RowTransform = Callable[[NDArray[Any]], NDArray[Any]]
Labeller = Callable[[NDArray[Any]], NDArray[np.intp]]


@dataclass(frozen=True)
class StoredBlock:
    """What a worker keeps of a block: transformed rows, classes, and features if there is room.

    The map to features is as large as many rows, and no part of it; `whitening` names the one that
    the features were made by.
    """

    Z: NDArray[Any]
    y: NDArray[np.intp]
    Phi: NDArray[Any] | None = None
    whitening: bytes = b""

    def with_features(self, nystrom: Nystrom) -> FeatureBlock:
        """The block with its features, held or to be made."""
        return FeatureBlock(FeatureTable(self.Z, nystrom, CPU, held=False, known=self.Phi), self.y)

    def __sizeof__(self) -> int:
        return int(self.Z.nbytes + (0 if self.Phi is None else self.Phi.nbytes))


@dataclass(frozen=True)
class FeatureBlock:
    """Features of the rows of one block, and the classes of those of the source."""

    table: FeatureTable
    y: NDArray[np.intp]

    @property
    def source(self) -> slice:
        """Where the source rows are."""
        return slice(0, len(self.y))

    @property
    def target(self) -> slice:
        """Where the target rows are."""
        return slice(len(self.y), self.table.n)

    def held_parts(self) -> Iterator[FeatureBlock]:
        """The block whose features are held, or parts of it whose features are made once."""
        table = self.table
        if table.held is not None or table.n == 0:
            yield self
            return
        for rows in row_blocks(table.n, 1, _PART):
            part = FeatureTable(table.Z[rows], table.nystrom, CPU)
            yield FeatureBlock(part, self.y[rows])


def feature_task(function: Any) -> Any:
    """A task of a stored block and the map to features, from a function of the block with them."""

    def task(stored: StoredBlock, nystrom: Nystrom, *arguments: Any) -> Any:
        return function(stored.with_features(nystrom), *arguments)

    task.__name__ = function.__name__
    return delayed(task)


@dataclass(frozen=True)
class Totals:
    """Sums over rows, the source's features by class, and which whitening they were made with."""

    sums: Sums
    by_class: Matrix
    whitenings: frozenset[bytes]

    def __add__(self, other: Totals) -> Totals:
        whitenings = self.whitenings | other.whitenings
        return Totals(self.sums + other.sums, self.by_class + other.by_class, whitenings)


class FeatureBlocks:
    """The features of all rows.

    Parameters
    ----------
    rows : HeldRows
        The rows.
    transform : callable
        From rows to what the kernel compares.
    kernel : KernelFunction
        The kernel.
    landmarks : ndarray of int
        Positions of the landmarks in the pool.
    held_bytes : int
        Of features that are kept; those of other blocks are computed each time.

    Attributes
    ----------
    nystrom : Nystrom
        The map from transformed rows to features, as the workers have it.
    """

    def __init__(
        self,
        rows: HeldRows,
        *,
        transform: RowTransform,
        kernel: KernelFunction,
        landmarks: NDArray[np.intp],
        held_bytes: int = 0,
    ) -> None:
        workers, blocks = rows.workers, rows.blocks
        self._workers, self._n_classes = workers, rows.pool.n_classes
        self._pool, self._transform = rows.pool_there, delayed(transform)
        self._classes = delayed(rows.pool.classes)
        (self._map,) = workers.persist([_nystrom(self._pool, self._transform, kernel, landmarks)])
        self.nystrom: Nystrom = workers.compute(self._map)
        held = _held(rows.pool.survey.blocks, held_bytes, self.nystrom)
        self._blocks = workers.persist(
            [
                _stored(block, self._transform, self._map, self._classes, keep)
                for block, keep in zip(blocks, held.tolist(), strict=True)
            ]
        )
        self._last: Labelled | None = None

    def sum_up(self, anchors: Anchors | None = None) -> tuple[Sums, Matrix]:
        """Sums over all rows, by anchors too, and those of the source's features by class."""
        totals: Totals = self._summed(_totals, self._n_classes, delayed(anchors))
        used = self._workers.compute(delayed(set)([_whitening(block) for block in self._blocks]))
        if len(totals.whitenings | used - {b""}) > 1:
            raise RuntimeError(
                "Workers computed different features of the same landmarks; let machines of one "
                "kind take part, with the same versions of numpy and scipy."
            )
        return totals.sums, totals.by_class

    def source_moments(self) -> list[Moments]:
        """Moments of the source's features by class."""
        return self._summed(_source_moments, self._n_classes).parts

    def target_moments(self, target: Labelled) -> list[Moments]:
        """Moments of the target's features by class."""
        pairs = zip(self._blocks, target.blocks, strict=True)
        tasks = [_target_moments(b, self._map, labels, self._n_classes) for b, labels in pairs]
        return self._workers.compute(summed(tasks)).parts

    def weighted_gram(self, class_weights: NDArray[np.float64]) -> Matrix:
        """Products of the source's features, weighted by class."""
        return self._summed(_weighted_gram, delayed(class_weights))

    def _summed(self, task: Any, *arguments: Any) -> Any:
        tasks = [task(block, self._map, *arguments) for block in self._blocks]
        return self._workers.compute(summed(tasks))

    def labels(
        self, w: Matrix, offsets: NDArray[np.float64] | None, codes: NDArray[np.intp]
    ) -> Labelled:
        """Labels of the target rows by the highest score Phi w; `codes` are those of the pool."""
        w, offsets = delayed(w), delayed(offsets)
        return self._tallied([_label(b, self._map, w, offsets) for b in self._blocks], codes)

    def scores(self, w: Matrix) -> BlockScores:
        """The scores Phi w of all target rows, once they are asked for."""
        there = delayed(w)
        return BlockScores([_scores(b, self._map, there) for b in self._blocks], self._workers)

    def labels_by(self, learn: Learner) -> Labelled:
        """The same by what is learnt from the pool's source rows, transformed."""
        pool, transform, workers = self._pool, self._transform, self._workers
        (label,) = workers.persist([_learnt(pool, transform, self._classes, learn)])
        codes = workers.compute(_pool_labels(pool, transform, label))
        n_classes = self._n_classes
        tasks = [_label_by(block, self._map, label, n_classes) for block in self._blocks]
        return self._tallied(tasks, codes)

    def changed(self, target: Labelled, before: Labelled) -> float:
        """Share of the labels that are not what they were."""
        tally = target.tally
        if target.before is not before:
            task = tally_of(target.blocks, before, self._n_classes)
            tally = self._workers.compute(task)
        return tally.changed / max(float(tally.counts.sum()), 1.0)

    def _tallied(self, tasks: list[Delayed], codes: NDArray[np.intp]) -> Labelled:
        self._last = tallied(tasks, self._last, self._n_classes, self._workers, codes)
        return self._last


def _held(blocks: tuple[tuple[int, int], ...], room: int, nystrom: Nystrom) -> NDArray[np.bool_]:
    """Which blocks' features to keep: of target rows first, which every round asks for."""
    sizes = np.array(blocks)
    n_bytes = sizes.sum(axis=1) * nystrom.rank * np.dtype(nystrom.dtype).itemsize
    held = np.zeros(len(blocks), dtype=bool)
    for some in (sizes[:, 1] > 0, sizes[:, 1] == 0):
        share = min(1.0, max(room, 0) / max(int(n_bytes[some].sum()), 1))
        due = 0.0
        for block in np.flatnonzero(some):  # evenly, as neighbours may be of one worker
            due += share * n_bytes[block]
            if due >= (1.0 - 1e-9) * n_bytes[block]:
                held[block], due = True, due - n_bytes[block]
        room -= int(n_bytes[some & held].sum())
    return held


@dataclass(frozen=True)
class MomentsByClass:
    """Moments of each class, which add up."""

    parts: list[Moments]

    def __add__(self, other: MomentsByClass) -> MomentsByClass:
        return MomentsByClass([a + b for a, b in zip(self.parts, other.parts, strict=True)])


@delayed
def _nystrom(
    pool: Block, transform: RowTransform, kernel: KernelFunction, landmarks: NDArray[np.intp]
) -> Nystrom:
    return Nystrom(transform(pool.X[landmarks]), kernel, CPU)


@delayed
def _stored(
    block: Block, transform: RowTransform, nystrom: Nystrom, classes: NDArray[Any], held: bool
) -> StoredBlock:
    width = int(nystrom.landmarks.shape[1])
    Z = transform(block.X) if len(block.X) else np.empty((0, width), dtype=block.X.dtype)
    y = np.searchsorted(classes, block.labels).astype(np.intp)
    if not held:
        return StoredBlock(Z, y)
    return StoredBlock(Z, y, FeatureTable(Z, nystrom, CPU).held, digest(nystrom.whitening))


@delayed
def _whitening(block: StoredBlock) -> bytes:
    return block.whitening


@feature_task
def _scores(block: FeatureBlock, w: Matrix) -> Matrix:
    if block.target.start == block.target.stop:
        return np.empty((0, w.shape[1]))
    return np.asarray(block.table.times(w)[block.target])


@feature_task
def _totals(block: FeatureBlock, n_classes: int, anchors: Anchors | None) -> Totals:
    whitenings = frozenset([digest(block.table.nystrom.whitening)])
    parts = (
        Totals(
            Sums.of(part.table, len(part.y), anchors),
            class_sums(part.table, part.y, n_classes, part.source),
            whitenings,
        )
        for part in block.held_parts()
    )
    return reduce(add, parts)


@feature_task
def _source_moments(block: FeatureBlock, n_classes: int) -> MomentsByClass:
    return MomentsByClass(moments_of_groups(block.table, block.y, n_classes, block.source))


@feature_task
def _target_moments(block: FeatureBlock, labels: BlockLabels, n_classes: int) -> MomentsByClass:
    codes = np.concatenate([block.y, labels.codes])
    return MomentsByClass(moments_of_groups(block.table, codes, n_classes, block.target))


@feature_task
def _weighted_gram(block: FeatureBlock, class_weights: NDArray[np.float64]) -> Matrix:
    total = np.zeros((block.table.rank, block.table.rank))
    for rows, Phi in block.table.blocks(block.source):
        weighted = class_weights[block.y[rows]][:, None] * Phi.astype(np.float64)
        total += Phi.T @ weighted
    return total


@feature_task
def _label(block: FeatureBlock, w: Matrix, offsets: NDArray[np.float64] | None) -> BlockLabels:
    codes, sums = block.table.labelled(w, partial(_highest, offsets=offsets), block.target)
    return BlockLabels(small_codes(codes, w.shape[1]), sums)


def _highest(F: Matrix, offsets: NDArray[np.float64] | None) -> NDArray[np.intp]:
    return np.argmax(F if offsets is None else F + offsets, axis=1)


@delayed
def _learnt(pool: Block, transform: RowTransform, classes: NDArray[Any], learn: Learner) -> Any:
    return learn(transform(pool.Xs), np.searchsorted(classes, pool.labels), None)


@delayed
def _pool_labels(pool: Block, transform: RowTransform, label: Labeller) -> NDArray[np.intp]:
    return np.asarray(label(transform(pool.Xt)), dtype=np.intp)


@feature_task
def _label_by(block: FeatureBlock, label: Labeller, n_classes: int) -> BlockLabels:
    Z = block.table.Z[block.target]
    codes = np.asarray(label(Z) if len(Z) else [], dtype=np.intp)
    sums = class_sums(block.table, codes, n_classes, block.target)
    return BlockLabels(small_codes(codes, n_classes), sums)
