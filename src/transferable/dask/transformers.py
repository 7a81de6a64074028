"""CORAL, TCA, JDA and PerDomainScaler over Dask collections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from transferable import transformers as local
from transferable._linalg.arrays import row_blocks, unit_rows
from transferable._linalg.eigen import Matrix
from transferable._linalg.kernels import KernelFunction
from transferable._linalg.moments import Moments
from transferable.base import DomainTransformer
from transferable.dask._adapter import DaskAdapter, refuse_sizes
from transferable.dask._rows import Block, HeldRows, each_added
from transferable.dask._solver import BlockLabels, FeatureBlocks, Labelled
from transferable.domains import Domains
from transferable.events import rounds
from transferable.transformers._bases import Spread
from transferable.transformers._features import Features, RowMap, farthest, spectrum
from transferable.transformers._pseudo_labels import labeller
from transferable.transformers._spectral import Solution, SpectralTransformer
from transferable.transformers.coral import Covariance

__all__ = ["CORAL", "JDA", "TCA", "PerDomainScaler"]


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

    def fit_transform(
        self, X: Any, y: Any = None, sample_domain: Any = None, sample_weight: Any = None
    ) -> Any:
        """Raise TypeError: fit, then transform the rows of each domain.

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
        self._source, self._target = ((mean, sums.deviations) for mean, sums in found)
        self._n_features_out = len(self._source[0])


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
        self._align_covariances(source, target)


def _centred(rows: Matrix, mean: Matrix, weights: Matrix) -> Moments:
    return Moments.of(rows - mean, weights)


class DaskSpectralTransformer(DaskTransformer, SpectralTransformer):
    """Mixin of TCA and JDA.

    Parameters
    ----------
    n_landmarks : int or "auto", default="auto"
        Landmark rows for kernels other than "linear"; "auto" takes 1,000.
    """

    def _learn_rows(self, rows: HeldRows) -> None:
        spread, pool = _spread_of(rows), rows.pool
        self._refuse_equal_rows(spread, sum(pool.sizes), pool.X.shape[1])
        self.n_landmarks_: int | None = None
        landmarks = None
        if self.kernel is not None and self.kernel != "linear":
            gamma = spread.gamma if isinstance(self.gamma, str) else float(self.gamma)
            kernel = KernelFunction(self.kernel, gamma, self.degree, self.coef0)
            self.n_landmarks_, drawn = pool.draw(pool.X, self.n_landmarks, self.random_state)
            landmarks = FeatureBlocks(rows, transform=np.asarray, kernel=kernel, landmarks=drawn)
        found = BlockFeatures(rows, 1 if self.kernel is None else 2, landmarks)
        values, W = self._learn(pool, found)
        self.source_weights_ = pool.source_weights
        self._take(found, values, W * found.signs(W))

    def _refuse_parameters(self) -> None:
        if self.kernel is not None and self.kernel != "linear":
            refuse_sizes(n_landmarks=self.n_landmarks)


