"""What the transformers of :mod:`transferable.dask` share."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from dask.delayed import delayed
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transferable.base import DomainTransformer
from transferable.dask._estimators import DaskAdapter, refuse_sizes
from transferable.dask._features import FeatureBlocks
from transferable.dask._lazy import Gives, is_collection
from transferable.dask._reading import Block
from transferable.dask._spectral import BlockFeatures, spread_of
from transferable.dask._survey import HeldRows
from transferable.limits import LIMITS
from transferable.linalg.kernels import KernelFunction
from transferable.linalg.nystrom import draw_landmarks
from transferable.transformers._features import RowMap
from transferable.transformers._spectral import SpectralTransformer

__all__ = ["DaskSpectralTransformer", "DaskTransformer", "about_means"]


class DaskTransformer(DaskAdapter, DomainTransformer):
    """Mixin of the transformers."""

    def fit_transform(
        self, X: Any, y: Any = None, sample_domain: Any = None, sample_weight: Any = None
    ) -> Any:
        """Not over Dask: fit, then transform the rows of each domain.

        Parameters
        ----------
        X, y, sample_domain, sample_weight
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
        """Bring rows into the shared feature space, lazily where they are a Dask collection.

        Parameters
        ----------
        X : dask array, dask dataframe or table in memory
            Rows of either domain.
        sample_domain : int or array-like, default=None
            Of a Dask collection one number, positive if all rows are the source's; None takes them
            for target rows. Of a table in memory as for the estimator in memory.

        Returns
        -------
        Z : dask array, dask dataframe or ndarray of shape (n_samples, n_components)
            The adapted rows, in the partitions of `X`.
        """
        check_is_fitted(self)
        if not is_collection(X):
            return self._local.transform(self, X, sample_domain)
        names = self.get_feature_names_out().tolist()
        return self._lazily(X, "transform", Gives(names, None), sample_domain)


def about_means(task: Any, rows: HeldRows) -> list[tuple[Any, Any]]:
    """Means of source and target, and sums that a task makes of rows and these; of both domains."""
    means = [moments.mean for moments in rows.pool.moments]
    sides = rows.summed(partial(_of_sides, task), *means).parts
    found = list(zip(means, sides, strict=True))
    return found if rows.pool.sizes[1] else [found[0], found[0]]


@delayed
def _of_sides(task: Any, block: Block, source: Any, target: Any) -> Sides:
    rows = (side.astype(np.float64) for side in (block.Xs, block.Xt))
    return Sides([task(X, mean) for X, mean in zip(rows, (source, target), strict=True)])


class Sides:
    """What was summed over each domain."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def __add__(self, other: Sides) -> Sides:
        return Sides([a + b for a, b in zip(self.parts, other.parts, strict=True)])


class DaskSpectralTransformer(DaskTransformer, SpectralTransformer):
    """Mixin of TCA and JDA.

    Parameters
    ----------
    n_landmarks : int or "auto", default="auto"
        Rows that kernels other than "linear" are seen through; "auto" takes 1,000.
    """

    def _learn_rows(self, rows: HeldRows) -> None:
        spread, pool = spread_of(rows), rows.pool
        self._refuse_equal_rows(spread, sum(pool.sizes), pool.X.shape[1])
        self.n_landmarks_: int | None = None
        moments, row_map, nystrom = list(pool.moments), RowMap(), None
        if self.kernel is not None and self.kernel != "linear":
            gamma = spread.gamma if isinstance(self.gamma, str) else float(self.gamma)
            kernel = KernelFunction(self.kernel, gamma, self.degree, self.coef0)
            features = self._landmarks(rows, kernel)
            sums, _ = features.sum_up()
            moments, nystrom = [sums.source, sums.target], features.nystrom
            row_map = RowMap(kernel, nystrom.landmarks)
        power = self._power or (1 if self.kernel is None else 2)
        found = BlockFeatures(rows, moments=moments, power=power, row_map=row_map, nystrom=nystrom)
        values, W = self._learn(pool, found)
        if self._local.takes.several_sources:
            self.source_weights_ = pool.weights_of_sources
        if self._local.takes.sample_weight:
            W = W * found.signs(W)
        self._take(found, values, W)

    def _refuse_parameters(self) -> None:
        if self.kernel is not None and self.kernel != "linear":
            refuse_sizes(n_landmarks=self.n_landmarks)

    def _landmarks(self, rows: HeldRows, kernel: KernelFunction) -> FeatureBlocks:
        """Features of the rows' kernel with landmarks, which nobody keeps."""
        pool = rows.pool
        wanted = LIMITS.landmarks if self.n_landmarks == "auto" else int(self.n_landmarks or 0)
        self.n_landmarks_ = count = min(wanted, sum(pool.sizes))
        rng = check_random_state(self.random_state)
        return FeatureBlocks(
            rows,
            transform=np.asarray,
            kernel=kernel,
            landmarks=draw_landmarks(pool.X, pool.n_source, count, rng),
        )
