"""Principal subspaces of both domains, and rows of a domain with their weights."""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from transferable._linalg.arrays import Reordered
from transferable._linalg.eigen import Matrix
from transferable._linalg.grassmann import basis_of_moments, principal_basis
from transferable._linalg.moments import RowTable, moments_of_blocks
from transferable._sklearn import COUNT
from transferable.base import DomainTransformer
from transferable.domains import Domains
from transferable.exceptions import warn_of_fewer

_SUBSPACE_COMPONENTS = 20

# Rows of a domain, read in blocks, and their weights.
WeightedTable = tuple[RowTable, Matrix]


class SubspaceTransformer(DomainTransformer):
    """Base of GFK and subspace alignment: a principal basis of each domain."""

    _parameter_constraints = {"n_components": [COUNT, None]}  # noqa: RUF012

    n_components: int | None = field(default=None, kw_only=False)

    def _bases(self, domains: Domains) -> tuple[Matrix, Matrix]:
        """Return bases of source and target; without a target, twice the source's."""
        wanted = _SUBSPACE_COMPONENTS if self.n_components is None else self.n_components
        sides = domains.source, domains.target if domains.n_target else domains.source
        if isinstance(domains.X, Reordered):
            moments = (moments_of_blocks(RowTable(domains.X), side) for side in sides)
            bases = [basis_of_moments(m, wanted) for m in moments]
        else:
            bases = [principal_basis(domains.X[i], wanted, domains.weights[i]) for i in sides]
        rank = min(basis.shape[1] for basis in bases)
        if rank == 0:
            raise ValueError(
                f"{type(self).__name__} needs rows that vary in both domains; the "
                f"{domains.n_source} source rows or the {domains.n_target} target rows do not."
            )
        if rank < (self.n_components or 0):
            warn_of_fewer(wanted, rank)
        return bases[0][:, :rank], bases[1][:, :rank]


def table_of(domains: Domains, rows: slice | NDArray[np.intp]) -> WeightedTable:
    """Return some of the rows with their weights."""
    return RowTable(domains.X).part(rows), domains.weights[rows]
