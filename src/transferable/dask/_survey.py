"""Workers that run the tasks, a survey of all rows, and the pool that choices are made from.

The pool is the first rows of each domain in the library's canonical order, which depends on their
content alone: it is the same whatever holds the rows, in whatever partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial, reduce
from operator import add
from typing import Any

import dask
import numpy as np
import psutil
from dask.delayed import Delayed, delayed
from distributed import KilledWorker, default_client
from numpy.typing import NDArray

from transferable.dask._reading import Block
from transferable.domains import Domains, Groups, in_unit, row_hash
from transferable.limits import LIMITS
from transferable.linalg.moments import Moments, row_blocks

_FAN_IN = 4
_ASKED = 8  # blocks from which the size of all is estimated
_PLACE = np.dtype([("place", np.float64), ("hash", np.uint64)])  # in the canonical order


class Workers:
    """Runs tasks, all of them pure functions of their input: what is lost is computed again.

    Parameters
    ----------
    client : distributed.Client or None
        Whose workers; None takes the current client, or threads of this process without one.
    """

    def __init__(self, client: Any = None) -> None:
        try:
            self.client = default_client() if client is None else client
        except ValueError:  # no client is current
            self.client = None

    def compute(self, task: Delayed) -> Any:
        """Return the result of a task."""
        if self.client is None:
            return dask.compute(task, scheduler="threads")[0]
        try:
            return self.client.compute(task, sync=True)
        except KilledWorker as error:
            raise RuntimeError(
                f"{error} Give workers more memory or rows in smaller partitions, or let tasks "
                "outlive more deaths: distributed.scheduler.allowed-failures."
            ) from error

    def sum(self, tasks: list[Delayed], combine: Callable[[Any, Any], Any] = add) -> Any:
        """Return the sum of the results of tasks."""
        return self.compute(summed(tasks, combine))

    def persist(self, tasks: list[Delayed]) -> list[Delayed]:
        """Return tasks whose results stay where they are computed."""
        if self.client is None:
            return list(dask.persist(*tasks, scheduler="threads"))
        return list(self.client.persist(tasks))

    def memory(self) -> int:
        """Return the bytes of memory of all workers together."""
        here = int(psutil.virtual_memory().total)
        if self.client is None:
            return here
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(int(worker["memory_limit"] or here // len(workers)) for worker in workers)


def summed(tasks: list[Delayed], combine: Callable[[Any, Any], Any] = add) -> Delayed:
    """Sum the results of tasks by a tree over their numbers: the same bits in any order."""
    while len(tasks) > 1:
        starts = range(0, len(tasks), _FAN_IN)
        tasks = [_sum(tasks[start : start + _FAN_IN], combine) for start in starts]
    return tasks[0]


@delayed
def _sum(parts: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
    return reduce(combine, parts)


def each_added(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """Add two sequences element by element."""
    return [a + b for a, b in zip(first, second, strict=True)]


def _each_stacked(first: Sequence[Any], second: Sequence[Any]) -> list[NDArray[Any]]:
    """Concatenate arrays element by element; an empty one may be of another dtype."""
    pairs = zip(first, second, strict=True)
    return [np.concatenate([part for part in pair if len(part)] or pair[:1]) for pair in pairs]


def _places(X: NDArray[Any], place: NDArray[Any], last: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return which rows are not behind a place, and where they are; hashes settle equal places."""
    near = np.flatnonzero(place <= last)
    found = np.empty(len(near), _PLACE)
    found["place"], found["hash"] = place[near], row_hash(X[near])
    return near, found


def _first(places: NDArray[Any], count: int, *ties: NDArray[Any]) -> NDArray[np.intp]:
    """Return positions of the first places in order."""
    return np.lexsort((*ties, places["hash"], places["place"]))[:count]


