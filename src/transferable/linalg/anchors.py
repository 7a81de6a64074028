"""A graph through anchors: rows are joined by the few centres that they are tied to.

Each row has weights on its s nearest anchors that sum to one, a row of Z, and the graph is
W = Z diag(Z'1)^-1 Z'. All degrees are one, so that its Laplacian is I - W, and Phi' W Phi needs no
more of the rows than Z'Phi and Z'1, which add up over blocks of them, whoever holds these.

Liu, He and Chang, "Large graph construction for scalable semi-supervised learning", ICML 2010.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp

from transferable.limits import LIMITS
from transferable.linalg.arrays import CPU, Arrays, device, is_torch_array, namespace
from transferable.linalg.blocked_search import block_rows, largest
from transferable.linalg.moments import row_blocks
from transferable.linalg.rows import products

__all__ = ["AnchorSums", "Anchors", "spherical_means"]

_ROUNDS = 5  # of k-means


@dataclass(frozen=True)
class AnchorSums:
    """Z'1 and Z'Phi in float64; those of tables add up to those of the stacked tables."""

    counts: Any
    totals: Any

    @classmethod
    def none(cls, n_anchors: int, width: int, arrays: Arrays = CPU) -> AnchorSums:
        """Sums over no rows."""
        totals = arrays.table(np.zeros((n_anchors, width)))
        return cls(arrays.table(np.zeros(n_anchors)), totals)

    @classmethod
    def of(cls, Z: Any, features: Any) -> AnchorSums:
        """Those of a table small enough to be worked on at once."""
        totals, counts = Z.T @ features, Z.sum(axis=0)
        xp = namespace(totals)
        return cls(xp.astype(counts, xp.float64), xp.astype(totals, xp.float64))

    def __add__(self, other: AnchorSums) -> AnchorSums:
        return AnchorSums(self.counts + other.counts, self.totals + other.totals)

    @property
    def means(self) -> Any:
        """diag(Z'1)^-1 Z'Phi, zero for anchors that no row is tied to."""
        xp, some = namespace(self.counts), self.counts > 0
        return self.totals * xp.where(some, 1.0 / xp.where(some, self.counts, 1.0), 0.0)[:, None]

    @property
    def gram(self) -> Any:
        """Phi' W Phi."""
        return self.totals.T @ self.means


@dataclass(frozen=True)
class Anchors:
    """Centres that rows are tied to.

    Attributes
    ----------
    centers : array or sparse matrix of shape (n_anchors, d)
        Of unit length, as the rows are.
    n_nearest : int
        s, anchors of a row; fewer than there are.
    arrays : Arrays
        Where the algebra is done.
    """

    centers: Any
    n_nearest: int
    arrays: Arrays = CPU

    def __len__(self) -> int:
        return int(self.centers.shape[0])

    def ties(self, rows: Any) -> Any:
        """Z of some rows: sparse in compressed rows with numpy, dense with torch."""
        k = len(self)
        step, buffer = block_rows(rows, k), None
        if not is_torch_array(rows) and not sp.issparse(rows):
            step = min(step, LIMITS.mapped_rows)
            buffer = np.empty(step * k, dtype=np.result_type(rows, self.centers))
        blocks = row_blocks(rows.shape[0], k, step) or [slice(0, 0)]
        cosines = (self.arrays.table(products(rows[b], self.centers, buffer)) for b in blocks)
        parts = [largest(some, self.n_nearest + 1) for some in cosines]
        xp = namespace(parts[0][0])
        cosines, columns = (xp.concat(list(part)) for part in zip(*parts, strict=True))
        return _table(_weights(cosines), columns, k)

    def sums(self, blocks: Iterable[tuple[Any, Any]], width: int) -> AnchorSums:
        """Sums over blocks of rows, each with the features of its rows, so many columns."""
        parts = (AnchorSums.of(self.ties(rows), features) for rows, features in blocks)
        return reduce(add, parts, AnchorSums.none(len(self), width, self.arrays))


def _weights(cosines: Any) -> Any:
    """Weights that sum to one, by how much nearer an anchor is than the farthest of those given.

    As a row moves away from an anchor its weight falls to zero before another takes the place, so
    that Z is continuous in the rows.
    """
    xp = namespace(cosines)
    eps = float(xp.finfo(cosines.dtype).eps)  # where all are as near, all count alike
    weights = cosines - xp.min(cosines, axis=1, keepdims=True) + eps
    return weights / xp.sum(weights, axis=1, keepdims=True)


def _table(weights: Any, columns: Any, k: int) -> Any:
    """A table of k columns with these weights in each row.

    A GPU multiplies by a table of mostly zeros sooner than by a sparse one.
    """
    n, s = weights.shape
    if is_torch_array(weights):
        xp = namespace(weights)
        table = xp.zeros((n, k), dtype=weights.dtype, device=device(weights))
        return table.scatter_(1, columns, weights)
    starts = np.arange(0, n * s + 1, s)
    return sp.csr_array((weights.ravel(), columns.ravel(), starts), shape=(n, k))


def spherical_means(rows: Any, centers: Any, rounds: int = _ROUNDS) -> Any:
    """Centres of unit length by k-means on dense rows, from given ones.

    A centre that no row is nearest to stays where it is.
    """
    xp, k = namespace(rows), len(centers)
    blocks = row_blocks(len(rows), k, block_rows(rows, k))
    for _ in range(rounds):
        totals = xp.zeros(centers.shape, dtype=xp.float64, device=device(rows))
        for block in blocks:
            nearest = xp.argmax(products(rows[block], centers), axis=1)[:, None]
            members = _table(xp.ones_like(nearest, dtype=rows.dtype), nearest, k)
            totals += members.T @ rows[block]
        lengths = xp.linalg.vector_norm(totals, axis=1, keepdims=True)
        moved = xp.astype(totals / xp.where(lengths > 0, lengths, 1.0), centers.dtype)
        centers = xp.where(lengths > 0, moved, centers)
    return centers
