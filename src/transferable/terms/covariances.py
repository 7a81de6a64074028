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
from transferable.linalg.arrays import Arrays, inner, namespace
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

    Rows of either may count differently: `shares`, a number for each of them, sum to one.
    """

    def __init__(
        self,
        source: NDArray[np.intp],
        target: NDArray[np.intp],
        shares: tuple[Matrix | None, Matrix | None] = (None, None),
    ) -> None:
        self.rows = np.concatenate([source, target])
        self.sizes = (len(source), len(target))
        self.shares = shares

    def apply(self, F: Matrix) -> Matrix:
        """Z F, where F and the result hold the rows of the group only."""
        n_source, _ = self.sizes
        out = namespace(F).empty_like(F)
        out[:n_source] = _centred_rows(F[:n_source], self.shares[0])
        out[n_source:] = -_centred_rows(F[n_source:], self.shares[1])
        return out

    def within(self, F: Matrix) -> Matrix:
        """Z F for a table of all rows."""
        if len(self.rows) == len(F):
            return self.apply(F)
        out = namespace(F).zeros_like(F)
        out[self.rows] = self.apply(F[self.rows])
        return out


def _centred_rows(F: Matrix, shares: Matrix | None) -> Matrix:
    """Rows less their mean, times what they count of it."""
    if shares is None:
        return (F - namespace(F).mean(F, axis=0)) / len(F)
    return shares[:, None] * (F - shares @ F)


def _shares(
    weights: Matrix | None, rows: NDArray[np.intp], ratios: Matrix | float = 1.0
) -> Matrix | None:
    """What rows count in their mean; None if all count alike."""
    if weights is None and isinstance(ratios, float):
        return None
    shares: Matrix = ratios if weights is None else ratios * weights[rows]
    return shares / shares.sum()


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
    """What no pseudo-label changes: K, K K and the part that compares the domains as wholes.

    Rows of weight w stand for w rows each: sums over rows are weighted, K K is K W K, and a trace
    is that of the rows they stand for, tr(W^-1 S).

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel matrix.
    n_source : int
        How many rows come first that are of a source.
    marginals : list of (float, GroupCentring) or None
        Each source with the target, and what it counts; None for one source.
    weights : array of shape (n,) or None
        Weights of the rows, None if all count alike.
    K2 : array of shape (n, n) or None
        K K, or K W K, if it is known.
    """

    def __init__(
        self,
        K: Matrix,
        n_source: int,
        marginals: list[tuple[float, GroupCentring]] | None = None,
        weights: Matrix | None = None,
        K2: Matrix | None = None,
    ) -> None:
        self.K, self._weights = K, weights
        if K2 is None:  # of a matrix and its transpose BLAS computes one half only
            K2 = K.T @ K if weights is None else (K * weights) @ K
        self.K2: Matrix = K2
        whole = GroupCentring(np.arange(n_source), np.arange(n_source, len(K)))
        self.marginals = marginals or [(1.0, whole)]

    @classmethod
    def of(cls, K: Matrix, groups: Groups, arrays: Arrays, K2: Matrix | None = None) -> SecondOrder:
        """That of groups with several sources, class shares or weights."""
        weights = None if groups.weights is None else arrays.table(groups.weights)
        marginals = []
        for k, share in enumerate(groups.source_weights):
            source, target = groups.whole(k)
            ratios: Matrix = groups.ratios_in(k)
            if not isinstance(ratios, float):
                ratios = arrays.table(ratios[groups.codes[source]])
            shares = _shares(weights, source, ratios), _shares(weights, target)
            marginals.append((float(share), GroupCentring(source, target, shares)))
        return cls(K, groups.n_source, marginals, weights, K2)

    def pairs(self, groups: Groups) -> list[tuple[float, GroupCentring]]:
        """Every class of every source that the target has too, with what it counts."""
        pairs = []
        trusted = groups.class_trust**2
        for k, weight in enumerate(groups.source_weights):
            for code in np.flatnonzero((groups.counts[k] > 0) & (groups.counts[-1] > 0)).tolist():
                source, target = groups.members(code, source=k)
                shares = _shares(self._weights, source), _shares(self._weights, target)
                centring = GroupCentring(source, target, shares)
                pairs.append((float(weight * trusted[code]), centring))
        return pairs

    def block(self, group: GroupCentring) -> Matrix:
        """Z K K Z on the rows of a group, outside of which it is zero."""
        inside = self.K2[group.rows[:, None], group.rows[None, :]]
        return group.apply(group.apply(inside).T)

    def trace(self, block: Matrix, group: GroupCentring) -> float:
        """The trace of such a block."""
        diagonal = namespace(block).linalg.diagonal(block)
        if self._weights is not None:
            diagonal = diagonal / self._weights[group.rows]
        return float(diagonal.sum())

    def marginal_product(self, F: Matrix) -> Matrix:
        """Z_0 K K Z_0 F, summed over the sources."""
        first, *others = self.marginals
        out = self._product(*first, F)
        for weight, marginal in others:
            out += self._product(weight, marginal, F)
        return out

    def _product(self, weight: float, marginal: GroupCentring, F: Matrix) -> Matrix:
        product = marginal.within(self.K2 @ marginal.within(F))
        return product if weight == 1.0 else weight * product

    @cached_property
    def marginal_trace(self) -> float:
        """tr(Z_0 K K Z_0), summed over the sources."""
        trace = 0.0
        for weight, marginal in self.marginals:
            centred = marginal.within(self.K)
            other = centred
            if self._weights is not None:
                other = centred * self._weights / self._weights[:, None]
            trace += weight * inner(centred, other)
        return trace

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
        self.blocks = [
            (group, trust * statistics.block(group)) for trust, group in statistics.pairs(groups)
        ]
        if normalised:
            trace = self.marginal_weight * statistics.marginal_trace + self.class_weight * sum(
                statistics.trace(block, group) for group, block in self.blocks
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
        for group, block in self.blocks:
            out[group.rows] += (self.class_weight * block) @ F[group.rows]
        return out


def _centred(
    moments: Sequence[Moments], ratios: NDArray[np.float64] | float = 1.0
) -> tuple[Matrix, Matrix]:
    """Phi' Z Phi and Phi' Z Z Phi over groups of rows that count in these ratios, Z up to sign.

    Z = diag(a) - a a' with a the weights of the rows, which sum to one.
    """
    weights = (ratios * np.ones(len(moments)) / (sum(m.count for m in moments) or 1)).tolist()
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
        Moments of the features by class, of each source after the other, and of the target.
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
        C, weights, pairs = groups.n_classes, [], []
        for k, share in enumerate(groups.source_weights):
            own = source[k * C : (k + 1) * C]
            weights.append(float(share) * (1.0 - balance) * (C if normalised else 1.0))
            pairs.append((_centred(own, groups.ratios_in(k)), _centred(target)))
            for s, t, trust in zip(own, target, groups.class_trust.tolist(), strict=True):
                if s.count and t.count:
                    pairs.append((_centred([s]), _centred([t])))
                    weights.append(float(share) * balance * trust**2)
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
