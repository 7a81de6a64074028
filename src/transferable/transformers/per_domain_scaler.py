"""Standardisation of each domain by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable._linalg.systems import Matrix
from transferable.base import DomainTransformer, Takes
from transferable.domains import Domains, positions_of
from transferable.limits import LIMITS


class PerDomainScaler(DomainTransformer):
    """Standardisation of every feature to mean 0 and variance 1 within each domain.

    Every id of ``sample_domain`` is a domain: several sources, and several targets, are each
    scaled by themselves.

    The simplest adaptation, and a common first step of others: it removes differences in level and
    scale, feature by feature. A feature that is constant in a domain becomes 0 there.

    Notes
    -----
    Rows to transform are treated as target rows unless ``sample_domain`` marks them as source; of
    several targets, unmarked rows are scaled as all of them together. The standard deviation is the
    population's, as in the published preprocessing of SURF histograms.

    References
    ----------
    .. [1] B. Gong, Y. Shi, F. Sha, K. Grauman (2012). Geodesic flow kernel for unsupervised domain
       adaptation. CVPR.

    Examples
    --------
    >>> from transferable.datasets import make_shifted
    >>> from transferable.transformers import PerDomainScaler
    >>> task = make_shifted()
    >>> Z = PerDomainScaler().adapt(task.Xs, task.ys, task.Xt).transform(task.Xt)
    >>> bool(abs(Z.mean(axis=0)).max() < 1e-9 and abs(Z.std(axis=0) - 1).max() < 1e-9)
    True
    """

    family = "moments"
    takes = Takes(several_sources=True, several_targets=True, sample_weight=True, no_labels=True)

    def _fit_domains(self, domains: Domains) -> None:
        ids = domains.ids
        sources, targets = np.unique(ids[ids > 0]), np.unique(ids[ids < 0])
        members = [ids == k for k in sources]
        members += [ids == k for k in targets] if len(targets) > 1 else []
        members += [ids < 0 if domains.n_target else members[0]]
        means, deviations = zip(*(_scale(domains, rows) for rows in members), strict=True)
        self._map = Scales(sources, targets, np.stack(means), np.stack(deviations))
        self._n_features_out = domains.X.shape[1]

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        fitted, Z = self._map, np.empty(rows.shape)
        domain = np.full(len(ids), len(fitted.means) - 1)
        sources, targets = ids > 0, ids < 0
        domain[sources] = positions_of(ids, fitted.sources, sources)[sources]
        found = positions_of(ids, fitted.targets, targets)[targets]
        if len(fitted.targets) > 1:
            domain[targets] = len(fitted.sources) + found
        for k in np.unique(domain):
            Z[domain == k] = (rows[domain == k] - fitted.means[k]) / fitted.deviations[k]
        return Z


@dataclass(frozen=True, eq=False)
class Scales:
    """Means and standard deviations of the features in each domain."""

    sources: NDArray[Any]  # ids of the domains
    targets: NDArray[Any]
    # (n_domains, n_features): A row for each source, for each target if there are several,
    # and for the whole target
    means: Matrix
    deviations: Matrix


def _scale(domains: Domains, members: NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
    """Return means and standard deviations of some rows, read block by block."""
    X, weights, rows = domains.X, domains.weights, np.flatnonzero(members)
    step = max(1, LIMITS.block_values // max(X.shape[1], 1))
    blocks = [rows[start : start + step] for start in range(0, len(rows), step)]
    mean, total = np.zeros(X.shape[1]), weights[rows].sum()
    for some in blocks:
        mean += np.asarray(X[some], dtype=np.float64).T @ (weights[some] / total)
    squares, largest = np.zeros_like(mean), np.zeros_like(mean)
    for some in blocks:
        block = np.asarray(X[some], dtype=np.float64)
        squares += weights[some] @ (block - mean) ** 2
        largest = np.maximum(largest, np.abs(block).max(axis=0))
    deviations = np.sqrt(squares / total)
    return mean, np.where(deviations <= 1e-12 * largest, 1.0, deviations)
