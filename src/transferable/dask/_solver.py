"""Landmark fits where workers hold the rows: their features, labels and scores, and the solver.

Every task is a function of one block and of small objects that the client sends: the positions of
the landmarks in the pool, the coefficients of a round. Nothing depends on the round before, so a
block that is lost is read, mapped and labelled once, whatever the round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from transferable.dask._rows import Block, HeldRows, Pool, Workers, each_added, summed
from transferable.domains import digest
from transferable.engines.offsets import Scores, least_costs
from transferable.engines.risk.landmarks import LandmarkSolver, Sums, class_sums
from transferable.engines.risk.rows import Rows
from transferable.engines.risk.solver import Learner
from transferable.engines.shares import Labelling
from transferable.linalg.anchors import Anchors
from transferable.linalg.arrays import CPU
from transferable.linalg.feature_tables import FeatureTable
from transferable.linalg.kernels import KernelFunction
from transferable.linalg.moments import Moments, moments_of_groups, row_blocks
from transferable.linalg.nystrom import Nystrom
from transferable.terms.base import FixedForm, Matrix
from transferable.terms.risk import SourceError
from transferable.terms.smoothness import Smoothness

_PART = 2**15  # rows whose features several sums are made of, before those of others are made

# From rows to the input of the kernel: the rows, unit rows, their flow.
RowTransform = Callable[[NDArray[Any]], NDArray[Any]]
Labeller = Callable[[NDArray[Any]], NDArray[np.intp]]


class BlockSolver(LandmarkSolver):
    """Solve as :class:`LandmarkSolver` does, with sums and labels from the workers.

    The rows at hand, and their features, are the pool's.
    """

    domains: Pool

    def __init__(self, *arguments: Any, blocks: FeatureBlocks) -> None:
        self._blocks, self._workers = blocks, blocks.rows.workers
        super().__init__(*arguments)

    def _over(self, rows: Rows) -> BlockSolver:
        return BlockSolver(self.objective, rows, self.features, self, blocks=self._blocks)

    def _sum_up(self) -> tuple[Sums, Matrix]:
        return self._blocks.sum_up(getattr(self.fixed.get(Smoothness.name), "anchors", None))

    def _target_sums(self, target: Labelled) -> Matrix:
        return target.sums

    @cached_property
    def _source_moments(self) -> list[Moments]:
        tasks = self._blocks.tasks(_source_moments, self.domains.n_classes)
        return self._workers.sum(tasks, each_added)

    def _target_moments(self, target: Labelled) -> list[Moments]:
        blocks, n_classes = self._blocks, self.domains.n_classes
        pairs = zip(blocks.stored, target.blocks, strict=True)
        tasks = [_target_moments(block, blocks.map, codes, n_classes) for block, codes in pairs]
        return self._workers.sum(tasks, each_added)

    @property
    def _keeps_class_moments(self) -> bool:
        """Never: a matrix of each class from each block is more than a pass for new shares."""
        return False

    def _between(self, form: FixedForm) -> Matrix:
        if isinstance(form, SourceError) and form.class_weights is not None:
            weights = delayed(form.class_weights)
            return self._workers.sum(self._blocks.tasks(_weighted_gram, weights))
        raise TypeError(
            f"{type(form).__name__} reaches across rows, which no worker holds together; leave the "
            "term out."
        )

    def relabel(
        self, coefficients: Matrix, labelling: Labelling, *, settled: bool = False
    ) -> Labelled:
        """Label all target rows by their scores.

        Offsets of a round are chosen for the pool's rows, as in memory; those for good, for all.
        """
        blocks, w = self._blocks, delayed(coefficients)
        everybody = BlockScores(blocks.tasks(_scores, w), self._workers) if settled else None
        own = self.scores(coefficients)[self.domains.target]
        codes = labelling.codes(own, settled=settled, everybody=everybody)
        return blocks.labelled(blocks.tasks(_label, w, delayed(labelling.offsets)), codes)

    def labels_by(self, learn: Learner) -> Labelled:
        """Label all target rows by what a worker learns from the pool's source rows."""
        blocks, workers, pool = self._blocks, self._workers, self._blocks.rows.pool_there
        learnt = _learnt(pool, blocks.transform, blocks.classes, learn)
        (label,) = workers.persist([learnt])
        codes = workers.compute(_pool_labels(pool, blocks.transform, label))
        tasks = blocks.tasks(_label_by, label, self.domains.n_classes)
        return blocks.labelled(tasks, codes)

    def codes(self, target: Labelled) -> NDArray[np.intp]:
        """Return the labels of the pool's target rows."""
        return target.codes

    def changed(self, target: Labelled, before: Labelled) -> float:
        """Return the share of all labels that changed."""
        if target.before is before:
            return target.share_changed
        tally = self._workers.compute(_tally_of(target.blocks, before, self.domains.n_classes))
        return Labelled(target.blocks, *tally).share_changed


