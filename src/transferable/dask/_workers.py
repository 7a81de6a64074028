"""Where tasks run: a client's workers, or threads of this process."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import dask
import psutil
from dask.delayed import Delayed, delayed
from distributed import Client, KilledWorker, default_client

__all__ = ["Workers", "summed"]

_FAN_IN = 4


class Workers:
    """Runs tasks, all of them pure functions of their input: what is lost is computed again.

    Parameters
    ----------
    client : distributed.Client or None
        Whose workers; None takes the current client, or threads of this process without one.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = current_client() if client is None else client

    def compute(self, task: Delayed) -> Any:
        """The result of a task, brought here."""
        if self.client is None:
            return dask.compute(task, scheduler="threads")[0]
        try:
            return self.client.compute(task, sync=True)
        except KilledWorker as error:
            raise RuntimeError(
                f"{error} Give workers more memory or rows in smaller partitions, or let tasks "
                "outlive more deaths: distributed.scheduler.allowed-failures."
            ) from error

    def persist(self, tasks: list[Delayed]) -> list[Delayed]:
        """The same tasks, whose results stay where they are computed."""
        if self.client is None:
            return list(dask.persist(*tasks, scheduler="threads"))
        return list(self.client.persist(tasks))

    def memory(self) -> int:
        """Bytes that all workers have together."""
        here = int(psutil.virtual_memory().total)
        if self.client is None:
            return here
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(int(worker["memory_limit"] or here // len(workers)) for worker in workers)


def current_client() -> Client | None:
    """The client that is current here, if there is one."""
    try:
        return default_client()
    except ValueError:
        return None


def summed(tasks: list[Delayed]) -> Delayed:
    """The sum of what tasks give, by a tree over their numbers: the same bits in any order."""
    while len(tasks) > 1:
        starts = range(0, len(tasks), _FAN_IN)
        tasks = [_sum(tasks[start : start + _FAN_IN]) for start in starts]
    return tasks[0]


@delayed
def _sum(parts: list[Any]) -> Any:
    return reduce(add, parts)
