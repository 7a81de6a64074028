"""Features the risk classifiers work on: geodesic flow coordinates, brought to unit length."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Domains
from transferable.linalg.grassmann import geodesic_flow_factor, principal_bases
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

    def transform(self, X: Any) -> Any:
        """Features of rows, of either domain or new."""
        return remember(_transformed, self, X)


_NO_FLOW = ManifoldFeatures(None)


def _bases(domains: Domains, most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return remember(_leading_directions, domains.X, domains.n_source, most)


def _leading_directions(
    X: Any, n_source: int, most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Leading directions of both domains, as many of each as both have."""
    return principal_bases(X[:n_source], X[n_source:], most)


def _flow(Ps: NDArray[np.float64], Pt: NDArray[np.float64], k: int) -> ManifoldFeatures:
    """The flow between the first k directions of both domains."""
    return ManifoldFeatures(geodesic_flow_factor(Ps[:, :k], Pt[:, :k]))


def _transformed(features: ManifoldFeatures, X: Any) -> Any:
    return unit_rows(X if features.factor is None else X @ features.factor)
