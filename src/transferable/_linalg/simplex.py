"""Weights whose sums are given: quadratic programs on simplices, and plans of optimal transport.

Plans are POT's, the extra ``ot``, which is imported where it is used. Costs are squared distances
over their mean, which makes penalties independent of the unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from transferable.exceptions import installing

Vector = NDArray[np.float64]
Table = NDArray[np.float64]

_MOST_PIVOTS = 10_000_000  # of the network simplex


def project_on_simplices(w: Vector, groups: NDArray[np.intp], sums: Vector) -> Vector:
    """Return the nearest weights in [0, 1] with sum `sums[g]` over group g, all groups at once.

    They are clip(w - shift) with a shift for each group. As it grows, a weight falls from 1 to 0
    between w - 1 and w, so the lost sum is piecewise linear in it.
    """
    sizes = np.bincount(groups, minlength=len(sums))
    knots, of_knot = np.concatenate([w - 1.0, w]), np.concatenate([groups, groups])
    order = np.lexsort((knots, of_knot))
    knots = knots[order]
    falling = np.cumsum(np.where(order < len(w), 1, -1))  # weights on their way, after each knot
    # Between two groups none is, so the lost sum continues from one group to the next.
    lost = np.concatenate([[0.0], np.cumsum(falling[:-1] * np.diff(knots))])
    ends = np.cumsum(sizes)
    wanted = ends - sums
    at = np.clip(np.searchsorted(lost, wanted), 2 * (ends - sizes), 2 * ends - 1)
    speed = falling[at - 1]
    shift = knots[at] - (lost[at] - wanted) / np.where(speed > 0, speed, np.inf)
    return np.minimum(np.maximum(w - shift[groups], 0.0), 1.0)


def minimise_on_simplices(
    product: Callable[[Vector], Vector],
    start: Vector,
    groups: NDArray[np.intp],
    sums: Vector,
    *,
    max_iter: int = 300,
    tolerance: float = 1e-5,
) -> Vector:
    """Minimise w'Qw over weights in [0, 1] with these sums of each group, from first weights.

    `product` is w -> Q w, with Q positive semi-definite.
    """
    return descend(
        product,
        lambda w: project_on_simplices(w, groups, sums),
        start,
        1.0 / largest_eigenvalue(product, len(start)),
        max_iter=max_iter,
        tolerance=tolerance,
    )


def descend(
    gradient: Callable[[Vector], Vector],
    project: Callable[[Vector], Vector],
    start: Vector,
    step: float,
    *,
    max_iter: int = 300,
    tolerance: float = 1e-5,
) -> Vector:
    """Minimise a convex function on a set by accelerated projected gradient steps.

    The step is at most one over the gradient's Lipschitz constant; iterations end once nothing
    moves further than the tolerance.
    """
    w = ahead = project(start)
    momentum = 1.0
    for _ in range(max_iter):
        renewed = project(ahead - step * gradient(ahead))
        moved = renewed - w
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2
        ahead = renewed + (momentum - 1.0) / following * moved
        w, momentum = renewed, following
        if np.abs(moved).max() < tolerance:
            break
    return w


def largest_eigenvalue(product: Callable[[Vector], Vector], n: int) -> float:
    """Return an upper estimate by power iteration."""
    x = np.random.default_rng(0).random(n) + 0.5
    value = 0.0
    for _ in range(30):
        x = x / np.linalg.norm(x)
        y = product(x)
        value = float(np.linalg.norm(y))
        if value == 0.0:
            return 1.0
        x = y
    return 1.1 * value


def load_pot(who: str) -> Any:
    """Return POT, or raise one line that explains how to install it."""
    try:
        import ot
    except ImportError as error:
        raise ImportError(f"{who} needs POT: {installing('ot')}") from error
    return ot


def mean_scaled_cost(Xs: Table, Xt: Table) -> tuple[Table, float]:
    """Return squared distances over their mean, and that mean; 1 where all rows are alike."""
    middle = Xs.mean(axis=0)  # distances far from the origin would lose their digits
    M = euclidean_distances(Xs - middle, Xt - middle, squared=True)
    scale = float(M.mean()) or 1.0
    M /= scale
    return M, scale


def exact_coupling(ot: Any, M: Table) -> Table:
    """Return the cheapest plan between rows of equal weight."""
    a, b = (np.full(n, 1.0 / n) for n in M.shape)
    return np.asarray(ot.emd(a, b, np.ascontiguousarray(M), numItermax=_MOST_PIVOTS))
