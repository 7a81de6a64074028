"""Standardisation of each domain by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Domains
from transferable.linalg.row_tables import RowTable
from transferable.takes import Takes
from transferable.transformers._blocks import BlockwiseTransformer, domain_tables

__all__ = ["PerDomainScaler"]


class PerDomainScaler(BlockwiseTransformer):
    """Bring every feature to mean 0 and variance 1 within each domain.

    The plainest adaptation there is, and a common first step of others: it removes differences in
    level and scale, feature by feature. A feature that is constant in a domain becomes 0 there.

    Attributes
    ----------
    n_features_in_ : int
        Number of features, before and after.

    Notes
    -----
    Rows to transform are taken for target rows unless ``sample_domain`` marks them as source. The
    standard deviation is the population's, as in the published preprocessing of SURF histograms.

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

    takes = Takes(no_labels=True)

    def _fit_domains(self, domains: Domains) -> None:
        self._source, self._target = map(_moments, domain_tables(domains))
        self._n_features_out = domains.X.shape[1]

    def _transform_block(self, rows: Any, source: NDArray[np.bool_]) -> NDArray[np.floating]:
        Z = np.empty(rows.shape)
        for mask, (mean, deviation) in ((source, self._source), (~source, self._target)):
            Z[mask] = (rows[mask] - mean) / deviation
        return Z


def _moments(table: RowTable) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and standard deviations, the latter 1 where a feature is constant."""
    mean = table.mean()
    largest, squares = np.zeros(table.rank), np.zeros(table.rank)
    for _, rows in table.blocks():
        np.maximum(largest, np.abs(rows).max(axis=0), out=largest)
        squares += np.sum((rows - mean) ** 2, axis=0)
    deviation = np.sqrt(squares / table.n)
    return mean, np.where(deviation <= 1e-12 * largest, 1.0, deviation)
