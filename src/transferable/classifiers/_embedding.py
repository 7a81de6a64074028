"""Features the risk classifiers work on: geodesic flow coordinates, brought to unit length."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Domains
from transferable.linalg.grassmann import geodesic_flow_factor, principal_bases
from transferable.linalg.rows import unit_rows

__all__ = ["CANDIDATES", "ManifoldFeatures"]

CANDIDATES = (20, 40, 80)  # dimensions that "auto" tries, besides no flow at all


class ManifoldFeatures:
    """The map x -> Q'x / ||Q'x||, or x / ||x|| where no flow is wanted."""

    def __init__(self, factor: NDArray[np.float64] | None) -> None:
        self.factor = factor

    @classmethod
    def fit(cls, domains: Domains, manifold_dim: int | None) -> ManifoldFeatures:
        """Bases of both domains and the flow between them; `manifold_dim` directions each."""
        if manifold_dim is None or domains.n_target == 0:
            return cls(None)
        Ps, Pt = principal_bases(domains.Xs, domains.Xt, manifold_dim)
        if Ps.shape[1] < manifold_dim:
            warnings.warn(
                f"manifold_dim={manifold_dim} is more than the rows of both domains span; it is "
                f"reduced to {Ps.shape[1]}.",
                UserWarning,
                stacklevel=2,
            )
        return cls(geodesic_flow_factor(Ps, Pt) if Ps.shape[1] else None)

    @classmethod
    def candidates(cls, domains: Domains) -> Iterator[ManifoldFeatures]:
        """Flows of growing dimension as far as the ranks allow, and last the rows as they are."""
        if domains.n_target > 0:
            Ps, Pt = principal_bases(domains.Xs, domains.Xt, CANDIDATES[-1])
            for k in CANDIDATES:
                if k <= Ps.shape[1]:
                    yield cls(geodesic_flow_factor(Ps[:, :k], Pt[:, :k]))
        yield cls(None)

    @property
    def manifold_dim(self) -> int | None:
        """Directions of each domain that the flow joins, None without a flow."""
        return None if self.factor is None else self.factor.shape[1] // 2

    def transform(self, X: Any) -> Any:
        """Features of rows, of either domain or new."""
        return unit_rows(X if self.factor is None else X @ self.factor)
