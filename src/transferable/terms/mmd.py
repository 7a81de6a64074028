"""Maximum mean discrepancy: distance between the means of the domains, overall and by class.

Every M of the literature is E E' with one column a pair of groups, so nothing n x n is built.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transferable.terms.base import LowRankTerm, Matrix

__all__ = ["MeanDiscrepancy", "mean_differences"]


def mean_differences(codes: NDArray[np.intp], n_source: int, n_classes: int) -> Matrix:
    """Columns e_0, e_1 .. e_C with e' F = mean of F on the source - mean on the target.

    Column 0 compares whole domains, column c + 1 the rows of class c. A group that is empty on
    either side cannot be compared: its column is zero.
    """
    n = len(codes)
    columns = np.zeros((n, n_classes + 1))
    rows = np.arange(n)
    sides = ((1.0, slice(0, n_source)), (-1.0, slice(n_source, n)))
    for sign, side in sides:
        counts = np.bincount(codes[side], minlength=n_classes)
        columns[side, 0] = sign / max(side.stop - side.start, 1)
        columns[rows[side], codes[side] + 1] = sign / np.maximum(counts, 1)[codes[side]]
    source = np.bincount(codes[:n_source], minlength=n_classes) > 0
    target = np.bincount(codes[n_source:], minlength=n_classes) > 0
    columns[:, 1:] *= source & target
    return columns if n_source < n else np.zeros_like(columns)


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
        codes: NDArray[np.intp],
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
            columns[:, 1:] *= np.sqrt(_class_shares(codes, n_source, n_classes))[:, None]
        columns[:, 0] *= np.sqrt((1.0 - balance) * (n_classes if normalised else 1.0))
        columns[:, 1:] *= np.sqrt(balance)
        if normalised:
            norm = np.linalg.norm(columns.T @ columns)
            columns /= np.sqrt(norm) if norm > 0 else 1.0
        super().__init__(np.sqrt(weight) * columns)


def _class_shares(codes: NDArray[np.intp], n_source: int, n_classes: int) -> Matrix:
    """For each row, the share of its class among the rows of its domain."""
    sides = np.split(codes, [n_source])
    return np.concatenate(
        [np.bincount(side, minlength=n_classes)[side] / max(len(side), 1) for side in sides]
    )