@dataclass(frozen=True)
class Survey:
    """Moments of both domains, labels of the source, unit, and the first rows.

    Attributes
    ----------
    moments : list of Moments
        Of the source and of the target.
    labels, counts : ndarray
        The source's labels and how many rows have each.
    exponent : int
        Of two, in which rows are too large or too small to compute with; 0 for ordinary rows.
    first : list of ndarray
        The first places of each domain, sorted.
    marks : frozenset of float
        The ids that rows were marked with, positive for sources; none if there were no marks.
    blocks : tuple of pairs of int
        Rows of source and target in each block, in their order.
    """

    moments: list[Moments]
    labels: NDArray[Any]
    counts: NDArray[np.intp]
    exponent: int
    first: list[NDArray[Any]]
    marks: frozenset[float]
    blocks: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, block: Block, most: int) -> Survey:
        """Survey one block, with at most so many places of each domain."""
        moments, first = [], []
        for X, place in zip(block.sides, block.places, strict=True):
            parts = (Moments.of(X[rows].astype(np.float64)) for rows in row_blocks(*X.shape))
            moments.append(reduce(add, parts, Moments.none(X.shape[1])))
            last = np.partition(place, most - 1)[most - 1] if len(place) > most else np.inf
            found = _places(X, place, last)[1]
            first.append(found[_first(found, most)])
        n_source, n_target = map(len, block.sides)
        return cls(
            moments,
            *np.unique(block.labels, return_counts=True),
            exponent=in_unit(block.X)[1],
            first=first,
            marks=block.marks,
            blocks=((n_source, n_target),),
        )

    def joined(self, other: Survey, most: int) -> Survey:
        """Survey the rows of both."""
        stacked, sizes = _each_stacked((self.labels, self.counts), (other.labels, other.counts))
        labels, groups = np.unique(stacked, return_inverse=True)
        first = _each_stacked(self.first, other.first)
        return Survey(
            moments=each_added(self.moments, other.moments),
            labels=labels,
            counts=np.bincount(groups, sizes, len(labels)).astype(np.intp),
            exponent=max(self.exponent, other.exponent, key=abs),
            first=[side[_first(side, most)] for side in first],
            marks=self.marks | other.marks,
            blocks=self.blocks + other.blocks,
        )

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of the source and of the target."""
        return int(self.moments[0].count), int(self.moments[1].count)


def kept(blocks: list[Delayed], workers: Workers, room: float) -> list[Delayed]:
    """Return blocks that stay with the workers if, by the size of some, there is room for all."""
    some = slice(None, None, -(-len(blocks) // _ASKED))
    asked = workers.persist(blocks[some])
    if workers.sum([_n_bytes(block) for block in asked], max) * len(blocks) > room:
        return blocks
    all_of_them = list(blocks)
    all_of_them[some] = asked
    return workers.persist(all_of_them)


@delayed
def _n_bytes(block: Block) -> int:
    return int(block.X.nbytes)


def surveyed(blocks: list[Delayed], workers: Workers, fewest: int = 2) -> Survey:
    """Read all blocks once; refuse rows no method can work with, and fewer classes than asked."""
    survey, most = delayed(Survey.of), LIMITS.pool_rows
    join = partial(Survey.joined, most=most)
    found: Survey = workers.sum([survey(block, most) for block in blocks], join)
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
class Pool(Domains):
    """The first rows of each domain, with sizes, moments and class counts of all rows."""

    survey: Survey = field(kw_only=True)

    @cached_property
    def source_shares(self) -> NDArray[np.float64]:
        """Class prior of all source rows."""
        return self.survey.counts / self.survey.counts.sum()

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of all rows of source and target."""
        return self.survey.sizes

    @property
    def moments(self) -> tuple[Moments, ...]:
        """Moments of all rows of source and target."""
        return tuple(self.survey.moments)

    def groups(self, target: Any) -> CountedGroups:
        """Return the pool's rows by domain and class, with the counts of all rows.

        `target` are pseudo-labels that workers hold; None takes all target rows for one class.
        """
        if target is None:
            codes, counts = None, np.eye(self.n_classes)[0] * self.sizes[1]
        else:
            codes, counts = target.codes, target.counts
        own = super().groups(codes)
        both = np.stack([self.survey.counts, counts]).astype(np.float64)
        parts = {part.name: getattr(own, part.name) for part in fields(own) if part.init}
        return CountedGroups(**parts, all_counts=both, labels=target)


@dataclass(frozen=True)
class CountedGroups(Groups):
    """The pool's rows by group, where `all_counts` counts all rows.

    `labels` are the pseudo-labels that workers hold, None for one class.
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

    @classmethod
    def of(cls, blocks: list[Delayed], survey: Survey, workers: Workers) -> HeldRows:
        """Make the pool where the rows are, and bring it here."""
        count = LIMITS.pool_rows
        last = [side[-1:] for side in survey.first]
        rows = summed([_pool_rows(block, last, count) for block in blocks], _each_stacked)
        (there,) = workers.persist([_pool_block(rows, count)])
        block: Block = workers.compute(there)
        y = np.searchsorted(survey.labels, block.labels)
        pool = Pool(block.X, y, survey.labels, np.arange(len(block.X)), survey=survey)
        return cls(blocks, there, pool, workers)


@delayed
def _pool_rows(block: Block, last: list[NDArray[Any]], count: int) -> list[NDArray[Any]]:
    """Return source rows, labels and places, then target rows and places, of a block's pool rows.

    They are the first in each domain, up to the last place of the pool.
    """
    sides = []
    for X, place, end in zip(block.sides, block.places, last, strict=True):
        near, places = _places(X, place, end["place"][0] if len(end) else -np.inf)
        inside = (places["place"] < end["place"]) | (places["hash"] <= end["hash"])
        first = np.flatnonzero(inside)[_first(places[inside], count)]
        sides.append((near[first], places[first]))
    (source, own), (target, others) = sides
    Xs, Xt = block.sides
    return [Xs[source], block.labels[source], own, Xt[target], others]


@delayed
def _pool_block(rows: list[NDArray[Any]], count: int) -> Block:
    """Return the first rows of both domains in canonical order."""
    Xs, labels, source, Xt, target = rows
    codes = np.unique(labels, return_inverse=True)[1]
    first = _first(source, count, codes)
    return Block(np.concatenate([Xs[first], Xt[_first(target, count)]]), labels[first])
