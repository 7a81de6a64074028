"""What one reading of all rows tells, and the pool of rows that choices are made from.

The pool is the first rows of each domain in the library's canonical order, which depends on their
content alone: whatever holds the rows, in whatever partitions, the same ones come out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from transferable.dask._reading import Block
from transferable.dask._workers import Workers, summed
from transferable.domains import Domains, Groups
from transferable.limits import LIMITS
from transferable.linalg.moments import Moments, row_blocks
from transferable.linalg.row_order import row_hash, row_place
from transferable.units import exponent_of

__all__ = ["CountedGroups", "HeldRows", "Pool", "Survey", "pooled", "surveyed"]


@dataclass(frozen=True)
class Places:
    """Places in the canonical order of a domain, sorted."""

    place: NDArray[np.float64]
    hash: NDArray[np.uint64]

    @classmethod
    def of(cls, X: NDArray[Any]) -> Places:
        """Those of all rows, as they are stacked."""
        if len(X) == 0:
            return cls(np.empty(0), np.empty(0, dtype=np.uint64))
        return cls(row_place(X), row_hash(X))

    def first(self, count: int) -> NDArray[np.intp]:
        """Positions of the first places."""
        return np.lexsort((self.hash, self.place))[:count]

    def __getitem__(self, rows: Any) -> Places:
        return Places(self.place[rows], self.hash[rows])

    def __add__(self, other: Places) -> Places:
        place, hash = (np.concatenate(pair) for pair in zip(self, other, strict=True))
        return Places(place, hash)

    def __iter__(self) -> Any:
        return iter((self.place, self.hash))

    def upto(self, last: Places) -> NDArray[np.bool_]:
        """Which places are not behind the last one given; none if there is none."""
        if len(last.place) == 0:
            return np.zeros(len(self.place), dtype=bool)
        place, hash = last.place[-1], last.hash[-1]
        return (self.place < place) | ((self.place == place) & (self.hash <= hash))


@dataclass(frozen=True)
class Survey:
    """Moments of both domains, the source's labels, the unit, and who comes first.

    Attributes
    ----------
    moments : tuple of Moments
        Of the source and of the target.
    labels, counts : ndarray
        The source's labels and how many rows have each.
    exponent : int
        Of two, in which rows are too large or too small to compute with; 0 for ordinary rows.
    first : tuple of Places
        The first places of each domain.
    most : int
        How many of them at most.
    marks : frozenset of float
        The numbers that rows were marked with, positive for sources; none if there were no marks.
    """

    moments: tuple[Moments, ...]
    labels: NDArray[Any]
    counts: NDArray[np.intp]
    exponent: int
    first: tuple[Places, ...]
    most: int
    marks: frozenset[float]

    @classmethod
    def of(cls, block: Block, most: int) -> Survey:
        """That of one block."""
        labels, counts = np.unique(block.labels, return_counts=True)
        sides = block.Xs, block.Xt
        places = (Places.of(side) for side in sides)
        return cls(
            moments=tuple(map(_moments, sides)),
            labels=labels,
            counts=counts,
            exponent=exponent_of(block.X),
            first=tuple(side[side.first(most)] for side in places),
            most=most,
            marks=block.marks,
        )

    def __add__(self, other: Survey) -> Survey:
        kept = [survey for survey in (self, other) if len(survey.labels)] or [self]
        stacked = np.concatenate([survey.labels for survey in kept])
        labels, groups = np.unique(stacked, return_inverse=True)
        counts = np.bincount(groups, np.concatenate([s.counts for s in kept]), len(labels))
        first = [a + b for a, b in zip(self.first, other.first, strict=True)]
        return Survey(
            moments=tuple(a + b for a, b in zip(self.moments, other.moments, strict=True)),
            labels=labels,
            counts=counts.astype(np.intp),
            exponent=max(self.exponent, other.exponent, key=abs),
            first=tuple(side[side.first(self.most)] for side in first),
            most=self.most,
            marks=self.marks | other.marks,
        )

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of the source and of the target."""
        return int(self.moments[0].count), int(self.moments[1].count)


def _moments(X: NDArray[Any]) -> Moments:
    total = Moments.none(X.shape[1])
    for rows in row_blocks(*X.shape):
        total += Moments.of(X[rows].astype(np.float64))
    return total


