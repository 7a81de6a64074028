"""Optimal transport of the source onto the target, row by row or by one linear map."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin

from transferable._linalg.memory import refuse_if_too_large, refuse_if_too_wide
from transferable._linalg.simplex import exact_coupling, load_pot, mean_scaled_cost
from transferable._linalg.systems import Matrix
from transferable._sklearn import COUNT, POSITIVE, StrOptions
from transferable.base import DomainTransformer, Takes
from transferable.domains import Domains

_PLAIN_RANGE = 200.0  # of cost over entropy up to which exp(-cost / entropy) stays above zero
_MOST_SCALINGS = 10_000
_MARGINAL_ERROR = 1e-6  # at which scaling stops
_INNER_ERROR = 1e-5  # the same between rounds of "class", of which the plan keeps 1e-13
_ROUNDING = 1e-6  # share of the usual variance that covariances need to have roots
_TABLES = 13  # of columns by columns, at most at once
# Bytes for each pair of rows, as measured: cost, plan and what POT works on.
_PAIR_BYTES = {"exact": 48, "entropic": 80, "class": 48, "laplace": 72}


class OTMapping(DomainTransformer):
    """Optimal transport: every source row moves to the mean of the target rows it is sent to.

    The plan G, of shape (n_source, n_target), carries equal weights from the source's rows to the
    target's and minimises

        sum_ij G_ij ||x_i - x_j||^2 / mean cost  +  penalties,

    with POT's solvers. Source row i becomes sum_j G_ij x_j / sum_j G_ij; target rows stay. A new
    source row moves as the fitted source row nearest to it does.

    Parameters
    ----------
    method : {"exact", "entropic", "class", "laplace"}, default="class"
        "exact" has no penalty. "entropic" spreads the plan. "class" is entropic and keeps source
        rows of different classes from sharing a target row. "laplace" keeps rows that are
        neighbours together; much slower.
    entropy : float, default=0.1
        Weight of the plan's negative entropy, in "entropic" and "class".
    class_weight : float, default=0.1
        Weight of the groups of source rows of one class, in "class".
    smoothness : float, default=1.0
        Weight of the graphs, in "laplace".
    n_neighbors : int, default=3
        Neighbours of each row in those graphs; at most as many as there are.
    n_rounds : int, default=10
        Rounds of "class" and of "laplace".

    Attributes
    ----------
    coupling_ : ndarray of shape (n_source, n_target) or None
        G, with rows and columns in the input order of the domains. None without a target.

    Notes
    -----
    Needs POT, the extra ``ot``. Published: the best of several entropies by target accuracy, with
    "class" ahead of "laplace" and of "entropic" on most tasks, which makes it the default;
    class_weight, neighbours and rounds are POT's. Costs over their mean are ours and make penalties
    independent of the unit. "entropic" ends where sums of the plan are right to 1e-6 or after
    10,000 scalings, each round of "class" at 1e-5 or after 200: plans of a small entropy are not
    the exact ones.

    References
    ----------
    .. [1] N. Courty, R. Flamary, D. Tuia, A. Rakotomamonjy (2017). Optimal transport for domain
       adaptation. IEEE TPAMI 39(9).
    .. [2] R. Flamary et al. (2021). POT: Python optimal transport. JMLR 22.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.datasets import make_shifted
    >>> from transferable.transformers import OTMapping
    >>> task = make_shifted()
    >>> model = OTMapping(method="exact").adapt(task.Xs, task.ys, task.Xt)
    >>> moved = model.transform(task.Xs, np.ones(200))
    >>> bool(np.allclose(moved.mean(axis=0), task.Xt.mean(axis=0)))
    True
    """

    family = "transport"
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "method": [StrOptions({"exact", "entropic", "class", "laplace"})],
        "entropy": [POSITIVE],
        "class_weight": [POSITIVE],
        "smoothness": [POSITIVE],
        "n_neighbors": [COUNT],
        "n_rounds": [COUNT],
    }

    method: str = field(default="class", kw_only=False)
    entropy: float = 0.1
    class_weight: float = 0.1
    smoothness: float = 1.0
    n_neighbors: int = 3
    n_rounds: int = 10
    max_memory: int | str | None = None

    @property
    def takes(self) -> Takes:
        """Optional inputs of the method as it is set: only "class" uses labels."""
        return Takes(no_labels=self.method != "class")

    def _fit_domains(self, domains: Domains) -> None:
        Xs = np.asarray(domains.Xs, dtype=np.float64)
        self._n_features_out = Xs.shape[1]
        self._map = Movement(Xs, np.zeros_like(Xs))
        self.coupling_: Matrix | None = None
        n_source, n_target = domains.n_source, domains.n_target
        if n_target == 0:
            return
        needed = self._bytes(n_source, n_target, domains.n_classes)
        refuse_if_too_large(type(self).__name__, needed, n_source, n_target, self.max_memory)
        Xt = np.asarray(domains.Xt, dtype=np.float64)
        G = self._coupling(Xs, domains.y, Xt)
        self._map = Movement(Xs, (G @ Xt) / G.sum(axis=1, keepdims=True) - Xs)
        sides = np.split(domains.order, [n_source])
        self.coupling_ = G[np.ix_(*(np.argsort(side) for side in sides))]

    def _bytes(self, n_source: int, n_target: int, n_classes: int) -> int:
        """Return the memory that a coupling takes."""
        pair = _PAIR_BYTES[self.method]
        if self.method == "class":
            pair += 18 * n_classes  # POT splits the plan by class, twice
        within = 48 * (n_source**2 + n_target**2) if self.method == "laplace" else 0
        return pair * n_source * n_target + within

    def _coupling(self, Xs: Matrix, ys: NDArray[np.intp], Xt: Matrix) -> Matrix:
        """Return shares of the rows' mass, of shape (n_source, n_target), that sum to 1."""
        ot = load_pot("Optimal transport")
        M, scale = mean_scaled_cost(Xs, Xt)
        a, b = (np.full(n, 1.0 / n) for n in M.shape)
        with warnings.catch_warnings():
            # Inner solves of "class" are cut short by design; the result is checked below.
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
        carried = np.asarray(plan).sum(axis=1)
        if not np.isfinite(carried).all() or np.abs(carried - a).sum() > 0.1:
            raise ValueError(
                f"entropy={self.entropy} is too small for rows that differ this much: the plan has "
                'lost rows to rounding. Raise entropy, or choose method="exact".'
            )
        return np.asarray(plan, dtype=np.float64)

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        Z = np.array(rows, dtype=np.float64)
        if (ids > 0).any():
            Z[ids > 0] += self._map(Z[ids > 0])
        return Z


