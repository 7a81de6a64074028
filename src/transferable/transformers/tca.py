"""Transfer component analysis."""

from __future__ import annotations

import numpy as np

from transferable.base import Takes, WeightedTransformer
from transferable.domains import Domains
from transferable.engines.sources import SOURCE_WEIGHTS, SourceWeights
from transferable.engines.spectral.features import Features
from transferable.linalg.kernels import Kernel
from transferable.transformers._spectral import (
    Solution,
    SpectralTransformer,
    aligning_solver,
    mean_discrepancy,
)

__all__ = ["TCA"]


class TCA(WeightedTransformer, SpectralTransformer):
    """Transfer component analysis: one map under which the domains' means meet.

    Among maps W that keep the variance of all rows, it takes the one with the smallest maximum mean
    discrepancy between the domains:

        min tr(W'K M K W) + lambda ||W||^2   subject to   W'K H K W = I

    with M = e e' / ||e||^2, where e'K is the difference of the domains' means, and H the centring
    matrix; of several sources, M is the weighted sum of their e e' over its Frobenius norm. With
    ``kernel=None``, K is replaced by the rows themselves.

    Parameters
    ----------
    source_weights : "auto", mapping or array-like, default="auto"
        What each of several sources counts, by id or in the order of the ids; only ratios matter.
        "auto" takes the squared share of target rows whose nearest row is of that source.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Ratio of the two sides of the objective for each component, largest first.
    n_landmarks_ : int or None
        Landmarks that were taken; None if the solution is exact.
    source_weights_ : ndarray of shape (n_sources,)
        What each source counted, in the order of the ids, 1 on average over their rows.

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

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.transformers import TCA
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat([0, 1], 20)
    >>> Xs = rng.normal(size=(40, 5)) + 3 * ys[:, None]
    >>> Xt = rng.normal(size=(30, 5)) + 3 * np.repeat([0, 1], 15)[:, None] + 1
    >>> model = TCA(n_components=2).adapt(Xs, ys, Xt)
    >>> model.transform(Xt).shape
    (30, 2)
    """

    takes = Takes(several_sources=True, sample_weight=True, no_labels=True)
    _published = {"kernel": "linear", "regularization": 1.0}  # noqa: RUF012
    _parameter_constraints = {  # noqa: RUF012
        **SpectralTransformer._parameter_constraints,
        "source_weights": SOURCE_WEIGHTS,
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Kernel | None = None,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        regularization: float = 0.1,
        scaling: str = "unit",
        normalize: bool = False,
        n_landmarks: int | str | None = "auto",
        max_memory: int | str | None = None,
        random_state: int | np.random.RandomState | None = 0,
        source_weights: SourceWeights = "auto",
    ) -> None:
        super().__init__(
            n_components,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            regularization=regularization,
            scaling=scaling,
            normalize=normalize,
            n_landmarks=n_landmarks,
            max_memory=max_memory,
            random_state=random_state,
        )
        self.source_weights = source_weights

    def _learn(self, domains: Domains, features: Features) -> Solution:
        means = mean_discrepancy(domains, None)
        solve = aligning_solver(features, self.regularization * features.scale, lambda _: means)
        return self._scaled(*solve(None, self._wanted(features.rank)))
