"""Manifold regularisation: neighbours in the p-nearest-neighbour graph get similar scores."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from transferable.linalg.arrays import is_torch_array, namespace
from transferable.linalg.neighbors import normalised_adjacency
from transferable.terms.base import FixedForm, FixedTerm, Matrix

__all__ = ["Laplacian", "Smoothness"]


@dataclass(frozen=True)
class Smoothness(FixedTerm):
    """rho tr(F'LF) with L the Laplacian of the graph of nearest neighbours by cosine.

    "auto" for the weight takes what the rows' own labels tell of their neighbours.
    """

    weight: float | str
    n_neighbors: int
    self_loops: bool = False
    name: ClassVar[str] = "manifold"

    def bind(self, rows: Any) -> Laplacian:
        """rho L for these rows."""
        weight = rows.trust_in_neighbors() if self.weight == "auto" else float(self.weight)
        return rows.laplacian(self.n_neighbors, self.self_loops).weighted(weight)


class Laplacian(FixedForm):
    """rho L with L = I - G^-1/2 W G^-1/2; rows without neighbours are left alone."""

    def __init__(self, graph: Any, weight: float = 1.0, key: Hashable = None) -> None:
        self.weight, self.key = weight, key
        self.adjacency = adjacency = normalised_adjacency(graph)
        starts = adjacency.crow_indices() if is_torch_array(adjacency) else adjacency.indptr
        self.connected = starts[1:] > starts[:-1]

    def apply(self, F: Matrix) -> Matrix:
        """rho L F."""
        adjacency = self.adjacency
        if adjacency.dtype != F.dtype:  # the product is to be in the precision of F
            adjacency = adjacency.to(F.dtype) if is_torch_array(F) else adjacency.astype(F.dtype)
        out = adjacency @ F
        connected = namespace(F).astype(self.connected, F.dtype)
        out -= connected[:, None] * F
        out *= -self.weight
        return out
