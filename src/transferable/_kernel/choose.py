"""Automatic choices of a fit: from a problem to numbers, before anything is solved.

Source rows left out in turn, at the cost of one inverse and no refit, decide whether rows are
mapped by the flow; the classes of nearest source rows decide the weight of the graph; A-distances
balance conditional against marginal discrepancy.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.decomposition import TruncatedSVD
from sklearn.utils import check_random_state

from transferable._kernel.class_shares import agreement
from transferable._kernel.objective import AnchorSmoothness, Smoothness
from transferable._linalg.arrays import (
    Arrays,
    Reordered,
    centre_of,
    dense,
    to_numpy,
    unit_rows,
)
from transferable._linalg.kernels import KernelFunction, Nystrom, draw_landmarks
from transferable._linalg.memory import Plan, memory_budget, warn_of_landmarks
from transferable._linalg.search import (
    Anchors,
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
from transferable.domains import Domains
from transferable.events import stage
from transferable.limits import LIMITS

Graph = Literal["auto", "neighbors", "anchors"] | int
SourceWeights = Literal["auto"] | Mapping[Any, float] | ArrayLike

FLOW = 30  # directions of the flow that "auto" takes
N_VALIDATION_ROWS = 1000  # source rows that are left out in turn; their order is random already
MAX_TARGET_RATIO = 4  # target rows for each source row that leave the graph its weight
N_TIES = 3  # anchors of a row; five were worse where many rows share one
_ROWS_PER_ANCHOR = 5  # at least: below, anchors join rows of different classes, or none at all
_MOST_ANCHORS = 1000  # that "auto" takes
_MANY_ROWS = 10_000  # from which "auto" takes anchors, where it solves over landmarks
_ROWS_TO_PLACE = 32  # rows for each anchor in the sample of k-means
_COST = 0.02, 0.03  # of accuracy by the flow, at which rows count beside it, and alone
_NEAR_TIE = 0.02  # of scores, which are from 0 to 1: margin within which a row is nearly a tie
_WIDEST = 256  # features beyond which distances are measured in the leading directions
_DIRECTIONS = 64
_SHRINKAGE = 0.1  # of the covariance in the discriminants of A-distances
_COMPARED = 2000  # rows of each side that distances compare; their order is random already
_LEAST_NEAR = 0.02  # share that the farthest source keeps
_COUNTED, _NEAREST = 4000, 3  # source rows that the odds are of, and neighbours of each
_WEIGHTS = 0.1, 20.0  # least and largest weight of the graph
_RESIDUAL = 0.03  # share of the kernel that the landmarks of "auto" may leave
_LANDMARKS = 500, 1000  # numbers that are tried in turn
_ROWS_PER_LANDMARK = 3  # at least: with fewer, the exact solve is no slower
_FEWEST_ROWS = 2000  # of which an exact fit takes half a second
_JUDGED = 500  # rows by which landmarks are judged


class Features(NamedTuple):
    """Map from rows to features, as :func:`~transferable._linalg.arrays.unit_rows` takes it."""

    flow: NDArray[np.float64]  # (n_features, 2 k): factor of the geodesic flow; empty for none
    # (n_features + 1,): point from which rows have a direction, if any
    centre: NDArray[np.float64] | None = None
    beside: float = 0.0  # weight of the rows themselves beside the flow


@dataclass(frozen=True)
class Problem:
    """Rows and parameters of a fit, with every automatic choice made."""

    domains: Domains  # the problem, sources weighted
    features: Features  # the map from rows to `Z`
    Z: Any  # (n, d): features of all rows, of unit length
    key: Any  # key of the features among results that fits share
    table: Any  # `Z` as a table where the algebra is done
    arrays: Arrays  # library and device of the algebra
    kernel: KernelFunction  # the kernel between features
    ridge: float  # eta
    manifold: float  # rho, the weight of the graph
    n_anchors: int  # anchors of the graph; 0 for one of neighbours
    plan: Plan  # landmarks, if any, and what is held in memory
    nystrom: Nystrom | None  # map from rows to features of the landmarks
    residual: float | None  # mean share of a row's own kernel value that these leave
    balance: Any  # mu, or the rule from pseudo-labels to it
    random_state: int | RandomState | None  # seed of the anchors

    def graph(self, n_neighbors: int, *, self_loops: bool = False) -> list[Any]:
        """Return the smoothness term, if any: of the anchors, or of a graph of neighbours."""
        if self.manifold == 0:
            return []
        share, where = self.domains.share, self.key
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
    """Sizes of a fit, from which :mod:`transferable._linalg.memory` plans it."""

    n_rows: int
    n_classes: int
    itemsize: int  # of a number of the feature rows
    row_bytes: int  # feature rows, the graph while it is built, and a dozen tables of scores
    # the kernel matrix, the system and two temporary ones; K K and its kin with the second
    # order
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
    model: Any, domains: Domains, *, plan: Plan | None = None, features: Features | None = None
) -> Problem:
    """Resolve every parameter of a model that is "auto" for a problem.

    Methods without `balance`, `manifold_dim` or `second_order` have the values of ARTL. `plan`
    replaces the plan by free memory, where others hold the rows; `features` are known ones.
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
    features = features or _features(model, d, kernel, arrays)
    flow, centre, beside = features
    key = arrays, flow.tobytes(), None if centre is None else centre.tobytes(), beside
    manifold = model.manifold
    if manifold == "auto":
        # Half the odds that the nearest source rows of a row are of its class, beyond chance:
        # neighbours that mislead among labelled rows mislead among target rows too. The Laplacian
        # sums over all rows but the loss over source rows only, which a large target outnumbers.
        y = d.y[:_COUNTED]
        k, found = min(_NEAREST, len(y) - 1), unit_rows(d.X[: len(y)], *features)
        found = d.share(("nearest source rows", key), nearest, found, None, k).indices
        kappa = agreement(np.repeat(y, k), y[found].ravel())
        manifold = np.clip(kappa / (2.0 * max(1.0 - kappa, 1e-9)), *_WEIGHTS)
        manifold = manifold / max(1.0, d.sizes[1] / (MAX_TARGET_RATIO * d.sizes[0]))
    nystrom, residual, reduced = None, None, False
    if plan is None:
        graph = 100 * model.n_neighbors if model.manifold else 0
        width, size = flow.shape[1], d.X.dtype.itemsize
        width += d.X.shape[1] if beside or not width else 0
        row_bytes = 2 * width * size + graph + 12 * 8 * (d.n_classes + 1)
        matrices = 7 if given.get("second_order") else 4
        sizes = KernelSizes(n_rows, d.n_classes, size, row_bytes, matrices)
        budget = memory_budget(model.max_memory, arrays)
        asked = "auto" if isinstance(model.n_landmarks, float) else model.n_landmarks
        plan = Plan.make(sizes, asked, budget)
        reduced = bool(plan.n_landmarks) or (asked == "auto" and n_rows >= _FEWEST_ROWS)
    stage("Mapping rows to features")
    Z = d.share(("features", key), unit_rows, d.X, *features)
    if reduced:
        where = kernel, key, arrays
        plan, nystrom, residual = _landmarks(model, plan, sizes, budget, d, Z, where)
    anchors = 0
    if manifold and not (plan.n_landmarks is None and model.graph in ("auto", "neighbors")):
        anchors = n_anchors(model.graph, n_rows)
    balance, seed = given.get("balance", 0.5) if model.alignment else 0.5, model.random_state
    if isinstance(balance, str):
        asked = "balance", balance, key, str(seed)
        balance = d.share(asked, Balance, balance, d, Z, seed)
    fixed = float(manifold), anchors, plan, nystrom, residual, balance, seed
    return Problem(d, features, Z, key, arrays.table(Z), arrays, kernel, model.ridge, *fixed)


