"""What the estimators of :mod:`transferable.dask` share: input, client, lazy results."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, ClassVar, Self

import numpy as np
from dask.delayed import Delayed
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transferable._sklearn import validate_parameter_constraints
from transferable.base import DomainAdapter, Takes, target_sample
from transferable.classifiers._risk import RiskClassifier
from transferable.dask._features import FeatureBlocks
from transferable.dask._lazy import Gives, is_collection, lazily
from transferable.dask._reading import Blocks, Schema, domains_apart, stacked_domains
from transferable.dask._solver import BlockSolver
from transferable.dask._survey import HeldRows, kept, pooled, surveyed
from transferable.dask._workers import Workers
from transferable.engines.risk.graphs import with_graph
from transferable.engines.shares import wanted_shares
from transferable.events import stage
from transferable.exceptions import warn_of_no_target
from transferable.limits import LIMITS
from transferable.linalg.arrays import CPU
from transferable.linalg.feature_tables import FeatureTable
from transferable.linalg.memory import memory_budget
from transferable.linalg.nystrom import draw_landmarks
from transferable.progress import shown
from transferable.terms.smoothness import Smoothness

__all__ = ["DaskAdapter", "DaskRiskClassifier", "refuse_sizes"]

_ROWS_SHARE = 0.25  # of the workers' memory: rows that take more are read again for each pass
_FEATURES_SHARE = 0.4
_MOST_LANDMARKS = 2 * LIMITS.pool_rows // 5  # the pool has five rows to choose each from


class DaskAdapter(DomainAdapter):
    """Mixin that comes before an estimator of the library and has it work on Dask collections.

    Parameters
    ----------
    client : distributed.Client, default=None
        Who computes; None is the current client, or threads of this process where there is none.
        It is not part of a pickle.

    Attributes
    ----------
    client_ : distributed.Client or None
        The client that is used now; None for threads.
    """

    client: Any
    _local: ClassVar[type[Any]]
    # Defaults that differ from those of the estimator in memory.
    _defaults: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, of: type[Any] | None = None, **options: Any) -> None:
        """`of` is the class in memory, whose parameters this one has, and a client."""
        if of is not None:
            cls._local = of
            cls.takes = Takes(no_labels=of.takes.no_labels)
            cls.__init__ = cls._initialiser(of)  # type: ignore[method-assign]
        super().__init_subclass__(**options)  # completes the docstring by the parameters

    @classmethod
    def _initialiser(cls, of: type[Any]) -> Any:
        """The constructor of a class in memory, with a client."""

        def initialise(self: Any, *values: Any, client: Any = None, **named: Any) -> None:
            of.__init__(self, *values, **{**cls._defaults, **named})
            self.client = client

        own = [
            parameter.replace(default=cls._defaults.get(name, parameter.default))
            for name, parameter in inspect.signature(of.__init__).parameters.items()
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
        client = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)
        vars(initialise)["__signature__"] = inspect.Signature([*own, client])
        return initialise

    @property
    def client_(self) -> Any:
        """The client that is used now; None for threads."""
        return Workers(self.client).client

    def fit(
        self, X: Any, y: Any = None, sample_domain: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from labelled source rows and unlabelled target rows, stacked in any order.

        Parameters
        ----------
        X : dask array or dask dataframe
            The rows of both domains.
        y : dask array, dask series or str
            Labels, in the partitions of `X`, or the column of `X` that has them. Those of target
            rows are never looked at.
        sample_domain : dask array or dask series, default=None
            Positive for source rows, negative for target rows; one number for all rows of the
            source. Without it, rows labelled ``-1`` (of integers), ``NaN`` or ``None`` are
            the target.
        sample_weight : None, default=None
            Not taken here; the estimator in memory takes it where it says so.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if y is None:
            self._refuse_missing_labels(sample_domain)
        self._refuse_in_blocks("sample_weight", sample_weight is not None)
        return self._fit_blocks(X, stacked_domains(X, y, sample_domain))

    def adapt(self, Xs: Any, ys: Any, Xt: Any, sample_weight: Any = None) -> Self:
        """Learn from source rows ``Xs``, their labels ``ys`` and target rows ``Xt``.

        Parameters
        ----------
        Xs : dask array or dask dataframe
            Source rows.
        ys : dask array, dask series, str or None
            Their labels, in the partitions of `Xs`, or the column of `Xs` that has them; None for
            methods that look at none.
        Xt : dask array or dask dataframe
            Target rows, of the same columns. A column of the labels' name is left out.
        sample_weight : None, default=None
            Not taken here; the estimator in memory takes it where it says so.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if ys is None:
            self._refuse_missing_labels([1, -1])
        self._refuse_in_blocks("sample_weight", sample_weight is not None)
        return self._fit_blocks(Xt, domains_apart(Xs, ys, Xt))

    def _refuse_in_blocks(self, what: str, asked: bool) -> None:
        if asked:
            raise ValueError(
                f"{type(self).__name__} of transferable.dask takes no {what}; leave it out, or fit "
                f"{self._in_memory} in memory."
            )

    @property
    def _in_memory(self) -> str:
        """What the estimator in memory is imported as."""
        return ".".join([*self._local.__module__.split(".")[:2], self._local.__name__])

    def _fit_blocks(self, fitted: Any, rows: Blocks) -> Self:
        """Fit, all or nothing."""
        before = dict(vars(self))
        blocks, schema = rows
        try:
            parameters = self.get_params(deep=False)
            del parameters["client"]
            validate_parameter_constraints(
                self._parameter_constraints, parameters, type(self).__name__
            )
            self._refuse_parameters()
            self._refuse_in_blocks("target labels", self.target_labels == "use")
            bar = shown("Adapting") if getattr(self, "verbose", False) else nullcontext()
            with bar:
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
        blocks = held if n_bytes <= room else blocks
        del held
        self.n_features_in_ = schema.n_features
        if schema.names is not None:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        there, pool = pooled(blocks, survey, workers)
        self._learn_rows(HeldRows(blocks, there, pool, workers))
        self._target_sample = target_sample(pool)

    def _refuse_several(self, marks: frozenset[float]) -> None:
        """Refuse domains that the estimator in memory would tell apart."""
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
        """Refuse what cannot be done where nobody holds all rows."""

    def _learn_rows(self, rows: HeldRows) -> None:
        """Learn from rows that the workers hold, and set the fitted attributes."""
        raise NotImplementedError

    def to_local(self) -> Any:
        """The ordinary fitted estimator, for tables in memory and for ``transferable.save``.

        It knows nothing of the rows that were fitted: it has no ``transduction_``.

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
        """Everything but the client and the collection that was fitted."""
        state: dict[str, Any] = super().__getstate__()
        return {k: v for k, v in state.items() if k != "_fitted"} | {"client": None}

    def __sklearn_clone__(self) -> Self:
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        return type(self)(**clone(parameters, safe=False), client=client)

    def _lazily(self, X: Any, method: str, gives: Gives, domain: int | None = None) -> Any:
        """What a method gives for rows: at once of a table in memory, else when computed."""
        check_is_fitted(self)
        if not is_collection(X):
            return getattr(self._local, method)(self, X)
        return lazily(self.to_local(), X, method, gives, domain)


def refuse_sizes(**sizes: Any) -> None:
    """Refuse numbers of landmarks or anchors that the pool has too few rows for."""
    for name, value in sizes.items():
        if value is None or (value != "auto" and int(value) > _MOST_LANDMARKS):
            raise ValueError(
                f"{name}={value!r} is not for rows that nobody holds together; take "
                f'"auto" or at most {_MOST_LANDMARKS}.'
            )


class DaskRiskClassifier(DaskAdapter, RiskClassifier):
    """Mixin of TFDF, TFDF-V, MEDA and ARTL.

    Parameters
    ----------
    graph : {"anchors"}, default="anchors"
        That of anchors; nearest neighbours reach across partitions. ``manifold=0`` does without.
    n_landmarks : int or "auto", default="auto"
        Rows that all others are compared with; "auto" takes 1,000.
    max_memory : int, str or None, default=None
        What the workers may keep of the rows' features together, in bytes or as "2GB"; None is
        40 % of their memory. The rest is made again in each round.
    device : {"cpu"}, default="cpu"
        Workers compute with numpy.
    """

    _defaults: ClassVar[Mapping[str, Any]] = {"graph": "anchors"}

    def _refuse_parameters(self) -> None:
        refuse_sizes(n_landmarks=self.n_landmarks, n_anchors=self.n_anchors)
        if self.device != "cpu":
            raise ValueError(f'device="{self.device}": workers compute with numpy, device="cpu".')
        if self.graph == "neighbors":
            raise ValueError(
                'graph="neighbors" reaches across partitions; take graph="anchors", or manifold=0 '
                "to do without a graph."
            )

    def _learn_rows(self, rows: HeldRows) -> None:
        stage("Finding the domains' directions")
        pool, n_rows = rows.pool, sum(rows.pool.sizes)
        shares = wanted_shares(self.class_shares, pool)
        seen = self._rows(pool, self._map(pool))
        stage("Comparing rows with landmarks")
        wanted = LIMITS.landmarks if self.n_landmarks == "auto" else int(self.n_landmarks or 0)
        count = min(wanted, n_rows)
        rng = check_random_state(self.random_state)
        features = FeatureBlocks(
            rows,
            transform=seen.features.transform,
            kernel=seen.kernel,
            landmarks=draw_landmarks(seen.Z, pool.n_source, count, rng),
            held_bytes=self._room(rows.workers) - n_rows * seen.Z.shape[1] * pool.X.itemsize,
        )
        table = FeatureTable(seen.table, features.nystrom, CPU)
        objective = self._objective()
        term = objective.find(Smoothness)
        if term is not None:
            graph = with_graph(term, "anchors", self.n_anchors, n_rows, by_landmarks=True)
            objective = objective.replacing(graph)
        solver = BlockSolver(objective, seen, table, features)
        self._keep(self._rounds(solver, shares), shares)

    def _first_labels(self, solver: Any) -> Any:
        """As in memory; without a target, whatever holds no labels for the workers' blocks."""
        if solver.domains.n_target == 0:
            return solver.source_only_labels()
        return super()._first_labels(solver)

    def _room(self, workers: Workers) -> int:
        """Bytes that the workers keep of transformed rows and of their features."""
        if self.max_memory is None:
            return int(_FEATURES_SHARE * workers.memory())
        return memory_budget(self.max_memory, CPU)

    def predict(self, X: Any) -> Any:
        """Label rows, lazily where they are a Dask collection.

        Parameters
        ----------
        X : dask array, dask dataframe or table in memory
            Rows to label.

        Returns
        -------
        labels : dask array, dask series or ndarray of shape (n_samples,)
            The label of each row, in the partitions of `X`.
        """
        return self._lazily(X, "predict", Gives(None, self.classes_.dtype))

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, lazily where rows are a Dask collection.

        Parameters
        ----------
        X : dask array, dask dataframe or table in memory
            Rows.

        Returns
        -------
        probabilities : dask array, dask dataframe or ndarray of shape (n_samples, n_classes)
            A distribution over ``classes_`` for each row, in the partitions of `X`.
        """
        return self._lazily(X, "predict_proba", Gives(self.classes_.tolist(), np.float64))

    def decision_function(self, X: Any) -> Any:
        """Scores of rows, lazily where they are a Dask collection.

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
        return self._lazily(X, "decision_function", Gives(columns, np.float64))

    @property
    def transduction_(self) -> Any:  # type: ignore[override]
        """The labels of the fitted rows, lazily: of ``X``, or of ``Xt`` after ``adapt``."""
        check_is_fitted(self)
        if not hasattr(self, "_fitted"):
            raise AttributeError("A model that was unpickled has no fitted rows to label.")
        return self.predict(self._fitted)
