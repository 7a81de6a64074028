"""Standardisation of each domain by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.base import Takes, WeightedTransformer
from transferable.domains import Domains, positions_of
from transferable.limits import LIMITS
from transferable.transformers._blocks import PerDomainTransformer

__all__ = ["Deviations", "PerDomainScaler"]

Scale = tuple[NDArray[np.float64], NDArray[np.float64]]  # means and standard deviations


class PerDomainScaler(WeightedTransformer, PerDomainTransformer):
    """Bring every feature to mean 0 and variance 1 within each domain.

    Every id of ``sample_domain`` is a domain: several sources, and several targets, are each
    scaled by themselves.

    The plainest adaptation there is, and a common first step of others: it removes differences in
    level and scale, feature by feature. A feature that is constant in a domain becomes 0 there.

    Attributes
    ----------
    n_features_in_ : int
        Number of features, before and after.

    Notes
    -----
    Rows to transform are taken for target rows unless ``sample_domain`` marks them as source; of
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

    takes = Takes(several_sources=True, several_targets=True, sample_weight=True, no_labels=True)
    _target_ids: NDArray[Any] = np.array([-1])
    _further: Sequence[Scale] = ()  # of sources after the first
    _targets: Sequence[Scale] = ()  # of each target, where there are several

    def _fit_domains(self, domains: Domains) -> None:
        ids = domains.ids
        self._source_ids, self._target_ids = np.unique(ids[ids > 0]), np.unique(ids[ids < 0])
        one = len(self._source_ids) == 1
        self._source, *self._further = (
            _scale(domains, domains.source if one else np.flatnonzero(ids == k))
            for k in self._source_ids
        )
        self._target, self._n_features_out = self._source, domains.X.shape[1]
        if domains.n_target:
            self._target = _scale(domains, domains.target)
        if len(self._target_ids) > 1:
            self._targets = [_scale(domains, np.flatnonzero(ids == k)) for k in self._target_ids]

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        Z = np.empty(rows.shape)
        source, target = self._source_of(ids), positions_of(ids, self._target_ids, ids < 0)
        scales = [(source == k, scale) for k, scale in enumerate([self._source, *self._further])]
        marked = (ids < 0) & (len(self._targets) > 0)
        scales += [(marked & (target == k), scale) for k, scale in enumerate(self._targets)]
        for mask, (mean, deviation) in [*scales, ((ids <= 0) & ~marked, self._target)]:
            Z[mask] = (rows[mask] - mean) / deviation
        return Z


def _scale(domains: Domains, rows: slice | NDArray[np.intp]) -> Scale:
    """Return means and standard deviations of some rows, read block by block."""
    X = domains.X
    step = max(1, LIMITS.block_values // max(X.shape[1], 1))
    if isinstance(rows, slice):
        blocks: list[Any] = [
            slice(start, min(start + step, rows.stop))
            for start in range(rows.start, rows.stop, step)
        ]
    else:
        blocks = [rows[start : start + step] for start in range(0, len(rows), step)]
    weights = np.ones(len(domains.order)) if domains.weights is None else domains.weights
    mean, total = np.zeros(X.shape[1]), weights[rows].sum()
    for some in blocks:
        mean += np.asarray(X[some], dtype=np.float64).T @ (weights[some] / total)
    parts = [
        Deviations.of(np.asarray(X[some], dtype=np.float64), mean, weights[some]) for some in blocks
    ]
    return mean, reduce(add, parts).standard


@dataclass(frozen=True)
class Deviations:
    """Squares about given means and largest sizes of each feature, which add up over blocks."""

    count: float
    squares: NDArray[np.float64]
    largest: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        rows: NDArray[np.float64],
        mean: NDArray[np.float64],
        weights: NDArray[np.float64] | None = None,
    ) -> Deviations:
        """Those of a few rows."""
        largest, squared = np.abs(rows).max(axis=0, initial=0.0), (rows - mean) ** 2
        if weights is None:
            return cls(len(rows), np.sum(squared, axis=0), largest)
        return cls(float(weights.sum()), weights @ squared, largest)

    def __add__(self, other: Deviations) -> Deviations:
        return Deviations(
            self.count + other.count,
            self.squares + other.squares,
            np.maximum(self.largest, other.largest),
        )

    @property
    def standard(self) -> NDArray[np.float64]:
        """Standard deviations, 1 where a feature is constant."""
        deviation = np.sqrt(self.squares / self.count)
        return np.where(deviation <= 1e-12 * self.largest, 1.0, deviation)
