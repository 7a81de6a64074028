"""Features of TCA and JDA where workers hold the rows: moments, and sums by class of each round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from transferable.dask._labels import BlockLabels, Labelled, tallied
from transferable.dask._reading import Block
from transferable.dask._survey import CountedGroups, HeldRows
from transferable.linalg.moments import Moments, row_blocks
from transferable.linalg.nystrom import Nystrom
from transferable.linalg.rows import unit_rows
from transferable.terms.base import LowRank, Matrix
from transferable.transformers._bases import Spread
from transferable.transformers._features import Features, RowMap, farthest, spectrum
from transferable.transformers._pseudo_labels import labeller

__all__ = ["BlockFeatures", "Embedding", "spread_of"]


@dataclass(frozen=True)
class Embedding:
    """From rows to embedded rows."""

    row_map: RowMap
    coefficients: Matrix
    normalize: bool

    def __call__(self, rows: NDArray[Any]) -> Matrix:
        """Embedded rows."""
        Z = self.row_map(rows) @ self.coefficients
        return unit_rows(Z) if self.normalize and len(Z) else Z


@dataclass(frozen=True)
class Table:
    """How many rows there are, and of how many columns; nobody has them together."""

    n: int
    rank: int
    nystrom: Nystrom | None = None


class BlockFeatures(Features):
    """Features of which moments are known, and sums by class are asked of the workers.

    Parameters
    ----------
    rows : HeldRows
        The rows.
    moments : list of Moments
        Of the rows, or of their Nystrom features, in source and target.
    power : int
        Of the singular values.
    row_map : RowMap
        From rows to what maps have coefficients of.
    nystrom : Nystrom or None
        The landmarks' features, if rows are seen through landmarks.
    """

    def __init__(
        self,
        rows: HeldRows,
        *,
        moments: list[Moments],
        power: int,
        row_map: RowMap,
        nystrom: Nystrom | None,
    ) -> None:
        self._rows = rows
        n_rows = sum(int(m.count) for m in moments)
        table: Any = Table(n_rows, len(moments[0].total), nystrom)
        whitening = None if nystrom is None else nystrom.whitening
        found = spectrum(table, moments, power, whitening)
        super().__init__(table, domains=rows.pool, row_map=row_map, **found)
        self._last: Labelled | None = None

    def projected(self, form: LowRank) -> Matrix:
        """Phi' E from sums of the features by group."""
        groups: CountedGroups = form.groups  # type: ignore[attr-defined]
        coefficients = form.weight**0.5 * form.coefficients  # type: ignore[attr-defined]
        n_classes = self._rows.pool.n_classes
        if groups.labels is None:  # whole domains: what is told of each class is the same
            totals = [moments.total for moments in self._known or []]
            own = np.stack([total @ self._matrix for total in totals], axis=1)
            return own @ coefficients[[0, n_classes]]
        sums = np.concatenate([self._source_sums, groups.labels.tally.sums], axis=1)
        return np.asarray(self._expansion).T @ (sums @ coefficients)

    @cached_property
    def _source_sums(self) -> Matrix:
        """Sums of the mapped source rows by class."""
        classes = delayed(self._rows.pool.classes)
        return self._rows.summed(_source_sums, delayed(self.map), classes)

    def signs(self, W: Matrix) -> Matrix:
        """Signs with which the embedded row farthest from zero is positive in each component."""
        embedding = Embedding(self.map, self.expand(W), normalize=False)
        return np.sign(self._rows.summed(_farthest, delayed(embedding)).values)

    def relabelled(
        self, W: Matrix, normalize: bool, estimator: ClassifierMixin | None
    ) -> tuple[Labelled, float]:
        """Labels of the target rows as they are embedded, and the share that changed."""
        embedding = Embedding(self.map, self.expand(W), normalize)
        rows = self._rows
        there, classes = delayed(embedding), delayed(rows.pool.classes)
        label = _labeller(rows.pool_there, there, classes, estimator)
        n_classes = self._rows.pool.n_classes
        tasks = [_label(block, there, label, n_classes) for block in rows.blocks]
        self._last = tallied(tasks, self._last, n_classes, rows.workers)
        tally = self._last.tally
        return self._last, tally.changed / max(float(tally.counts.sum()), 1.0)


def spread_of(rows: HeldRows) -> Spread:
    """Range and variance of all rows."""
    source, target = rows.pool.moments
    n = source.count + target.count
    mean = float((source.total + target.total).sum()) / (n * len(source.total))
    spread: Spread = rows.summed(_spread, mean)
    return spread


@delayed
def _spread(block: Block, mean: float) -> Spread:
    return Spread.of(block.X.astype(np.float64), mean)


@dataclass(frozen=True)
class Farthest:
    """Values farthest from zero, of which a sum has the farther ones."""

    values: Matrix

    def __add__(self, other: Farthest) -> Farthest:
        return Farthest(farthest(np.stack([self.values, other.values])))


@delayed
def _farthest(block: Block, embedding: Embedding) -> Farthest:
    return Farthest(farthest(embedding(block.X)))


@delayed
def _labeller(
    pool: Block, embedding: Embedding, classes: NDArray[Any], estimator: ClassifierMixin | None
) -> Any:
    return labeller(estimator, embedding(pool.Xs), np.searchsorted(classes, pool.labels))


@delayed
def _label(block: Block, embedding: Embedding, label: Any, n_classes: int) -> BlockLabels:
    X = block.Xt
    codes = label(embedding(X)) if len(X) else np.empty(0, dtype=np.intp)
    return BlockLabels(codes.astype(np.int32), _sums(X, embedding.row_map, codes, n_classes))


@delayed
def _source_sums(block: Block, row_map: RowMap, classes: NDArray[Any]) -> Matrix:
    codes = np.searchsorted(classes, block.labels)
    return _sums(block.Xs, row_map, codes, len(classes))


def _sums(X: NDArray[Any], row_map: RowMap, codes: NDArray[Any], n_classes: int) -> Matrix:
    """Sums of mapped rows by class, a column each."""
    width = row_map.width(X.shape[1])
    total = 0.0 * row_map(X[:0]).T @ np.zeros((0, n_classes))
    for rows in row_blocks(len(X), width):
        member = np.eye(n_classes)[codes[rows]]
        total = total + row_map(X[rows]).T @ member
    return total
