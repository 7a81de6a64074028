"""TFDF, TFDF-V, MEDA and ARTL over Dask collections."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from transferable import classifiers as local
from transferable._kernel import choose
from transferable._kernel.class_shares import given_shares
from transferable._linalg.arrays import CPU, unit_rows
from transferable._linalg.memory import Plan, memory_budget
from transferable._linalg.nystrom import FeatureTable
from transferable.dask._adapter import DaskAdapter, refuse_sizes
from transferable.dask._rows import HeldRows
from transferable.dask._solver import BlockSolver, FeatureBlocks
from transferable.events import stage
from transferable.limits import LIMITS

__all__ = ["ARTL", "MEDA", "TFDF", "TFDFV"]

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

    Attributes
    ----------
    transduction_ : dask array or dask series
        The labels of the rows that were fitted, of the target's after ``adapt``, when computed.
    client_ : distributed.Client or None
        The client in use. All others are as in memory.

    See Also
    --------
    transferable.{name} : The estimator for tables in memory.
    """

    graph: choose.Graph = "anchors"

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
            transform=partial(unit_rows, factor=problem.flow),
            kernel=problem.kernel,
            landmarks=pool.draw(problem.Z, self.n_landmarks, self.random_state)[1],
            held_bytes=room - n_rows * problem.Z.shape[1] * pool.X.itemsize,
        )
        table = FeatureTable(problem.table, blocks.nystrom, CPU)
        solver = BlockSolver(problem, objective.fixed, table, blocks=blocks)
        self._keep(self._solve(solver, objective, given), given)

    def predict(self: Any, X: Any) -> Any:
        """Predict labels, lazily for a Dask collection.

        Parameters
        ----------
        X : dask array, dask dataframe or table in memory
            Rows to label.

        Returns
        -------
        labels : dask array, dask series or ndarray of shape (n_samples,)
            The label of each row, in the partitions of `X`.
        """
        return self._lazily(X, "predict", None, self.classes_.dtype)

    def predict_proba(self: Any, X: Any) -> Any:
        """Return class probabilities, lazily for a Dask collection.

        Parameters
        ----------
        X : dask array, dask dataframe or table in memory
            Rows.

        Returns
        -------
        probabilities : dask array, dask dataframe or ndarray of shape (n_samples, n_classes)
            A distribution over ``classes_`` for each row, in the partitions of `X`.
        """
        return self._lazily(X, "predict_proba", self.classes_.tolist(), np.float64)

    def decision_function(self: Any, X: Any) -> Any:
        """Return scores of rows, lazily for a Dask collection.

        Parameters
        ----------
        X : dask array, dask dataframe or table in memory
            Rows.

        Returns
        -------
        scores : dask array, dask dataframe or series, or ndarray
            One score for each class; with two classes, the second's minus the first's.
        """
        columns = None if len(self.classes_) == 2 else self.classes_.tolist()
        return self._lazily(X, "decision_function", columns, np.float64)

    def _labels(self: Any) -> Any:
        """Labels of the fitted rows, lazily: of ``X``, or of ``Xt`` after ``adapt``."""
        check_is_fitted(self)
        if not hasattr(self, "_fitted"):
            raise AttributeError("A model that was unpickled has no fitted rows to label.")
        return self.predict(self._fitted)

    transduction_: Any = property(_labels)


class TFDFV(DaskKernelClassifier, local.TFDFV, of=local.TFDFV):
    """TFDF-V over Dask arrays and dataframes, by landmarks.

    Kernel least squares that aligns domains, as :class:`transferable.TFDFV` describes it.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import TFDFV
    >>> rng = da.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(400, 5), chunks=(100, 5)), rng.normal(0.2, size=(300, 5))
    >>> ys = (Xs[:, 0] > 0).astype(int)
    >>> model = TFDFV(n_landmarks=50).adapt(Xs, ys, Xt)
    >>> model.predict(Xt)
    dask.array<_array, shape=(300,), dtype=int64, chunksize=(300,), chunktype=numpy.ndarray>
    """


class TFDF(DaskKernelClassifier, local.TFDF, of=local.TFDF):
    """TFDF over Dask arrays and dataframes, by landmarks.

    :class:`TFDFV` followed by class confusion.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import TFDF
    >>> rng = da.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(400, 5), chunks=(100, 5)), rng.normal(0.2, size=(300, 5))
    >>> ys = (Xs[:, 0] > 0).astype(int)
    >>> model = TFDF(n_landmarks=50).adapt(Xs, ys, Xt)
    >>> model.predict(Xt)
    dask.array<_array, shape=(300,), dtype=int64, chunksize=(300,), chunktype=numpy.ndarray>
    """


class MEDA(DaskKernelClassifier, local.MEDA, of=local.MEDA):
    """MEDA over Dask arrays and dataframes, by landmarks.

    Alignment of means on geodesic flow features, as :class:`transferable.MEDA` describes it.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import MEDA
    >>> rng = da.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(400, 5), chunks=(100, 5)), rng.normal(0.2, size=(300, 5))
    >>> ys = (Xs[:, 0] > 0).astype(int)
    >>> model = MEDA(n_landmarks=50, manifold_dim=2).adapt(Xs, ys, Xt)
    >>> model.predict(Xt)
    dask.array<_array, shape=(300,), dtype=int64, chunksize=(300,), chunktype=numpy.ndarray>
    """


class ARTL(DaskKernelClassifier, local.ARTL, of=local.ARTL):
    """ARTL over Dask arrays and dataframes, by landmarks.

    Alignment of means of unit rows, as :class:`transferable.ARTL` describes it.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import ARTL
    >>> rng = da.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(400, 5), chunks=(100, 5)), rng.normal(0.2, size=(300, 5))
    >>> ys = (Xs[:, 0] > 0).astype(int)
    >>> model = ARTL(n_landmarks=50).adapt(Xs, ys, Xt)
    >>> model.predict(Xt)
    dask.array<_array, shape=(300,), dtype=int64, chunksize=(300,), chunktype=numpy.ndarray>
    """
