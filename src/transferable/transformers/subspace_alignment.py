"""Subspace alignment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.base import Takes
from transferable.domains import Domains
from transferable.transformers._features import SubspaceTransformer, table_of


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
            Z[side] = (rows[side] - mean) @ components.T
        return Z
