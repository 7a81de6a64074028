"""Transfer component analysis."""

from __future__ import annotations

from transferable._kernel.choose import SourceWeights
from transferable.base import Takes
from transferable.domains import Domains
from transferable.transformers._features import Features
from transferable.transformers._spectral import (
    Solution,
    SpectralTransformer,
    mean_columns,
    means_solver,
)


class TCA(SpectralTransformer, example="n_components=2"):
    """Transfer component analysis: one map under which the domains' means meet.

    Among maps W that keep the variance of all rows, it takes the one with the smallest maximum mean
    discrepancy between the domains:

        min tr(W'K M K W) + lambda ||W||^2   subject to   W'K H K W = I

    with M = e e' / ||e||^2, where e'K is the difference of the domains' means, and H the centring
    matrix; of several sources, M is the weighted sum of their e e' over its Frobenius norm. With
    ``kernel=None``, K is replaced by the rows themselves.

    Attributes
    ----------
    source_weights_ : ndarray of shape (n_sources,)
        Weight of each source, in the order of the ids, 1 on average over their rows.

    Notes
    -----
    M has rank one, so the inverse of the left side is that of a multiple of the identity and one
    correction (Sherman and Morrison), and Lanczos iterations find the components with products
    only. Labels are not used.

    Published: an RBF or linear kernel on rows of unit length and lambda 1; results depend on the
    kernel little. Ours is linear in the features because that map is cheap, exact for new rows and
    works in any unit of measurement.

    References
    ----------
    .. [1] S. J. Pan, I. W. Tsang, J. T. Kwok, Q. Yang (2011). Domain adaptation via transfer
       component analysis. IEEE Transactions on Neural Networks 22(2).
    """

    takes = Takes(several_sources=True, sample_weight=True, no_labels=True)
    _published = {"kernel": "linear", "regularization": 1.0}  # noqa: RUF012

    source_weights: SourceWeights = "auto"

    def _learn(self, domains: Domains, features: Features) -> Solution:
        solve = means_solver(domains, features, mean_columns, self.regularization)
        self.source_weights_ = domains.source_weights
        return self._scaled(*solve(None, self._wanted(features.rank)))
