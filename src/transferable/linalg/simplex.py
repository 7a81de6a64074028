"""Weights between 0 and 1 whose sum in each group is given: projection and quadratic programs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["minimise_on_simplices", "project_on_simplices"]

Vector = NDArray[np.float64]


def project_on_simplices(w: Vector, groups: NDArray[np.intp], sums: Vector) -> Vector:
    """Nearest weights in [0, 1] with sum `sums[g]` over group g, by bisection in all groups."""
    lowest = np.full(len(sums), w.min() - 1.0)
    highest = np.full(len(sums), w.max())
    for _ in range(60):
        middle = (lowest + highest) / 2
        totals = np.bincount(groups, np.clip(w - middle[groups], 0, 1), minlength=len(sums))
        too_much = totals > sums
        lowest = np.where(too_much, middle, lowest)
        highest = np.where(too_much, highest, middle)
    return np.clip(w - ((lowest + highest) / 2)[groups], 0.0, 1.0)


def minimise_on_simplices(
    product: Callable[[Vector], Vector],
    start: Vector,
    groups: NDArray[np.intp],
    sums: Vector,
    *,
    max_iter: int = 300,
    tolerance: float = 1e-5,
) -> Vector:
    """Minimise w'Qw, Q positive semi-definite, by accelerated projected gradient steps.

    Parameters
    ----------
    product : callable
        w -> Q w.
    start : ndarray of shape (n,)
        First weights.
    groups : ndarray of shape (n,)
        Group of each weight.
    sums : ndarray of shape (n_groups,)
        Sum of the weights of each group.
    max_iter : int
        Most steps.
    tolerance : float
        Stop once no weight moves further than this.
    """
    step = 1.0 / _largest_eigenvalue(product, len(start))
    w = ahead = project_on_simplices(start, groups, sums)
    momentum = 1.0
    for _ in range(max_iter):
        renewed = project_on_simplices(ahead - step * product(ahead), groups, sums)
        moved = renewed - w
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2
        ahead = renewed + (momentum - 1.0) / following * moved
        w, momentum = renewed, following
        if np.abs(moved).max() < tolerance:
            break
    return w


def _largest_eigenvalue(product: Callable[[Vector], Vector], n: int) -> float:
    """An upper estimate by power iteration."""
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
