"""Distribution-matched landmarks, a reconstruction."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.base import ClassifierMixin

from transferable._linalg.systems import Matrix, Root, leading_updated
from transferable._sklearn import Interval
from transferable.domains import Domains
from transferable.transformers._features import Features
from transferable.transformers._spectral import (
    Solution,
    SpectralTransformer,
)
from transferable.transformers.lpjt import WeighingSolver, WeightedDiscrepancy


class LDML(SpectralTransformer, example="n_components=2"):
    """Distribution-matched landmarks, reconstructed without published code or numbers.

    In one subspace weighted means of the domains coincide. The map W maximises the variance of all
    rows over D(w) + lambda ||W||^2. D(w) compares the means of the domains and of each class, by
    pseudo-labels, over rows with weights w between 0 and 1. Given the map, the weights minimise D
    with the same mean in each class of each domain: rows that bring the distributions together
    become landmarks, outliers are left out.

    Parameters
    ----------
    weight_share : float, default=0.5
        Mean of the weights in each class of each domain; 1 weights all rows alike.
    max_iter : int, default=10
        Rounds of weighting rows, solving and relabelling.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_samples,)
        Labels of the source rows and last pseudo-labels of the target rows, in input order.
    n_iter_ : int
        Rounds that were run.
    sample_weight_ : ndarray of shape (n_samples,)
        Weights of the fitted rows as landmarks, in input order. An estimator that takes sample
        weights was given those of the source.

    Notes
    -----
    A reconstruction from the paper's abstract and its authors' later
    :class:`~transferable.transformers.LPJT`, without locality, pairs of rows and a second map;
    parameters and order of steps are ours, and no published number was compared. M is divided by
    its Frobenius norm, as in JDA, which ``weight_share=1`` is, except for first pseudo-labels from
    the rows as they are. The rows of ``n_landmarks`` are not landmarks in this sense.

    References
    ----------
    .. [1] M. Jing, J. Li, J. Zhao, K. Lu (2018). Learning distribution-matched landmarks for
       unsupervised domain adaptation. DASFAA.
    """

    family = "experimental"
    _parameter_constraints = {  # noqa: RUF012
        "weight_share": [Interval(Real, 1e-6, 1, closed="both")],
    }

    estimator: ClassifierMixin | None = None
    max_iter: int = 10
    weight_share: float = 0.5

    def _learn(self, domains: Domains, features: Features) -> Solution:
        solve = self._solver(domains, features)
        solver, first = (lambda _: solve), solve.weights
        learnt = self._relabelled(domains, features, solver, first, settles=False)
        self.sample_weight_ = domains.restore(solve.weights)
        return learnt

    def _solver(self, domains: Domains, features: Features) -> WeighingSolver:
        root = Root.diagonal(1.0 / np.sqrt(self.regularization * features.scale))

        def solve(discrepancy: WeightedDiscrepancy, weights: Matrix, k: int) -> Solution:
            columns = weights[:, None] * discrepancy.means
            columns[:, 0] *= np.sqrt(domains.n_classes)  # as JDA's M
            norm = np.linalg.norm(columns.T @ columns) or 1.0
            projected = features.transposed_times(columns / np.sqrt(norm))
            return leading_updated(features.total_scatter, root, projected, k)

        return WeighingSolver(domains, features.times, solve, share=self.weight_share, pairs=False)
