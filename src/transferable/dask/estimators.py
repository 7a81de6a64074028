"""Estimators over Dask collections: their input, client and lazy results, and what each learns."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from transferable import classifiers, transformers
from transferable._kernel import choose
from transferable._kernel.class_shares import given_shares
from transferable._linalg.arrays import CPU, unit_rows
from transferable._linalg.kernels import FeatureTable
from transferable._linalg.memory import Plan, memory_budget
from transferable._linalg.moments import Moments
from transferable._linalg.systems import Matrix
from transferable._sklearn import validate_parameter_constraints
from transferable.base import DomainAdapter, DomainTransformer, Takes, target_sample
from transferable.dask._rows import (
    Block,
    HeldRows,
    Schema,
    Workers,
    domains_apart,
    each_added,
    kept,
    refuse_another_size,
    schema_of,
    stacked_domains,
    surveyed,
)
from transferable.dask._solver import BlockSolver, FeatureBlocks
from transferable.events import stage
from transferable.exceptions import warn_of_no_target
from transferable.limits import LIMITS
from transferable.progress import shown
from transferable.transformers._features import Spread
from transferable.transformers.coral import Covariance, Recolouring
from transferable.transformers.per_domain_scaler import Scales

__all__ = ["ARTL", "CORAL", "MEDA", "TFDF", "TFDFV", "PerDomainScaler"]

_FEATURES_SHARE = 0.4  # of the workers' memory
_ROWS_SHARE = 0.25  # of the workers' memory: rows that take more are read again for each pass
_MOST_LANDMARKS = 2 * LIMITS.pool_rows // 5  # the pool has five rows to choose each from


class DaskAdapter(DomainAdapter):
    """Mixin, before an estimator of the library, that makes it work on Dask collections.

    The docstring of a class gets the sections that its mixin has for all of them.

    Parameters
    ----------
    client : distributed.Client, default=None
        The client; None is the current one, or else threads of this process. It is not pickled.
    """

    client: Any = None
    _local: ClassVar[type[Any]]
    _shared_doc: ClassVar[str]  # sections of docstrings, in which {name} is the class in memory

    def __init_subclass__(cls, of: type[Any] | None = None, **options: Any) -> None:
        """Describe the class after `of`, the class in memory, its last base."""
        if of is not None:
            cls._local = of
            cls.takes = Takes(no_labels=of.takes.no_labels)
            own, shared = inspect.cleandoc(cls.__doc__ or ""), cls._shared_doc.strip()
            cls.__doc__ = f"{own}\n\n{shared.replace('{name}', of.__name__)}"
        super().__init_subclass__(**options)  # completes the docstring by the parameters

    @property
    def client_(self) -> Any:
        """Client in use; None for threads."""
        return Workers(self.client).client

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_domain: Any = None
    ) -> Self:
        """Learn from labelled source rows and unlabelled target rows, stacked in any order.

        Parameters
        ----------
        X : dask array or dask dataframe
            The rows of both domains.
        y : dask array, dask series or str
            Labels, in the partitions of `X`, or their column in `X`. Target labels are never used.
        sample_domain : dask array or dask series, default=None
            Positive for source rows, negative for target rows; one number for all source rows.
            Without it, rows labelled ``-1`` (of integers), ``NaN`` or ``None`` are the target.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if y is None:
            self._refuse_missing_labels(sample_domain)
        return self._fit_blocks(X, *stacked_domains(X, y, sample_domain))

    def adapt(
        self, Xs: Any, ys: Any, Xt: Any, sample_weight: Any = None, *, yt: Any = None
    ) -> Self:
        """Learn from source rows ``Xs``, their labels ``ys`` and target rows ``Xt``.

        Parameters
        ----------
        Xs : dask array or dask dataframe
            Source rows.
        ys : dask array, dask series, str or None
            Labels, in the partitions of `Xs`, or their column in `Xs`; None for methods that use
            none.
        Xt : dask array or dask dataframe
            Target rows, of the same columns. A column of the labels' name is left out.
        sample_weight, yt : None, default=None
            Not supported here; see the estimator in memory.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if ys is None:
            self._refuse_missing_labels([1, -1])
        self._refuse_in_blocks("sample_weight", sample_weight is not None)
        self._refuse_in_blocks("target labels", yt is not None)
        return self._fit_blocks(Xt, *domains_apart(Xs, ys, Xt))

    def _refuse_in_blocks(self, what: str, asked: bool) -> None:
        if asked:
            raise ValueError(
                f"{type(self).__name__} of transferable.dask takes no {what}; leave it out, or fit "
                f"{self._in_memory} in memory."
            )

    @property
    def _in_memory(self) -> str:
        """Import path of the estimator in memory."""
        return ".".join([*self._local.__module__.split(".")[:2], self._local.__name__])

    def _fit_blocks(self, fitted: Any, blocks: list[Delayed], schema: Schema) -> Self:
        """Fit, all or nothing."""
        before = dict(vars(self))
        try:
            validate_parameter_constraints(
                self._parameter_constraints, self.get_params(deep=False), type(self).__name__
            )
            self._refuse_parameters()
            self._refuse_in_blocks("target labels", self.target_labels == "use")
            with shown("Adapting") if getattr(self, "verbose", False) else nullcontext():
                self._fit_checked(blocks, schema)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        self._fitted = fitted
        return self

    def _fit_checked(self, blocks: list[Delayed], schema: Schema) -> None:
        stage("Checking rows")
        workers = Workers(self.client)
        room = _ROWS_SHARE * workers.memory()
        held = kept(blocks, workers, room)
        survey = surveyed(held, workers, fewest=1 if self.takes.no_labels else 2)
        self._refuse_several(survey.marks)
        if survey.sizes[1] == 0 and self._without_target:
            warn_of_no_target(type(self).__name__, survey.sizes[0], self._without_target)
        n_bytes = sum(survey.sizes) * schema.n_features * np.dtype(schema.dtype).itemsize
        held = held if n_bytes <= room else blocks  # releases what takes more than estimated
        self.n_features_in_ = schema.n_features
        if schema.names is not None:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        rows = HeldRows.of(held, survey, workers)
        self._learn_rows(rows)
        self._target_sample = target_sample(rows.pool)

    def _refuse_several(self, marks: frozenset[float]) -> None:
        """Refuse several domains where the estimator in memory treats each by itself."""
        apart = self._local.takes.several_targets
        for mark, name in ((1, "source"), (-1, "target"))[: 1 + apart]:
            found = sorted(number for number in marks if number * mark > 0)
            if len(found) > 1:
                raise ValueError(
                    f"{type(self).__name__} of transferable.dask takes one {name}, but "
                    f"sample_domain marks rows of {', '.join(f'{number:g}' for number in found)}; "
                    f"mark all of them {mark} to pool them, or fit {self._in_memory} in memory."
                )

    def _refuse_parameters(self) -> None:
        """Refuse parameters that need all rows in one place."""

    def _learn_rows(self, rows: HeldRows) -> None:
        """Learn from rows held by the workers, and set the fitted attributes."""
        raise NotImplementedError

    def to_local(self) -> Any:
        """Return the ordinary fitted estimator, for tables in memory and for ``transferable.save``.

        It does not keep the fitted rows: it has no ``transduction_``.

        Returns
        -------
        estimator : object
            Of the same name in :mod:`transferable.classifiers` or
            :mod:`transferable.transformers`.
        """
        parameters = self.get_params(deep=False)
        learnt = {k: v for k, v in vars(self).items() if k not in parameters and k != "_fitted"}
        del parameters["client"]
        model = self._local(**clone(parameters, safe=False))
        vars(model).update(learnt)
        return model

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the client and the fitted collection."""
        state: dict[str, Any] = super().__getstate__()
        return {k: v for k, v in state.items() if k != "_fitted"} | {"client": None}

    def __sklearn_clone__(self) -> Self:
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        return type(self)(**clone(parameters, safe=False), client=client)

    def _lazily(
        self, X: Any, method: str, columns: list[Any] | None, dtype: Any, *domain: Any
    ) -> Any:
        """Return the result of a method for rows: at once for a table in memory, else lazily.

        `columns` name the values of a row, None for a single value; `dtype` is theirs, None for
        that of the rows. `domain` marks all rows as source, if positive, or target.
        """
        check_is_fitted(self)
        if not isinstance(X, dd.DataFrame | da.Array):
            return getattr(self._local, method)(self, X, *domain)
        framed, names = isinstance(X, dd.DataFrame), getattr(self, "feature_names_in_", None)
        if framed and names is not None:
            X = X[list(names)]
        how = method, columns, dtype or schema_of(X, "X").dtype, *domain
        model = delayed(self.to_local())  # once in the graph, for all partitions
        if framed:
            return X.map_partitions(_frame, model, *how, meta=_frame(pd.DataFrame(), None, *how))
        X, meta = X.rechunk({1: -1}), _array((), None, *how)
        shape: dict[str, Any] = {"drop_axis": 1}
        if columns is not None:
            shape = {"chunks": (X.chunks[0], (len(columns),))}
        return X.map_blocks(_array, model, *how, dtype=meta.dtype, meta=meta, **shape)


