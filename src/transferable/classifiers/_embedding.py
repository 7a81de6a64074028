"""Features the risk classifiers work on: geodesic flow coordinates, brought to unit length."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Domains, Reordered
from transferable.linalg.grassmann import (
    basis_of_moments,
    common_rank,
    geodesic_flow_factor,
    principal_bases,
)
from transferable.linalg.moments import Moments
from transferable.linalg.reuse import remember
from transferable.linalg.rows import unit_rows

__all__ = ["CANDIDATES", "ManifoldFeatures"]

CANDIDATES = (20, 40, 80)  # dimensions that "auto" tries, besides no flow at all


class ManifoldFeatures:
    """The map x -> Q'x / ||Q'x||, or x / ||x|| where no flow is wanted."""

    def __init__(self, factor: NDArray[np.float64] | None) -> None:
        self.factor = factor

    @staticmethod
    def fit(domains: Domains, manifold_dim: int | None) -> ManifoldFeatures:
        """Bases of both domains and the flow between them; `manifold_dim` directions each."""
        if manifold_dim is None or domains.n_target == 0:
            return _NO_FLOW
        Ps, Pt = _bases(domains, manifold_dim)
        if Ps.shape[1] < manifold_dim:
            warnings.warn(
                f"manifold_dim={manifold_dim} is more than the rows of both domains span; it is "
                f"reduced to {Ps.shape[1]}.",
                UserWarning,
                stacklevel=2,
            )
        return remember(_flow, Ps, Pt, Ps.shape[1]) if Ps.shape[1] else _NO_FLOW

    @staticmethod
    def candidates(domains: Domains) -> Iterator[ManifoldFeatures]:
        """Flows of growing dimension as far as the ranks allow, and last the rows as they are."""
        if domains.n_target > 0:
            Ps, Pt = _bases(domains, CANDIDATES[-1])
            for k in CANDIDATES:
                if k <= Ps.shape[1]:
                    yield remember(_flow, Ps, Pt, k)
        yield _NO_FLOW

    @property
    def manifold_dim(self) -> int | None:
        """Directions of each domain that the flow joins, None without a flow."""
        return None if self.factor is None else self.factor.shape[1] // 2

    def width(self, n_features: int) -> int:
        """Number of features of rows that had so many."""
        return n_features if self.factor is None else int(self.factor.shape[1])

    def transform(self, X: Any) -> Any:
        """Features of rows, of either domain or new, in the precision of the rows."""
        return remember(_transformed, self, X)

    def of_domains(self, domains: Domains) -> Any:
        """Features of all rows; rows that are not copied are read block by block."""
        if not isinstance(domains.X, Reordered):
            return self.transform(domains.X)
        n, d = domains.X.shape
        Z = np.empty((n, self.width(d)), dtype=domains.X.dtype)
        for positions, rows in domains.blocks(_block_rows(d)):
            Z[positions] = _transformed(self, rows)
        return Z


_NO_FLOW = ManifoldFeatures(None)


def _bases(domains: Domains, most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return remember(_leading_directions, domains.X, domains.n_source, most)


def _leading_directions(
    X: Any, n_source: int, most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Leading directions of both domains, as many of each as both have."""
    if not isinstance(X, Reordered):
        return principal_bases(X[:n_source], X[n_source:], most)
    source = target = Moments.none(X.shape[1])
    for positions, rows in X.blocks(_block_rows(X.shape[1])):
        inside = positions < n_source
        source += Moments.of(rows[inside].astype(np.float64))
        target += Moments.of(rows[~inside].astype(np.float64))
    return common_rank(basis_of_moments(source, most), basis_of_moments(target, most))


def _block_rows(width: int) -> int:
    return max(1, 2**23 // width)


def _flow(Ps: NDArray[np.float64], Pt: NDArray[np.float64], k: int) -> ManifoldFeatures:
    """The flow between the first k directions of both domains."""
    return ManifoldFeatures(geodesic_flow_factor(Ps[:, :k], Pt[:, :k]))


def _transformed(features: ManifoldFeatures, X: Any) -> Any:
    if features.factor is None:
        return unit_rows(X)
    return unit_rows(X @ features.factor.astype(X.dtype))
