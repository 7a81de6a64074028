"""Scatter component analysis."""

from __future__ import annotations

from numbers import Real

import numpy as np

from transferable._kernel.objective import mean_differences
from transferable._linalg.kernels import Kernel
from transferable._linalg.systems import leading_dense
from transferable._sklearn import WEIGHT, Interval
from transferable.domains import Domains
from transferable.transformers._features import Features, KernelParameters, by_row
from transferable.transformers._spectral import Solution, SpectralTransformer, between_columns


class SCA(SpectralTransformer, example="n_components=2"):
    """Scatter component analysis: classes apart and tight, domains together, variance kept.

        max tr(W'((1 - beta) T + beta P) W) / tr(W'(delta D + Q + I) W)

    where T is the scatter of all rows, P that between the classes of the source, Q that inside them
    and D that between the domains, each as a mean over rows, and W a map of the kernel's features.

    Parameters
    ----------
    discrimination : float, default=0.5
        beta: 0 keeps the variance of all rows, 1 separates the source's classes only.
    alignment : float, default=1.0
        delta: weight of the scatter between domains.
    kernel : {"linear", "rbf", "poly"} or callable, default="linear"
        Kernel of the expansion over the fitted rows; a callable maps two tables to their matrix.

    Notes
    -----
    Solved in the coordinates of kernel principal components, where the norm of the map, K in the
    paper, is the identity.

    Published: an RBF kernel, with beta and delta chosen by validation on the source. Ours takes a
    linear kernel and fixed values, which do as well on the published tasks.

    References
    ----------
    .. [1] M. Ghifary, D. Balduzzi, W. B. Kleijn, M. Zhang (2017). Scatter component analysis: a
       unified framework for domain adaptation and domain generalization. IEEE TPAMI 39(7).
    """

    _needs_factor = True
    _power = 1
    _published = {"kernel": "rbf"}  # noqa: RUF012
    _parameter_constraints = {  # noqa: RUF012
        "kernel": KernelParameters._parameter_constraints["kernel"],
        "discrimination": [Interval(Real, 0, 1, closed="both")],
        "alignment": [WEIGHT],
    }

    kernel: Kernel | None = "linear"
    regularization: float = 1.0
    discrimination: float = 0.5
    alignment: float = 1.0

    def _learn(self, domains: Domains, features: Features) -> Solution:
        counts = domains.counts(None)
        means = mean_differences(counts, domains.ratios, domains.source_weights)[:, 0, :1]
        beta, identity = self.discrimination, np.eye(features.rank)
        B = (1.0 - beta) / len(domains.order) * features.total_scatter(identity)
        # One pass over the rows for both.
        columns = np.column_stack([by_row(means, domains, None), between_columns(domains)])
        projected = features.transposed_times(columns)
        apart, between = projected[:, :1], projected[:, 1:] @ projected[:, 1:].T
        B += beta / domains.n_source * between
        A = self.regularization * features.scale * identity
        A += (features.scatter(0) - between) / domains.n_source
        # Two domains lie half their difference away from the mean of their means.
        A += self.alignment / 4 * (apart @ apart.T)
        return self._scaled(*leading_dense(B, A, self._wanted(features.rank)))
