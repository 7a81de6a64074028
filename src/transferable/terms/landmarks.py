"""Distances between domains over weighted rows, of which the heavy ones are landmarks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transferable.linalg.simplex import minimise_on_simplices
from transferable.terms.base import Matrix, Term
from transferable.terms.mmd import mean_differences

__all__ = ["LandmarkDiscrepancy"]


class LandmarkDiscrepancy(Term):
    """The three distances of LPJT between embedded rows f_i with weights w_i.

    Squared distance of the domains' weighted means, of each class's weighted means, and the mean
    squared distance of all pairs of rows of one class from different domains. A class that is
    absent from either domain counts in none.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class codes, source rows first; pseudo-labels on target rows.
    n_source, n_classes : int
        How many rows are the source's, how many classes there are.
    share : float
        delta: the mean of the weights in each class of each domain.
    pairs : bool
        Whether pairs of rows are compared; without them the term is one of means, as in LDML.
    """

    def __init__(
        self,
        codes: NDArray[np.intp],
        n_source: int,
        n_classes: int,
        *,
        share: float,
        pairs: bool = True,
    ) -> None:
        self.codes, self.n_source, self.n_classes, self.share = codes, n_source, n_classes, share
        self.means = mean_differences(codes, n_source, n_classes) / share
        of_class = self.means[:, 1:] if pairs else self.means[:, :0]
        self.source, self.target = np.maximum(of_class, 0.0), np.maximum(-of_class, 0.0)
        # A pair's |w_i f_i - w_j f_j|^2 counts 1 / (n_s n_t); summed over j, row i counts 1 / n_s.
        self.own = np.abs(of_class).sum(axis=1, keepdims=True) / share
        self.weights: Matrix = np.full((len(codes), 1), share)

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
        groups = self.codes + self.n_classes * (np.arange(len(self.codes)) >= self.n_source)
        sizes = np.bincount(groups, minlength=2 * self.n_classes).astype(np.float64)
        return minimise_on_simplices(
            lambda w: self.product_for_weights(Z, w), start, groups, self.share * sizes
        )
