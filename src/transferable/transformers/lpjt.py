"""Locality preserving joint transfer."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from transferable._kernel.objective import mean_differences
from transferable._linalg.arrays import row_blocks
from transferable._linalg.simplex import minimise_on_simplices
from transferable._linalg.systems import Matrix, leading_dense
from transferable._sklearn import COUNT, POSITIVE, WEIGHT, Interval
from transferable.domains import Domains
from transferable.transformers._features import Features, by_domain, by_row
from transferable.transformers._spectral import (
    Codes,
    Solution,
    SpectralTransformer,
    Times,
)


class LPJT(SpectralTransformer, example="n_components=2"):
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
    n_components : int or None, default=None
        As in :class:`JGSA`.
    regularization : float, default=1.0
        As in :class:`JGSA`.
    target_variance : float, default=1.0
        As in :class:`JGSA`.
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
    transduction_ : ndarray of shape (n_samples,)
        Labels of the source rows and last pseudo-labels of the target rows, in input order.
    n_iter_ : int
        Rounds that were run.
    sample_weight_ : ndarray of shape (n_samples,)
        Weights of the fitted rows, in input order. An estimator that takes sample
        weights was given those of the source.

    Notes
    -----
    Rows to transform are treated as target rows unless ``sample_domain`` marks them as source. The
    first pseudo-labels come from the rows as they are.

    Published: the defaults, with an SVM on weighted rows and first labels by 1-NN in a principal
    subspace. The paper weights rows of both domains, which ours does; its authors' code keeps the
    target's weights at 1.

    References
    ----------
    .. [1] J. Li, M. Jing, K. Lu, L. Zhu, H. T. Shen (2019). Locality preserving joint transfer for
       domain adaptation. IEEE Transactions on Image Processing 28(12).
    """

    _needs_factor = _paired = True
    _feature_tables = 20  # its features are twice as wide, and terms are applied to them
    _parameter_constraints = {  # noqa: RUF012
        "target_variance": [POSITIVE],
        "locality": [WEIGHT],
        "weight_share": [Interval(Real, 1e-6, 1, closed="both")],
        "n_neighbors": [COUNT],
        "n_pairs": [COUNT],
    }

    regularization: float = 1.0
    estimator: ClassifierMixin | None = None
    max_iter: int = 5
    target_variance: float = 1.0
    locality: float = 0.05
    weight_share: float = 0.5
    n_neighbors: int = 5
    n_pairs: int = 10

    def _learn(self, domains: Domains, features: Features) -> Solution:
        solve = self._solver(domains, features)
        solver, first = (lambda _: solve), solve.weights
        learnt = self._relabelled(domains, features, solver, first, settles=False)
        self.sample_weight_ = domains.restore(solve.weights)
        return learnt

    def _solver(self, domains: Domains, features: Features) -> WeighingSolver:
        r, sides = features.rank, (domains.source, domains.target)
        X = np.asarray(domains.X, dtype=np.float64)
        # Rows of the source have the first half of the features, rows of the target the second.
        Psi = by_domain(features.times(np.eye(r)), domains)
        variance = np.zeros((2 * r, 2 * r))
        variance[r:, r:] = self.target_variance * features.scatter(1)
        # lambda ||A - B||^2 + mu ||B||^2
        coupling = self.regularization
        pair = np.array([[coupling, -coupling], [-coupling, coupling + self.target_variance]])
        penalty = np.kron(features.scale * pair, np.eye(r))

        def solve(discrepancy: WeightedDiscrepancy, weights: Matrix, k: int) -> Solution:
            codes = discrepancy.groups % domains.n_classes
            inside = [nearest_inside(X[i], codes[i], self.n_neighbors) for i in sides]
            between = [nearest_between(X[i], codes[i], self.n_pairs) for i in sides]
            B = self.locality * edge_scatter(sp.block_diag(between, "csr"), Psi) + variance
            A = self.locality * edge_scatter(sp.block_diag(inside, "csr"), Psi) + penalty
            weighted = weights[:, None] * Psi
            compared = weighted.T @ discrepancy.apply(weighted)
            return leading_dense((B + B.T) / 2, (A + A.T + compared + compared.T) / 2, k)

        share = self.weight_share
        return WeighingSolver(domains, lambda W: Psi @ W, solve, share=share, pairs=True)


