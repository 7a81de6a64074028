"""Locality preserving joint transfer."""

from __future__ import annotations

from numbers import Real
from typing import cast

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from sklearn.base import ClassifierMixin

from transferable._sklearn import Interval
from transferable.domains import Domains
from transferable.engines.spectral.features import Features
from transferable.linalg.eigen import Matrix, leading_dense
from transferable.linalg.group_graphs import nearest_between, nearest_inside
from transferable.linalg.kernels import Kernel
from transferable.terms.scatter import EdgeScatter, WithinScatter
from transferable.terms.weighted_rows import WeightedDiscrepancy
from transferable.transformers._paired import PairedMapsTransformer
from transferable.transformers._spectral import COUNT, POSITIVE, WEIGHT, Codes, Solution, Solver

__all__ = ["LPJT"]


class LPJT(PairedMapsTransformer):
    """Locality preserving joint transfer: two maps, weights of rows and neighbourhoods.

    Maps A of the source and B of the target maximise

        gamma tr(A'S_b A + B'S_b B) + mu tr(B'S_t B)
        over  D(w) + gamma tr(A'S_w A + B'S_w B) + lambda ||A - B||^2 + mu ||B||^2

    S_w joins neighbours of the same class, S_b the closest pairs of different classes, within each
    domain. D(w) compares the domains over rows with weights w between 0 and 1: their means, the
    means of each class, and all pairs of rows of one class from different domains. Given the maps,
    the weights minimise D with the same sum in each class, so that rows that rows of the other
    domain resemble count more. The paper calls these landmarks.

    Parameters
    ----------
    locality : float, default=0.05
        gamma: weight of the two graphs.
    weight_share : float, default=0.5
        delta: mean of the weights in each class of each domain.
    n_neighbors : int, default=5
        Neighbours of the same class that each row is joined to.
    n_pairs : int, default=10
        Closest pairs of different classes that are joined, in each domain.
    max_iter : int, default=5
        Rounds of weighting rows, solving and relabelling.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Ratio of the two sides of the objective for each component, largest first.
    transduction_ : ndarray of shape (n_samples,)
        Labels of the source rows and last pseudo-labels of the target rows, in input order.
    n_iter_ : int
        Rounds that were run.
    sample_weight_ : ndarray of shape (n_samples,)
        Weights of the fitted rows, in input order. An estimator that takes sample
        weights was given those of the source.
    n_landmarks_ : int or None
        Landmarks that were taken; None if the solution is exact.

    Notes
    -----
    Rows to transform are taken for target rows unless ``sample_domain`` marks them as source. The
    first pseudo-labels come from the rows as they are.

    Published: the defaults, with an SVM on weighted rows and first labels by 1-NN in a principal
    subspace. The paper weights rows of both domains, which ours does; its authors' code keeps the
    target's weights at 1.

    References
    ----------
    .. [1] J. Li, M. Jing, K. Lu, L. Zhu, H. T. Shen (2019). Locality preserving joint transfer for
       domain adaptation. IEEE Transactions on Image Processing 28(12).

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.transformers import LPJT
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat([0, 1], 20)
    >>> Xs = rng.normal(size=(40, 5)) + 3 * ys[:, None]
    >>> Xt = rng.normal(size=(30, 5)) + 3 * np.repeat([0, 1], 15)[:, None] + 1
    >>> model = LPJT(n_components=2).adapt(Xs, ys, Xt)
    >>> model.transform(Xt).shape
    (30, 2)
    """

    _settles = False
    _feature_tables = 20  # its features are twice as wide, and terms are applied to them
    _parameter_constraints = {  # noqa: RUF012
        **PairedMapsTransformer._parameter_constraints,
        "target_variance": [POSITIVE],
        "locality": [WEIGHT],
        "weight_share": [Interval(Real, 1e-6, 1, closed="both")],
        "n_neighbors": [COUNT],
        "n_pairs": [COUNT],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        target_variance: float = 1.0,
        locality: float = 0.05,
        weight_share: float = 0.5,
        n_neighbors: int = 5,
        n_pairs: int = 10,
        kernel: Kernel | None = None,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        regularization: float = 1.0,
        scaling: str = "unit",
        normalize: bool = False,
        estimator: ClassifierMixin | None = None,
        max_iter: int = 5,
        n_landmarks: int | str | None = "auto",
        max_memory: int | str | None = None,
        random_state: int | RandomState | None = 0,
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
            estimator=estimator,
            max_iter=max_iter,
            n_landmarks=n_landmarks,
            max_memory=max_memory,
            random_state=random_state,
        )
        self.target_variance = target_variance
        self.locality = locality
        self.weight_share = weight_share
        self.n_neighbors = n_neighbors
        self.n_pairs = n_pairs

    def _solver(self, domains: Domains, features: Features) -> Solver:
        return _Maps(
            domains,
            features,
            share=self.weight_share,
            target_variance=self.target_variance,
            coupling=self.regularization,
            locality=self.locality,
            n_neighbors=self.n_neighbors,
            n_pairs=self.n_pairs,
        )


