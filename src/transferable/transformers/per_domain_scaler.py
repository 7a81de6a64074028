"""Standardisation of each domain by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable._linalg.eigen import Matrix
from transferable.base import Takes
from transferable.domains import Domains, positions_of
from transferable.limits import LIMITS
from transferable.transformers._bases import PerDomainTransformer

Scale = tuple[Matrix, Matrix]  # means and standard deviations


class PerDomainScaler(PerDomainTransformer):
    """Standardisation of every feature to mean 0 and variance 1 within each domain.

    Every id of ``sample_domain`` is a domain: several sources, and several targets, are each
    scaled by themselves.

    The simplest adaptation, and a common first step of others: it removes differences in level and
    scale, feature by feature. A feature that is constant in a domain becomes 0 there.

    Attributes
    ----------
    n_features_in_ : int
        Number of features, before and after.

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
    >>> import numpy as np
    >>> from transferable.transformers import PerDomainScaler
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat([0, 1], 20)
    >>> Xs = rng.normal(size=(40, 5)) + 3 * ys[:, None]
    >>> Xt = 10 * rng.normal(size=(30, 5)) + 7
    >>> Z = PerDomainScaler().adapt(Xs, ys, Xt).transform(Xt)
    >>> bool(np.allclose(Z.mean(axis=0), 0) and np.allclose(Z.std(axis=0), 1))
    True
    """

    family = "moments"
    takes = Takes(several_sources=True, several_targets=True, sample_weight=True, no_labels=True)
    _target_ids: NDArray[Any] = np.array([-1])
    _further: Sequence[Scale] = ()  # of sources after the first
    _targets: Sequence[Scale] = ()  # of each target, where there are several

    def _fit_domains(self, domains: Domains) -> None:
        ids = domains.ids
        self._source_ids, self._target_ids = np.unique(ids[ids > 0]), np.unique(ids[ids < 0])
        self._source, *self._further = (_scale(domains, ids == k) for k in self._source_ids)
        self._target, self._n_features_out = self._source, domains.X.shape[1]
        if domains.n_target:
            self._target = _scale(domains, ids < 0)
        if len(self._target_ids) > 1:
            self._targets = [_scale(domains, ids == k) for k in self._target_ids]

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        Z = np.empty(rows.shape)
        source, target = self._source_of(ids), positions_of(ids, self._target_ids, ids < 0)
        scales = [(source == k, scale) for k, scale in enumerate([self._source, *self._further])]
        marked = (ids < 0) & (len(self._targets) > 0)
        scales += [(marked & (target == k), scale) for k, scale in enumerate(self._targets)]
        for mask, (mean, deviation) in [*scales, ((ids <= 0) & ~marked, self._target)]:
            Z[mask] = (rows[mask] - mean) / deviation
        return Z


def _scale(domains: Domains, members: NDArray[np.bool_]) -> Scale:
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
