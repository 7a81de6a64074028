"""Feature map of the geodesic flow kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable._linalg.systems import geodesic_flow_factor
from transferable.base import Takes
from transferable.domains import Domains
from transferable.transformers._features import SubspaceTransformer


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
