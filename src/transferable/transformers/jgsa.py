"""Joint geometrical and statistical alignment."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import eigh
from sklearn.base import ClassifierMixin

from transferable._kernel.objective import mean_differences
from transferable._linalg.systems import Matrix, Root, leading_updated
from transferable._sklearn import POSITIVE, WEIGHT
from transferable.domains import Domains
from transferable.transformers._features import Features, by_domain, by_row
from transferable.transformers._spectral import (
    Codes,
    Solution,
    Solver,
    SpectralTransformer,
    between_columns,
)


class JGSA(SpectralTransformer, example="n_components=2"):
    """Joint geometrical and statistical alignment: a map for each domain, close to each other.

    Maps A of the source and B of the target maximise

        mu tr(B'S_t B) + beta tr(A'S_b A)
        over  tr(MMD of both) + lambda ||A - B||^2 + mu ||B||^2 + beta tr(A'S_w A)

    where S_t is the target's scatter, S_b and S_w those between and inside the source's classes,
    and MMD the distances of the means of domains and classes, C M_0 + sum_c M_c over ||C M_0||.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the shared space. None is 30, or the number of features if fewer. The two maps
        have twice as many components, of which the last separate the domains and cost accuracy, but
        may be included by a larger number. One that is too large is reduced with a warning.
    regularization : float, default=1.0
        lambda: penalty on the maps' difference, relative to the mean squared length of the rows (of
        their kernel features), which makes it independent of the unit.
    target_variance : float, default=1.0
        mu: weight of the target's variance, and of ||B||^2.
    discrimination : float, default=0.1
        beta: weight of the scatter between and inside the source's classes.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_samples,)
        Labels of the source rows and last pseudo-labels of the target rows, in input order.
    n_iter_ : int
        Rounds that were run.

    Notes
    -----
    Rows to transform are treated as target rows unless ``sample_domain`` marks them as source. The
    first pseudo-labels come from the rows as they are. In the eigenvectors of S_w the penalties
    couple only two numbers at a time; a round changes a matrix of rank C + 1.

    Published: 30 components and beta 0.1 on SURF histograms, 100 and 0.01 on pixels, lambda and mu
    1, 10 rounds. Ours takes the former.

    References
    ----------
    .. [1] J. Zhang, W. Li, P. Ogunbona (2017). Joint geometrical and statistical alignment for
       visual domain adaptation. CVPR.
    """

    _needs_factor = _paired = True
    _parameter_constraints = {  # noqa: RUF012
        "target_variance": [POSITIVE],
        "discrimination": [WEIGHT],
    }

    regularization: float = 1.0
    estimator: ClassifierMixin | None = None
    max_iter: int = 10
    target_variance: float = 1.0
    discrimination: float = 0.1

    def _learn(self, domains: Domains, features: Features) -> Solution:
        solver = partial(self._solver, features=features)
        return self._relabelled(domains, features, solver, domains.row_weights)

    def _solver(self, domains: Domains, features: Features) -> Solver:
        """Return the solver over coefficients of A above those of B, in the eigenvectors of S_w.

        There the penalty on both maps, lambda ||A - B||^2 + mu ||B||^2 + beta A'S_w A, couples only
        the two coefficients of one eigenvector.
        """
        r = features.rank
        between = features.transposed_times(between_columns(domains))
        within, rotation = eigh(features.scatter(0) - between @ between.T)
        between = np.sqrt(self.discrimination) * (rotation.T @ between)
        variance = self.target_variance * (rotation.T @ features.scatter(1) @ rotation)
        root = self._penalty_root(np.maximum(within, 0.0), features.scale)

        def product(x: Matrix) -> Matrix:
            return np.concatenate([between @ (between.T @ x[:r]), variance @ x[r:]])

        def solve(codes: Codes | None, k: int) -> Solution:
            projected = features.transposed_times(by_domain(_means(domains, codes), domains))
            columns = np.concatenate(np.split(rotation.T @ projected, 2, axis=1))
            values, vectors = leading_updated(product, root, columns, k)
            return values, np.concatenate([rotation @ vectors[:r], rotation @ vectors[r:]])

        return solve

    def _penalty_root(self, within: Matrix, scale: float) -> Root:
        """Return R of [[lambda + beta S_w, -lambda], [-lambda, lambda + mu]], with S_w diagonal."""
        r = len(within)
        coupling = self.regularization * scale
        first = coupling + self.discrimination * within
        second = (self.regularization + self.target_variance) * scale
        # first * second - coupling^2 without its cancellation, and not below its rounding error.
        determinant = (
            coupling * self.target_variance * scale + self.discrimination * within * second
        )
        determinant = np.maximum(determinant, np.finfo(float).eps * first * second)
        upper = np.sqrt(second / determinant)
        lower = coupling / (determinant * upper)
        corner = 1.0 / np.sqrt(second)

        def apply(x: Matrix) -> Matrix:
            top = (upper * x[:r].T).T
            return np.concatenate([top, (lower * x[:r].T).T + corner * x[r:]])

        def transposed(x: Matrix) -> Matrix:
            top = (upper * x[:r].T).T + (lower * x[r:].T).T
            return np.concatenate([top, corner * x[r:]])

        return Root(apply, transposed)


def _means(domains: Domains, codes: Codes | None) -> Matrix:
    """Return columns of M, which the authors divide by the Frobenius norm of its marginal part."""
    B = mean_differences(domains.counts(codes), domains.ratios, domains.source_weights)
    columns = by_row(B[:, 0], domains, codes)
    norm = float(np.sum(columns[:, 0] ** 2))
    columns[:, 1:] /= np.sqrt(domains.n_classes)
    return columns / np.sqrt(norm) if norm > 0 else columns