@dataclass(frozen=True)
class BlockLabels:
    """Labels of the target rows of a block, with sums of their features by class."""

    codes: NDArray[np.integer]
    sums: Matrix

    @classmethod
    def of(cls, codes: NDArray[np.intp], sums: Matrix) -> BlockLabels:
        """Keep codes in as many bytes as the classes need."""
        return cls(codes.astype(np.int16 if sums.shape[1] < 2**15 else np.int32), sums)


@dataclass(eq=False)
class Labelled:
    """Labels of all target rows: with the workers, in sums, and of the pool's rows."""

    blocks: list[Delayed]  # the BlockLabels of each
    counts: NDArray[np.float64]  # of rows of each class
    sums: Matrix  # of their features
    n_changed: int  # labels that differ from those before
    codes: Any = None  # of the pool's rows, where they are needed
    before: Labelled | None = None  # the labels made before

    @classmethod
    def by(
        cls, tasks: list[Delayed], before: Labelled | None, rows: HeldRows, codes: Any = None
    ) -> Labelled:
        """Run tasks that give :class:`BlockLabels`, which stay there, and count and sum these."""
        total = _tally_of(tasks, before, rows.pool.n_classes)
        *blocks, total = rows.workers.persist([*tasks, total])
        if before is not None:  # of labels before those nobody asks any more
            before.before = None
        counts, sums, n_changed = rows.workers.compute(total)
        return cls(blocks, counts, sums, n_changed, codes, before)

    @property
    def share_changed(self) -> float:
        """Share of the labels that differ from those made before."""
        return self.n_changed / max(float(self.counts.sum()), 1.0)


def _tally_of(blocks: list[Delayed], before: Labelled | None, n_classes: int) -> Delayed:
    old = [None] * len(blocks) if before is None else before.blocks
    pairs = zip(blocks, old, strict=True)
    return summed([_tally(labels, others, n_classes) for labels, others in pairs], each_added)


@delayed
def _tally(labels: BlockLabels, before: BlockLabels | None, n_classes: int) -> list[Any]:
    """Return rows of each label, sums of their features, and how many labels changed."""
    counts = np.bincount(labels.codes, minlength=n_classes).astype(np.float64)
    changed = len(labels.codes) if before is None else int((labels.codes != before.codes).sum())
    return [counts, labels.sums, changed]


