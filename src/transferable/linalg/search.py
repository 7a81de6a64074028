"""The nearest rows by cosine: one search for few rows and many, on a CPU or a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from transferable.limits import LIMITS
from transferable.linalg.arrays import Arrays
from transferable.linalg.blocked_search import exact_search
from transferable.linalg.clustered_search import clustered_search

__all__ = ["Neighbors", "nearest"]


@dataclass(frozen=True)
class Neighbors:
    """The nearest rows of each query, in any order, and how they were found."""

    indices: Any
    similarities: Any
    recall: float  # share of the nearest rows that were found; 1 for an exact search
    method: Literal["exact", "clustered"]


def nearest(
    queries: Any, base: Any | None = None, k: int = 1, *, random_state: int = 0
) -> Neighbors:
    """The k rows of `base` with the largest inner products with each query.

    Parameters
    ----------
    queries, base : arrays, sparse matrices or torch tensors of shapes (n_queries, d), (n_base, d)
        Rows of unit length or zero, both tables of the same kind; tensors are searched on their
        device. None for `base` searches among the queries, for other rows than the query.
    k : int
        Neighbours of each row.
    random_state : int
        Seed of the samples that the approximate search draws.

    Returns
    -------
    Neighbors
        Exact for sparse rows, where the numbers of rows multiply to at most 2^30, and where one
        of them is at most 4,096; else found in single precision by clusters, with a recall that is
        aimed at 0.97, as far as about 8,192 candidates for each row allow, and measured.
        Of rows that are equally near up to rounding, those of the lowest indices are taken; the
        similarities are returned as computed.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.linalg.search import nearest
    >>> nearest(np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])).indices.ravel()
    array([1, 2, 1])
    """
    n_queries = queries.shape[0]
    n_base = n_queries if base is None else base.shape[0]
    available = n_base - (base is None)
    if k > available:
        raise ValueError(f"k={k} neighbours of each row were asked for, but there are {available}.")
    few = n_queries * n_base <= LIMITS.exact_pairs
    if few or min(n_queries, n_base) <= LIMITS.short_rows or sp.issparse(queries):
        own = Arrays.of(queries).table(np.arange(n_queries)) if base is None else None
        found = exact_search(queries, queries if base is None else base, k, own)
        return Neighbors(*found, 1.0, "exact")
    return Neighbors(*clustered_search(queries, base, k, random_state), "clustered")