class _Maps:
    """One problem: weights from the last embedding, then maps from the weights."""

    def __init__(
        self,
        domains: Domains,
        features: Features,
        *,
        share: float,
        target_variance: float,
        coupling: float,
        locality: float,
        n_neighbors: int,
        n_pairs: int,
    ) -> None:
        n, rank = len(domains.order), features.rank
        self.domains, self.share, self.locality = domains, share, locality
        self.n_neighbors, self.n_pairs = n_neighbors, n_pairs
        self.X = np.asarray(domains.X, dtype=np.float64)
        # Rows of the source have the first half of the features, rows of the target the second.
        self.Psi = np.zeros((n, 2 * rank))
        Phi = features.times(np.eye(rank))
        self.Psi[domains.source, :rank] = Phi[domains.source]
        self.Psi[domains.target, rank:] = Phi[domains.target]
        of_target = np.repeat([-1, 0], [domains.n_source, domains.n_target])
        self.variance = target_variance * WithinScatter(of_target).apply(self.Psi)
        # lambda ||A - B||^2 + mu ||B||^2
        pair = np.array([[coupling, -coupling], [-coupling, coupling + target_variance]])
        self.penalty = np.kron(features.scale * pair, np.eye(rank))
        self.weights = np.full(n, float(share))
        self.Z: Matrix | None = None

    def __call__(self, codes: Codes | None, k: int) -> Solution:
        """Solve for the target's pseudo-labels."""
        every = self.domains.with_target(cast(Codes, codes))
        discrepancy = WeightedDiscrepancy(self.domains.groups(cast(Codes, codes)), share=self.share)
        if self.Z is not None:
            self.weights = discrepancy.least_weights(self.Z, self.weights)
        discrepancy.weights = self.weights[:, None]
        inside, between = self._graphs(every)
        B = self.Psi.T @ (self.locality * between.apply(self.Psi) + self.variance)
        A = self.Psi.T @ (self.locality * inside.apply(self.Psi) + discrepancy.apply(self.Psi))
        values, vectors = leading_dense((B + B.T) / 2, (A + A.T) / 2 + self.penalty, k)
        self.Z = self.Psi @ (vectors / np.linalg.norm(vectors, axis=0))
        return values, vectors

    def _graphs(self, every: Codes) -> tuple[EdgeScatter, EdgeScatter]:
        """Neighbours of the same class, and the closest pairs of different ones, by domain."""
        sides = self.domains.source, self.domains.target
        inside = [nearest_inside(self.X[i], every[i], self.n_neighbors) for i in sides]
        between = [nearest_between(self.X[i], every[i], self.n_pairs) for i in sides]
        return EdgeScatter(sp.block_diag(inside, "csr")), EdgeScatter(sp.block_diag(between, "csr"))
