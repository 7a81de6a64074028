"""Manifold regularisation: neighbours in the p-nearest-neighbour graph get similar scores."""

from __future__ import annotations

from typing import Any

from transferable.linalg.arrays import is_torch_array, namespace
from transferable.linalg.neighbors import normalised_adjacency
from transferable.linalg.reuse import remember
from transferable.terms.base import Matrix, Term

__all__ = ["Laplacian"]


class Laplacian(Term):
    """rho L with L = I - G^-1/2 W G^-1/2; rows without neighbours are left alone."""

    def __init__(self, graph: Any, weight: float) -> None:
        self.weight = weight
        self.graph = graph
        self.adjacency = adjacency = normalised_adjacency(graph)
        starts = adjacency.crow_indices() if is_torch_array(adjacency) else adjacency.indptr
        self.connected = starts[1:] > starts[:-1]

    def apply(self, F: Matrix) -> Matrix:
        """rho L F."""
        out = self._adjacency(F) @ F
        out *= -self.weight
        connected = namespace(F).astype(self.connected, F.dtype)
        out += self.weight * connected[:, None] * F
        return out

    def times_shared(self, K: Matrix) -> Matrix:
        """rho L K; graphs that differ in nothing but their weight share the product."""
        return self.weight * remember(_times_kernel, self.graph, K)

    def _adjacency(self, F: Matrix) -> Any:
        """The adjacency in the precision of F, so that the product is in it too."""
        if self.adjacency.dtype == F.dtype:
            return self.adjacency
        in_precision = self.adjacency.to if is_torch_array(F) else self.adjacency.astype
        return in_precision(F.dtype)


def _times_kernel(graph: Any, K: Matrix) -> Matrix:
    return Laplacian(graph, 1.0).apply(K)
