"""The second-order half of the maximum mean and covariance discrepancy (MMCD).

By Theorem 1 of the paper ||beta' K Z K beta||^2 is bounded, up to a constant, by the quadratic form
tr(F' Z K K Z F). Z centres rows inside a group and scales them by plus or minus one over the
group's size, so a product with Z K K Z needs K K inside the group only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Groups
from transferable.linalg.arrays import inner, namespace
from transferable.linalg.moments import Moments
from transferable.terms.base import Matrix, Quadratic, Term

__all__ = [
    "CovarianceDiscrepancy",
    "Covariances",
    "GroupCentring",
    "ProjectedCovariances",
    "SecondOrder",
    "class_groups",
    "squared_differences",
    "weighted_covariance",
]


class GroupCentring:
    """Z of one pair of groups: rows of the source centred over n_s, of the target over -n_t.

    Source rows may count differently: `weights`, a number for each of them, sum to one.
    """

    def __init__(
        self, source: NDArray[np.intp], target: NDArray[np.intp], weights: Matrix | None = None
    ) -> None:
        self.rows = np.concatenate([source, target])
        self.sizes = (len(source), len(target))
        self.weights = weights

    def apply(self, F: Matrix) -> Matrix:
        """Z F, where F and the result hold the rows of the group only."""
        xp, (n_source, _) = namespace(F), self.sizes
        out = xp.empty_like(F)
        source, target = F[:n_source], F[n_source:]
        if self.weights is None:
            out[:n_source] = (source - xp.mean(source, axis=0)) / len(source)
        else:
            out[:n_source] = self.weights[:, None] * (source - self.weights @ source)
        out[n_source:] = (xp.mean(target, axis=0) - target) / len(target)
        return out


def squared_differences(
    groups: Sequence[GroupCentring], Phi: Matrix, trust: NDArray[np.float64] | None = None
) -> Matrix:
    """Squared differences of two covariances, (Phi' Z Phi)^2, summed over disjoint groups.

    Each difference counts as much as its group is trusted.
    """
    centred, product = np.zeros_like(Phi), np.zeros_like(Phi)
    for group, weight in zip(groups, np.ones(len(groups)) if trust is None else trust, strict=True):
        rows = Phi[group.rows]
        centred[group.rows] = part = weight * group.apply(rows)
        few = len(rows) < Phi.shape[1]
        product[group.rows] = (rows @ rows.T) @ part if few else rows @ (rows.T @ part)
    return centred.T @ product


def class_groups(groups: Groups) -> list[GroupCentring]:
    """One group for each class with rows in both domains."""
    both = np.flatnonzero(groups.counts.all(axis=0))
    return [GroupCentring(*groups.members(int(code))) for code in both]


class SecondOrder:
    """What no pseudo-label changes: K, K K and the part that compares the domains as wholes."""

    def __init__(
        self, K: Matrix, n_source: int, weights: Matrix | None = None, K2: Matrix | None = None
    ) -> None:
        self.K = K
        # Of a matrix and its transpose BLAS computes one half only.
        self.K2 = K.T @ K if K2 is None else K2
        self.marginal = GroupCentring(np.arange(n_source), np.arange(n_source, len(K)), weights)

    def block(self, group: GroupCentring) -> Matrix:
        """Z K K Z on the rows of a group, outside of which it is zero."""
        inside = self.K2[group.rows[:, None], group.rows[None, :]]
        return group.apply(group.apply(inside).T)

    def marginal_product(self, F: Matrix) -> Matrix:
        """Z_0 K K Z_0 F."""
        return self.marginal.apply(self.K2 @ self.marginal.apply(F))

    @cached_property
    def marginal_trace(self) -> float:
        """tr(Z_0 K K Z_0)."""
        centred = self.marginal.apply(self.K)
        return inner(centred, centred)

    @cached_property
    def marginal_times_kernel(self) -> Matrix:
        """Z_0 K K Z_0 K, the one product of order n^3."""
        return self.marginal_product(self.K)


class CovarianceDiscrepancy(Quadratic):
    """weight * ((1 - balance) Z_0 K K Z_0 + balance sum_c Z_c K K Z_c).

    Parameters
    ----------
    statistics : SecondOrder
        K K and what else stays the same between iterations.
    groups : Groups
        The rows by domain and class.
    weight : float
        lambda times gamma, the weight of the second order in MMCD.
    balance : float
        mu: 0 compares the domains as wholes only, 1 class by class only.
    normalised : bool
        Count the marginal part C times and divide the sum by its trace: the size of the printed
        form grows with n, so that one weight cannot fit two datasets.
    """

    def __init__(
        self,
        statistics: SecondOrder,
        groups: Groups,
        *,
        weight: float,
        balance: float,
        normalised: bool,
    ) -> None:
        self.statistics = statistics
        self.marginal_weight = (1.0 - balance) * (groups.n_classes if normalised else 1.0)
        self.class_weight = balance
        trusted = groups.class_trust[groups.counts.all(axis=0)] ** 2
        self.blocks = [
            (group.rows, trust * statistics.block(group))
            for trust, group in zip(trusted.tolist(), class_groups(groups), strict=True)
        ]
        if normalised:
            trace = self.marginal_weight * statistics.marginal_trace + self.class_weight * sum(
                float(namespace(block).linalg.trace(block)) for _, block in self.blocks
            )
            weight = weight / trace if trace > 0 else 0.0
        self.marginal_weight *= weight
        self.class_weight *= weight

    def apply(self, F: Matrix) -> Matrix:
        """S F, group by group."""
        whole = self.statistics.marginal_product(F)
        return self._add_classes(self.marginal_weight * whole, F)

    def times_kernel(self) -> Matrix:
        """S K, which `apply` would give at the cost of one more product of order n^3."""
        whole = self.statistics.marginal_times_kernel
        return self._add_classes(self.marginal_weight * whole, self.statistics.K)

    def _add_classes(self, out: Matrix, F: Matrix) -> Matrix:
        for rows, block in self.blocks:
            out[rows] += self.class_weight * (block @ F[rows])
        return out


def _centred(
    moments: Sequence[Moments], ratios: NDArray[np.float64] | float = 1.0
) -> tuple[Matrix, Matrix]:
    """Phi' Z Phi and Phi' Z Z Phi over groups of rows that count in these ratios, Z up to sign.

    Z = diag(a) - a a' with a the weights of the rows, which sum to one.
    """
    weights = (ratios * np.ones(len(moments)) / max(sum(m.count for m in moments), 1)).tolist()
    parts = list(zip(weights, moments, strict=True))
    mean, squared_mean = (sum(a**k * m.total for a, m in parts) for k in (1, 2))
    gram, squared_gram = (sum(a**k * m.gram for a, m in parts) for k in (1, 2))
    length = sum(a**2 * m.count for a, m in parts)
    crossed = squared_mean[:, None] * mean
    return (
        gram - mean[:, None] * mean,
        squared_gram - crossed - crossed.T + length * mean[:, None] * mean,
    )


def weighted_covariance(
    moments: Sequence[Moments], ratios: NDArray[np.float64] | float = 1.0
) -> Matrix:
    """Covariance of all rows of some groups, which count in these ratios."""
    covariance, _ = _centred(moments, ratios)
    return covariance


class ProjectedCovariances(Quadratic):
    """The same term as a quadratic form tr(w' P w) of coefficients of features, F = Phi w.

    P = weight * ((1 - balance) D_0 G D_0 + balance sum_c D_c G D_c) with D_c the difference of the
    domains' covariances in class c, D_0 that of whole domains, and G = Phi'Phi.

    Parameters
    ----------
    groups : Groups
        The rows by domain and class.
    source, target : sequence of Moments
        Moments of the features by class, in each domain.
    weight, balance, normalised
        As in :class:`CovarianceDiscrepancy`.
    """

    def __init__(
        self,
        groups: Groups,
        source: Sequence[Moments],
        target: Sequence[Moments],
        *,
        weight: float,
        balance: float,
        normalised: bool,
    ) -> None:
        gram = reduce(add, source).gram + reduce(add, target).gram
        weights = [(1.0 - balance) * (len(source) if normalised else 1.0)]
        pairs = [(_centred(source, groups.ratios), _centred(target))]
        for s, t, trust in zip(source, target, groups.class_trust.tolist(), strict=True):
            if s.count and t.count:
                pairs.append((_centred([s]), _centred([t])))
                weights.append(balance * trust**2)
        matrix: Any = 0.0
        trace = 0.0
        for share, ((source_covariance, s), (target_covariance, t)) in zip(
            weights, pairs, strict=True
        ):
            D = source_covariance - target_covariance
            matrix = matrix + share * (D @ gram @ D)
            # tr(Z K K Z) with Z K K Z = Z Phi G Phi' Z
            trace += share * inner(gram, s + t)
        if normalised:
            weight = weight / trace if trace > 0 else 0.0
        self.matrix = weight * matrix

    def apply(self, w: Matrix) -> Matrix:
        """P w."""
        return self.matrix @ w


@dataclass(frozen=True)
class Covariances(Term):
    """lambda gamma ((1 - mu) Z_0 K K Z_0 + mu sum_c Z_c K K Z_c), with mu given or estimated.

    It has neither few columns nor is it fixed, so each solver asks for it in its own coordinates.
    """

    weight: float
    balance: str | float = 0.5
    normalised: bool = True
    name: ClassVar[str] = "covariances"

    def over_kernel(
        self, rows: Any, groups: Groups, statistics: SecondOrder
    ) -> CovarianceDiscrepancy:
        """A form of the scores of all rows."""
        return CovarianceDiscrepancy(statistics, groups, **self._parameters(rows, groups))

    def over_features(
        self, rows: Any, groups: Groups, source: Sequence[Moments], target: Sequence[Moments]
    ) -> ProjectedCovariances:
        """A form of the coefficients of features, of which these are the moments by class."""
        return ProjectedCovariances(groups, source, target, **self._parameters(rows, groups))

    def _parameters(self, rows: Any, groups: Groups) -> dict[str, Any]:
        balance = rows.balance(self.balance, groups)
        return {"weight": self.weight, "balance": balance, "normalised": self.normalised}
