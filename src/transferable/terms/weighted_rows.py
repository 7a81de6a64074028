"""Distances between domains over weighted rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Groups
from transferable.linalg.simplex import minimise_on_simplices
from transferable.terms.base import Matrix, Quadratic
from transferable.terms.means import mean_differences

__all__ = ["WeightedDiscrepancy"]


class WeightedDiscrepancy(Quadratic):
    """The three distances of LPJT between embedded rows f_i with weights w_i.

    Squared distance of the domains' weighted means, of each class's weighted means, and the mean
    squared distance of all pairs of rows of one class from different domains. A class that is
    absent from either domain counts in none.

    Parameters
    ----------
    groups : Groups
        The rows by domain and class.
    share : float
        delta: the mean of the weights in each class of each domain.
    pairs : bool
        Whether pairs of rows are compared; without them the term is one of means, as in LDML.
    """

    def __init__(self, groups: Groups, *, share: float, pairs: bool = True) -> None:
        self.groups, self.share = groups, share
        self.means = groups.spread(mean_differences(groups)) / share
        of_class = self.means[:, 1:] if pairs else self.means[:, :0]
        self.source, self.target = np.maximum(of_class, 0.0), np.maximum(-of_class, 0.0)
        # A pair's |w_i f_i - w_j f_j|^2 counts 1 / (n_s n_t); summed over j, row i counts 1 / n_s.
        self.own = np.abs(of_class).sum(axis=1, keepdims=True) / share
        self.weights: Matrix = np.full((len(groups.codes), 1), share)

    def apply(self, F: Matrix) -> Matrix:
        """S F with the weights as they are."""
        return self.weights * self.unweighted(self.weights * F)

    def unweighted(self, F: Matrix) -> Matrix:
        """S F for rows that carry their weights already."""
        cross = self.source @ (self.target.T @ F) + self.target @ (self.source.T @ F)
        return self.means @ (self.means.T @ F) + self.own * F - cross

    def product_for_weights(self, Z: Matrix, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Q w, where w'Qw is the term's value for embedded rows Z with weights w."""
        return np.sum(Z * self.unweighted(w[:, None] * Z), axis=1)

    def least_weights(self, Z: Matrix, start: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights for which embedded rows Z differ least, of mean `share` in each class."""
        return minimise_on_simplices(
            lambda w: self.product_for_weights(Z, w),
            start,
            self.groups.index,
            self.share * self.groups.counts.ravel(),
        )
