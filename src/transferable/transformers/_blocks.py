"""Transformers that map rows block by block."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.base import DomainTransformer
from transferable.domains import Domains, positions_of
from transferable.limits import LIMITS
from transferable.linalg.moments import row_blocks
from transferable.linalg.row_tables import RowTable

__all__ = [
    "BlockwiseTransformer",
    "PerDomainTransformer",
    "domain_tables",
    "weighted_tables",
]


class BlockwiseTransformer(DomainTransformer):
    """Base of the transformers.

    Adapted rows have the precision of the rows given. They are computed in double precision, but
    never more than a block of them at a time.
    """

    _preserves_dtype = ["float64", "float32"]  # noqa: RUF012

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


class PerDomainTransformer(BlockwiseTransformer):
    """Base of those with a map for each source: the ids of rows tell which to take.

    Where there is one source, any positive number marks its rows.
    """

    _source_ids: NDArray[Any] = np.array([1])  # models of earlier versions knew one source

    def _told(self, ids: NDArray[Any]) -> NDArray[Any]:
        return ids

    def _source_of(self, ids: NDArray[Any]) -> NDArray[np.intp]:
        """The position of each row's source in their order, -1 for target rows."""
        return np.where(ids > 0, positions_of(np.abs(ids), self._source_ids, ids > 0), -1)


def domain_tables(domains: Domains) -> tuple[RowTable, RowTable]:
    """The rows of source and target, read in blocks; without a target, twice the source's."""
    table = RowTable(domains.X)
    source = table.part(domains.source)
    return source, table.part(domains.target) if domains.n_target else source


def weighted_tables(
    domains: Domains, within: slice
) -> tuple[NDArray[Any], list[tuple[RowTable, NDArray[np.float64] | None]]]:
    """The ids of the domains of a slice of rows, and the rows of each with their weights."""
    table, weights = RowTable(domains.X), domains.weights
    marks = domains.ids[within]
    ids = np.unique(marks)
    parts = []
    for one in ids:
        rows: Any = within
        if len(ids) > 1:
            rows = within.start + np.flatnonzero(marks == one)
        parts.append((table.part(rows), None if weights is None else weights[rows]))
    return ids, parts
