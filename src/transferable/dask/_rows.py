"""Rows in blocks that workers read and hold: reading, survey, and the pool for choices.

An error about a block names its partition and, if known, the file it was read from. The pool is the
first rows of each domain in the library's canonical order, which depends only on their content: it
is the same for any partitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from itertools import repeat
from operator import add
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
from dask.delayed import Delayed, delayed
from distributed import KilledWorker, default_client
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from transferable._linalg.arrays import row_blocks
from transferable._linalg.kernels import draw_landmarks
from transferable._linalg.moments import Moments
from transferable.domains import (
    Domains,
    labelled_rows,
    marked_ids,
    refuse_size,
    row_hash,
    row_places,
)
from transferable.limits import LIMITS

_FAN_IN = 4
_ASKED = 8  # blocks from which the size of all is estimated
_PLACE = np.dtype([("place", np.float64), ("hash", np.uint64)])  # in the canonical order


@dataclass(frozen=True)
class Schema:
    """Number of columns, their names in a frame, and dtype that every block must have.

    `label` is the column of the labels, if they are in one.
    """

    n_features: int
    names: tuple[str, ...] | None
    dtype: str
    label: str | None


class Moved:
    """Arrays that workers hand on, aligned on arrival: unaligned products round otherwise."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            array = isinstance(value, np.ndarray)
            vars(self)[name] = np.require(value, requirements="A") if array else value