def surveyed(blocks: list[Delayed], workers: Workers, fewest: int = 2) -> Survey:
    """One reading of all blocks; what no method can work with is refused, and too few classes."""
    survey = delayed(Survey.of)
    found: Survey = workers.compute(summed([survey(b, LIMITS.pool_rows) for b in blocks]))
    if found.sizes[0] == 0:
        raise ValueError("No row has a label; the source domain is empty.")
    if len(found.labels) < fewest:
        raise ValueError(
            f"All {found.sizes[0]} source rows are of one class, {found.labels.tolist()[0]!r}; a "
            "classifier needs at least 2 classes."
        )
    if found.exponent:
        raise ValueError(
            f"X holds values of about 1e{round(0.30103 * found.exponent)}, too far from 1 to "
            "compute with; scale X."
        )
    return found


@dataclass(frozen=True)
class PoolRows:
    """Rows of the pool as blocks send them, with their labels and places."""

    sides: tuple[NDArray[Any], ...]
    labels: NDArray[Any]
    places: tuple[Places, ...]

    @classmethod
    def of(cls, block: Block, last: tuple[Places, ...], count: int) -> PoolRows:
        """The rows of a block up to the last places of the pool, at most so many."""
        rows, places = [], []
        for X, end in zip((block.Xs, block.Xt), last, strict=True):
            own = Places.of(X)
            inside = np.flatnonzero(own.upto(end))
            rows.append(inside[own[inside].first(count)])
            places.append(own[rows[-1]])
        sides = block.Xs[rows[0]], block.Xt[rows[1]]
        return cls(sides, block.labels[rows[0]], tuple(places))

    def __add__(self, other: PoolRows) -> PoolRows:
        kept = [rows.labels for rows in (self, other) if len(rows.labels)] or [self.labels]
        return PoolRows(
            tuple(np.concatenate(pair) for pair in zip(self.sides, other.sides, strict=True)),
            np.concatenate(kept),
            tuple(a + b for a, b in zip(self.places, other.places, strict=True)),
        )

    def block(self, count: int) -> Block:
        """The first rows of both domains in canonical order."""
        codes = np.unique(self.labels, return_inverse=True)[1]
        source, target = self.places
        first = np.lexsort((codes, source.hash, source.place))[:count]
        X = np.concatenate([self.sides[0][first], self.sides[1][target.first(count)]])
        return Block(X, self.labels[first])


@dataclass(frozen=True)
class Pool(Domains):
    """The first rows of each domain, which know how many others there are."""

    survey: Survey = field(kw_only=True)

    @cached_property
    def source_shares(self) -> NDArray[np.float64]:
        """What share of all of the source's rows each class has."""
        return self.survey.counts / self.survey.counts.sum()

    @property
    def sizes(self) -> tuple[int, int]:
        """All rows of source and target."""
        return self.survey.sizes

    @property
    def moments(self) -> tuple[Moments, ...]:
        """Those of all rows of source and target."""
        return self.survey.moments

    def groups(self, target: Any) -> CountedGroups:
        """The pool's rows by domain and class, with the counts of all rows.

        The labels may be those that workers have given; None takes all target rows for one class.
        """
        codes = None if target is None else target.codes
        counts = (
            np.eye(self.n_classes)[0] * self.sizes[1] if target is None else target.tally.counts
        )
        own = super().groups(codes)
        both = np.stack([self.survey.counts, counts]).astype(np.float64)
        parts = {part.name: getattr(own, part.name) for part in fields(own) if part.init}
        return CountedGroups(**parts, all_counts=both, labels=target)


@dataclass(frozen=True)
class CountedGroups(Groups):
    """Rows at hand by group, where `all_counts` counts those that are not at hand too.

    `labels` are those that the workers have, None for one class.
    """

    all_counts: NDArray[np.float64] = field(kw_only=True)
    labels: Any = None

    @property
    def counts(self) -> NDArray[np.float64]:
        """Rows of each class, in the source and in the target."""
        return self.all_counts


@dataclass(frozen=True)
class HeldRows:
    """The rows of a fit: blocks that workers hold or read, and the pool, there and here."""

    blocks: list[Delayed]
    pool_there: Delayed
    pool: Pool
    workers: Workers

    def summed(self, task: Any, *arguments: Any) -> Any:
        """The sum, brought here, of what a task makes of each block and the arguments."""
        return self.workers.compute(summed([task(block, *arguments) for block in self.blocks]))


def pooled(blocks: list[Delayed], survey: Survey, workers: Workers) -> tuple[Delayed, Pool]:
    """The pool where the rows are, as a block, and here."""
    count = LIMITS.pool_rows
    last = tuple(side[-1:] for side in survey.first)
    send = delayed(PoolRows.of)
    task = summed([send(block, last, count) for block in blocks]).block(count)
    (there,) = workers.persist([task])
    block: Block = workers.compute(there)
    y = np.searchsorted(survey.labels, block.labels)
    return there, Pool(block.X, y, survey.labels, np.arange(len(block.X)), survey=survey)
