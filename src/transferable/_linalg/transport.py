"""Optimal transport through POT.

POT is the extra ``ot`` and is imported where it is used. Costs are squared distances over their
mean, which makes penalties independent of the unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from transferable.exceptions import installing

Matrix = NDArray[np.float64]

_MOST_PIVOTS = 10_000_000  # of the network simplex


def load_pot(who: str) -> Any:
    """Return POT, or raise one line that explains how to install it."""
    try:
        import ot
    except ImportError as error:
        raise ImportError(f"{who} needs POT: {installing('ot')}") from error
    return ot


def mean_scaled_cost(Xs: Matrix, Xt: Matrix) -> tuple[Matrix, float]:
    """Return squared distances over their mean, and that mean; 1 where all rows are alike."""
    middle = Xs.mean(axis=0)  # distances far from the origin would lose their digits
    M = euclidean_distances(Xs - middle, Xt - middle, squared=True)
    scale = float(M.mean()) or 1.0
    M /= scale
    return M, scale


def exact_coupling(ot: Any, M: Matrix) -> Matrix:
    """Return the cheapest plan between rows of equal weight."""
    a, b = (np.full(n, 1.0 / n) for n in M.shape)
    return np.asarray(ot.emd(a, b, np.ascontiguousarray(M), numItermax=_MOST_PIVOTS))