class BlockScores:
    """Scores of the target rows of each block, which stay with the workers once computed."""

    def __init__(self, tasks: list[Delayed], workers: Workers) -> None:
        self._tasks, self._workers = tasks, workers

    def counts(self, v: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the number of rows of each label argmax(F + v)."""
        return np.asarray(self._workers.sum([_counts(F, v) for F in self._scores]))

    def near(self, v: NDArray[np.float64], margin: float) -> Scores:
        """Return the scores of rows whose two highest of F + v differ by no more."""
        return np.concatenate(self._workers.sum([_near(F, v, margin) for F in self._scores]))

    def costs(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what it costs at least to move a row with one label to another."""
        return np.asarray(self._workers.sum([_costs(F, v) for F in self._scores], np.minimum))

    @cached_property
    def _scores(self) -> list[Delayed]:
        return self._workers.persist(self._tasks)


@delayed
def _counts(F: Scores, v: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.bincount((F + v).argmax(axis=1), minlength=len(v))


@delayed
def _near(F: Scores, v: NDArray[np.float64], margin: float) -> list[Scores]:
    second, first = np.partition(F + v, -2, axis=1)[:, -2:].T
    return [F[first - second <= margin]]  # lists add up


@delayed
def _costs(F: Scores, v: NDArray[np.float64]) -> NDArray[np.float64]:
    return least_costs(F, (F + v).argmax(axis=1))


class FeatureBlocks:
    """Features of all rows, through landmarks at the given positions in the pool.

    `transform` maps rows to the input of the kernel. Features of up to `held_bytes` are kept, those
    of other blocks are computed each time.
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
        self.rows, self.kernel, workers = rows, kernel, rows.workers
        self.transform, self.classes = delayed(transform), delayed(rows.pool.classes)
        nystrom = _nystrom(rows.pool_there, self.transform, kernel, landmarks)
        (self.map,) = workers.persist([nystrom])  # from transformed rows to features
        self.nystrom: Nystrom = workers.compute(self.map)
        held = _held(rows.pool.survey.blocks, held_bytes, self.nystrom).tolist()
        pairs = zip(rows.blocks, held, strict=True)
        tasks = [_stored(b, self.transform, self.map, self.classes, keep) for b, keep in pairs]
        self.stored = workers.persist(tasks)
        self._last: Labelled | None = None

    def tasks(self, task: Any, *arguments: Any) -> list[Delayed]:
        """Return a task of each block, the map to features and the arguments."""
        return [task(block, self.map, *arguments) for block in self.stored]

    def labelled(self, tasks: list[Delayed], codes: NDArray[np.intp]) -> Labelled:
        """Label the target rows by tasks of each block; `codes` are those of the pool."""
        self._last = Labelled.by(tasks, self._last, self.rows, codes)
        return self._last

    def sum_up(self, anchors: Anchors | None = None) -> tuple[Sums, Matrix]:
        """Return sums over all rows, by anchors too, and source features summed by class."""
        tasks = self.tasks(_totals, self.rows.pool.n_classes, delayed(anchors))
        sums, by_class, whitenings = self.rows.workers.sum(tasks, each_added)
        if len(whitenings) > 1:
            raise RuntimeError(
                "Workers computed different features of the same landmarks; let machines of one "
                "kind take part, with the same versions of numpy and scipy."
            )
        return sums, by_class


def _held(blocks: tuple[tuple[int, int], ...], room: int, nystrom: Nystrom) -> NDArray[np.bool_]:
    """Return which blocks' features to keep, of target rows first: every round needs them."""
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
class StoredBlock:
    """Transformed rows of a block, their classes, and features if the worker has room.

    The map to features is as large as many rows, and no part of it; `whitening` names the one that
    the features were made by.
    """

    Z: NDArray[Any]
    y: NDArray[np.intp]
    Phi: NDArray[Any] | None = None
    whitening: bytes = b""

    @property
    def target(self) -> slice:
        """Where the target rows are."""
        return slice(len(self.y), len(self.Z))

    def table(self, nystrom: Nystrom) -> FeatureTable:
        """Return the features, held or to be made."""
        return FeatureTable(self.Z, nystrom, CPU, held=False, known=self.Phi)

    def __sizeof__(self) -> int:
        return int(self.Z.nbytes + (0 if self.Phi is None else self.Phi.nbytes))


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
def _totals(
    block: StoredBlock, nystrom: Nystrom, n_classes: int, anchors: Anchors | None
) -> list[Any]:
    """Return sums over rows, source features summed by class, and the whitenings they are made by.

    Features that are not held are made once for all sums, of a part of the rows at a time.
    """
    n = len(block.Z)
    parts = []
    for rows in row_blocks(n, 1, _PART if block.Phi is None else n) or [slice(0, 0)]:
        known, y = None if block.Phi is None else block.Phi[rows], block.y[rows]
        table = FeatureTable(block.Z[rows], nystrom, CPU, known=known)
        sums = Sums.of(table, len(y), anchors)
        parts.append([sums, class_sums(table, y, n_classes, slice(0, len(y)))])
    whitenings = filter(None, [digest(nystrom.whitening), block.whitening])
    return [*reduce(each_added, parts), Counter(whitenings)]


@delayed
def _source_moments(block: StoredBlock, nystrom: Nystrom, n_classes: int) -> list[Moments]:
    return moments_of_groups(block.table(nystrom), block.y, n_classes, slice(0, len(block.y)))


@delayed
def _target_moments(
    block: StoredBlock, nystrom: Nystrom, labels: BlockLabels, n_classes: int
) -> list[Moments]:
    codes = np.concatenate([block.y, labels.codes])
    return moments_of_groups(block.table(nystrom), codes, n_classes, block.target)


@delayed
def _weighted_gram(
    block: StoredBlock, nystrom: Nystrom, class_weights: NDArray[np.float64]
) -> Matrix:
    """Return products of the source's features, weighted by class."""
    parts = (
        Phi.T @ (class_weights[block.y[rows]][:, None] * Phi.astype(np.float64))
        for rows, Phi in block.table(nystrom).blocks(slice(0, len(block.y)))
    )
    return reduce(add, parts, np.zeros((nystrom.rank, nystrom.rank)))


@delayed
def _scores(block: StoredBlock, nystrom: Nystrom, w: Matrix) -> Matrix:
    if block.target.start == block.target.stop:
        return np.empty((0, w.shape[1]))
    return np.asarray(block.table(nystrom).times(w)[block.target])


@delayed
def _label(
    block: StoredBlock, nystrom: Nystrom, w: Matrix, offsets: NDArray[np.float64] | None
) -> BlockLabels:
    """Label target rows by the highest score of F + offsets, F = Phi w."""

    def highest(F: Matrix) -> NDArray[np.intp]:
        return np.argmax(F if offsets is None else F + offsets, axis=1)

    return BlockLabels.of(*block.table(nystrom).labelled(w, highest, block.target))


@delayed
def _learnt(pool: Block, transform: RowTransform, classes: NDArray[Any], learn: Learner) -> Any:
    return learn(transform(pool.sides[0]), np.searchsorted(classes, pool.labels), None)


@delayed
def _pool_labels(pool: Block, transform: RowTransform, label: Labeller) -> NDArray[np.intp]:
    return np.asarray(label(transform(pool.sides[1])), dtype=np.intp)


@delayed
def _label_by(block: StoredBlock, nystrom: Nystrom, label: Labeller, n_classes: int) -> BlockLabels:
    Z = block.Z[block.target]
    codes = np.asarray(label(Z) if len(Z) else [], dtype=np.intp)
    sums = class_sums(block.table(nystrom), codes, n_classes, block.target)
    return BlockLabels.of(codes, sums)
