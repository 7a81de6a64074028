"""CORAL, TCA, JDA and PerDomainScaler over Dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np

from transferable import transformers as local
from transferable.dask._maps import DaskSpectralTransformer, DaskTransformer, about_means
from transferable.dask._survey import HeldRows
from transferable.domains import Domains
from transferable.events import rounds
from transferable.linalg.eigen import Matrix
from transferable.linalg.moments import Moments
from transferable.transformers._bases import Spread
from transferable.transformers._spectral import Solution
from transferable.transformers.coral import Covariance

__all__ = ["CORAL", "JDA", "TCA", "PerDomainScaler"]


class PerDomainScaler(DaskTransformer, local.PerDomainScaler, of=local.PerDomainScaler):
    """Standardisation of each domain of Dask collections by itself.

    Two readings of the rows: one for the means, one for the deviations from them.

    Attributes
    ----------
    client_ : distributed.Client or None
        The client that is used now. All others are as in memory.

    See Also
    --------
    transferable.transformers.PerDomainScaler : The same in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import PerDomainScaler
    >>> rng = da.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(400, 5), chunks=(100, 5)), rng.normal(3, size=(300, 5))
    >>> ys = (Xs[:, 0] > 0).astype(int)
    >>> model = PerDomainScaler().adapt(Xs, ys, Xt)
    >>> model.transform(Xt).shape
    (300, 5)
    """

    def _learn_rows(self, rows: HeldRows) -> None:
        found = about_means(Spread.of, rows)
        self._source, self._target = ((mean, sums.deviations) for mean, sums in found)
        self._n_features_out = len(self._source[0])


class CORAL(DaskTransformer, local.CORAL, of=local.CORAL):
    """Correlation alignment of Dask collections.

    Two readings of the rows: one for the means, one for covariances about them.

    Attributes
    ----------
    client_ : distributed.Client or None
        The client that is used now. All others are as in memory.

    See Also
    --------
    transferable.transformers.CORAL : The same in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import CORAL
    >>> rng = da.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(400, 5), chunks=(100, 5)), rng.normal(3, size=(300, 5))
    >>> ys = (Xs[:, 0] > 0).astype(int)
    >>> model = CORAL().adapt(Xs, ys, Xt)
    >>> model.transform(Xt).shape
    (300, 5)
    """

    def _learn_rows(self, rows: HeldRows) -> None:
        found = about_means(_centred, rows)
        source, target = (
            Covariance.of_moments(mean, moments, self.regularization) for mean, moments in found
        )
        self._align_covariances(source, target)


def _centred(rows: Matrix, mean: Matrix) -> Moments:
    return Moments.of(rows - mean)


class TCA(DaskSpectralTransformer, local.TCA, of=local.TCA):
    """Transfer component analysis of Dask collections.

    Linear maps come from products of the features, kernels are seen through landmarks.

    Attributes
    ----------
    client_ : distributed.Client or None
        The client that is used now. All others are as in memory.

    See Also
    --------
    transferable.transformers.TCA : The same in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import TCA
    >>> rng = da.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(400, 5), chunks=(100, 5)), rng.normal(3, size=(300, 5))
    >>> ys = (Xs[:, 0] > 0).astype(int)
    >>> model = TCA(n_components=2).adapt(Xs, ys, Xt)
    >>> model.transform(Xt).shape
    (300, 2)
    """


class JDA(DaskSpectralTransformer, local.JDA, of=local.JDA):
    """Joint distribution adaptation of Dask collections.

    Target rows are labelled by the nearest of the first 20,000 source rows, as in memory, or by a
    classifier that is fitted to these.

    Attributes
    ----------
    client_ : distributed.Client or None
        The client that is used now. All others are as in memory.

    See Also
    --------
    transferable.transformers.JDA : The same in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import JDA
    >>> rng = da.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(400, 5), chunks=(100, 5)), rng.normal(3, size=(300, 5))
    >>> ys = (Xs[:, 0] > 0).astype(int)
    >>> model = JDA(n_components=2).adapt(Xs, ys, Xt)
    >>> model.transform(Xt).shape
    (300, 2)
    """

    def _refuse_parameters(self) -> None:
        super()._refuse_parameters()
        if not isinstance(self.class_shares, str) or self.class_shares != "source":
            raise ValueError(
                f"class_shares={self.class_shares!r}: over Dask, JDA takes classes to be as "
                'frequent as in the source, class_shares="source".'
            )

    def _learn(self, domains: Domains, features: Any) -> Solution:
        """Solve and relabel, as in memory, with labels that stay with the workers."""
        self.class_shares_ = domains.source_shares
        solve, codes = self._solver(domains, features), None
        self.n_iter_ = 0
        for _ in rounds(self.max_iter):
            self.n_iter_ += 1
            values, W = self._scaled(*solve(codes, self._wanted(features.rank)))
            renewed, changed = features.relabelled(W, self.normalize, self.estimator)
            if self._settled(codes, changed):
                break
            codes = renewed
        self.class_shares_history_ = np.tile(self.class_shares_, (self.n_iter_, 1))
        return values, W
