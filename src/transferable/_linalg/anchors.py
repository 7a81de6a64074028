"""Anchor graph: rows are joined through the few centres that they are tied to.

Each row has weights on its s nearest anchors that sum to one, a row of Z, and the graph is W = Z
diag(Z'1)^-1 Z'. All degrees are one, so that its Laplacian is I - W, and Phi' W Phi needs only
Z'Phi and Z'1, which add up over blocks of rows.

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

from transferable._linalg.arrays import (
    CPU,
    Arrays,
    is_torch_array,
    namespace,
    products,
    row_blocks,
)
from transferable._linalg.search import block_rows, largest, membership_table
from transferable.limits import LIMITS


@dataclass(frozen=True)
class AnchorSums:
    """Z'1 and Z'Phi in float64, additive over tables."""

    counts: Any
    totals: Any

    @classmethod
    def none(cls, n_anchors: int, width: int, arrays: Arrays = CPU) -> AnchorSums:
        """Return sums over no rows."""
        totals = arrays.table(np.zeros((n_anchors, width)))
        return cls(arrays.table(np.zeros(n_anchors)), totals)

    @classmethod
    def of(cls, Z: Any, features: Any) -> AnchorSums:
        """Return the sums of a table small enough for one block."""
        totals, counts = Z.T @ features, Z.sum(axis=0)
        xp = namespace(totals)
        return cls(xp.astype(counts, xp.float64), xp.astype(totals, xp.float64))

    def __add__(self, other: AnchorSums) -> AnchorSums:
        return AnchorSums(self.counts + other.counts, self.totals + other.totals)

    @property
    def means(self) -> Any:
        """Mean features of each anchor, diag(Z'1)^-1 Z'Phi; zero for anchors without rows."""
        xp, some = namespace(self.counts), self.counts > 0
        return self.totals * xp.where(some, 1.0 / xp.where(some, self.counts, 1.0), 0.0)[:, None]

    @property
    def gram(self) -> Any:
        """Product Phi' W Phi."""
        return self.totals.T @ self.means


@dataclass(frozen=True)
class Anchors:
    """Centres that rows are tied to."""

    centers: Any  # (n_anchors, d): centres of unit length, as the rows are
    n_nearest: int  # s, anchors of a row; fewer than there are
    arrays: Arrays = CPU  # library and device of the algebra

    def __len__(self) -> int:
        return int(self.centers.shape[0])

    def ties(self, rows: Any) -> Any:
        """Return Z of some rows: sparse in compressed rows with numpy, dense with torch."""
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
        return membership_table(_weights(cosines), columns, k)

    def sums(self, blocks: Iterable[tuple[Any, Any]], width: int) -> AnchorSums:
        """Return sums over blocks of rows, each with the features of its rows and their number."""
        parts = (AnchorSums.of(self.ties(rows), features) for rows, features in blocks)
        return reduce(add, parts, AnchorSums.none(len(self), width, self.arrays))


def _weights(cosines: Any) -> Any:
    """Return weights that sum to one, by distance relative to the farthest of the anchors given.

    As a row moves away from an anchor its weight falls to zero before another anchor replaces it,
    so that Z is continuous in the rows.
    """
    xp = namespace(cosines)
    eps = float(xp.finfo(cosines.dtype).eps)  # where all are as near, all count alike
    weights = cosines - xp.min(cosines, axis=1, keepdims=True) + eps
    return weights / xp.sum(weights, axis=1, keepdims=True)
