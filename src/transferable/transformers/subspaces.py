"""Principal subspaces of both domains: the geodesic flow kernel, and subspace alignment."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable._linalg.arrays import Reordered
from transferable._linalg.moments import RowTable, moments_of_blocks
from transferable._linalg.systems import (
    Matrix,
    basis_of_moments,
    geodesic_flow_factor,
    principal_basis,
)
from transferable._sklearn import COUNT
from transferable.base import DomainTransformer, Takes
from transferable.domains import Domains
from transferable.exceptions import warn_of_fewer
from transferable.transformers._features import table_of

_SUBSPACE_COMPONENTS = 20


class SubspaceTransformer(DomainTransformer):
    """Base of GFK and subspace alignment: a principal basis of each domain."""

    _parameter_constraints = {"n_components": [COUNT, None]}  # noqa: RUF012

    n_components: int | None = field(default=None, kw_only=False)

    def _bases(self, domains: Domains, source: slice | NDArray[np.intp]) -> tuple[Matrix, Matrix]:
        """Return bases of a source and the target; without a target, twice the source's."""
        wanted = _SUBSPACE_COMPONENTS if self.n_components is None else self.n_components
        sides = source, domains.target if domains.n_target else source
        if isinstance(domains.X, Reordered):
            tables = (RowTable(domains.X).part(side) for side in sides)
            moments = (moments_of_blocks(table, slice(0, table.n)) for table in tables)
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


class GFK(SubspaceTransformer, example="n_components=2"):
    """Geodesic flow kernel: inner products averaged over all subspaces between two domains.

    The principal subspaces of the source and of the target are joined by a geodesic; the kernel is
    x'G y with G the integral of the projections P(t) P(t)' along it. Rows are mapped to x Q with Q
    Q' = G, so any classifier can use it. With several sources the kernel is the mean of those of
    each source with the target, and the features of all pairs stand side by side.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of both subspaces; the output has twice as many features. None is 20, or as many
        as both domains span if fewer; a number that is too large is reduced with a warning.

    Attributes
    ----------
    factor_ : ndarray of shape (n_features, n_sources * 2 * n_components)
        Q.

    Notes
    -----
    Subspaces are those of centred rows; the map applies to rows as they are. Labels are not used.

    Published: the dimension by the subspaces' disagreement, 10 to 40. Ours is 20 unless given.

    References
    ----------
    .. [1] B. Gong, Y. Shi, F. Sha, K. Grauman (2012). Geodesic flow kernel for unsupervised domain
       adaptation. CVPR.
    """

    family = "subspace"
    takes = Takes(several_sources=True, no_labels=True)
    _accept_sparse = True

    def _fit_domains(self, domains: Domains) -> None:
        sources: list[Any] = [domains.source]
        if domains.n_sources > 1:
            sources = [np.flatnonzero(domains.sources == k) for k in range(domains.n_sources)]
        pairs = [geodesic_flow_factor(*self._bases(domains, rows)) for rows in sources]
        self.factor_ = np.hstack(pairs) / np.sqrt(len(pairs)) if len(pairs) > 1 else pairs[0]
        self._n_features_out = self.factor_.shape[1]

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        return rows @ self.factor_


class SubspaceAlignment(SubspaceTransformer, example="n_components=2"):
    """Subspace alignment: the source's principal axes are turned towards the target's.

    With principal bases P_s and P_t, the map P_s -> P_s M that comes closest to P_t has M =
    P_s'P_t. Source rows are mapped by P_s P_s'P_t, target rows by P_t.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of both subspaces. None is 20, or as many as both domains span if fewer; a number
        that is too large is reduced with a warning.

    Attributes
    ----------
    source_components_, target_components_ : ndarray of shape (n_components, n_features)
        The two maps, a row for each component.

    Notes
    -----
    Rows to transform are treated as target rows unless ``sample_domain`` marks them as source. Each
    domain is centred first, which changes nothing for standardised rows, as in the paper. Labels
    are not used.

    Published: the dimension by a bound on the subspaces' stability. Ours is 20 unless given.

    References
    ----------
    .. [1] B. Fernando, A. Habrard, M. Sebban, T. Tuytelaars (2013). Unsupervised visual domain
       adaptation using subspace alignment. ICCV.
    """

    family = "subspace"
    takes = Takes(no_labels=True)

    def _fit_domains(self, domains: Domains) -> None:
        Ps, Pt = self._bases(domains, domains.source)
        sides = domains.source, domains.target if domains.n_target else domains.source
        tables = [table_of(domains, side) for side in sides]
        self._means = np.stack([table.mean(weights) for table, weights in tables])
        self.source_components_ = (Ps @ (Ps.T @ Pt)).T
        self.target_components_ = Pt.T
        self._n_features_out = Pt.shape[1]

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        Z = np.empty((len(rows), len(self.target_components_)))
        maps = self.source_components_, self.target_components_
        sides = zip((ids > 0, ids <= 0), self._means, maps, strict=True)
        for side, mean, components in sides:
            mine = slice(None) if side.all() else side  # needs no copies of some of the rows
            if side.any():
                Z[mine] = (rows[mine] - mean) @ components.T
        return Z
