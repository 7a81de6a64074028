"""Compute cells in parallel, keep every record as it finishes, go on where a run left off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from joblib import Parallel, delayed

from transferable.datasets import DomainCollection
from transferable.experiments.benchmarks import BENCHMARKS
from transferable.experiments.cells import Cell
from transferable.experiments.measure import measure
from transferable.experiments.records import Record, RecordStore

__all__ = ["Run", "run_cells"]


@dataclass
class Run:
    """What became of some cells.

    Attributes
    ----------
    records : dict
        Records by the key of their cell.
    failures : list of (Cell, str)
        Cells that raised, with what they raised.
    """

    records: dict[str, Record] = field(default_factory=dict)
    failures: list[tuple[Cell, str]] = field(default_factory=list)


@dataclass(frozen=True)
class _Failed:
    reason: str


_Outcome = Record | _Failed | None
_IDLE_S = 5


def run_cells(
    cells: Sequence[Cell],
    store: RecordStore,
    *,
    jobs: int = 1,
    finished: Callable[[Cell, Record | None], None] | None = None,
) -> Run:
    """Look up or compute the record of every cell.

    Parameters
    ----------
    cells : sequence of Cell
        What is wanted. Cells with the same key are computed once.
    store : RecordStore
        Where records are looked up first, and kept.
    jobs : int, default=1
        Worker processes, each with one BLAS thread; 1 computes in this process.
    finished : callable, default=None
        Called in this process with each cell once, and its record or, if it failed, None.

    Returns
    -------
    Run
        Records and failures. A failure ends nothing but its own cell.

    Raises
    ------
    ChildProcessError
        If a worker process was killed, by the system for instance.
    """
    run = Run()
    report = finished or (lambda cell, record: None)
    known = store.load()
    waiting: dict[str, Cell] = {}
    for cell in cells:
        key = cell.key
        if key in known and key not in run.records:
            run.records[key] = known[key]
            report(cell, known[key])
        elif key not in known:
            waiting.setdefault(key, cell)
    # The first pass takes what nobody else is computing, the second waits for the others.
    for wait in (False, True):
        todo = list(waiting.values())
        for key, outcome in _compute_all(todo, store, jobs=jobs, wait=wait):
            if isinstance(outcome, Record):
                run.records[key] = outcome
                report(waiting.pop(key), outcome)
            elif isinstance(outcome, _Failed):
                cell = waiting.pop(key)
                run.failures.append((cell, outcome.reason))
                report(cell, None)
    return run


def _compute_all(
    cells: Sequence[Cell], store: RecordStore, *, jobs: int, wait: bool
) -> Iterator[tuple[str, _Outcome]]:
    """Each cell's key with its outcome, as they finish."""
    # Workers outlive a parent that was killed; without work they end after a few seconds.
    parallel = Parallel(
        n_jobs=jobs,
        backend="loky",
        batch_size=1,
        return_as="generator_unordered",
        idle_worker_timeout=_IDLE_S,
    )
    data = {cell.dataset: BENCHMARKS[cell.dataset].fetch() for cell in cells}
    tasks = (delayed(_compute)(cell, data[cell.dataset], store, wait=wait) for cell in cells)
    try:
        yield from parallel(tasks)
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a worker process died, perhaps for want of memory. Finished records are kept; try "
            "again with one job."
        ) from error


def _compute(
    cell: Cell, data: DomainCollection, store: RecordStore, *, wait: bool
) -> tuple[str, _Outcome]:
    """Compute and keep a record, in a worker; no outcome if another run is at it."""
    with store.claim(cell.key, wait=wait) as mine:
        if not mine:
            return cell.key, None
        # Another run may have finished it since this one began.
        done = store.load().get(cell.key)
        if done is not None:
            return cell.key, done
        try:
            record = measure(cell, data.task(cell.source, cell.target))
        except Exception as error:  # one method must not take the others with it
            return cell.key, _Failed(f"{type(error).__name__}: {error}")
        store.append(record.to_line())
        return cell.key, record
