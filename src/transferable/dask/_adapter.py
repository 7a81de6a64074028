"""Mixin of the estimators of :mod:`transferable.dask`: input, client, lazy results."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, ClassVar, Self

import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transferable._sklearn import validate_parameter_constraints
from transferable.base import DomainAdapter, Takes, target_sample
from transferable.dask._reading import Blocks, Schema, domains_apart, lazily, stacked_domains
from transferable.dask._survey import HeldRows, Pool, Workers, kept, surveyed
from transferable.events import stage
from transferable.exceptions import warn_of_no_target
from transferable.limits import LIMITS
from transferable.linalg.nystrom import draw_landmarks
from transferable.progress import shown

_ROWS_SHARE = 0.25  # of the workers' memory: rows that take more are read again for each pass
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
    n_landmarks: Any
    random_state: Any
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
        rows = HeldRows.of(blocks, survey, workers)
        self._learn_rows(rows)
        self._target_sample = target_sample(rows.pool)

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

    def _lazily(
        self, X: Any, method: str, columns: list[Any] | None, dtype: Any, *domain: Any
    ) -> Any:
        """Return what a method gives for rows: at once of a table in memory, else lazily."""
        check_is_fitted(self)
        if not isinstance(X, dd.DataFrame | da.Array):
            return getattr(self._local, method)(self, X, *domain)
        return lazily(self.to_local(), X, method, columns, dtype, *domain)

    def _draw(self, Z: Any, pool: Pool) -> tuple[int, NDArray[np.intp]]:
        """Return the number of landmarks wanted, and their positions among the pool's rows `Z`."""
        wanted = LIMITS.landmarks if self.n_landmarks == "auto" else int(self.n_landmarks or 0)
        count = min(wanted, sum(pool.sizes))
        rng = check_random_state(self.random_state)
        return count, draw_landmarks(Z, pool.n_source, count, rng)


def refuse_sizes(**sizes: Any) -> None:
    """Refuse numbers of landmarks or anchors that the pool has too few rows for."""
    for name, value in sizes.items():
        if value is None or (value != "auto" and int(value) > _MOST_LANDMARKS):
            raise ValueError(
                f"{name}={value!r} is not for rows that nobody holds together; take "
                f'"auto" or at most {_MOST_LANDMARKS}.'
            )
