"""Fit one cell and measure it: the record of a cell, and its iterates for figures."""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from transferable.events import Event, Iterate, listen, silence
from transferable.experiments._memory import peak_memory_mib, reset_peak_memory
from transferable.experiments._version import code_version
from transferable.experiments.cells import SEED, Cell
from transferable.experiments.records import Record
from transferable.persistence import versions

__all__ = ["Iterates", "fit_iterates", "measure"]


def measure(cell: Cell, task: Bunch) -> Record:
    """Adapt on a task, with one BLAS thread, and score the target rows.

    Target labels are looked at after the fit, and by the listener that scores each iterate; the
    estimator never receives them.
    """
    listener = _Scorer(task)
    estimator: Any = clone(cell.estimator)
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reset_peak_memory()
        start = perf_counter()
        with silence(), listen(listener):  # nobody else, who would take time
            estimator.adapt(task.Xs, task.ys, task.Xt)
        seconds = perf_counter() - start - listener.seconds
        peak = peak_memory_mib()
    accuracy = float(np.mean(estimator.transduction_[len(task.ys) :] == task.yt))
    return Record(
        dataset=cell.dataset,
        task=cell.task,
        method=cell.method,
        protocol=cell.protocol,
        accuracy=accuracy,
        accuracy_best_iterate=max([accuracy, *listener.accuracies]),
        n_iterates=max(1, len(listener.accuracies)),
        seconds=round(seconds, 4),
        peak_memory_mib=peak,
        parameters=cell.parameters,
        changes=dict(cell.changes),
        seed=SEED,
        versions=versions(code_version()),
        warnings=sorted({str(warning.message) for warning in caught}),
    )


class _Scorer:
    """Listens to a fit and keeps the target accuracy of each iterate, and the time it took."""

    def __init__(self, task: Bunch) -> None:
        self._task, self._classes = task, np.unique(task.ys)
        self.accuracies: list[float] = []
        self.seconds = 0.0

    def __call__(self, event: Event) -> None:
        if not isinstance(event, Iterate):
            return
        start = perf_counter()
        labels = self._classes[event.codes[len(self._task.ys) :]]
        self.accuracies.append(float(np.mean(labels == self._task.yt)))
        self.seconds += perf_counter() - start


class Iterates:
    """Listens to a fit and keeps what each iterate came to, for figures.

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
    """The fitted estimator of a cell and its iterates."""
    iterates = Iterates(task)
    with threadpool_limits(1), listen(iterates):
        estimator: Any = clone(cell.estimator)
        estimator.adapt(task.Xs, task.ys, task.Xt)
    return estimator, iterates
