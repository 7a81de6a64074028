"""Transformers that map rows block by block."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from transferable.base import DomainTransformer
from transferable.domains import Domains
from transferable.limits import LIMITS
from transferable.linalg.moments import row_blocks
from transferable.linalg.row_tables import RowTable

__all__ = ["BlockwiseTransformer", "domain_tables"]


class BlockwiseTransformer(DomainTransformer):
    """Base of the transformers.

    Adapted rows have the precision of the rows given. They are computed in double precision, but
    never more than a block of them at a time.
    """

    def _transform_rows(self, rows: Any, source: NDArray[np.bool_]) -> NDArray[np.floating]:
        n, d = rows.shape
        Z = np.empty((n, self._n_features_out), dtype=rows.dtype)
        width = max(self._width(d), LIMITS.block_values // LIMITS.mapped_rows)
        for block in row_blocks(n, width):
            Z[block] = self._transform_block(rows[block], source[block])
        return Z

    @abstractmethod
    def _transform_block(self, rows: Any, source: NDArray[np.bool_]) -> NDArray[np.floating]:
        """Adapted form of a few rows, of which `source` marks those of the source."""

    def _width(self, n_features: int) -> int:
        """Columns of the widest table that a block of rows with so many features leads to."""
        return n_features

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def domain_tables(domains: Domains) -> tuple[RowTable, RowTable]:
    """The rows of source and target, read in blocks; without a target, twice the source's."""
    table = RowTable(domains.X)
    source = table.part(domains.source)
    return source, table.part(domains.target) if domains.n_target else source