class WeightedDiscrepancy:
    """Distances of LPJT between embedded rows f_i with weights w_i.

    Squared distance of the domains' weighted means, of each class's weighted means, and the mean
    squared distance of all pairs of rows of one class from different domains. Classes absent from
    either domain are left out.

    The mean weight in each class of each domain is `share`. Without `pairs`, as in LDML, only means
    are compared.
    """

    def __init__(
        self, domains: Domains, codes: Codes | None, *, share: float, pairs: bool = True
    ) -> None:
        self.groups, self.counts, self.share = domains.groups(codes), domains.counts(codes), share
        B = mean_differences(self.counts, domains.ratios, domains.source_weights)
        self.means = by_row(B[:, 0], domains, codes) / share
        of_class = self.means[:, 1:] if pairs else self.means[:, :0]
        self.source, self.target = np.maximum(of_class, 0.0), np.maximum(-of_class, 0.0)
        # A pair's |w_i f_i - w_j f_j|^2 counts 1 / (n_s n_t); summed over j, row i counts 1 / n_s.
        self.own = np.abs(of_class).sum(axis=1, keepdims=True) / share

    def apply(self, F: Matrix) -> Matrix:
        """Return S F for rows that already carry their weights."""
        cross = self.source @ (self.target.T @ F) + self.target @ (self.source.T @ F)
        return self.means @ (self.means.T @ F) + self.own * F - cross

    def product_for_weights(self, Z: Matrix, w: Matrix) -> Matrix:
        """Return Q w, where w'Qw is the value of the term for embedded rows Z with weights w."""
        return np.sum(Z * self.apply(w[:, None] * Z), axis=1)

    def least_weights(self, Z: Matrix, start: Matrix) -> Matrix:
        """Return weights of least distance between embedded rows Z, of mean `share` by class."""
        return minimise_on_simplices(
            lambda w: self.product_for_weights(Z, w),
            start,
            self.groups,
            self.share * self.counts.ravel(),
        )


class WeighingSolver:
    """Solver of LPJT or LDML: weights of rows from the last embedding, then maps from these.

    `times` maps coefficients to embedded rows; `solve` maps the discrepancy, the weights of the
    rows and the number of vectors to a solution.
    """

    def __init__(
        self,
        domains: Domains,
        times: Times,
        solve: Callable[[WeightedDiscrepancy, Matrix, int], Solution],
        *,
        share: float,
        pairs: bool,
    ) -> None:
        self.domains, self.times, self.solve = domains, times, solve
        self.share, self.pairs = share, pairs
        self.weights = np.full(len(domains.order), float(share))
        self.Z: Matrix | None = None

    def __call__(self, codes: Codes | None, k: int) -> Solution:
        """Solve for the target's pseudo-labels."""
        discrepancy = WeightedDiscrepancy(self.domains, codes, share=self.share, pairs=self.pairs)
        if self.Z is not None:
            self.weights = discrepancy.least_weights(self.Z, self.weights)
        values, vectors = self.solve(discrepancy, self.weights, k)
        self.Z = self.times(vectors / np.linalg.norm(vectors, axis=0))
        return values, vectors


def edge_scatter(graph: sp.csr_array, F: Matrix) -> Matrix:
    """Return F' L F, the sum of w_ij |f_i - f_j|^2 over the edges of a symmetric graph."""
    degrees = np.asarray(graph.sum(axis=1)).reshape(-1, 1)
    return F.T @ (degrees * F - graph @ F)


def nearest_inside(X: Matrix, groups: Codes, n_neighbors: int) -> sp.csr_array:
    """Join each row to its nearest rows of the same group, with weight 1 in both directions."""
    heads, tails = [], []
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        k = min(n_neighbors, len(rows) - 1)
        if k > 0:
            nearest = NearestNeighbors(n_neighbors=k).fit(X[rows]).kneighbors()[1]
            heads.append(np.repeat(rows, k))
            tails.append(rows[nearest.ravel()])
    return _joined(heads, tails, len(X))


def nearest_between(X: Matrix, groups: Codes, n_pairs: int) -> sp.csr_array:
    """Join the `n_pairs` closest pairs of rows from different groups, with weight 1."""
    heads, tails, distances = [], [], []
    for group in np.unique(groups)[:-1]:
        # Each pair of groups is compared once: from the one that comes first.
        members, others = np.flatnonzero(groups == group), np.flatnonzero(groups > group)
        for block in row_blocks(len(members), len(others)):
            rows = members[block]
            apart = pairwise_distances(X[rows], X[others])
            k = min(n_pairs, apart.size)
            closest = np.argpartition(apart, k - 1, axis=None)[:k]
            first, second = np.unravel_index(closest, apart.shape)
            heads.append(rows[first])
            tails.append(others[second])
            distances.append(apart.flat[closest])
    if not heads:
        return _joined([], [], len(X))
    order = np.argsort(np.concatenate(distances), kind="stable")[:n_pairs]
    return _joined([np.concatenate(heads)[order]], [np.concatenate(tails)[order]], len(X))


def _joined(heads: list[Codes], tails: list[Codes], n: int) -> sp.csr_array:
    """Return the symmetric graph with these edges."""
    i = np.concatenate([*heads, *tails]) if heads else np.empty(0, dtype=np.intp)
    j = np.concatenate([*tails, *heads]) if heads else np.empty(0, dtype=np.intp)
    graph = sp.csr_array((np.ones(len(i)), (i, j)), shape=(n, n))
    graph.data[:] = 1.0
    return graph
