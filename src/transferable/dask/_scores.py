"""Scores of all target rows, which stay with the workers while offsets are sought for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from transferable.dask._workers import Workers, summed
from transferable.engines.offsets import Scores, least_costs

__all__ = ["BlockScores"]


class BlockScores:
    """The scores of the target rows of each block, from tasks that run when they are asked for."""

    def __init__(self, tasks: list[Delayed], workers: Workers) -> None:
        self._tasks, self._workers = tasks, workers

    def counts(self, v: NDArray[np.float64]) -> NDArray[np.intp]:
        """Rows of each label argmax(F + v)."""
        return np.asarray(self._summed(_counts, v))

    def near(self, v: NDArray[np.float64], margin: float) -> Scores:
        """The scores of rows whose two highest of F + v differ by no more."""
        return np.concatenate(self._summed(_near, v, margin))

    def costs(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """What it costs at least to move a row with one label to another."""
        least: Least = self._summed(_costs, v)
        return least.values

    @cached_property
    def _scores(self) -> list[Delayed]:
        return self._workers.persist(self._tasks)

    def _summed(self, task: Any, *arguments: Any) -> Any:
        return self._workers.compute(summed([task(F, *arguments) for F in self._scores]))


@dataclass(frozen=True)
class Least:
    """Values of which a sum has the lower ones."""

    values: NDArray[np.float64]

    def __add__(self, other: Least) -> Least:
        return Least(np.minimum(self.values, other.values))


@delayed
def _counts(F: Scores, v: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.bincount((F + v).argmax(axis=1), minlength=len(v))


@delayed
def _near(F: Scores, v: NDArray[np.float64], margin: float) -> list[Scores]:
    second, first = np.partition(F + v, -2, axis=1)[:, -2:].T
    return [F[first - second <= margin]]  # lists add up


@delayed
def _costs(F: Scores, v: NDArray[np.float64]) -> Least:
    return Least(least_costs(F, (F + v).argmax(axis=1)))