def refuse_sizes(**sizes: Any) -> None:
    """Refuse numbers of landmarks or anchors that the pool has too few rows for."""
    for name, value in sizes.items():
        if value is None or (not isinstance(value, str) and int(value) > _MOST_LANDMARKS):
            raise ValueError(
                f"{name}={value!r} needs all rows in one process; take "
                f'"auto" or at most {_MOST_LANDMARKS}.'
            )


def _array(
    rows: Any,
    model: Any,
    method: str,
    columns: Any,
    dtype: Any,
    *domain: Any,
    block_info: Any = None,
) -> Any:
    if block_info:
        (start, stop), *_ = block_info[0]["array-location"]
        place = block_info[0]["chunk-location"][0]
        refuse_another_size(f"partition {place} of X", len(rows), stop - start)
    if len(rows) == 0:
        return np.empty((0,) if columns is None else (0, len(columns)), dtype=dtype)
    marks = [np.full(len(rows), mark) for mark in domain if mark is not None]
    return np.asarray(getattr(model, method)(rows, *marks), dtype=dtype)


def _frame(rows: Any, model: Any, method: str, columns: Any, *how: Any) -> Any:
    values = _array(rows, model, method, columns, *how)
    if columns is None:
        return pd.Series(values, index=rows.index, name=method)
    return pd.DataFrame(values, index=rows.index, columns=columns)


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
