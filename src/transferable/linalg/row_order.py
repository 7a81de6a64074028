"""Names for the content of rows and tables, and an order of rows that depends on it alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from transferable.threads import in_threads, thread_blocks

__all__ = ["content_order", "digest", "row_hash", "row_place", "table_key"]

_PHASES = 1024  # turns for a projection of one
_HASHED_VALUES = 2**16  # worked on at once: 512 KB stay in caches, and threads seldom wait


def row_place(X: Any) -> NDArray[np.float64]:
    """A number from 0 to 1 for each row, as good as random but for rows of nearly one direction.

    Sorted by it, rows are in an order that depends neither on how they were stacked nor on their
    unit, and a change of 1e-6 moves a row past a few in a thousand others: what is chosen from the
    first rows stays nearly the same. It is the phase of a random projection, summed row by row so
    that no row's depends on those around it.
    """
    weights = np.random.default_rng(1).normal(size=X.shape[1])
    if sp.issparse(X):
        projected, squares = X @ weights, X.multiply(X) @ np.ones(X.shape[1])
    else:
        projected, squares = np.empty(X.shape[0]), np.empty(X.shape[0])

        def measure(part: slice) -> None:
            for rows in _within(part, X.shape[1]):
                block = np.ascontiguousarray(X[rows], dtype=np.float64)
                projected[rows] = (block * weights).sum(axis=1)
                squares[rows] = (block * block).sum(axis=1)

        in_threads(measure, thread_blocks(X))
    lengths = np.sqrt(squares)
    direction = np.divide(projected, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
    return np.asarray((_PHASES * direction) % 1.0)


def row_hash(X: Any) -> NDArray[np.uint64]:
    """A number for each row that depends on its values only: an exact modular dot product."""
    rng = np.random.default_rng(0)
    multipliers = rng.integers(0, 2**63, size=X.shape[1], dtype=np.uint64) * np.uint64(2) + 1
    if not sp.issparse(X):
        hashes = np.empty(X.shape[0], dtype=np.uint64)

        def fill(part: slice) -> None:
            for rows in _within(part, X.shape[1]):
                hashes[rows] = _bits(X[rows]) @ multipliers

        in_threads(fill, thread_blocks(X))
        return hashes
    hashed = sp.csr_array((_bits(X.data), X.indices, X.indptr), shape=X.shape)
    return np.asarray(hashed @ multipliers).ravel()


def content_order(source: NDArray[np.bool_], place: NDArray[Any], *ties: NDArray[Any]) -> Any:
    """The rows of the source and then the others, each by place; where that is equal, by `ties`.

    The same as a sort by all keys, of which the first alone orders nearly all rows.
    """

    def ordered(rows: NDArray[np.intp]) -> NDArray[np.intp]:
        rows = rows[np.argsort(place[rows])]
        equal = place[rows[1:]] == place[rows[:-1]]
        tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        alike = np.sort(rows[tied])
        rows[tied] = alike[np.lexsort([key[alike] for key in (*reversed(ties), place)])]
        return rows

    return np.concatenate(in_threads(ordered, [np.flatnonzero(source), np.flatnonzero(~source)]))


def table_key(table: Any) -> Hashable:
    """A short name for the content of a table, dense or sparse."""
    parts = (table.indptr, table.indices, table.data) if sp.issparse(table) else (table,)
    return table.shape, str(table.dtype), digest(*parts)


def digest(*arrays: NDArray[Any]) -> bytes:
    """A short name for the content of arrays."""
    digest = blake2b(digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


def _within(part: slice, width: int) -> Iterator[slice]:
    """Blocks of a stretch of rows that stay in the caches of one core."""
    step = max(1, _HASHED_VALUES // width)
    for start in range(part.start, part.stop, step):
        yield slice(start, min(start + step, part.stop))


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """The values' bit patterns, with -0.0 taken as 0.0, their high bits mixed into the low ones."""
    bits = (np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    return bits ^ (bits >> np.uint64(32))