def _landmarks(
    model: Any, plan: Plan, sizes: KernelSizes, budget: int, d: Domains, Z: Any, where: Any
) -> tuple[Plan, Nystrom | None, float | None]:
    """Return the plan, the map of its landmarks, if any, and what they leave of the kernel.

    Unless their number is given, they are the fewest that leave little. Where none do, the rows are
    solved over exactly, or over the most landmarks if they are too many for that.
    """
    asked, counts = model.n_landmarks, [plan.n_landmarks] if plan.n_landmarks else []
    (kernel, features, arrays), seed = where, model.random_state
    most = _RESIDUAL if asked == "auto" else asked
    if most < 1:
        fitting = (m for m in _LANDMARKS if Plan.of(sizes, m, budget).n_bytes <= budget)
        counts = [m for m in fitting if m * _ROWS_PER_LANDMARK <= sizes.n_rows] or counts
    for m in counts:
        key = "landmarks", kernel, features, m, str(seed)
        nystrom, left = d.share(key, _nystrom, d, Z, m, seed, kernel, arrays)
        if left <= most:
            return Plan.of(sizes, m, budget), nystrom, left
    if plan.n_landmarks is None:
        return plan, None, None
    warn_of_landmarks(sizes, m, budget, left)
    return Plan.of(sizes, m, budget), nystrom, left


