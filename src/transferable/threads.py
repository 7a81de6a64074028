"""Work on blocks of rows by as many threads as BLAS may use; the result is that of any number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from transferable.limits import LIMITS

__all__ = [
    "in_threads",
    "n_processes",
    "n_threads",
    "stacked_rows",
    "taken_rows",
    "thread_blocks",
]

Part = TypeVar("Part")
Result = TypeVar("Result")

_VALUES = 2**20  # of a block: much work between two times that a thread asks for the interpreter


def thread_blocks(table: Any) -> list[slice]:
    """Slices of the rows of a table, which depend on its shape alone; one if it is small."""
    n, width = table.shape[0], max(1, int(np.prod(table.shape[1:])))
    step = n if n * width < LIMITS.threaded_values else max(1, _VALUES // width)
    return [slice(start, min(start + step, n)) for start in range(0, n, max(step, 1))]


def in_threads(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """What the work gives for each part, in their order.

    Each thread computes on its own: threads of BLAS inside of it would wait for all others.
    """
    threads = min(n_threads(), len(parts)) if len(parts) > 1 else 1
    if threads <= 1:
        return [work(part) for part in parts]
    with _pools().limit(limits=1), ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, parts))


def n_threads() -> int:
    """Threads that BLAS may use here."""
    pools = _pools().info()
    return max((pool["num_threads"] for pool in pools if pool["user_api"] == "blas"), default=1)


def n_processes(n_jobs: int | None, tasks: int) -> int | None:
    """The processes that were asked for, as far as there are tasks for them."""
    return n_jobs if n_jobs is None else min(n_jobs, tasks)


@cache
def _pools() -> ThreadpoolController:
    """Where the thread pools are; a search through all libraries takes longer than a small fit."""
    return ThreadpoolController()


def taken_rows(table: Any, order: Any) -> Any:
    """Rows of a dense table in a given order, copied."""
    out = np.empty((len(order), *table.shape[1:]), dtype=table.dtype)

    def take(rows: slice) -> None:
        np.take(table, order[rows], axis=0, out=out[rows], mode="clip")

    in_threads(take, thread_blocks(out))
    return out


def stacked_rows(above: Any, below: Any) -> Any:
    """Two dense tables as one."""
    n = len(above)
    shape = n + len(below), *above.shape[1:]
    out = np.empty(shape, dtype=np.result_type(above, below))

    def fill(part: tuple[Any, Any]) -> None:
        part[0][...] = part[1]

    halves = (out[:n], above), (out[n:], below)
    in_threads(fill, [(to[rows], of[rows]) for to, of in halves for rows in thread_blocks(to)])
    return out
