"""Automatic choices of a fit: from a problem to numbers, before anything is solved.

Source rows left out in turn, at the cost of one inverse and no refit, decide two of them: the
number of directions, by the error of the kernel classifier, and the weight of the graph, by the
error of the nearest neighbour. A-distances balance conditional against marginal discrepancy.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.decomposition import TruncatedSVD
from sklearn.utils import check_random_state

from transferable._kernel.objective import AnchorSmoothness, Smoothness
from transferable._linalg.anchors import Anchors
from transferable._linalg.arrays import Arrays, Reordered, dense, to_numpy, unit_rows
from transferable._linalg.kernels import KernelFunction
from transferable._linalg.memory import Plan, memory_budget
from transferable._linalg.nystrom import draw_landmarks
from transferable._linalg.search import (
    cosine_neighbors,
    nearest,
    normalised_adjacency,
    spherical_means,
)
from transferable._linalg.systems import (
    basis_of_moments,
    effective_ridge,
    geodesic_flow_factor,
    inverse,
    principal_basis,
)
from transferable._sklearn import StrOptions
from transferable.domains import Domains
from transferable.events import stage
from transferable.limits import LIMITS

Graph = Literal["auto", "neighbors", "anchors"] | int
SourceWeights = Literal["auto"] | Mapping[Any, float] | ArrayLike
SOURCE_WEIGHTS = [StrOptions({"auto"}), Mapping, "array-like"]

DIMENSIONS = (20, 40, 80)  # of the flow that "auto" tries, besides no flow at all
N_VALIDATION_ROWS = 1000  # source rows that are left out in turn; their order is random already
MAX_TARGET_RATIO = 4  # target rows for each source row that leave the graph its weight
N_TIES = 3  # anchors of a row; five were worse where many rows share one
_ROWS_PER_ANCHOR = 5  # at least: below, anchors join rows of different classes, or none at all
_MOST_ANCHORS = 1000  # that "auto" takes
_MANY_ROWS = 10_000  # from which "auto" takes anchors, where it solves over landmarks
_ROWS_TO_PLACE = 32  # rows for each anchor in the sample of k-means
_TOLERANCE = 0.01  # of accuracy, that fewer directions may cost
_NEAR_TIE = 0.02  # of scores, which are from 0 to 1: margin within which a row is nearly a tie
_WIDEST = 256  # features beyond which distances are measured in the leading directions
_DIRECTIONS = 64
_SHRINKAGE = 0.1  # of the covariance in the discriminants of A-distances
_COMPARED = 2000  # rows of each side that distances compare; their order is random already
_LEAST_NEAR = 0.02  # share that the farthest source keeps


@dataclass(frozen=True)
class Problem:
    """Rows and parameters of a fit, with every automatic choice made.

    Attributes
    ----------
    domains : Domains
        The problem, sources weighted.
    flow : ndarray of shape (n_features, 2 k)
        Factor of the geodesic flow between subspaces of dimension k; no columns for no flow.
    Z : array or sparse matrix of shape (n, d)
        Features of all rows, of unit length.
    table : array
        `Z` as a table where the algebra is done.
    arrays : Arrays
        Library and device of the algebra.
    kernel : KernelFunction
        The kernel between features.
    ridge : float
        eta.
    manifold : float
        rho, the weight of the graph.
    n_anchors : int
        Anchors of the graph; 0 for one of neighbours.
    plan : Plan
        Landmarks, if any, and what is held in memory.
    balance : float or Balance
        mu, or the rule from pseudo-labels to it.
    random_state : int, RandomState or None
        Seed of the anchors.
    """

    domains: Domains
    flow: NDArray[np.float64]
    Z: Any
    table: Any
    arrays: Arrays
    kernel: KernelFunction
    ridge: float
    manifold: float
    n_anchors: int
    plan: Plan
    balance: Any
    random_state: int | RandomState | None

    def graph(self, n_neighbors: int, *, self_loops: bool = False) -> list[Any]:
        """Return the smoothness term, if any: of the anchors, or of a graph of neighbours."""
        if self.manifold == 0:
            return []
        share, where = self.domains.share, (self.arrays, self.flow.tobytes())
        if self.n_anchors:
            stage("Placing anchors")
            placed = "anchors", where, self.n_anchors, str(self.random_state)
            anchors = Anchors(share(placed, self._anchor_centers), N_TIES, self.arrays)
            return [AnchorSmoothness(self.manifold, anchors, self.table, placed)]
        stage("Finding neighbours")
        key = "graph", where, n_neighbors, self_loops
        found = share(key, cosine_neighbors, self.table, n_neighbors, self_loops)
        W = found if self.arrays.device is None else self.arrays.sparse(found)
        W = normalised_adjacency(W)
        starts = W.indptr if sp.issparse(W) else W.crow_indices()
        return [Smoothness(self.manifold, W, starts[1:] == starts[:-1], key)]

    def _anchor_centers(self) -> Any:
        """Return centres by k-means of the first rows of both domains, whose order is random."""
        n_source, Z = self.domains.n_source, self.Z
        rng = check_random_state(self.random_state)
        drawn = draw_landmarks(Z, n_source, self.n_anchors, rng)
        if sp.issparse(Z):
            return Z[drawn]
        most = min(_ROWS_TO_PLACE * self.n_anchors // 2, LIMITS.pool_rows)
        first = np.r_[: min(n_source, most), n_source : min(Z.shape[0], n_source + most)]
        return spherical_means(self.table[first], self.table[drawn])


@dataclass(frozen=True)
class KernelSizes:
    """Sizes of a fit, from which :mod:`transferable._linalg.memory` plans it.

    Attributes
    ----------
    row_bytes : int
        Feature rows, the graph while it is built, and a dozen tables of scores.
    matrices : int
        The kernel matrix, the system and two temporary ones; K K and its kin with the second order.
    """

    n_rows: int
    n_classes: int
    itemsize: int  # of a number of the feature rows
    row_bytes: int
    matrices: int
    growth: str = "cube"

    def landmark_bytes(self, m: int, *, held: bool, chunk: int) -> int:
        """Return the bytes of m landmarks: features, columns of a block, blocks and systems."""
        systems = 8 + (2 * self.n_classes + 4 if self.matrices > 4 else 0)
        columns = 3 * chunk + (m if held else 0)
        blocks = 4 * 8 * min(2**23, self.n_rows * m)
        rows = self.n_rows * (columns * self.itemsize + self.row_bytes)
        return 8 * systems * m * m + rows + blocks


def parameters(
    model: Any, domains: Domains, *, plan: Plan | None = None, flow: Any = None
) -> Problem:
    """Resolve every parameter of a model that is "auto" for a problem.

    Methods without `balance`, `manifold_dim` or `second_order` have the values of ARTL. `plan`
    replaces the plan by free memory, where others hold the rows; `flow` is a known one.
    """
    n_rows, d, given = sum(domains.sizes), domains, model.get_params(deep=False)
    if model.manifold != 0 and model.n_neighbors >= n_rows:
        raise ValueError(
            f"n_neighbors={model.n_neighbors} must be smaller than the number of rows, {n_rows}; "
            "lower it, or set manifold=0 to do without the graph."
        )
    stage("Finding the domains' directions")
    if d.n_sources > 1 or not isinstance(model.source_weights, str):
        d = replace(d, source_weights=source_weights(model.source_weights, d))
    arrays = Arrays(d.device)  # where the rows came from
    if d.device is None and model.device != "cpu":
        arrays = Arrays.on(model.device)
    kernel = KernelFunction(model.kernel, model.gamma)
    flows = _flows(given.get("manifold_dim"), d) if flow is None else [flow]
    errors = [0.0]
    if len(flows) > 1 or model.manifold == "auto":
        key = "left-out error", kernel, model.ridge, arrays, d.y.tobytes()
        system = kernel, model.ridge, arrays
        errors = [d.share((*key, Q.tobytes()), _left_out_error, d, Q, *system) for Q in flows]
    best = next(i for i, error in enumerate(errors) if error <= min(errors) + _TOLERANCE)
    flow, manifold = flows[best], model.manifold
    if manifold == "auto":
        manifold = _trust_in_neighbors(d, flow, errors[best])
    if plan is None:
        graph = 100 * model.n_neighbors if model.manifold else 0
        width, size = flow.shape[1] or d.X.shape[1], d.X.dtype.itemsize
        row_bytes = 2 * width * size + graph + 12 * 8 * (d.n_classes + 1)
        matrices = 7 if given.get("second_order") else 4
        sizes = KernelSizes(n_rows, d.n_classes, size, row_bytes, matrices)
        plan = Plan.make(sizes, model.n_landmarks, memory_budget(model.max_memory, arrays))
    anchors = 0
    if manifold and not (plan.n_landmarks is None and model.graph in ("auto", "neighbors")):
        anchors = n_anchors(model.graph, n_rows)
    stage("Mapping rows to features")
    Z = d.share(("features", flow.tobytes()), unit_rows, d.X, flow)
    balance, seed = given.get("balance", 0.5) if model.alignment else 0.5, model.random_state
    if isinstance(balance, str):
        asked = "balance", balance, flow.tobytes(), str(seed)
        balance = d.share(asked, Balance, balance, d, Z, seed)
    fixed = float(manifold), anchors, plan, balance, seed
    return Problem(d, flow, Z, arrays.table(Z), arrays, kernel, model.ridge, *fixed)


def _flows(manifold_dim: int | str | None, d: Domains) -> list[NDArray[np.float64]]:
    """Return the requested flow, or the candidates, of which the last leaves rows unchanged."""
    none = np.zeros((d.X.shape[1], 0))
    if manifold_dim is None or d.n_target == 0:
        return [none]
    auto = manifold_dim == "auto"
    most = DIMENSIONS[-1] if auto else int(manifold_dim)
    moments, bases = d.moments, []
    if isinstance(d.X, Reordered):
        moments = d.read_moments()
    for k, rows in enumerate((d.source, d.target)):
        key = "basis", most, k
        if moments is None:
            parts = d.X[rows], most, d.row_weights[rows]
            bases.append(d.share(key, principal_basis, *parts))
        else:
            bases.append(d.share(key, basis_of_moments, moments[k], most, d.sizes[k]))
    rank = min(basis.shape[1] for basis in bases)
    found = [k for k in DIMENSIONS if k <= rank] if auto else [rank] * (rank > 0)
    if not auto and rank < most:
        warnings.warn(
            f"manifold_dim={manifold_dim} is more than the rows of both domains span; it is "
            f"reduced to {rank}.",
            UserWarning,
            stacklevel=2,
        )
    flows = []
    for k in found:
        key = "flow", most, k
        flows.append(d.share(key, geodesic_flow_factor, *(basis[:, :k] for basis in bases)))
    return flows if flows and not auto else [*flows, none]


def _left_out_error(
    d: Domains, flow: NDArray[np.float64], kernel: KernelFunction, ridge: float, arrays: Arrays
) -> float:
    """Return the error of regularised least squares on source rows left out in turn.

    A row near a tie counts partly as wrong and partly as right, so that the error, and every choice
    based on it, is continuous in the rows.
    """
    y = d.y[:N_VALIDATION_ROWS]
    Z = arrays.table(unit_rows(d.X[: len(y)], flow), "float64")
    K = arrays.table(kernel(Z, Z))
    i = np.arange(len(K))
    K[i, i] += effective_ridge(ridge, K)
    A = to_numpy(inverse(K))
    Y = np.eye(y.max() + 1)[y]
    left_out = Y - (A @ Y) / np.diag(A)[:, None]
    own = np.take_along_axis(left_out, y[:, None], axis=1)[:, 0]
    margins = own - np.where(Y > 0, -np.inf, left_out).max(axis=1)
    return float(np.mean(expit(-margins / _NEAR_TIE)))


def _trust_in_neighbors(d: Domains, flow: NDArray[np.float64], error: float) -> float:
    """Return rho: 1, less 0.1 for each point by which the nearest neighbour exceeds `error`.

    Neighbours that mislead among labelled source rows mislead among target rows too. The weight
    stays at least 0.1, at which a graph did no harm on any kind of data. Where neighbours are
    better, rho grows by 1 for each point, up to 3. The Laplacian sums over all rows but the loss
    over source rows only: for a target several times larger, rho shrinks in proportion.
    """
    y = d.y[:N_VALIDATION_ROWS]
    Z = unit_rows(d.X[: len(y)], flow)
    found = d.share(("nearest of validation rows", flow.tobytes()), nearest, Z)
    excess = float(np.mean(y[found.indices[:, 0]] != y)) - error
    n_source, n_target = d.sizes
    weight = float(np.clip(1.0 - (10.0 if excess > 0 else 100.0) * excess, 0.1, 3.0))
    return weight / max(1.0, n_target / (MAX_TARGET_RATIO * n_source))


def n_anchors(graph: Graph, n_rows: int) -> int:
    """Return the number of anchors of a fit over landmarks; 0 for a graph of neighbours."""
    if graph == "neighbors" or (graph == "auto" and n_rows < _MANY_ROWS):
        return 0
    most = n_rows // _ROWS_PER_ANCHOR
    if most <= N_TIES:
        raise ValueError(
            f'graph="anchors" ties each row to {N_TIES} of more anchors, with at least '
            f'{_ROWS_PER_ANCHOR} rows to each; {n_rows} rows are too few. Take graph="neighbors".'
        )
    wanted = _MOST_ANCHORS if isinstance(graph, str) else int(graph)
    if not isinstance(graph, str) and wanted > most:
        warnings.warn(
            f"graph={graph} anchors would leave fewer than {_ROWS_PER_ANCHOR} of {n_rows} rows to "
            f"each; it is reduced to {most}.",
            UserWarning,
            stacklevel=2,
        )
    return max(min(wanted, most), N_TIES + 1)


def source_weights(weights: SourceWeights, d: Domains) -> NDArray[np.float64]:
    """Return the weight of each source, by nearness or as given, 1 on average over their rows."""
    ids, auto = d.source_ids.tolist(), isinstance(weights, str)
    if isinstance(weights, Mapping):
        if sorted(weights) != ids:
            raise ValueError(
                f"source_weights names the ids {sorted(weights)}, but the sources are {ids}; give "
                "each of them one weight."
            )
        weights = [weights[source] for source in ids]
    found = np.ones(len(ids)) if auto else np.asarray(weights, dtype=np.float64)
    if found.shape != (len(ids),):
        raise ValueError(
            f"source_weights has the shape {found.shape}, but there are {len(ids)} sources, {ids}; "
            "give one weight for each."
        )
    if not np.isfinite(found).all() or (found <= 0).any():
        raise ValueError(
            f"source_weights must be positive numbers, got {found.tolist()}; to leave a source "
            "out, drop its rows."
        )
    if len(ids) == 1 or (auto and d.n_target == 0):
        return np.ones(len(ids))
    if auto:
        found = d.share("source weights", _nearness, d)
    counts = d.source_counts.sum(axis=1)
    return found * (counts.sum() / (counts @ found))


def _nearness(d: Domains) -> NDArray[np.float64]:
    """Return the squared share of target rows whose nearest row is of each source.

    As many rows of each source are compared. A distance between means or a domain classifier sees
    no difference where each domain is standardised.
    """
    sources = [np.flatnonzero(d.sources == k) for k in range(d.n_sources)]
    target = d.n_source + np.arange(min(d.n_target, _COMPARED))
    count = min(_COMPARED, *map(len, sources))
    compared = np.concatenate([rows[:count] for rows in sources])
    found = nearest(unit_rows(d.X[target]), unit_rows(d.X[compared])).indices
    shares = np.bincount(found.ravel() // count, minlength=len(sources)) / len(target)
    return np.maximum(shares, _LEAST_NEAR) ** 2


class Balance:
    """mu for given labels of the target, estimated from A-distances between the domains.

    With d_M the A-distance between the domains and d_c that between their rows of class c,
    "adaptive" is MEDA's mean(d_c) / (mean(d_c) + d_M), and "printed" is the paper's d_M / (d_M +
    sum(d_c)). Only the first rows of each domain count, and only classes with two rows on either
    side. Several sources are averaged.
    """

    def __init__(self, rule: str, domains: Domains, Z: Any, random_state: Any) -> None:
        self.rule, self.d = rule, domains
        if Z.shape[1] > _WIDEST:
            n = self.d.n_source
            first = np.r_[: min(n, _COMPARED), n : min(Z.shape[0], n + _COMPARED)]
            k = min(_DIRECTIONS, min(Z.shape) - 1)
            svd = TruncatedSVD(k, random_state=random_state)
            Z = svd.fit(Z[first]).transform(Z)
        self.Z = dense(Z)
        self._known: dict[bytes, float] = {}
        wholes = self._distances(0 * self.d.y, np.zeros(self.d.n_target, dtype=np.intp))
        self.marginal = float(np.sum(wholes)) / self.d.n_sources

    def __call__(self, y: NDArray[np.intp], target: NDArray[np.intp]) -> float:
        """Return mu for class codes of source and target."""
        if len(target) == 0:
            return 0.5
        distances = self._distances(y, target)
        if self.rule == "printed":
            numerator, other = self.marginal, float(np.sum(distances)) / self.d.n_sources
        else:
            numerator, other = float(np.mean(distances or [0.0])), self.marginal
        return numerator / (numerator + other) if numerator + other > 0 else 0.5

    def _distances(self, y: NDArray[np.intp], target: NDArray[np.intp]) -> list[float]:
        """Return the distance of each class of each source with at least two rows on both sides."""
        found, pool = [], LIMITS.pool_rows
        for k in range(self.d.n_sources):
            codes = np.where(self.d.sources[:pool] == k, y[:pool], -1)
            for c in range(int(y.max()) + 1):
                s = np.flatnonzero(codes == c)[:_COMPARED]
                t = self.d.n_source + np.flatnonzero(target[:pool] == c)[:_COMPARED]
                if min(len(s), len(t)) < 2:
                    continue
                key = blake2b(s.tobytes() + t.tobytes(), digest_size=16).digest()
                if key not in self._known:
                    # The order of rows is random: one that moves changes the half of few others.
                    Xs, Xt = (self.Z[i].astype(np.float64) for i in (s, t))
                    halves = np.split(Xs, [len(Xs) // 2]), np.split(Xt, [len(Xt) // 2])
                    self._known[key] = a_distance(*halves, _SHRINKAGE)
                found.append(self._known[key])
        return found


def a_distance(source: Sequence[NDArray], target: Sequence[NDArray], shrinkage: float) -> float:
    """Return the A-distance by the mean error of each half's discriminant on the other half.

    It is regularised and linear, and its error on the two samples counts alike.
    """
    error = 0.0
    for half, other in ((0, 1), (1, 0)):
        Xs, Xt = source[half], target[half]
        mean_s, mean_t = Xs.mean(axis=0), Xt.mean(axis=0)
        centred = np.vstack([(Xs - mean_s) / np.sqrt(len(Xs)), (Xt - mean_t) / np.sqrt(len(Xt))])
        direction = _whitened(centred, mean_s - mean_t, shrinkage)
        threshold = direction @ (mean_s + mean_t) / 2
        wrong_s = np.mean(source[other] @ direction <= threshold)
        wrong_t = np.mean(target[other] @ direction > threshold)
        error += float(wrong_s + wrong_t) / 2
    return 2.0 * max(0.0, 1.0 - error)


def _whitened(centred: NDArray, difference: NDArray, shrinkage: float) -> NDArray:
    """Return (C'C + sI)^-1 difference by the smaller of C'C and CC'; s relative to the trace."""
    n, d = centred.shape
    ridge = shrinkage * float(np.sum(centred**2)) / d
    if ridge == 0.0:
        return difference
    if d <= n:
        inner = centred.T @ centred
        inner.flat[:: d + 1] += ridge
        return np.linalg.solve(inner, difference)
    inner = centred @ centred.T
    inner.flat[:: n + 1] += ridge
    return (difference - centred.T @ np.linalg.solve(inner, centred @ difference)) / ridge