class TCA(DaskSpectralTransformer, local.TCA, of=local.TCA):
    """Transfer component analysis of Dask collections.

    Linear maps come from products of the features, kernels are approximated by landmarks.

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
    classifier fitted to these.

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
        self.class_shares_ = domains.prior
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


class BlockFeatures(Features):
    """Features with known moments, and sums by class from the workers."""

    def __init__(self, rows: HeldRows, power: int, landmarks: FeatureBlocks | None) -> None:
        """Set the features; `power` is that of the singular values, `landmarks` are optional."""
        self._rows = rows
        moments, row_map, nystrom, whitening = list(rows.pool.moments), RowMap(), None, None
        if landmarks is not None:
            sums, nystrom = landmarks.sum_up()[0], landmarks.nystrom
            moments, whitening = [sums.source, sums.target], nystrom.whitening
            row_map = RowMap(landmarks.kernel, nystrom.landmarks)
        # Sizes of a table that no process holds as a whole.
        n, rank = sum(int(m.count) for m in moments), len(moments[0].total)
        table: Any = SimpleNamespace(n=n, rank=rank, nystrom=nystrom)
        found = spectrum(table, moments, power, whitening)
        super().__init__(table, domains=rows.pool, row_map=row_map, **found)
        self._last: Labelled | None = None

    def projected(self, B: Matrix, domains: Domains, target: Labelled | None) -> Matrix:
        """Return Phi'E from sums of the features by group."""
        if target is None:  # whole domains: all classes have the same coefficients
            totals = [moments.total for moments in self._known or []]
            own = np.stack([total @ self._matrix for total in totals], axis=1)
            return own @ B[[0, domains.n_classes]]
        sums = np.concatenate([self._source_sums, target.sums], axis=1)
        return np.asarray(self._expansion).T @ (sums @ B)

    @cached_property
    def _source_sums(self) -> Matrix:
        """Sums of the mapped source rows by class."""
        row_map, classes = delayed(self.map), delayed(self._rows.pool.classes)
        tasks = [_source_sums(block, row_map, classes) for block in self._rows.blocks]
        return self._rows.workers.sum(tasks)

    def signs(self, W: Matrix) -> Matrix:
        """Return signs that make the embedded row farthest from zero positive in each component."""
        embedding = delayed(Embedding(self.map, self.expand(W), normalize=False))
        tasks = [_farthest(block, embedding) for block in self._rows.blocks]
        return np.sign(self._rows.workers.sum(tasks, _farther))

    def relabelled(
        self, W: Matrix, normalize: bool, estimator: ClassifierMixin | None
    ) -> tuple[Labelled, float]:
        """Label the embedded target rows; return also the share that changed."""
        rows, embedding = self._rows, delayed(Embedding(self.map, self.expand(W), normalize))
        label = _labeller(rows.pool_there, embedding, delayed(rows.pool.classes), estimator)
        n_classes = rows.pool.n_classes
        tasks = [_label(block, embedding, label, n_classes) for block in rows.blocks]
        self._last = Labelled.by(tasks, self._last, rows)
        return self._last, self._last.changed


@dataclass(frozen=True)
class Embedding:
    """Map from rows to embedded rows."""

    row_map: RowMap
    coefficients: Matrix
    normalize: bool

    def __call__(self, rows: NDArray[Any]) -> Matrix:
        """Embed rows."""
        Z = self.row_map(rows) @ self.coefficients
        return unit_rows(Z) if self.normalize and len(Z) else Z


def _spread_of(rows: HeldRows) -> Spread:
    """Return range and variance of all rows."""
    source, target = rows.pool.moments
    n = source.count + target.count
    mean = float((source.total + target.total).sum()) / (n * len(source.total))
    spread: Spread = rows.workers.sum([_spread(block, mean) for block in rows.blocks])
    return spread


@delayed
def _spread(block: Block, mean: float) -> Spread:
    return Spread.of(block.X.astype(np.float64), mean, np.ones(len(block.X)))


@delayed
def _farthest(block: Block, embedding: Embedding) -> Matrix:
    return farthest(embedding(block.X))


def _farther(first: Matrix, second: Matrix) -> Matrix:
    return farthest(np.stack([first, second]))


@delayed
def _labeller(
    pool: Block, embedding: Embedding, classes: NDArray[Any], estimator: ClassifierMixin | None
) -> Any:
    codes = np.searchsorted(classes, pool.labels)
    return labeller(estimator, embedding(pool.sides[0]), codes, np.ones(len(codes)))


@delayed
def _label(block: Block, embedding: Embedding, label: Any, n_classes: int) -> BlockLabels:
    X = block.sides[1]
    codes = label(embedding(X)) if len(X) else np.empty(0, dtype=np.intp)
    return BlockLabels.of(codes, _sums(X, embedding.row_map, codes, n_classes))


@delayed
def _source_sums(block: Block, row_map: RowMap, classes: NDArray[Any]) -> Matrix:
    codes = np.searchsorted(classes, block.labels)
    return _sums(block.sides[0], row_map, codes, len(classes))


def _sums(X: NDArray[Any], row_map: RowMap, codes: NDArray[Any], n_classes: int) -> Matrix:
    """Sum mapped rows by class, a column each."""
    width = row_map.width(X.shape[1])
    total = 0.0 * row_map(X[:0]).T @ np.zeros((0, n_classes))
    for rows in row_blocks(len(X), width):
        member = np.eye(n_classes)[codes[rows]]
        total = total + row_map(X[rows]).T @ member
    return total
