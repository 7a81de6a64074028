"""Second-order part of the maximum mean and covariance discrepancy (MMCD).

By Theorem 1 of the paper ||beta' K Z K beta||^2 is bounded, up to a constant, by the quadratic form
tr(F' Z K K Z F). Z centres rows inside a group and scales them by plus or minus one over the
group's size, so a product with Z K K Z needs K K inside the group only. Rows of weight w stand for
w rows each: sums over rows are weighted, K K is K W K, and a trace is that of the rows they stand
for, tr(W^-1 S).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from transferable._kernel.objective import Matrix, ratios_in
from transferable._linalg.arrays import namespace
from transferable._linalg.moments import Moments
from transferable.domains import Domains


@dataclass(frozen=True)
class Covariances:
    """lambda gamma ((1 - mu) Z_0 K K Z_0 + mu sum_c Z_c K K Z_c), over its trace.

    The marginals count C times, as much as all classes together. The trace grows with the rows, so
    that without the division no weight would suit two datasets.
    """

    weight: float
    name: ClassVar[str] = "covariances"

    def whole_weight(self, balance: float, n_classes: int) -> float:
        """Return the weight of the marginal comparison."""
        return (1.0 - balance) * n_classes

    def scale(self, trace: float) -> float:
        """Return the factor of a form with this trace."""
        return self.weight / trace if trace > 0 else 0.0


class GroupCentring:
    """Z of one pair of groups: centred, weighted source rows, and target rows with minus signs.

    Rows count by `weights`, one for each of them.
    """

    def __init__(
        self,
        source: NDArray[np.intp],
        target: NDArray[np.intp],
        weights: tuple[Matrix, Matrix] | None = None,
    ) -> None:
        if weights is None:
            weights = np.ones(len(source)), np.ones(len(target))
        self.rows, self.n_source = np.concatenate([source, target]), len(source)
        self.shares = [w / w.sum() if len(w) else w for w in weights]

    def apply(self, F: Matrix) -> Matrix:
        """Return Z F, where F and the result hold the rows of the group only."""
        out, n = namespace(F).empty_like(F), self.n_source
        s, t = self.shares
        out[:n] = s[:, None] * (F[:n] - s @ F[:n])
        out[n:] = t[:, None] * (t @ F[n:] - F[n:])
        return out

    def within(self, F: Matrix) -> Matrix:
        """Return Z F for a table of all rows."""
        if len(self.rows) == len(F):  # one source: all rows, in their order
            return self.apply(F)
        out = namespace(F).zeros_like(F)
        out[self.rows] = self.apply(F[self.rows])
        return out


def pairs_of_groups(
    domains: Domains, target: NDArray[np.intp], ratio: NDArray[np.float64], table: Any
) -> list[tuple[float, bool, GroupCentring]]:
    """Return the comparisons of each source with the target, marginal and class by class.

    Each has the weight of its source and class, whether it is marginal, and its Z. `table` moves
    the weights of rows to the device.
    """
    counts, found = domains.counts(target), []
    for k, share in enumerate(domains.source_weights.tolist()):
        own = np.flatnonzero(domains.sources == k)
        weights = domains.weights.copy()
        weights[own] *= ratios_in(counts, ratio, k)[domains.y[own]]
        pairs = [(share, True, weights, own, np.arange(domains.n_target))]
        for code, trust in enumerate(np.minimum(1.0, ratio).tolist()):
            rows = own[domains.y[own] == code], np.flatnonzero(target == code)
            pairs.append((share * trust**2, False, domains.weights, *rows))
        for weight, whole, of_rows, s, t in pairs:
            t = domains.n_source + t
            if len(s) and len(t):
                centring = GroupCentring(s, t, (table(of_rows[s]), table(of_rows[t])))
                found.append((weight, whole, centring))
    return found


class KernelCovariances:
    """The term over all rows, for one labelling.

    `known` has products that no pseudo-label changes, added on first use; `target` are the labels.
    """

    def __init__(
        self,
        term: Covariances,
        K: Matrix,
        known: dict[Any, Any],
        domains: Domains,
        target: NDArray[np.intp],
        ratio: NDArray[np.float64],
        balance: float,
        table: Any,
    ) -> None:
        w = table(domains.weights)
        if "K2" not in known:
            root = K * w**0.5
            known["K2"] = root @ root.T
        self._K, self._K2 = K, known["K2"]
        pairs = pairs_of_groups(domains, target, ratio, table)
        self._wholes = [(share, Z) for share, whole, Z in pairs if whole]
        key = ratio.tobytes()
        if key not in known:
            trace = 0.0
            for share, Z in self._wholes:
                centred = Z.within(K)
                trace += share * float((((centred * centred) @ w) / w).sum())
            known[key] = trace, self._whole_form(K)
        trace, self._whole_times_kernel = known[key]
        self._of_whole, self._of_class = term.whole_weight(balance, domains.n_classes), balance
        trace = self._of_whole * trace
        self._blocks = []
        for share, whole, Z in pairs:
            if not whole:
                inside = self._K2[Z.rows[:, None], Z.rows[None, :]]
                block = share * Z.apply(Z.apply(inside).T)
                self._blocks.append((Z.rows, block))
                diagonal = namespace(block).linalg.diagonal(block)
                trace += balance * float((diagonal / w[Z.rows]).sum())
        scale = term.scale(trace)
        self._of_whole, self._of_class = scale * self._of_whole, scale * self._of_class

    def _whole_form(self, F: Matrix) -> Matrix:
        """Return Z_0 K K Z_0 F, summed over the sources."""
        return reduce(add, (share * Z.within(self._K2 @ Z.within(F)) for share, Z in self._wholes))

    def form(self, F: Matrix) -> Matrix:
        """Return S F."""
        return self._with_classes(self._of_whole * self._whole_form(F), F)

    def times_kernel(self) -> Matrix:
        """Return S K, of which the one product of order n^3 is known."""
        return self._with_classes(self._of_whole * self._whole_times_kernel, self._K)

    def _with_classes(self, out: Matrix, F: Matrix) -> Matrix:
        for rows, block in self._blocks:
            out[rows] += (self._of_class * block) @ F[rows]
        return out


def projected_covariances(
    term: Covariances,
    domains: Domains,
    counts: NDArray[np.float64],
    source: Sequence[Moments],
    target: Sequence[Moments],
    ratio: NDArray[np.float64],
    balance: float,
) -> Matrix:
    """Return the term as a form of coefficients of features, F = Phi w.

    That is ``weight ((1 - mu) D_0 G D_0 + mu sum_c D_c G D_c)`` with D_c the difference of the
    domains' covariances in class c, D_0 that of whole domains, and G = Phi'Phi. `source` and
    `target` are the moments of the features by class, of each source after the other.
    """
    gram, C = reduce(add, source).gram + reduce(add, target).gram, domains.n_classes
    weights, pairs = [], []
    for k, share in enumerate(domains.source_weights.tolist()):
        own = source[k * C : (k + 1) * C]
        weights.append(share * term.whole_weight(balance, C))
        pairs.append((centred_moments(own, ratios_in(counts, ratio, k)), centred_moments(target)))
        for s, t, trust in zip(own, target, np.minimum(1.0, ratio).tolist(), strict=True):
            if s.count and t.count:
                pairs.append((centred_moments([s]), centred_moments([t])))
                weights.append(share * balance * trust**2)
    matrix, trace = 0.0 * gram, 0.0
    for share, ((source_covariance, s), (target_covariance, t)) in zip(weights, pairs, strict=True):
        D = source_covariance - target_covariance
        matrix += share * (D @ gram @ D)
        # tr(Z K K Z) with Z K K Z = Z Phi G Phi' Z
        trace += share * float((gram * (s + t)).sum())
    return term.scale(trace) * matrix


def centred_moments(
    moments: Sequence[Moments], ratios: NDArray[np.float64] | float = 1.0
) -> tuple[Matrix, Matrix]:
    """Return Phi'Z Phi and Phi'Z Z Phi over groups of rows that count in these ratios.

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


def squared_differences(
    groups: Sequence[GroupCentring], Phi: Matrix, trust: NDArray[np.float64] | None = None
) -> Matrix:
    """Return squared differences of two covariances, (Phi'Z Phi)^2, summed over disjoint groups.

    Each difference is weighted by the trust in its group.
    """
    centred, product = np.zeros_like(Phi), np.zeros_like(Phi)
    for group, weight in zip(groups, np.ones(len(groups)) if trust is None else trust, strict=True):
        rows = Phi[group.rows]
        centred[group.rows] = part = weight * group.apply(rows)
        few = len(rows) < Phi.shape[1]
        product[group.rows] = (rows @ rows.T) @ part if few else rows @ (rows.T @ part)
    return centred.T @ product
