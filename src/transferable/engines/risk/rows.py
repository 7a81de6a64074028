"""The rows of one problem as the risk classifiers see them, and what their labels tell of them.

Source rows that are left out in turn, which costs one inverse and no refit, judge two choices: how
many directions the features have, by the error of the kernel classifier; and how much the graph is
trusted, by the error of the nearest neighbour beside it. Distances between the domains tell how
much the classes' discrepancy counts against that of the domains as wholes.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.decomposition import TruncatedSVD
from sklearn.utils import check_random_state

from transferable.domains import Domains, Groups
from transferable.engines.risk.features import ManifoldFeatures
from transferable.events import stage
from transferable.limits import LIMITS
from transferable.linalg.anchors import Anchors, spherical_means
from transferable.linalg.arrays import Arrays, to_numpy
from transferable.linalg.kernels import KernelFunction
from transferable.linalg.neighbors import neighbor_graph
from transferable.linalg.nystrom import draw_landmarks
from transferable.linalg.rows import dense
from transferable.linalg.search import nearest
from transferable.linalg.systems import Inverse, add_to_diagonal, effective_ridge
from transferable.metrics import distance_of_halves
from transferable.terms.base import Matrix
from transferable.terms.smoothness import AnchorLaplacian, Laplacian

__all__ = ["Balance", "NearestSource", "Rows", "choose_features", "leading"]

_JUDGES = 1000  # source rows that judge; their order is random already
_MOST_TIMES = 4  # target rows for each source row that leave the graph its weight
_ROWS_TO_PLACE = 32  # rows for each anchor that k-means looks at
_TOLERANCE = 0.01  # of accuracy, that fewer directions may cost
_NEAR_TIE = 0.02  # of scores, which are from 0 to 1: margin within which a row is nearly a tie
_WIDEST = 256  # features beyond which distances are measured in the leading directions
_DIRECTIONS = 64
_COMPARED = 2000  # rows of each side that distances compare; their order is random already


class Rows:
    """Features of all rows, of unit length, with their kernel, neighbours and distances.

    Parameters
    ----------
    domains : Domains
        The problem.
    features : ManifoldFeatures
        The map from rows to features.
    kernel : KernelFunction
        The kernel between features.
    ridge : float
        The ridge of the classifier that left-out rows judge by.
    arrays : Arrays
        Where the algebra is done.
    random_state : int, RandomState instance or None
        Seed of the directions in which wide features are compared.

    Attributes
    ----------
    key : hashable
        The same for the same features of the same rows.
    graph_recall : float
        Share of the neighbours that the last search found.
    """

    def __init__(
        self,
        domains: Domains,
        features: ManifoldFeatures,
        kernel: KernelFunction,
        ridge: float,
        arrays: Arrays,
        random_state: int | RandomState | None,
    ) -> None:
        self.domains, self.features, self.kernel = domains, features, kernel
        self.ridge, self.arrays, self.random_state = ridge, arrays, random_state
        self.key = features.key
        self.graph_recall = 1.0

    def with_shares(self, shares: NDArray[np.float64] | None) -> Rows:
        """The same rows and features, where the target's classes are taken to have these shares."""
        other = copy(self)
        other.domains = self.domains.with_shares(shares)
        return other

    @cached_property
    def Z(self) -> Any:
        """The features of all rows, of unit length: an array or sparse matrix of shape (n, d)."""
        stage("Mapping rows to features")
        domains = self.domains
        return domains.share("features", self.key, self.features.of_domains, domains)

    @cached_property
    def table(self) -> Any:
        """The features where the algebra is done."""
        return self.arrays.table(self.Z)

    @property
    def place(self) -> tuple[Any, ...]:
        """What tables made of these features are kept under."""
        return self.key, self.arrays

    def kernel_matrix(self) -> Matrix:
        """K of all rows, in float64."""
        return self.domains.share("kernel", (self.place, self.kernel), self._kernel_matrix)

    def _kernel_matrix(self) -> Matrix:
        rows = self.arrays.table(self.Z, "float64")
        return self.arrays.table(self.kernel(rows, rows))

    def laplacian(self, n_neighbors: int, self_loops: bool) -> Laplacian:
        """L of the graph of nearest neighbours."""
        key = "graph", self.place, n_neighbors, self_loops
        stage("Finding neighbours")
        graph = self.domains.share(
            "graph", key, neighbor_graph, self.table, n_neighbors, self_loops
        )
        self.graph_recall = graph.recall
        return Laplacian(self.arrays.sparse(graph.weights), key=key)

    def anchor_laplacian(self, n_anchors: int, n_nearest: int) -> AnchorLaplacian:
        """L of the graph through so many anchors, of which each row is tied to the nearest."""
        stage("Placing anchors")
        key = "anchors", self.place, n_anchors, str(self.random_state)
        centers = self.domains.share("anchors", key, self._anchor_centers, n_anchors)
        anchors = Anchors(centers, n_nearest, self.arrays)

        def ties() -> Matrix:
            return self.domains.share("ties", (key, n_nearest), anchors.ties, self.table)

        return AnchorLaplacian(anchors, ties, key=(key, n_nearest))

    def _anchor_centers(self, count: int) -> Any:
        """Centres by k-means of the first rows of both domains, whose order is random already."""
        n_source, rng = self.domains.n_source, check_random_state(self.random_state)
        drawn = draw_landmarks(self.Z, n_source, count, rng)
        if sp.issparse(self.Z):
            return self.Z[drawn]
        most = min(_ROWS_TO_PLACE * count // 2, LIMITS.pool_rows)
        first = np.r_[: min(n_source, most), n_source : min(self.Z.shape[0], n_source + most)]
        return spherical_means(self.table[first], self.table[drawn])

    def trust_in_neighbors(self) -> float:
        """rho: 1, less a tenth for each point that the nearest neighbour is worse than the kernel.

        Neighbours that mislead among labelled source rows mislead among target rows too. The weight
        does not fall below 0.1 for that: on no kind of data did a graph of that weight harm. Where
        neighbours are better, it is one more for each point, up to 3. The Laplacian sums over all
        rows and the loss over the source's, though: where the target has more than a few times as
        many rows, the weight shrinks in proportion.
        """
        domains = self.domains
        excess = self._neighbor_error() - left_out_error(
            domains, self.features, self.kernel, self.ridge
        )
        n_source, n_target = domains.sizes
        crowd = n_target / (_MOST_TIMES * n_source)
        slope = 10.0 if excess > 0 else 100.0
        return float(np.clip(1.0 - slope * excess, 0.1, 3.0)) / max(1.0, crowd)

    def _neighbor_error(self) -> float:
        """Error of the label of the nearest other row by cosine."""
        domains, y = self.domains, self.domains.y[:_JUDGES]
        key = self.key, domains.labels_key
        found = domains.share("nearest of judges", key, nearest, self.Z[: len(y)])
        return float(np.mean(y[found.indices[:, 0]] != y))

    def first_labelled(self) -> tuple[Any, NDArray[np.intp], NDArray[np.float64] | None]:
        """Features, class codes and weights of the labelled rows that first labels come from."""
        rows, codes, weights = self.domains.first_labelled(LIMITS.pool_rows)
        return self.Z[rows], codes, weights

    def balance(self, rule: str | float, groups: Groups) -> float:
        """mu for these groups, by the rule or as given."""
        if not isinstance(rule, str):
            return float(rule)
        return self._balance(rule, groups)

    @cached_property
    def _balance(self) -> Balance:
        domains, seed = self.domains, self.random_state
        return domains.share("balance", (self.key, str(seed)), Balance, self.Z, domains, seed)


class NearestSource:
    """The class of the nearest row by cosine, of rows of unit length; exact however many ask."""

    def __init__(
        self, rows: Any, codes: NDArray[np.intp], weights: Any = None, *, arrays: Arrays
    ) -> None:
        """Whatever rows weigh, the nearest is the nearest."""
        self.rows, self.codes, self.arrays = rows, codes, arrays

    def __call__(self, Z: Any) -> NDArray[np.intp]:
        """Classes of rows."""
        step = max(1, LIMITS.exact_pairs // len(self.codes))
        base, found = self.arrays.table(self.rows), [np.empty(0, dtype=np.intp)]
        for start in range(0, Z.shape[0], step):
            indices = nearest(self.arrays.table(Z[start : start + step]), base).indices
            found.append(self.codes[to_numpy(indices).ravel()])
        return np.concatenate(found)


def choose_features(domains: Domains, kernel: KernelFunction, ridge: float) -> ManifoldFeatures:
    """The fewest directions that keep the left-out accuracy of the best within a point."""
    candidates = list(ManifoldFeatures.candidates(domains))
    if len(candidates) == 1:
        return candidates[0]
    errors = [left_out_error(domains, features, kernel, ridge) for features in candidates]
    good = np.flatnonzero(np.array(errors) <= min(errors) + _TOLERANCE)
    return candidates[good[0]]


def left_out_error(
    domains: Domains, features: ManifoldFeatures, kernel: KernelFunction, ridge: float
) -> float:
    """Error of regularised least squares on source rows left out in turn, shared by fits.

    A row near a tie counts in part, as a wrong one and as a right one, so that the error, and what
    is chosen by it, does not hang on the last digits of a row.
    """
    key = features.key, kernel, ridge, domains.labels_key
    return domains.share("left-out error", key, _left_out_error, domains, features, kernel, ridge)


def _left_out_error(
    domains: Domains, features: ManifoldFeatures, kernel: KernelFunction, ridge: float
) -> float:
    """The same from one inverse."""
    y: NDArray[np.intp] = domains.y[:_JUDGES]
    Z = features.transform(domains.X[: len(y)]).astype(np.float64)
    K = kernel(Z, Z)
    inverse = Inverse(add_to_diagonal(K, effective_ridge(ridge, K))).matrix
    Y = np.eye(y.max() + 1)[y]
    left_out = Y - (inverse @ Y) / np.diag(inverse)[:, None]
    own = np.take_along_axis(left_out, y[:, None], axis=1)[:, 0]
    margins = own - np.where(Y > 0, -np.inf, left_out).max(axis=1)
    return float(np.mean(expit(-margins / _NEAR_TIE)))


class Balance:
    """The balance for given groups, estimated from A-distances between source and target rows.

    With d_M the A-distance between the domains and d_c that between their rows of class c,
    "adaptive" is MEDA's mean(d_c) / (mean(d_c) + d_M), and "printed" is the paper's
    d_M / (d_M + sum(d_c)). A class with fewer than two rows on either side is left out. Only the
    first rows of each domain are looked at. Of several sources, distances are averaged.
    """

    def __init__(self, Z: Any, domains: Domains, random_state: int | RandomState | None) -> None:
        self.Z = leading(Z, domains.n_source, random_state)
        self._known: dict[bytes, float | None] = {}
        self._pool = LIMITS.pool_rows, domains.n_source + LIMITS.pool_rows
        groups = domains.groups(None)
        wholes = [self._distance(*groups.whole(k)) or 0.0 for k in range(groups.n_sources)]
        self.marginal = float(np.mean(wholes))

    def __call__(self, rule: str, groups: Groups) -> float:
        """Balance of these groups."""
        if groups.n_source == len(groups.codes):
            return 0.5
        pairs = (
            groups.members(code, _COMPARED, k)
            for k in range(groups.n_sources)
            for code in range(groups.n_classes)
        )
        distances = [d for pair in pairs if (d := self._distance(*pair)) is not None]
        if rule == "printed":
            numerator, other = self.marginal, float(np.sum(distances)) / groups.n_sources
        else:
            numerator, other = float(np.mean(distances)) if distances else 0.0, self.marginal
        return numerator / (numerator + other) if numerator + other > 0 else 0.5

    def _distance(self, source: NDArray[np.intp], target: NDArray[np.intp]) -> float | None:
        """Distance between these source and target rows, remembered; None if they are too few."""
        source, target = (
            rows[: np.searchsorted(rows, end)][:_COMPARED]
            for rows, end in zip((source, target), self._pool, strict=True)
        )
        key = source.tobytes() + target.tobytes()
        if key not in self._known:
            enough = min(len(source), len(target)) >= 2
            distance = distance_of_halves(self.Z[source], self.Z[target]) if enough else None
            self._known[key] = distance
        return self._known[key]


def leading(Z: Any, n_source: int, random_state: int | RandomState | None) -> NDArray[np.floating]:
    """Z itself, or its coordinates in the leading directions where it is wide."""
    if Z.shape[1] <= _WIDEST:
        return dense(Z)
    k = min(_DIRECTIONS, min(Z.shape) - 1)
    first = np.r_[: min(n_source, _COMPARED), n_source : min(Z.shape[0], n_source + _COMPARED)]
    return TruncatedSVD(k, random_state=random_state).fit(Z[first]).transform(Z)
