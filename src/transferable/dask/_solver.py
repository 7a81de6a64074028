"""Landmark fits on rows held by workers: their features, labels and scores, and the solver.

Every task is a function of one block and of small objects sent by the client: the positions of the
landmarks in the pool, the coefficients of a round. Nothing depends on the round before, so a lost
block is read, mapped and labelled once, whatever the round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from transferable._kernel.class_shares import LabelRule, Scores, least_costs
from transferable._kernel.objective import Matrix, Term
from transferable._kernel.solvers import LandmarkSolver, PseudoLabels, Sums, group_sums
from transferable._linalg.arrays import CPU, row_blocks
from transferable._linalg.kernels import FeatureTable, KernelFunction, Nystrom
from transferable._linalg.moments import Moments, moments_of_groups
from transferable._linalg.search import Anchors
from transferable.dask._rows import Block, HeldRows, Moved, Workers, each_added, summed
from transferable.domains import digest

_PART = 2**15  # rows whose features several sums are made of, before those of others are made

# From rows to the input of the kernel: the rows, unit rows, their flow.
RowTransform = Callable[[NDArray[Any]], NDArray[Any]]
Labeller = Callable[[NDArray[Any]], NDArray[np.intp]]
Learner = Callable[..., Labeller]


class BlockSolver(LandmarkSolver):
    """Solver like :class:`LandmarkSolver`, with sums and labels from the workers.

    The rows at hand, and their features, are the pool's.
    """

    def __init__(self, *arguments: Any, blocks: FeatureBlocks) -> None:
        self._blocks, self._workers = blocks, blocks.rows.workers
        super().__init__(*arguments)

    def _sum_up(self, anchors: Anchors | None) -> tuple[Sums, Matrix, None]:
        return *self._blocks.sum_up(anchors), None

    def _target_sums(self, labels: Any) -> Matrix:
        return labels.sums

    @cached_property
    def _source_moments(self) -> list[Moments]:
        tasks = self._blocks.tasks(_source_moments, self.problem.domains.n_classes)
        return self._workers.sum(tasks, each_added)

    def _target_moments(self, labels: Any) -> list[Moments]:
        blocks, n_classes = self._blocks, self.problem.domains.n_classes
        pairs = zip(blocks.stored, labels.blocks, strict=True)
        tasks = [_target_moments(block, blocks.map, codes, n_classes) for block, codes in pairs]
        return self._workers.sum(tasks, each_added)

    def _projected(self, term: Term) -> Matrix:
        G = term.gram(self._sums)
        if G is None:
            raise TypeError(
                f"{type(term).__name__} reaches across rows, which no worker holds together; leave "
                "the term out."
            )
        return G

    def _loss_gram(self, class_weights: NDArray[np.float64]) -> Matrix:
        # A matrix of each class from each block is more than a pass for another class prior.
        return self._workers.sum(self._blocks.tasks(_weighted_gram, delayed(class_weights)))

    def label(
        self,
        w: Matrix,
        F: Matrix,
        labelling: LabelRule,
        before: Any = None,
        *,
        settled: bool = False,
    ) -> HeldLabels:
        """Return labels of all target rows by their scores.

        Offsets of a round are chosen for the pool's rows, as in memory; final ones for all.
        """
        blocks, sent = self._blocks, delayed(w)
        everybody = BlockScores(blocks.tasks(_scores, sent), self._workers) if settled else None
        codes = labelling.codes(F[self.problem.domains.target], settled, everybody)
        tasks = blocks.tasks(_label, sent, delayed(labelling.offsets))
        return HeldLabels.by(tasks, before, blocks.rows, codes)

    def label_by(self, learn: Learner) -> HeldLabels:
        """Return labels of all target rows by a learner trained on the pool's source rows."""
        blocks, workers, pool = self._blocks, self._workers, self._blocks.rows.pool_there
        learnt = _learnt(pool, blocks.transform, blocks.classes, learn)
        (label,) = workers.persist([learnt])
        codes = workers.compute(_pool_labels(pool, blocks.transform, label))
        tasks = blocks.tasks(_label_by, label, self.problem.domains.n_classes)
        return HeldLabels.by(tasks, None, blocks.rows, codes)


@dataclass(frozen=True)
class BlockLabels:
    """Labels of the target rows of a block, with sums of their features by class."""

    codes: NDArray[np.integer]
    sums: Matrix

    @classmethod
    def of(cls, codes: NDArray[np.intp], sums: Matrix) -> BlockLabels:
        """Store codes in as many bytes as the classes need."""
        return cls(codes.astype(np.int16 if sums.shape[1] < 2**15 else np.int32), sums)


