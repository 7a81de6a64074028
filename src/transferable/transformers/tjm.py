"""Transfer joint matching."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky

from transferable._linalg.kernels import Kernel
from transferable._linalg.systems import Matrix, Root, leading_updated
from transferable.base import Takes
from transferable.domains import Domains
from transferable.events import rounds
from transferable.transformers._features import Features, KernelParameters
from transferable.transformers._spectral import Solution, SpectralTransformer, mean_columns

# Rows of W shorter than this count as this long: 1 / 0 would remove a row for good.
_SMALLEST_SHARE = 1e-8


class TJM(SpectralTransformer, example="n_components=2"):
    """Transfer joint matching: TCA that also turns away from irrelevant source rows.

        min tr(W'K M K W) + lambda (||W_s||_2,1 + ||W_t||^2)   subject to   W'K H K W = I

    W has a row for each fitted row. The sum of lengths ||W_s||_2,1 makes those of source rows
    vanish which do not help to match the domains.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly"} or callable, default="linear"
        Kernel of the expansion over the fitted rows; a callable maps two tables to their matrix.
    max_iter : int, default=10
        Rounds of reweighting, each of which solves for W with the lengths of the last.

    Attributes
    ----------
    n_iter_ : int
        Rounds that were run.

    Notes
    -----
    Of all W with the same embedding, each round takes the cheapest; so the problem has the size of
    the smaller side of X although W has a row for each of X's. Labels are not used.

    Published: linear or RBF kernel, 20 components and lambda 1 on SURF histograms, 10 rounds. Ours
    differs in the defaults for lambda and components only.

    References
    ----------
    .. [1] M. Long, J. Wang, G. Ding, J. Sun, P. S. Yu (2014). Transfer joint matching for
       unsupervised domain adaptation. CVPR.
    """

    takes = Takes(no_labels=True)
    _published = {"n_components": 20, "regularization": 1.0}  # noqa: RUF012
    _parameter_constraints = {  # noqa: RUF012
        "kernel": KernelParameters._parameter_constraints["kernel"],
    }

    kernel: Kernel | None = "linear"
    max_iter: int = 10

    def _learn(self, domains: Domains, features: Features) -> Solution:
        ridge = self.regularization * features.scale
        columns = features.transposed_times(mean_columns(domains, None))
        weights = np.ones(len(domains.order))
        for _ in rounds(self.max_iter):
            expansion = Expansion(features, weights)
            values, z = leading_updated(
                features.total_scatter, expansion.root(ridge), columns, self._wanted(features.rank)
            )
            lengths = np.linalg.norm(expansion.over_rows(z), axis=0)
            values, z = self._scaled(values, z, lengths)
            shares = np.linalg.norm(expansion.over_rows(z)[domains.source], axis=1)
            weights[domains.source] = 1.0 / np.maximum(shares, _SMALLEST_SHARE)
        self.n_iter_ = self.max_iter
        return values, z


class Expansion:
    """Maps W over rows that are cheapest, by tr(W'GW), among those with U'W = z.

    They are W = G^-1 U N^-1 z with N = U'G^-1 U, and cost z'N^-1 z. Embedded rows depend on W
    through z only, which replaces the coefficients.
    """

    def __init__(self, features: Features, weights: Matrix) -> None:
        self.features = features
        self.inverse = 1.0 / weights
        if features.roots is not None:
            N = np.zeros((features.rank, features.rank))
            for rows, Phi in features.blocks():
                scaled = np.sqrt(self.inverse[rows])[:, None] * (Phi / features.roots)
                N += scaled.T @ scaled
            self.lower = cholesky(N, lower=True)

    def root(self, ridge: float) -> Root:
        """Return R with R R' = (ridge N^-1)^-1."""
        if self.features.roots is None:
            return Root.diagonal(np.sqrt(self.inverse / ridge))
        return Root.matrix(self.lower / np.sqrt(ridge))

    def over_rows(self, z: Matrix) -> Matrix:
        """Return W from z."""
        if self.features.roots is None:
            return z
        solved = cho_solve((self.lower, True), z)
        return self.inverse[:, None] * self.features.times(solved / self.features.roots[:, None])
