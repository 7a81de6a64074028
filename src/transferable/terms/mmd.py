"""Maximum mean discrepancy: distance between the means of the domains, overall and by class.

Every M of the literature is E E' with one column a pair of groups, so nothing n x n is built.
"""

from __future__ import annotations

from typing import Any

from transferable.linalg.arrays import device, inner, is_torch_array, namespace
from transferable.linalg.reuse import canonical
from transferable.terms.base import LowRankTerm, Matrix

__all__ = ["MeanDiscrepancy", "mean_differences"]


def mean_differences(codes: Any, n_source: int, n_classes: int) -> Matrix:
    """Columns e_0, e_1 .. e_C with e' F = mean of F on the source - mean on the target.

    Column 0 compares whole domains, column c + 1 the rows of class c. A group that is empty on
    either side cannot be compared: its column is zero.
    """
    xp = namespace(codes)
    member = _members(codes, n_classes)
    columns = xp.concat([xp.ones_like(member[:, :1]), member], axis=1)
    source, target = columns[:n_source], columns[n_source:]
    sizes = [xp.sum(side, axis=0) for side in (source, target)]
    both = xp.astype((sizes[0] > 0) & (sizes[1] > 0), xp.float64)
    source *= both / xp.clip(sizes[0], 1.0)
    target *= -both / xp.clip(sizes[1], 1.0)
    return columns


class MeanDiscrepancy(LowRankTerm):
    """weight * ((1 - balance) M_0 + balance sum_c M_c).

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class codes, source rows first; pseudo-labels on target rows.
    n_source, n_classes : int
        How many rows are the source's, how many classes there are.
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
    """

    def __init__(
        self,
        codes: Any,
        n_source: int,
        n_classes: int,
        *,
        weight: float,
        balance: float,
        normalised: bool,
        class_weighted: bool = False,
    ) -> None:
        columns = mean_differences(codes, n_source, n_classes)
        if class_weighted:
            columns[:, 1:] *= _class_shares(codes, n_source, n_classes)[:, None] ** 0.5
        columns[:, 0] *= ((1.0 - balance) * (n_classes if normalised else 1.0)) ** 0.5
        columns[:, 1:] *= balance**0.5
        if normalised:
            products = columns.T @ columns
            norm = inner(products, products) ** 0.5
            weight = weight / norm if norm > 0 else 0.0
        # Fits that differ in their weight alone begin with the same columns, and may share them.
        super().__init__(columns if is_torch_array(columns) else canonical(columns), weight)


def _members(codes: Any, n_classes: int) -> Matrix:
    """Column c is one on the rows of class c and zero elsewhere."""
    xp = namespace(codes)
    classes = xp.arange(n_classes, dtype=codes.dtype, device=device(codes))
    return xp.astype(codes[:, None] == classes, xp.float64)


def _class_shares(codes: Any, n_source: int, n_classes: int) -> Matrix:
    """For each row, the share of its class among the rows of its domain."""
    xp = namespace(codes)
    member = _members(codes, n_classes)
    sides = (member[:n_source], member[n_source:])
    return xp.concat([side @ xp.sum(side, axis=0) / max(len(side), 1) for side in sides])
