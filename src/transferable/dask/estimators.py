"""TFDF, TFDF-V, MEDA, ARTL, CORAL and PerDomainScaler over Dask collections."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from dask.delayed import delayed
from sklearn.utils.validation import check_is_fitted

from transferable import classifiers, transformers
from transferable._kernel import choose
from transferable._kernel.class_shares import given_shares
from transferable._linalg.arrays import CPU, unit_rows
from transferable._linalg.memory import Plan, memory_budget
from transferable._linalg.moments import Moments
from transferable._linalg.nystrom import FeatureTable
from transferable._linalg.systems import Matrix
from transferable.base import DomainTransformer
from transferable.dask._adapter import DaskAdapter, refuse_sizes
from transferable.dask._rows import Block, HeldRows, each_added
from transferable.dask._solver import BlockSolver, FeatureBlocks
from transferable.events import stage
from transferable.limits import LIMITS
from transferable.transformers._features import Spread
from transferable.transformers.coral import Covariance, Recolouring
from transferable.transformers.per_domain_scaler import Scales

__all__ = ["ARTL", "CORAL", "MEDA", "TFDF", "TFDFV", "PerDomainScaler"]

_FEATURES_SHARE = 0.4  # of the workers' memory


class DaskKernelClassifier(DaskAdapter):
    """Mixin of TFDF, TFDF-V, MEDA and ARTL.

    Parameters
    ----------
    graph : {"anchors"} or int, default="anchors"
        Anchors, or their number; neighbours would cross partitions. ``manifold=0`` uses neither.
    n_landmarks : int or "auto", default="auto"
        Rows that all others are compared with; "auto" takes 1,000.
    max_memory : int, str or None, default=None
        Bytes of the rows' features that the workers may keep together, or a text such as "2GB";
        None is 40 % of their memory. The rest is computed again in each round.
    device : {"cpu"}, default="cpu"
        Workers compute with numpy.
    """

    graph: choose.Graph = "anchors"
    _shared_doc = """
Attributes
----------
transduction_ : dask array or dask series
    The labels of the rows that were fitted, of the target's after ``adapt``, when computed.
client_ : distributed.Client or None
    The client in use. All others are as in memory.

See Also
--------
transferable.{name} : The estimator for tables in memory.

Notes
-----
``predict``, ``predict_proba`` and ``decision_function`` take Dask arrays and dataframes, of which
the results are lazy and in the same partitions, and tables in memory.