@dataclass(eq=False)
class HeldLabels(PseudoLabels):
    """Labels of all target rows, which workers hold; `codes` are the pool's, where needed."""

    blocks: list[Delayed] = field(kw_only=True)  # the BlockLabels of each
    sums: Matrix = field(kw_only=True)  # of features by class

    @classmethod
    def by(
        cls, tasks: list[Delayed], before: HeldLabels | None, rows: HeldRows, codes: Any = None
    ) -> HeldLabels:
        """Run tasks that give :class:`BlockLabels`, kept by workers, and count and sum these."""
        old, n_classes = (
            [None] * len(tasks) if before is None else before.blocks,
            rows.pool.n_classes,
        )
        pairs = zip(tasks, old, strict=True)
        tallies = [_tally(labels, others, n_classes) for labels, others in pairs]
        *blocks, total = rows.workers.persist([*tasks, summed(tallies, each_added)])
        counts, sums, n_changed = rows.workers.compute(total)
        changed = n_changed / max(float(counts.sum()), 1.0)
        return cls(codes, counts, changed, blocks=blocks, sums=sums)


@delayed
def _tally(labels: BlockLabels, before: BlockLabels | None, n_classes: int) -> list[Any]:
    """Return rows of each label, sums of their features, and the number of changed labels."""
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
        """Return the scores of rows whose two highest F + v differ by no more than a margin."""
        return np.concatenate(self._workers.sum([_near(F, v, margin) for F in self._scores]))

    def costs(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the least cost of moving a row with one label to another."""
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

    def tasks(self, task: Any, *arguments: Any) -> list[Delayed]:
        """Return a task of each block, the map to features and the arguments."""
        return [task(block, self.map, *arguments) for block in self.stored]

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
class StoredBlock(Moved):
    """Transformed rows of a block, their classes, and features if the worker has room.

    The map to features is as large as many rows, and not stored; `whitening` identifies the one
    that the features were made by.
    """

    Z: NDArray[Any]
    y: NDArray[np.intp]
    Phi: NDArray[Any] | None = None
    whitening: bytes = b""

    @property
    def target(self) -> slice:
        """Slice of the target rows."""
        return slice(len(self.y), len(self.Z))

    def table(self, nystrom: Nystrom) -> FeatureTable:
        """Return the features, held or to be computed."""
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
    """Return sums over rows, source features summed by class, and their whitenings.

    Features that are not held are computed once for all sums, for a part of the rows at a time.
    """
    n = len(block.Z)
    parts = []
    for rows in row_blocks(n, 1, _PART if block.Phi is None else n) or [slice(0, 0)]:
        known, y = None if block.Phi is None else block.Phi[rows], block.y[rows]
        table = FeatureTable(block.Z[rows], nystrom, CPU, known=known)
        ones = np.ones(table.n)
        by_class = group_sums(table, y, n_classes, slice(0, len(y)), ones)
        parts.append([Sums.of(table, len(y), anchors, ones), by_class])
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
    block: StoredBlock, nystrom: Nystrom, w: Matrix, offsets: NDArray[np.float64]
) -> BlockLabels:
    """Label target rows by the highest score of F + offsets, F = Phi w."""

    def highest(F: Matrix) -> NDArray[np.intp]:
        return np.argmax(F + offsets, axis=1)

    return BlockLabels.of(*block.table(nystrom).labelled(w, highest, block.target))


@delayed
def _learnt(pool: Block, transform: RowTransform, classes: NDArray[Any], learn: Learner) -> Any:
    codes = np.searchsorted(classes, pool.labels)
    return learn(transform(pool.sides[0]), codes, np.ones(len(codes)))


@delayed
def _pool_labels(pool: Block, transform: RowTransform, label: Labeller) -> NDArray[np.intp]:
    return np.asarray(label(transform(pool.sides[1])), dtype=np.intp)


@delayed
def _label_by(block: StoredBlock, nystrom: Nystrom, label: Labeller, n_classes: int) -> BlockLabels:
    Z = block.Z[block.target]
    codes = np.asarray(label(Z) if len(Z) else [], dtype=np.intp)
    weights = np.ones(len(block.Z))
    sums = group_sums(block.table(nystrom), codes, n_classes, block.target, weights)
    return BlockLabels.of(codes, sums)
