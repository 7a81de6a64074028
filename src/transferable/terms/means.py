"""Maximum mean discrepancy: distance between the means of the domains, overall and by class.

Every M of the literature is E E' with one column a pair of groups, and E = G B with G the indicator
of groups: all that has to be known of the rows is how many are in each.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Groups
from transferable.linalg.arrays import CPU, Arrays
from transferable.terms.base import LabelledTerm, LowRank, Matrix

__all__ = ["MeanDiscrepancy", "Means", "mean_differences"]


def mean_differences(groups: Groups) -> NDArray[np.float64]:
    """B of shape (n_groups, n_sources (n_classes + 1)): (G B)'F = mean on a source - on the target.

    Of the columns of each source, column 0 compares whole domains, column c + 1 the rows of class
    c; they count by the root of the source's weight. A group that is empty on either side cannot be
    compared: its column is zero. Where the target's class shares are taken to differ, the source as
    a whole is weighted to have them, and classes count as they are trusted.
    """
    C, K = groups.n_classes, groups.n_sources
    B = np.zeros((K + 1, C, K, C + 1))
    target = groups.counts[K]
    for k, source in enumerate(groups.counts[:K]):
        if source.any() and target.any():
            B[k, :, k, 0], B[K, :, k, 0] = groups.ratios_in(k) / source.sum(), -1.0 / target.sum()
        both = np.flatnonzero((source > 0) & (target > 0))
        B[k, both, k, both + 1] = 1.0 / source[both]
        B[K, both, k, both + 1] = -1.0 / target[both]
    B[..., 1:] *= groups.class_trust
    B *= np.sqrt(groups.source_weights)[:, None]
    return B.reshape(len(B) * C, -1)


class MeanDiscrepancy(LowRank):
    """weight * ((1 - balance) M_0 + balance sum_c M_c).

    Parameters
    ----------
    groups : Groups
        The rows by domain and class.
    weight : float
        lambda.
    balance : float
        mu: 0 compares the domains as wholes only, 1 class by class only.
    normalised : bool
        As in the code of JDA, ARTL and MEDA: M_0 counts C times, as much as all classes together,
        and the sum is divided by its Frobenius norm. Otherwise as printed in the paper.
    class_weighted : bool
        Weight a class's mean by the root of its share of the domain, as weighted BDA does, so that
        classes of different frequency in the two domains are compared as such.
    arrays : Arrays
        Where the columns are needed.

    Attributes
    ----------
    groups : Groups
        The rows by domain and class.
    coefficients : ndarray of shape (n_groups, n_sources (n_classes + 1))
        B, a number for each group and column.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        weight: float,
        balance: float,
        normalised: bool,
        class_weighted: bool = False,
        arrays: Arrays = CPU,
    ) -> None:
        B = mean_differences(groups)
        by_class = np.arange(B.shape[1]) % (groups.n_classes + 1) > 0
        if class_weighted:
            totals = groups.counts.sum(axis=1, keepdims=True)
            shares = groups.counts / np.where(totals > 0, totals, 1.0)
            B[:, by_class] *= shares.reshape(-1, 1) ** 0.5
        B[:, ~by_class] *= ((1.0 - balance) * (groups.n_classes if normalised else 1.0)) ** 0.5
        B[:, by_class] *= balance**0.5
        if normalised:
            norm = float(np.linalg.norm(B.T @ (groups.counts.reshape(-1, 1) * B)))
            weight = weight / norm if norm > 0 else 0.0
        self.coefficients, self.weight = B, weight
        self._form = balance, normalised, class_weighted
        self.groups, self._arrays = groups, arrays

    @property
    def key(self) -> Hashable:
        """The same for the same groups and form, whatever the weight."""
        return self.groups.key, self._form

    @cached_property
    def unit(self) -> Matrix:
        """E, the coefficients of each row's group, times the row's weight."""
        E = self._arrays.table(self.coefficients)[self._arrays.table(self.groups.index)]
        weights = self.groups.weights
        return E if weights is None else E * self._arrays.table(weights[:, None])


@dataclass(frozen=True)
class Means(LabelledTerm):
    """lambda ((1 - mu) M_0 + mu sum_c M_c), with mu given or estimated from the rows."""

    weight: float
    balance: str | float = 0.5
    normalised: bool = True
    name: ClassVar[str] = "means"

    def at(self, rows: Any, groups: Groups) -> MeanDiscrepancy:
        """The discrepancy for these groups."""
        return MeanDiscrepancy(
            groups,
            weight=self.weight,
            balance=rows.balance(self.balance, groups),
            normalised=self.normalised,
            arrays=rows.arrays,
        )