@dataclass(frozen=True, eq=False)
class Movement:
    """Movement of rows: that of the fitted source row nearest to each."""

    rows: Matrix
    moves: Matrix

    def __call__(self, rows: Matrix) -> Matrix:
        """Return what is added to each row."""
        return self.moves[pairwise_distances_argmin(rows, self.rows)]


class LinearOTMapping(DomainTransformer):
    """Optimal transport between the Gaussians of both domains: a linear map of the source.

    With means m and covariances C, source rows become m_t + (x - m_s) A where

        A = C_s^-1/2 (C_s^1/2 C_t C_s^1/2)^1/2 C_s^-1/2,

    the map of least squared movement to the target's mean and covariance. Target rows stay.

    Parameters
    ----------
    regularization : float, default=0.1
        Variance added to every direction of both domains, relative to the mean variance of a
        feature. Directions in which the source hardly varies are stretched less with more of it.

    Attributes
    ----------
    linear_ : ndarray of shape (n_features, n_features)
        A.

    Notes
    -----
    Needs POT, the extra ``ot``, and memory for 13 tables of columns by columns: what would take
    more than half of the free memory is refused with the width that fits. :class:`CORAL` gives the
    source the same covariance by another map, which turns rows as well. Published without a
    data-dependent default for the regularization; POT's is the absolute 1e-6, with which rows of
    fewer samples than features are stretched without bound.

    References
    ----------
    .. [1] M. Knott, C. S. Smith (1984). On the optimal mapping of distributions. Journal of
       Optimization Theory and Applications 43.
    .. [2] R. Flamary, K. Lounici, A. Ferrari (2019). Concentration bounds for linear Monge mapping
       estimation and optimal transport domain adaptation. arXiv:1905.10155.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.datasets import make_shifted
    >>> from transferable.transformers import LinearOTMapping
    >>> task = make_shifted()
    >>> model = LinearOTMapping().adapt(task.Xs, task.ys, task.Xt)
    >>> moved = model.transform(task.Xs, np.ones(200))
    >>> bool(np.allclose(moved.mean(axis=0), task.Xt.mean(axis=0)))
    True
    """

    family = "transport"
    takes = Takes(no_labels=True)
    _parameter_constraints = {"regularization": [POSITIVE]}  # noqa: RUF012

    regularization: float = 0.1

    def _fit_domains(self, domains: Domains) -> None:
        d = domains.X.shape[1]
        refuse_if_too_wide(
            type(self).__name__, d, _TABLES, "CORAL takes rows of any width, or reduce them first."
        )
        self._n_features_out = d
        self._means = np.zeros((2, d))  # of source and target
        self.linear_ = np.eye(d)
        if domains.n_target == 0:
            return
        ot = load_pot(type(self).__name__)
        sides = [np.asarray(side, dtype=np.float64) for side in (domains.Xs, domains.Xt)]
        self._means = np.stack([side.mean(axis=0) for side in sides])
        covariances = [np.cov(side.T, bias=True).reshape(d, d) for side in sides]
        usual = float(np.mean([np.trace(C) for C in covariances])) / d or 1.0
        floor = max(self.regularization, _ROUNDING) * usual * np.eye(d)
        A, _ = ot.gaussian.bures_wasserstein_mapping(
            *self._means, *(C + floor for C in covariances)
        )
        self.linear_ = np.asarray(A)

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        before, after = self._means
        if (ids > 0).all():  # needs no copies of some of the rows
            moved = (rows - before) @ self.linear_
            moved += after
            return moved
        Z = np.array(rows, dtype=np.float64)
        if (ids > 0).any():
            Z[ids > 0] = (Z[ids > 0] - before) @ self.linear_ + after
        return Z
