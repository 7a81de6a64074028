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
from transferable.domains import Domains, Groups, in_unit, row_hash
from transferable.limits import LIMITS
from transferable.linalg.moments import Moments, row_blocks

__all__ = ["CountedGroups", "HeldRows", "Pool", "Survey", "kept", "pooled", "surveyed"]

_ASKED = 8  # blocks that tell how large all are


@dataclass(frozen=True)
class Places:
    """Places in the canonical order of a domain, sorted."""

    place: NDArray[np.float64]
    hash: NDArray[np.uint64]

    @classmethod
    def first_of(cls, X: NDArray[Any], place: NDArray[np.float64], count: int) -> Places:
        """The first of the places of rows."""
        last = np.partition(place, count - 1)[count - 1] if len(place) > count else np.inf
        near = np.flatnonzero(place <= last)
        found = cls(place[near], _hashes(X[near]))  # which only tell equal places apart
        return found[found.first(count)]

    @classmethod
    def until(
        cls, X: NDArray[Any], place: NDArray[np.float64], last: Places
    ) -> tuple[NDArray[np.intp], Places]:
        """Which rows are not behind the last place given, none if there is none; their places."""
        near = np.flatnonzero(place <= (last.place[-1] if len(last.place) else -np.inf))
        found = cls(place[near], _hashes(X[near]))
        inside = np.flatnonzero((found.place < last.place[-1:]) | (found.hash <= last.hash[-1:]))
        return near[inside], found[inside]

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


def _hashes(X: NDArray[Any]) -> NDArray[np.uint64]:
    return row_hash(X) if len(X) else np.empty(0, dtype=np.uint64)


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
    blocks : tuple of pairs of int
        Rows of source and target in each block, in their order.
    """

    moments: tuple[Moments, ...]
    labels: NDArray[Any]
    counts: NDArray[np.intp]
    exponent: int
    first: tuple[Places, ...]
    most: int
    marks: frozenset[float]
    blocks: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, block: Block, most: int) -> Survey:
        """That of one block."""
        labels, counts = np.unique(block.labels, return_counts=True)
        sides = list(zip((block.Xs, block.Xt), block.places, strict=True))
        return cls(
            moments=tuple(_moments(X) for X, _ in sides),
            labels=labels,
            counts=counts,
            exponent=in_unit(block.X)[1],
            first=tuple(Places.first_of(*side, most) for side in sides),
            most=most,
            marks=block.marks,
            blocks=((len(block.Xs), len(block.Xt)),),
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
            blocks=self.blocks + other.blocks,
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


def kept(blocks: list[Delayed], workers: Workers, room: float) -> list[Delayed]:
    """Blocks that stay with the workers if some of them tell that there is room for all."""
    some = slice(None, None, -(-len(blocks) // _ASKED))
    asked = workers.persist(blocks[some])
    largest = workers.compute(delayed(max)([_n_bytes(block) for block in asked]))
    if largest * len(blocks) > room:
        return blocks
    all_of_them = list(blocks)
    all_of_them[some] = asked
    return workers.persist(all_of_them)


@delayed
def _n_bytes(block: Block) -> int:
    return int(block.X.nbytes)


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
        for side in zip((block.Xs, block.Xt), block.places, last, strict=True):
            inside, own = Places.until(*side)
            first = own.first(count)
            rows.append(inside[first])
            places.append(own[first])
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
