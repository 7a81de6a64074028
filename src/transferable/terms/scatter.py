"""Scatter of rows: inside groups, between the means of groups, and along the edges of a graph."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from transferable.terms.base import LowRank, Matrix, Quadratic

__all__ = ["BetweenScatter", "EdgeScatter", "WithinScatter"]


def _shares(codes: NDArray[np.intp]) -> Matrix:
    """Column g holds 1 / n_g on the rows of group g; rows with a negative code are in none."""
    n_groups = int(codes.max(initial=-1)) + 1
    rows = np.flatnonzero(codes >= 0)
    counts = np.bincount(codes[rows], minlength=n_groups)
    shares = np.zeros((len(codes), n_groups))
    shares[rows, codes[rows]] = 1.0 / counts[codes[rows]]
    return shares


class WithinScatter(Quadratic):
    """``sum_g sum_i |f_i - mean_g|^2`` over the rows of each group; codes below 0 are left out."""

    def __init__(self, codes: NDArray[np.intp]) -> None:
        self.member = (codes >= 0)[:, None]
        self.codes = codes
        self.shares = _shares(codes)

    def apply(self, F: Matrix) -> Matrix:
        """F with the mean of its group taken from each row, zero outside the groups."""
        means = self.shares.T @ F
        return np.where(self.member, F - means[self.codes], 0.0) if len(means) else 0.0 * F


class BetweenScatter(LowRank):
    """``sum_g n_g |mean_g - mean|^2`` with the mean over the rows of all groups."""

    def __init__(self, codes: NDArray[np.intp]) -> None:
        member = codes >= 0
        sizes = np.bincount(codes[member], minlength=int(codes.max(initial=-1)) + 1)
        centre = member / max(int(member.sum()), 1)
        super().__init__(np.sqrt(sizes) * (_shares(codes) - centre[:, None]))


class EdgeScatter(Quadratic):
    """Sum over edges of ``w_ij |f_i - f_j|^2``, for a symmetric graph: its plain Laplacian."""

    def __init__(self, graph: sp.csr_array) -> None:
        self.graph = graph
        self.degrees = np.asarray(graph.sum(axis=1)).reshape(-1, 1)

    def apply(self, F: Matrix) -> Matrix:
        """L F."""
        return self.degrees * F - self.graph @ F
