"""Manifold regularisation: rows that are joined in a graph get similar scores.

There are two graphs: that of nearest neighbours, which has to be searched for and reaches across
rows, and that of anchors, of which sums over rows tell everything.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from transferable.linalg.anchors import Anchors, AnchorSums
from transferable.linalg.arrays import is_torch_array, namespace
from transferable.linalg.neighbors import normalised_adjacency
from transferable.terms.base import FixedForm, FixedTerm, Matrix

__all__ = ["AnchorLaplacian", "Laplacian", "Smoothness"]


@dataclass(frozen=True)
class Smoothness(FixedTerm):
    """rho tr(F'LF) with L the Laplacian of a graph by cosine.

    It joins each row to its `n_neighbors` nearest rows or, where a number of anchors is given, to
    the rows that share its nearest anchors. "auto" for the weight takes what the rows' own labels
    tell of their neighbours.
    """

    weight: float | str
    n_neighbors: int
    self_loops: bool = False
    n_anchors: int | None = None
    n_ties: ClassVar[int] = 3  # anchors of a row; five were worse where many rows share one
    name: ClassVar[str] = "manifold"

    def bind(self, rows: Any) -> Laplacian | AnchorLaplacian:
        """rho L for these rows."""
        weight = rows.trust_in_neighbors() if self.weight == "auto" else float(self.weight)
        if self.n_anchors is None:
            return rows.laplacian(self.n_neighbors, self.self_loops).weighted(weight)
        return rows.anchor_laplacian(self.n_anchors, self.n_ties).weighted(weight)


class Laplacian(FixedForm):
    """rho L with L = I - G^-1/2 W G^-1/2; rows without neighbours are left alone."""

    def __init__(self, graph: Any, weight: float = 1.0, key: Hashable = None) -> None:
        self.weight, self.key = weight, key
        self.adjacency = adjacency = normalised_adjacency(graph)
        starts = adjacency.crow_indices() if is_torch_array(adjacency) else adjacency.indptr
        self.connected = starts[1:] > starts[:-1]

    def apply(self, F: Matrix) -> Matrix:
        """rho L F."""
        out = _as_precise(self.adjacency, F) @ F
        connected = namespace(F).astype(self.connected, F.dtype)
        out -= connected[:, None] * F
        out *= -self.weight
        return out


class AnchorLaplacian(FixedForm):
    """rho L with L = I - Z diag(Z'1)^-1 Z', whose degrees are all one.

    Parameters
    ----------
    anchors : Anchors
        What rows are tied to.
    ties : callable
        Gives Z of all rows, where the form is applied to tables of them.
    weight : float
        rho.
    key : hashable
        The same for the same anchors of the same rows.
    """

    def __init__(
        self,
        anchors: Anchors,
        ties: Callable[[], Matrix],
        weight: float = 1.0,
        key: Hashable = None,
    ) -> None:
        self.anchors, self._ties, self.weight, self.key = anchors, ties, weight, key

    def apply(self, F: Matrix) -> Matrix:
        """rho L F."""
        Z = _as_precise(self._ties(), F)
        return self.weight * (F - Z @ AnchorSums.of(Z, F).means)

    def projected(self, sums: Any) -> Matrix | None:
        """rho Phi' L Phi; None where rows are weighted, of which the graph knows nothing."""
        if sums.weighted:
            return None
        return self.weight * (sums.whole.gram - sums.anchors.gram)


def _as_precise(matrix: Any, F: Matrix) -> Any:
    """A matrix, sparse or dense, in the precision of a table that it is to be multiplied by."""
    if matrix.dtype == F.dtype:
        return matrix
    return matrix.to(F.dtype) if is_torch_array(F) else matrix.astype(F.dtype)
