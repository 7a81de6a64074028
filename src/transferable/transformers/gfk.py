"""Feature map of the geodesic flow kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable._linalg.grassmann import geodesic_flow_factor
from transferable.base import Takes
from transferable.domains import Domains
from transferable.transformers._bases import SubspaceTransformer


class GFK(SubspaceTransformer):
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

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.transformers import GFK
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat([0, 1], 20)
    >>> Xs = rng.normal(size=(40, 5)) + 3 * ys[:, None]
    >>> Xt = rng.normal(size=(30, 5)) + 3 * np.repeat([0, 1], 15)[:, None] + 1
    >>> model = GFK(n_components=2).adapt(Xs, ys, Xt)
    >>> model.transform(Xt).shape
    (30, 4)
    """

    takes = Takes(several_sources=True, no_labels=True)
    _accept_sparse = True

    def _fit_domains(self, domains: Domains) -> None:
        pairs = [geodesic_flow_factor(*self._bases(part)) for part in domains.pairs()]
        self.factor_ = np.hstack(pairs) / np.sqrt(len(pairs)) if len(pairs) > 1 else pairs[0]
        self._n_features_out = self.factor_.shape[1]

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        return rows @ self.factor_
