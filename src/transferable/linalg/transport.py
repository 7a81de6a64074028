"""Optimal transport through POT: couplings of two domains, within a memory budget.

POT is the extra ``ot`` and is imported where it is used. Costs are squared distances over their
mean, so that penalties mean the same in any unit.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

__all__ = ["Transport", "exact_coupling", "load_pot", "mean_scaled_cost"]

Matrix = NDArray[np.float64]

_PLAIN_RANGE = 200.0  # of cost over entropy up to which exp(-cost / entropy) stays above zero
_MOST_PIVOTS = 10_000_000  # of the network simplex
_MOST_SCALINGS = 10_000
_MARGINAL_ERROR = 1e-6  # at which scaling stops
_INNER_ERROR = 1e-5  # the same between rounds of "class", of which the plan keeps 1e-13
# Bytes for each pair of rows, as measured: cost, plan and what POT works on.
_PAIR_BYTES = {"exact": 48, "entropic": 80, "class": 48, "laplace": 72}


@dataclass(frozen=True)
class Transport:
    """How source rows are coupled with target rows.

    Attributes
    ----------
    method : {"exact", "entropic", "class", "laplace"}
        Which of POT's problems is solved.
    entropy, class_weight, smoothness : float
        Weights of its penalties.
    n_neighbors : int
        Of the graphs of "laplace".
    n_rounds : int
        Rounds of "class" and "laplace".
    """

    method: str
    entropy: float
    class_weight: float
    smoothness: float
    n_neighbors: int
    n_rounds: int

    def n_bytes(self, n_source: int, n_target: int, n_classes: int) -> int:
        """What a coupling takes."""
        pair = _PAIR_BYTES[self.method]
        if self.method == "class":
            pair += 18 * n_classes  # POT splits the plan by class, twice
        within = 48 * (n_source**2 + n_target**2) if self.method == "laplace" else 0
        return pair * n_source * n_target + within

    def coupling(self, Xs: Matrix, ys: NDArray[np.intp], Xt: Matrix) -> Matrix:
        """Shares of the rows' mass, of shape (n_source, n_target), that sum to 1."""
        ot = load_pot("Optimal transport")
        a, b = _uniform(len(Xs)), _uniform(len(Xt))
        M, scale = mean_scaled_cost(Xs, Xt)
        with warnings.catch_warnings():
            # Inner solves of "class" are cut short by design; what comes out is checked below.
            warnings.simplefilter("ignore")
            if self.method == "exact":
                return exact_coupling(ot, M)
            if self.method == "laplace":
                graphs = {"sim": "knn", "sim_param": min(self.n_neighbors, min(M.shape) - 1)}
                rows = (Xs / np.sqrt(scale), Xt / np.sqrt(scale))
                if graphs["sim_param"] < 1:  # one row has no neighbours to stay with
                    return exact_coupling(ot, M)
                plan = ot.da.emd_laplace(
                    *(a, b, *rows, M), eta=self.smoothness, numItermax=self.n_rounds, **graphs
                )
            elif self.method == "class":
                plan = ot.da.sinkhorn_lpl1_mm(
                    *(a, ys, b, M, self.entropy, self.class_weight),
                    numItermax=self.n_rounds,
                    stopInnerThr=_INNER_ERROR,
                )
            else:
                plain = float(M.max()) <= _PLAIN_RANGE * self.entropy
                plan = ot.sinkhorn(
                    *(a, b, M, self.entropy),
                    method="sinkhorn" if plain else "sinkhorn_log",
                    numItermax=_MOST_SCALINGS,
                    stopThr=_MARGINAL_ERROR,
                )
        return self._checked(plan, a)

    def _checked(self, plan: Matrix, a: Matrix) -> Matrix:
        """The plan, unless numbers have run out on the way to it."""
        carried = np.asarray(plan).sum(axis=1)
        if not np.isfinite(carried).all() or np.abs(carried - a).sum() > 0.1:
            raise ValueError(
                f"entropy={self.entropy} is too small for rows that differ this much: the plan has "
                'lost rows to rounding. Raise entropy, or choose method="exact".'
            )
        return np.asarray(plan, dtype=np.float64)


def load_pot(who: str) -> Any:
    """POT, or one line that says how to get it."""
    try:
        import ot
    except ImportError as error:
        raise ImportError(f"{who} needs POT: pip install transferable[ot]") from error
    return ot


def mean_scaled_cost(Xs: Matrix, Xt: Matrix) -> tuple[Matrix, float]:
    """Squared distances over their mean, and that mean; 1 where all rows are alike."""
    middle = Xs.mean(axis=0)  # distances far from the origin would lose their digits
    M = euclidean_distances(Xs - middle, Xt - middle, squared=True)
    scale = float(M.mean()) or 1.0
    M /= scale
    return M, scale


def exact_coupling(ot: Any, M: Matrix) -> Matrix:
    """The cheapest plan between rows of equal weight."""
    a, b = _uniform(M.shape[0]), _uniform(M.shape[1])
    return np.asarray(ot.emd(a, b, np.ascontiguousarray(M), numItermax=_MOST_PIVOTS))


def _uniform(n: int) -> Matrix:
    return np.full(n, 1.0 / n)
