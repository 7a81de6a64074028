"""Parallel fits of cells, recorded as they finish; an interrupted run can be resumed."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from transferable.datasets import DomainCollection
from transferable.events import Event, Iterate, listen, silence
from transferable.persistence import versions

from .benchmarks import BENCHMARKS
from .records import SEED, Cell, Record, RecordStore, code_version

_KIB_PER_MIB = 1024


def reset_peak_memory() -> None:
    """Reset the high-water mark of resident memory; only Linux can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak_memory_mib() -> float | None:
    """Return the high-water mark of resident memory, None where the system keeps none."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return round(int(status.split("VmHWM:")[1].split()[0]) / _KIB_PER_MIB, 1)
    except (OSError, IndexError):
        pass
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (_KIB_PER_MIB**2 if sys.platform == "darwin" else _KIB_PER_MIB), 1)


def measure(cell: Cell, task: Bunch) -> Record:
    """Adapt on a task, with one BLAS thread, and score the target rows.

    Target labels are used after the fit, and by the listener that scores each iterate; the
    estimator never receives them.
    """
    classes, n_source = np.unique(task.ys), len(task.ys)
    accuracies: list[float] = []
    scoring = 0.0

    def score(event: Event) -> None:
        nonlocal scoring
        if isinstance(event, Iterate):
            start = perf_counter()
            accuracies.append(float(np.mean(classes[event.codes[n_source:]] == task.yt)))
            scoring += perf_counter() - start

    estimator: Any = clone(cell.estimator)
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reset_peak_memory()
        start = perf_counter()
        with silence(), listen(score):  # no other listeners, which would take time
            estimator.adapt(task.Xs, task.ys, task.Xt)
        seconds = perf_counter() - start - scoring
        peak = peak_memory_mib()
    accuracy = float(np.mean(estimator.transduction_[n_source:] == task.yt))
    return Record(
        dataset=cell.dataset,
        task=cell.task,
        method=cell.method,
        protocol=cell.protocol,
        accuracy=accuracy,
        accuracy_best_iterate=max([accuracy, *accuracies]),
        n_iterates=max(1, len(accuracies)),
        seconds=round(seconds, 4),
        peak_memory_mib=peak,
        parameters=cell.parameters,
        changes=dict(cell.changes),
        seed=SEED,
        versions=versions(code_version()),
        warnings=sorted({str(warning.message) for warning in caught}),
    )


class Iterates:
    """Listener to a fit that keeps every iterate, for figures.

    Attributes
    ----------
    labels : list of ndarray of shape (n_rows,)
        Label of every row, source rows first.
    tables : list of ndarray of shape (n_rows, n_columns)
        Scores or embedding of every row.
    """

    def __init__(self, task: Bunch) -> None:
        self._classes = np.unique(task.ys)
        self.labels: list[NDArray[Any]] = []
        self.tables: list[NDArray[Any]] = []

    def __call__(self, event: Event) -> None:
        """Keep an iterate."""
        if isinstance(event, Iterate):
            self.labels.append(self._classes[event.codes])
            self.tables.append(np.array(event.table))

    @property
    def settled(self) -> bool:
        """Whether the last iteration changed no label."""
        return len(self.labels) > 1 and np.array_equal(self.labels[-2], self.labels[-1])


def fit_iterates(cell: Cell, task: Bunch) -> tuple[Any, Iterates]:
    """Return the fitted estimator of a cell and its iterates."""
    iterates = Iterates(task)
    with threadpool_limits(1), listen(iterates):
        estimator: Any = clone(cell.estimator)
        estimator.adapt(task.Xs, task.ys, task.Xt)
    return estimator, iterates


@dataclass
class Run:
    """Outcome of some cells.

    Attributes
    ----------
    records : dict
        Records by the key of their cell.
    failures : list of (Cell, str)
        Cells that raised, with their errors.
    """

    records: dict[str, Record] = field(default_factory=dict)
    failures: list[tuple[Cell, str]] = field(default_factory=list)


_Outcome = Record | str | None  # a text gives the reason of a failure
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
        The requested cells. Those with the same key are computed once.
    store : RecordStore
        Where records are looked up first, and kept.
    jobs : int, default=1
        Worker processes, each with one BLAS thread; 1 computes in this process.
    finished : callable, default=None
        Called in this process with each cell once, and its record or, if it failed, None.

    Returns
    -------
    Run
        Records and failures. A failure ends only its own cell.

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
    # The first pass takes cells that no other run is computing, the second waits for the others.
    for wait in (False, True):
        todo = list(waiting.values())
        for key, outcome in _compute_all(todo, store, jobs=jobs, wait=wait):
            if isinstance(outcome, Record):
                run.records[key] = outcome
                report(waiting.pop(key), outcome)
            elif outcome is not None:
                cell = waiting.pop(key)
                run.failures.append((cell, outcome))
                report(cell, None)
    return run


def _compute_all(
    cells: Sequence[Cell], store: RecordStore, *, jobs: int, wait: bool
) -> Iterator[tuple[str, _Outcome]]:
    """Yield each cell's key with its outcome, as they finish."""
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
    """Compute and keep a record, in a worker; return no outcome if another run is at it."""
    with store.claim(cell.key, wait=wait) as mine:
        if not mine:
            return cell.key, None
        # Another run may have finished it since this one began.
        done = store.load().get(cell.key)
        if done is not None:
            return cell.key, done
        try:
            record = measure(cell, data.task(cell.source, cell.target))
        except Exception as error:  # one method must not stop the others
            return cell.key, f"{type(error).__name__}: {error}"
        store.append(record.to_line())
        return cell.key, record
