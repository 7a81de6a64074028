"""Manifold regularisation: neighbours in the p-nearest-neighbour graph get similar scores."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from transferable.linalg.neighbors import normalised_adjacency
from transferable.terms.base import Matrix, Term

__all__ = ["Laplacian"]


class Laplacian(Term):
    """rho L with L = I - G^-1/2 W G^-1/2; rows without neighbours are left alone."""

    def __init__(self, graph: sp.csr_array, weight: float) -> None:
        self.weight = weight
        self.adjacency = normalised_adjacency(graph)
        self.connected = (np.diff(self.adjacency.indptr) > 0).astype(np.float64)[:, None]

    def apply(self, F: Matrix) -> Matrix:
        """rho L F."""
        return self.weight * (self.connected * F - self.adjacency @ F)