def _nystrom(
    d: Domains, Z: Any, m: int, seed: Any, kernel: KernelFunction, arrays: Arrays
) -> tuple[Nystrom, float]:
    """Return the map of landmarks, and the mean share of a row's own kernel value that is left."""
    stage("Drawing landmarks")
    nystrom = Nystrom(Z[draw_landmarks(Z, d.n_source, m, check_random_state(seed))], kernel, arrays)
    few = _JUDGED // 2
    rows = np.r_[: min(few, d.n_source), d.n_source : min(d.n_source + few, Z.shape[0])]
    Phi = to_numpy(nystrom(Z[rows])).astype(np.float64)
    own = to_numpy(nystrom.gram).diagonal().mean()
    return nystrom, float(1.0 - (Phi * Phi).sum(axis=1).mean() / own)


def _features(model: Any, d: Domains, kernel: KernelFunction, arrays: Arrays) -> Features:
    """Return the map to features that the settings of a model need.

    An automatic flow that costs accuracy on left-out source rows gives way to the rows as they are,
    gradually. Sparse rows are not centred without a flow, which would make them dense.
    """
    asked: Any = getattr(model, "manifold_dim", None)
    mapped, flow = asked is not None and d.n_target > 0, np.zeros((d.X.shape[1], 0))
    centre, moments = None, d.moments
    if mapped and isinstance(d.X, Reordered):
        moments = d.read_moments()
    if model._centred:
        both = moments and moments[0] + moments[1]
        centre = d.share("centre", centre_of, d.X, d.row_weights, both)
    plain = Features(flow, None if sp.issparse(d.X) else centre)
    if not mapped:
        return plain
    auto, beside, bases = asked == "auto", 0.0, []
    most = FLOW if auto else int(asked)
    for k, rows in enumerate((d.source, d.target)):
        key = "basis", most, k
        if moments is None:
            parts = d.X[rows], most, d.row_weights[rows]
            bases.append(d.share(key, principal_basis, *parts))
        else:
            bases.append(d.share(key, basis_of_moments, moments[k], most, d.sizes[k]))
    rank = min(basis.shape[1] for basis in bases)
    if not auto and rank < most:
        warnings.warn(
            f"manifold_dim={asked} is more than the rows of both domains span; it is "
            f"reduced to {rank}.",
            UserWarning,
            stacklevel=2,
        )
    if rank == 0 or (auto and rank < most):
        return plain
    flow = d.share(("flow", most), geodesic_flow_factor, *(basis[:, :rank] for basis in bases))
    if auto:
        system = kernel, model.ridge, arrays, d.y.tobytes(), centre is None
        found = [
            d.share(
                ("left-out error", *system, k), _left_out_error, d, kernel, model.ridge, arrays, one
            )
            for k, one in enumerate((Features(flow, centre), plain))
        ]
        beside = float(np.interp(found[0] - found[1], _COST, (0.0, 1.0)))
    return Features(flow, centre, beside) if beside < 1.0 else plain


def _left_out_error(
    d: Domains, kernel: KernelFunction, ridge: float, arrays: Arrays, features: Features
) -> float:
    """Return the error of regularised least squares on source rows left out in turn.

    A row near a tie counts partly as wrong and partly as right, so that the error, and every choice
    based on it, is continuous in the rows.
    """
    y = d.y[:N_VALIDATION_ROWS]
    Z = arrays.table(unit_rows(d.X[: len(y)], *features), "float64")
    K = arrays.table(kernel(Z, Z))
    i = np.arange(len(K))
    K[i, i] += effective_ridge(ridge, K)
    A = to_numpy(inverse(K))
    Y = np.eye(y.max() + 1)[y]
    left_out = Y - (A @ Y) / np.diag(A)[:, None]
    own = np.take_along_axis(left_out, y[:, None], axis=1)[:, 0]
    margins = own - np.where(Y > 0, -np.inf, left_out).max(axis=1)
    return float(np.mean(expit(-margins / _NEAR_TIE)))


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
