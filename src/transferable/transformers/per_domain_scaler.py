"""Standardisation of each domain by itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Domains
from transferable.linalg.row_tables import RowTable
from transferable.takes import Takes
from transferable.transformers._blocks import BlockwiseTransformer, domain_tables

__all__ = ["Deviations", "PerDomainScaler"]


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
        self._source, self._target = map(_scales_of, domain_tables(domains))
        self._n_features_out = domains.X.shape[1]

    def _transform_block(self, rows: Any, source: NDArray[np.bool_]) -> NDArray[np.floating]:
        Z = np.empty(rows.shape)
        for mask, (mean, deviation) in ((source, self._source), (~source, self._target)):
            Z[mask] = (rows[mask] - mean) / deviation
        return Z


def _scales_of(table: RowTable) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and standard deviations of the rows of a table."""
    mean = table.mean()
    parts = (Deviations.of(rows, mean) for _, rows in table.blocks())
    return mean, reduce(add, parts).standard


@dataclass(frozen=True)
class Deviations:
    """Squares about given means and largest sizes of each feature, which add up over blocks."""

    count: int
    squares: NDArray[np.float64]
    largest: NDArray[np.float64]

    @classmethod
    def of(cls, rows: NDArray[np.float64], mean: NDArray[np.float64]) -> Deviations:
        """Those of a few rows."""
        largest = np.abs(rows).max(axis=0, initial=0.0)
        return cls(len(rows), np.sum((rows - mean) ** 2, axis=0), largest)

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
