"""CORAL and PerDomainScaler over Dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.delayed import delayed
from sklearn.utils.validation import check_is_fitted

from transferable import transformers as local
from transferable._linalg.eigen import Matrix
from transferable._linalg.moments import Moments
from transferable.base import DomainTransformer
from transferable.dask._adapter import DaskAdapter
from transferable.dask._rows import Block, HeldRows, each_added
from transferable.transformers._features import Spread
from transferable.transformers.coral import Covariance, Recolouring
from transferable.transformers.per_domain_scaler import Scales

__all__ = ["CORAL", "PerDomainScaler"]


class DaskTransformer(DaskAdapter, DomainTransformer):
    """Mixin of the transformers.

    Attributes
    ----------
    client_ : distributed.Client or None
        The client in use. All others are as in memory.

    See Also
    --------
    transferable.transformers.{name} : The estimator for tables in memory.
    """

    def fit_transform(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_domain: Any = None
    ) -> Any:
        """Raise TypeError: fit, then transform the rows of each domain.

        Parameters
        ----------
        X, y, sample_domain
            As in :meth:`fit`.

        Returns
        -------
        Z : object
            Nothing is returned.
        """
        raise TypeError(
            "rows of both domains cannot be transformed together over Dask; fit, then call "
            "transform(Xs, 1) and transform(Xt)."
        )

    def transform(self, X: Any, sample_domain: Any = None) -> Any:
        """Map rows into the shared feature space, lazily for a Dask collection.

        Parameters
        ----------
        X : dask array, dask dataframe or table in memory
            Rows of either domain.
        sample_domain : int or array-like, default=None
            For a Dask collection one number, positive if all rows are the source's; None treats
            them as target rows. For a table in memory as for the estimator in memory.

        Returns
        -------
        Z : dask array, dask dataframe or ndarray of shape (n_samples, n_components)
            The adapted rows, in the partitions of `X`.
        """
        check_is_fitted(self)
        names = self.get_feature_names_out().tolist()
        return self._lazily(X, "transform", names, None, sample_domain)


def _about_means(task: Any, rows: HeldRows) -> list[tuple[Any, Any]]:
    """Return means of source and target, and sums of a task over rows and these.

    Without a target, the source takes its place.
    """
    means = [moments.mean for moments in rows.pool.moments]
    tasks = [_of_sides(block, task, means) for block in rows.blocks]
    found = list(zip(means, rows.workers.sum(tasks, each_added), strict=True))
    return found if rows.pool.sizes[1] else [found[0], found[0]]


@delayed
def _of_sides(block: Block, task: Any, means: list[Any]) -> list[Any]:
    sides = zip(block.sides, means, strict=True)
    return [task(X.astype(np.float64), mean, np.ones(len(X))) for X, mean in sides]


class PerDomainScaler(DaskTransformer, local.PerDomainScaler, of=local.PerDomainScaler):
    """Standardisation of each domain of Dask collections by itself.

    Two readings of the rows: one for the means, one for the deviations from them.

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
        found = _about_means(Spread.of, rows)
        means, sums = zip(*found, strict=True)
        deviations = np.stack([spread.deviations for spread in sums])
        self._map = Scales(np.array([1]), np.array([-1]), np.stack(means), deviations)
        self._n_features_out = len(means[0])


class CORAL(DaskTransformer, local.CORAL, of=local.CORAL):
    """Correlation alignment of Dask collections.

    Two readings of the rows: one for the means, one for covariances about them.

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
        found = _about_means(_centred, rows)
        source, target = (
            Covariance.of_moments(mean, moments, self.regularization) for mean, moments in found
        )
        self._map = Recolouring.of(np.array([1]), [source], target)
        self._n_features_out = len(source.mean)


def _centred(rows: Matrix, mean: Matrix, weights: Matrix) -> Moments:
    return Moments.of(rows - mean, weights)