Examples
--------
>>> import dask.array as da
>>> from transferable.dask import {name}
>>> from transferable.datasets import make_shifted
>>> task = make_shifted(n_features=50)
>>> Xs, ys, Xt = (da.from_array(rows, chunks=100) for rows in (task.Xs, task.ys, task.Xt))
>>> {name}(n_landmarks=50).adapt(Xs, ys, Xt).predict(Xt)
dask.array<_array, shape=(200,), dtype=int64, chunksize=(100,), chunktype=numpy.ndarray>
"""

    def _refuse_parameters(self: Any) -> None:
        refuse_sizes(n_landmarks=self.n_landmarks, graph=self.graph)
        if self.device != "cpu":
            raise ValueError(f'device="{self.device}": workers compute with numpy, device="cpu".')
        if self.graph == "neighbors":
            raise ValueError(
                'graph="neighbors" reaches across partitions; take graph="anchors", or manifold=0 '
                "to do without a graph."
            )

    def _learn_rows(self: Any, rows: HeldRows) -> None:
        pool, n_rows, given = rows.pool, sum(rows.pool.sizes), None
        if not isinstance(self.class_shares, str):
            given = given_shares(self.class_shares, pool)
        plan = Plan(LIMITS.landmarks, held=True, chunk=0, n_bytes=0)
        problem = choose.parameters(self, pool, plan=plan)
        if problem.manifold and self.graph == "auto":
            problem = replace(problem, n_anchors=choose.n_anchors("anchors", n_rows))
        objective = self._objective(problem)
        stage("Comparing rows with landmarks")
        room = int(_FEATURES_SHARE * rows.workers.memory())
        if self.max_memory is not None:
            room = memory_budget(self.max_memory, CPU)
        blocks = FeatureBlocks(
            rows,
            transform=partial(unit_rows, **problem.features._asdict()),
            kernel=problem.kernel,
            landmarks=pool.draw(problem.Z, self.n_landmarks, self.random_state)[1],
            held_bytes=room - n_rows * problem.Z.shape[1] * pool.X.itemsize,
        )
        table = FeatureTable(problem.table, blocks.nystrom, CPU)
        solver = BlockSolver(problem, objective.fixed, table, blocks=blocks)
        self._keep(self._solve(solver, objective, given), given)

    def predict(self: Any, X: Any) -> Any:
        return self._lazily(X, "predict", None, self.classes_.dtype)

    def predict_proba(self: Any, X: Any) -> Any:
        return self._lazily(X, "predict_proba", self.classes_.tolist(), np.float64)

    def decision_function(self: Any, X: Any) -> Any:
        columns = None if len(self.classes_) == 2 else self.classes_.tolist()
        return self._lazily(X, "decision_function", columns, np.float64)

    def _labels(self: Any) -> Any:
        """Labels of the fitted rows, lazily: of ``X``, or of ``Xt`` after ``adapt``."""
        check_is_fitted(self)
        if not hasattr(self, "_fitted"):
            raise AttributeError("A model that was unpickled has no fitted rows to label.")
        return self.predict(self._fitted)

    transduction_: Any = property(_labels)


class TFDFV(DaskKernelClassifier, classifiers.TFDFV, of=classifiers.TFDFV):
    """TFDF-V over Dask arrays and dataframes, by landmarks.

    Kernel least squares that aligns domains, as :class:`transferable.TFDFV` describes it.
    """


class TFDF(DaskKernelClassifier, classifiers.TFDF, of=classifiers.TFDF):
    """TFDF over Dask arrays and dataframes, by landmarks.

    :class:`TFDFV` followed by class confusion.
    """


class MEDA(DaskKernelClassifier, classifiers.MEDA, of=classifiers.MEDA):
    """MEDA over Dask arrays and dataframes, by landmarks.

    Alignment of means on geodesic flow features, as :class:`transferable.MEDA` describes it.
    """


class ARTL(DaskKernelClassifier, classifiers.ARTL, of=classifiers.ARTL):
    """ARTL over Dask arrays and dataframes, by landmarks.

    Alignment of means of unit rows, as :class:`transferable.ARTL` describes it.
    """


class DaskTransformer(DaskAdapter, DomainTransformer):
    """Mixin of the transformers."""

    _shared_doc = """
Attributes
----------
client_ : distributed.Client or None
    The client in use. All others are as in memory.

See Also
--------
transferable.transformers.{name} : The estimator for tables in memory.

Examples
--------
>>> import dask.array as da
>>> from transferable.dask import {name}
>>> from transferable.datasets import make_shifted
>>> task = make_shifted(n_features=50)
>>> Xs, ys, Xt = (da.from_array(rows, chunks=100) for rows in (task.Xs, task.ys, task.Xt))
>>> {name}().adapt(Xs, ys, Xt).transform(Xt).shape
(200, 50)
"""

    def fit_transform(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_domain: Any = None
    ) -> Any:
        """Raise TypeError: fit, then transform the rows of each domain."""
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


class PerDomainScaler(
    DaskTransformer, transformers.PerDomainScaler, of=transformers.PerDomainScaler
):
    """Standardisation of each domain of Dask collections by itself.

    Two readings of the rows: one for the means, one for the deviations from them.
    """

    def _learn_rows(self, rows: HeldRows) -> None:
        found = _about_means(Spread.of, rows)
        means, sums = zip(*found, strict=True)
        deviations = np.stack([spread.deviations for spread in sums])
        self._map = Scales(np.array([1]), np.array([-1]), np.stack(means), deviations)
        self._n_features_out = len(means[0])


class CORAL(DaskTransformer, transformers.CORAL, of=transformers.CORAL):
    """Correlation alignment of Dask collections.

    Two readings of the rows: one for the means, one for covariances about them.
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