@dataclass(frozen=True)
class Block(Moved):
    """Rows of one partition, those of the source first, with the labels of these.

    `marks` are the ids of the domains, where rows were marked with any.
    """

    X: NDArray[Any]
    labels: NDArray[Any]
    marks: frozenset[float] = frozenset()

    @property
    def sides(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Source rows and target rows."""
        return self.X[: len(self.labels)], self.X[len(self.labels) :]

    @cached_property
    def places(self) -> list[NDArray[np.float64]]:
        """Places in the canonical order of source and target rows, kept with the block."""
        return [row_places(X) for X in self.sides]

    def __sizeof__(self) -> int:
        return int(self.X.nbytes + self.labels.nbytes)


def domains_apart(Xs: Any, ys: Any, Xt: Any) -> tuple[list[Delayed], Schema]:
    """Return blocks of the source, then of the target; `ys` may name a column of `Xs`."""
    label = _label_column(Xs, ys, "Xs")
    schema, other = schema_of(Xs, "Xs", label), schema_of(Xt, "Xt", label)
    if schema != other:
        raise ValueError(f"Xt has {_described(other)}, but Xs has {_described(schema)}.")
    labels = repeat(label) if label is not None else _column(ys, Xs, "ys", "Xs")
    source = _blocks(Xs, "Xs", labels, repeat(1), schema)
    return source + _blocks(Xt, "Xt", repeat(None), repeat(-1), schema), schema


def stacked_domains(X: Any, y: Any, sample_domain: Any = None) -> tuple[list[Delayed], Schema]:
    """Return blocks of stacked rows; without marks, rows without a label are the target."""
    label = _label_column(X, y, "X")
    schema = schema_of(X, "X", label)
    labels = repeat(label) if label is not None else _column(y, X, "y", "X")
    marks = _column(sample_domain, X, "sample_domain", "X")
    return _blocks(X, "X", labels, marks, schema), schema


def _label_column(X: Any, y: Any, name: str) -> str | None:
    """Return the column of the labels, if `y` names one."""
    if not isinstance(y, str):
        return None
    if not isinstance(X, dd.DataFrame) or y not in X.columns:
        raise ValueError(f"{name} has no column {y!r} to take the labels from.")
    return y


def schema_of(X: Any, name: str, label: str | None = None) -> Schema:
    """Return the schema that the collection declares for its blocks, before any is read."""
    if isinstance(X, dd.DataFrame):
        dtypes = X.dtypes.drop([label], errors="ignore")
        _refuse_text(dtypes, name)
        return Schema(len(dtypes), tuple(dtypes.index), _precision(*dtypes), label)
    if isinstance(X, da.Array) and X.ndim == 2 and X.dtype.kind in "fiub":
        return Schema(X.shape[1], None, _precision(X.dtype), label)
    what = f"shape {X.shape} and dtype {X.dtype}" if isinstance(X, da.Array) else type(X).__name__
    raise TypeError(
        f"{name} must be a Dask dataframe, or a Dask array of numbers in rows and columns; got "
        f"{what}. The classes of transferable itself take tables in memory."
    )


def _described(schema: Schema) -> str:
    columns = f"{schema.n_features} features in {schema.dtype}"
    return columns if schema.names is None else f"{columns} named {', '.join(schema.names)}"


def _precision(*dtypes: Any) -> str:
    return "float32" if all(dtype == np.float32 for dtype in dtypes) else "float64"


def _refuse_text(dtypes: pd.Series, where: str) -> None:
    for name, dtype in dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            raise TypeError(
                f"{where} has the column {name!r} of dtype {dtype}, which is not a number; encode "
                "it, or leave it out."
            )


def _blocks(
    X: Any, name: str, labels: Iterable[Any], domains: Iterable[Any], schema: Schema
) -> list[Delayed]:
    """Return a task for each partition, which reads it."""
    framed = isinstance(X, dd.DataFrame)
    tables = X.to_delayed() if framed else X.rechunk({1: -1}).to_delayed().ravel().tolist()
    places = [f"partition {i} of {name}" for i in range(len(tables))]
    for i, file in (_files(X) if framed else {}).items():
        places[i] += f" ({file})"
    sizes = repeat(math.nan) if framed else X.chunks[0]
    parts = zip(tables, labels, domains, places, sizes, strict=False)
    return [_read(*part, schema) for part in parts]


def _files(X: Any) -> dict[int, str]:
    """Return the file of each partition, where the frame was read from Parquet."""
    for node in X.expr.walk():
        pieces = getattr(node, "_plan", {}).get("parts", []) if hasattr(node, "_plan") else []
        if len(pieces) == X.npartitions:
            return {
                i: str(piece["piece"][0])
                for i, piece in enumerate(pieces)
                if isinstance(piece, dict) and "piece" in piece
            }
    return {}


def _column(values: Any, X: Any, name: str, of: str) -> Iterable[Any]:
    """Return the partitions of labels or marks, one for each of the rows', or None for each."""
    framed = isinstance(X, dd.DataFrame)
    if values is None:
        return repeat(None)
    if isinstance(values, dd.Series):
        tasks = values.to_delayed()
    elif isinstance(values, da.Array) and values.ndim == 1:
        if not framed and values.shape[0] == X.shape[0]:  # NaN, not known, equals none
            values = values.rechunk((X.chunks[0],))
        tasks = values.to_delayed().ravel().tolist()
    else:
        raise TypeError(
            f"{name} must be a Dask series or a Dask array of one dimension, got "
            f"{type(values).__name__}."
        )
    expected = X.npartitions if framed else X.numblocks[0]
    if len(tasks) != expected:
        raise ValueError(
            f"{name} has {len(tasks)} partitions, but {of} has {expected}; give both the same."
        )
    return tasks


@delayed
def _read(table: Any, labels: Any, domain: Any, where: str, size: float, schema: Schema) -> Block:
    """Return one block, checked; a size of NaN is not known before the block is read."""
    refuse_another_size(where, len(table), size)
    if isinstance(labels, str):
        labels = table[labels] if labels in table else _refuse(where, f"no column {labels!r}")
    X = _numbers(table, where, schema)
    if labels is not None and np.shape(labels) != (len(X),):
        _refuse(where, f"{len(X)} rows, but labels of shape {np.shape(labels)}")
    marks: frozenset[float] = frozenset()
    if isinstance(domain, int):
        source = np.full(len(X), domain > 0)
    elif domain is None:
        labels = np.asarray(labels)
        source = labelled_rows(labels)
        if labels.dtype.kind in "iu":
            source &= labels != -1
    else:
        ids = marked_ids(np.asarray(domain), len(X))
        source, marks = ids > 0, frozenset(np.unique(ids).tolist())
    if source.all() or not source.any():
        rows = np.ascontiguousarray(X)  # those of a frame lie column by column
    else:
        rows = np.concatenate([X[source], X[~source]])
    if not source.any():
        labels = np.empty(0, dtype=np.float64 if labels is None else np.asarray(labels).dtype)
        return Block(rows, labels, marks)
    labels = np.zeros(len(X), dtype=np.intp) if labels is None else np.asarray(labels)
    labels = labels[source]
    missing = int((~labelled_rows(labels)).sum())
    if missing:
        _refuse(where, f"{missing} source rows without a label")
    return Block(rows, labels, marks)


def _numbers(table: Any, where: str, schema: Schema) -> NDArray[Any]:
    """Return the rows of a block, in the columns and the dtype of the schema."""
    if isinstance(table, pd.DataFrame):
        names = [name for name in table.columns if name != schema.label]
        if sorted(names) != sorted(schema.names or ()):
            wanted = ", ".join(schema.names or ())
            _refuse(where, f"the columns {', '.join(names)} in place of {wanted}")
        table = table[list(schema.names or ())]
        _refuse_text(table.dtypes, where)
        found = _precision(*table.dtypes)
    else:
        found = _precision(table.dtype)
        if table.shape[1] != schema.n_features:
            _refuse(where, f"{table.shape[1]} features in place of {schema.n_features}")
    if found != schema.dtype and len(table):
        _refuse(where, f"rows in {found} in place of {schema.dtype}")
    X = np.require(table, schema.dtype, "A")  # what came from elsewhere may lie anywhere
    wrong = np.flatnonzero(~np.isfinite(X).all(axis=0))
    if len(wrong):
        column = int(wrong[0]) if schema.names is None else repr(schema.names[wrong[0]])
        rows = int((~np.isfinite(X[:, wrong[0]])).sum())
        _refuse(where, f"{rows} rows with NaN or infinity in column {column}; fill or drop them")
    return X


def refuse_another_size(where: str, found: int, size: float) -> None:
    """Refuse a block of more or fewer rows than the collection declares."""
    if found != size and not math.isnan(size):
        _refuse(where, f"{found} rows, but its collection declares {size:g}; cut it again")


def _refuse(where: str, what: str) -> Any:
    raise ValueError(f"{where} has {what}.")


class Workers:
    """Executor of tasks, all of them pure functions: lost results are computed again.

    A client of None is the current one, or threads of this process without one.
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
    """Return which rows are up to a place, and their places; hashes break ties."""
    near = np.flatnonzero(place <= last)
    found = np.empty(len(near), _PLACE)
    found["place"], found["hash"] = place[near], row_hash(X[near])
    return near, found


def _first(places: NDArray[Any], count: int, *ties: NDArray[Any]) -> NDArray[np.intp]:
    """Return positions of the first places in order."""
    return np.lexsort((*ties, places["hash"], places["place"]))[:count]


@dataclass(frozen=True)
class Survey:
    """Statistics of all rows, which :meth:`joined` adds up over blocks."""

    moments: list[Moments]  # of the source and of the target
    labels: NDArray[Any]  # of the source, each once
    counts: NDArray[np.intp]  # of source rows with each label
    largest: float  # absolute value
    first: list[NDArray[Any]]  # the first places of each domain, sorted
    marks: frozenset[float]  # ids that rows were marked with, positive for sources
    blocks: tuple[tuple[int, int], ...]  # rows of source and target in each

    @classmethod
    def of(cls, block: Block, most: int) -> Survey:
        """Survey one block, with at most `most` places of each domain."""
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
            largest=float(np.abs(block.X).max(initial=0)),
            first=first,
            marks=block.marks,
            blocks=((n_source, n_target),),
        )

    def joined(self, other: Survey, most: int) -> Survey:
        """Return the survey of the rows of both."""
        stacked, sizes = _each_stacked((self.labels, self.counts), (other.labels, other.counts))
        labels, groups = np.unique(stacked, return_inverse=True)
        return Survey(
            moments=each_added(self.moments, other.moments),
            labels=labels,
            counts=np.bincount(groups, sizes, len(labels)).astype(np.intp),
            largest=max(self.largest, other.largest),
            first=[side[_first(side, most)] for side in _each_stacked(self.first, other.first)],
            marks=self.marks | other.marks,
            blocks=self.blocks + other.blocks,
        )

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of the source and of the target."""
        return int(self.moments[0].count), int(self.moments[1].count)


def kept(blocks: list[Delayed], workers: Workers, room: float) -> list[Delayed]:
    """Return blocks that stay with the workers if, by the size of some, all fit."""
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
    """Read all blocks once; refuse rows no method can work with, and too few classes."""
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
    refuse_size(found.largest, fitting=True)
    return found


@dataclass(frozen=True)
class Pool(Domains):
    """The first rows of each domain, with sizes, moments and class counts of all rows."""

    survey: Survey = field(kw_only=True)

    def __post_init__(self) -> None:
        counts = self.survey.counts.astype(np.float64)
        prior = counts / counts.sum()
        if self.shares is None:
            vars(self).update(shares=prior)
        super().__post_init__()
        known = {"sizes": self.survey.sizes, "moments": tuple(self.survey.moments)}
        vars(self).update(known, source_counts=counts[None], prior=prior)
        vars(self).update(ratios=self.shares / prior)

    def draw(self, Z: Any, n_landmarks: Any, random_state: Any) -> tuple[int, NDArray[np.intp]]:
        """Return the number of landmarks, and their positions among the pool's rows `Z`."""
        wanted = LIMITS.landmarks if n_landmarks == "auto" else int(n_landmarks or 0)
        count = min(wanted, sum(self.sizes))
        rng = check_random_state(random_state)
        return count, draw_landmarks(Z, self.n_source, count, rng)

    def counts(self, target: Any) -> NDArray[np.float64]:
        """Return the number of all source and of all target rows of each class.

        `target` are pseudo-labels that workers hold; None takes all target rows for one class.
        """
        own = np.eye(self.n_classes)[0] * self.sizes[1] if target is None else target.counts
        return np.vstack([self.survey.counts, own])


@dataclass(frozen=True)
class HeldRows:
    """The rows of a fit: blocks that workers hold or read, and the pool, there and here."""

    blocks: list[Delayed]
    pool_there: Delayed
    pool: Pool
    workers: Workers

    @classmethod
    def of(cls, blocks: list[Delayed], survey: Survey, workers: Workers) -> HeldRows:
        """Make the pool where the rows are, and collect it."""
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
