"""Standardisation of each domain by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.base import Takes, WeightedTransformer
from transferable.domains import Domains, positions_of
from transferable.linalg.eigen import Matrix
from transferable.linalg.row_tables import RowTable
from transferable.transformers._bases import PerDomainTransformer, Spread, table_of, tables_by_id

Scale = tuple[Matrix, Matrix]  # means and standard deviations


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
        self._source_ids, sources = tables_by_id(domains, domains.source)
        self._source, *self._further = (_scale(*table) for table in sources)
        self._target, self._n_features_out = self._source, domains.X.shape[1]
        self._target_ids, targets = tables_by_id(domains, domains.target)
        if domains.n_target:
            self._target = _scale(*table_of(domains, domains.target))
        if len(targets) > 1:
            self._targets = [_scale(*table) for table in targets]

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        Z = np.empty(rows.shape)
        source, target = self._source_of(ids), positions_of(ids, self._target_ids, ids < 0)
        scales = [(source == k, scale) for k, scale in enumerate([self._source, *self._further])]
        marked = (ids < 0) & (len(self._targets) > 0)
        scales += [(marked & (target == k), scale) for k, scale in enumerate(self._targets)]
        for mask, (mean, deviation) in [*scales, ((ids <= 0) & ~marked, self._target)]:
            Z[mask] = (rows[mask] - mean) / deviation
        return Z


def _scale(table: RowTable, weights: Matrix | None) -> Scale:
    """Return means and standard deviations of rows, read block by block."""
    mean = table.mean(weights)
    return mean, Spread.of_table(table, mean, weights).deviations
