"""Features the risk classifiers work on: geodesic flow coordinates, brought to unit length."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from transferable.domains import Domains, Reordered, digest
from transferable.linalg.arrays import in_blocks
from transferable.linalg.grassmann import (
    basis_of_moments,
    common_rank,
    geodesic_flow_factor,
    principal_bases,
)
from transferable.linalg.rows import unit_rows

__all__ = ["CANDIDATES", "ManifoldFeatures"]

CANDIDATES = (20, 40, 80)  # dimensions that "auto" tries, besides no flow at all

Bases = tuple[NDArray[np.float64], NDArray[np.float64]]


class ManifoldFeatures:
    """The map x -> Q'x / ||Q'x||, or x / ||x|| where no flow is wanted."""

    def __init__(self, factor: NDArray[np.float64] | None) -> None:
        self.factor = factor

    @staticmethod
    def fit(domains: Domains, manifold_dim: int | None) -> ManifoldFeatures:
        """Bases of both domains and the flow between them; `manifold_dim` directions each."""
        if manifold_dim is None or domains.n_target == 0:
            return ManifoldFeatures(None)
        bases = _bases(domains, manifold_dim)
        rank = bases[0].shape[1]
        if rank < manifold_dim:
            warnings.warn(
                f"manifold_dim={manifold_dim} is more than the rows of both domains span; it is "
                f"reduced to {rank}.",
                UserWarning,
                stacklevel=2,
            )
        return _flow(domains, bases, rank) if rank else ManifoldFeatures(None)

    @staticmethod
    def candidates(domains: Domains) -> Iterator[ManifoldFeatures]:
        """Flows of growing dimension as far as the ranks allow, and last the rows as they are."""
        if domains.n_target > 0:
            bases = _bases(domains, CANDIDATES[-1])
            for k in CANDIDATES:
                if k <= bases[0].shape[1]:
                    yield _flow(domains, bases, k)
        yield ManifoldFeatures(None)

    @property
    def key(self) -> bytes | None:
        """The same for the same map."""
        return None if self.factor is None else digest(self.factor)

    @property
    def manifold_dim(self) -> int | None:
        """Directions of each domain that the flow joins, None without a flow."""
        return None if self.factor is None else self.factor.shape[1] // 2

    def width(self, n_features: int) -> int:
        """Number of features of rows that had so many."""
        return n_features if self.factor is None else int(self.factor.shape[1])

    def transform(self, X: Any) -> Any:
        """Features of rows, of either domain or new, in the precision of the rows."""
        if self.factor is None:
            return unit_rows(X)
        factor = self.factor.astype(X.dtype)
        if sp.issparse(X):
            return unit_rows(X @ factor)
        Z = np.empty((X.shape[0], factor.shape[1]), dtype=X.dtype)

        def fill(rows: slice) -> None:
            Z[rows] = unit_rows(X[rows] @ factor)

        in_blocks(fill, X)
        return Z

    def of_domains(self, domains: Domains) -> Any:
        """Features of all rows; rows that are not copied are read block by block."""
        if not isinstance(domains.X, Reordered):
            return self.transform(domains.X)
        n, d = domains.X.shape
        Z = np.empty((n, self.width(d)), dtype=domains.X.dtype)
        for positions, rows in domains.blocks(_block_rows(d)):
            Z[positions] = self.transform(rows)
        return Z


def _bases(domains: Domains, most: int) -> Bases:
    return domains.share("bases", most, _leading_directions, domains, most)


def _leading_directions(domains: Domains, most: int) -> Bases:
    """Leading directions of both domains, as many of each as both have."""
    moments = domains.moments
    if moments is None:
        weights = domains.row_weights
        if weights is None:
            return principal_bases(domains.Xs, domains.Xt, most)
        own = weights[domains.source], weights[domains.target]
        return principal_bases(domains.Xs, domains.Xt, most, own)
    pairs = zip(moments, domains.sizes, strict=True)
    source, target = (basis_of_moments(domain, most, size) for domain, size in pairs)
    return common_rank(source, target)


def _flow(domains: Domains, bases: Bases, k: int) -> ManifoldFeatures:
    """The flow between the first k directions of both domains."""
    Ps, Pt = bases
    key = k, Ps.shape[1]  # the first of few directions may differ from the first of many
    return ManifoldFeatures(domains.share("flow", key, geodesic_flow_factor, Ps[:, :k], Pt[:, :k]))


def _block_rows(width: int) -> int:
    return max(1, 2**23 // width)
