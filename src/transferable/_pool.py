"""Pools of models: candidates as data, their fits, and the target rows that they label.

A :class:`Kind` of rows lists the candidates, :func:`pool_of` chooses and :func:`fit_pool` fits
them, in processes and within a time limit. :class:`TargetRows` recognises the fitted target rows
and finds the neighbours of new ones. What is made of the members' answers, such as a
:class:`~transferable.classifiers._consensus.Consensus` of class probabilities, stands elsewhere.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from time import monotonic
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from transferable._linalg.arrays import CPU, centre_of, unit_rows
from transferable._linalg.memory import memory_budget
from transferable._linalg.search import nearest
from transferable.base import DomainAdapter
from transferable.domains import Domains, Store, row_hash
from transferable.events import Event, Listener, silence, stage
from transferable.exceptions import NoTargetWarning

Codes = NDArray[np.intp]

_CHEAP = 0.1  # time of a model of scikit-learn, in those of an adapted one
_SHARED_BYTES = 2**31  # of results that candidates share, at most half of `max_memory`
_WALKED = 10  # nearest target rows that are known of each
_NEAR = 5  # rows of a domain that a target row is compared with
_SAME_DIRECTION = 1e-5  # difference up to which a row is one that was fitted

_EXPECTED = (  # warnings, where rows, columns or classes are few, many or large
    ".*reduced to",
    "The number of unique classes",
    "Some inputs do not have OOB scores",
    "Column .* of the variance",  # other candidates are scaled
)

# The fitted candidate or None, the reason if there is none, and its seconds.
Attempt = tuple["Candidate | None", str | None, float]


# -- candidates --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A model and its input; once fitted, with the scale of its rows.

    A subclass calibrates the model and gives its answers.

    Attributes
    ----------
    name : str
        Name of the candidate.
    view : str
        What the model sees: "source-only", the source alone; "per domain", each domain
        standardised by itself; any other, such as "as given", both domains on one scale. Models of
        one view err together, and count as one.
    model : estimator
        One of the library, or one of scikit-learn, which learns from the source rows.
    embedding : list of transformers
        Fitted to both domains, before the model; their features, of unit length each, stand side
        by side. Without any, the model sees the rows.
    beside : bool
        Whether the rows themselves, of unit length, stand beside their embedding.
    scaler : StandardScaler or None
        Brings target rows to the scale of the embedding or model.
    """

    name: str
    view: str
    model: Any
    embedding: list[Any] = field(default_factory=list)
    beside: bool = False
    scaler: Any = None

    @property
    def identity(self) -> tuple[bool, str, str]:
        """What makes two fitted candidates copies: whether rows are scaled, and the models.

        TFDF without a geodesic flow is the same whether it chose that or was set to it.
        """
        model = self.model
        if hasattr(model, "manifold_dim_"):
            model = clone(model).set_params(manifold_dim=model.manifold_dim_)
        return self.view == "per domain", repr(self.embedding), repr(model)

    def fit(
        self,
        X: Any,
        y: NDArray[Any],
        ids: NDArray[Any],
        weights: Any,
        *,
        store: Store | None = None,
        clock: Sequence[Listener] = (),
    ) -> Self:
        """Return the candidate fitted to source rows and, behind them, unlabelled target rows.

        Candidates of the same input share kernels, graphs and factorisations in the store. The
        clock hears of every round, and may end the fit.
        """
        n_source, model, scaler = int(np.sum(ids > 0)), self.model, None
        if self.view == "per domain":
            scaler, X = _scaled_by_domain(X, ids)
        elif self.embedding and not sp.issparse(X):
            scaler = StandardScaler(with_std=False)
            X = scaler.fit_transform(X)
        with silence(*clock):
            if self.embedding:
                fitted = [part._fit(X, y, ids) for part in self.embedding]
                parts = [part._transform_rows(X, ids) for part in fitted]
                X = _side_by_side([X, *parts] if self.beside else parts)
            if isinstance(model, DomainAdapter):
                model._store = store
                marks = ids if model.takes.several_sources else np.sign(ids)
                model._fit(X, y, marks, weights)
                del model._store
        for part in (model, *self.embedding):
            if isinstance(part, DomainAdapter):
                part._target_sample = None  # the pool keeps one for all
        own = None if weights is None else weights[:n_source]
        if not isinstance(model, DomainAdapter):
            model.fit(X[:n_source], y[:n_source], sample_weight=own)
        return replace(self, scaler=scaler)._calibrated(X[:n_source], y[:n_source], own)

    def _calibrated(self, X: Any, y: NDArray[Any], weights: Any) -> Self:
        """Return the fitted candidate calibrated on source rows, given as the model sees them."""
        return self

    def seen(self, rows: Any) -> Any:
        """Return target rows as the model sees them."""
        rows = rows if self.scaler is None else self.scaler.transform(rows)
        if not self.embedding:
            return rows
        ids = np.zeros(rows.shape[0])  # of the target, as new rows are
        parts = [part._transform_rows(rows, ids) for part in self.embedding]
        return _side_by_side([rows, *parts] if self.beside else parts)


def _scaled_by_domain(X: Any, ids: NDArray[Any]) -> tuple[StandardScaler, Any]:
    """Return rows standardised by domain, and the scale of the target; flags have none."""
    parts = [np.flatnonzero(ids == one) for one in np.unique(ids)]  # target first
    kept, scaled, sparse = flags(X), [], sp.issparse(X)
    for part in parts[::-1]:  # that of the target is kept
        scaler = StandardScaler(with_mean=not sparse).fit(X[part])
        scaler.scale_[kept] = 1.0
        if not sparse:
            scaler.mean_[kept] = 0.0
        scaled.append(scaler.transform(X[part]))
    stacked = sp.vstack(scaled, format="csr") if sparse else np.concatenate(scaled)
    return scaler, stacked[np.argsort(np.concatenate(parts[::-1]))]


def _side_by_side(tables: Sequence[Any]) -> Any:
    """Return features of the same rows side by side, each table with rows of unit length."""
    units = [unit_rows(table) for table in tables]
    return sp.hstack(units, format="csr") if any(map(sp.issparse, units)) else np.hstack(units)


def flags(X: Any) -> NDArray[np.bool_]:
    """Return the columns that hold 0 and 1 only: they have no unit."""
    if sp.issparse(X):
        other = (X.data != 0) & (X.data != 1)
        return np.bincount(X.indices[other], minlength=X.shape[1]) == 0
    return np.asarray(((X == 0) | (X == 1)).all(axis=0))


# -- kinds of rows -----------------------------------------------------------------------------


class Specification(NamedTuple):
    """Candidate of a kind of rows, and when it is taken.

    Attributes
    ----------
    candidate : Candidate
        Not fitted, and without the settings that depend on the rows.
    fewest : int
        Target rows that it needs.
    widest : float
        Columns of dense rows up to which it is taken; sparse rows have any number.
    thorough : bool
        Whether a fast fit leaves it out.
    """

    candidate: Candidate
    fewest: int = 0
    widest: float = math.inf
    thorough: bool = False


class Kind(NamedTuple):
    """Kind of rows: how it is recognised, its candidates, and who judges their answers.

    Attributes
    ----------
    recognises : callable or None
        Whether the rows of a fit, or each of their columns, are of this kind; None for any.
    candidates : sequence of Specification
        Those of the source alone first.
    judge : callable
        The verdict on the consensus of the members, without a label of the target.
    smoothing : float, callable or None
        The weight of the neighbours in the consensus, also from the members' mean probabilities of
        the target rows and the neighbours of each; None for regression.
    caution : float
        Prior weight of the candidates of the source alone, unless another is given.
    shares : mapping of str to float
        Prior weights of the other views, 1 where there is none.
    """

    recognises: Callable[[Any], Any] | None
    candidates: Sequence[Specification]
    judge: Callable[..., Any]
    smoothing: Any = None
    caution: float = 0.4
    shares: Mapping[str, float] = MappingProxyType({})


def pool_of(
    kind: Kind, domains: Domains, settings: Mapping[type, dict[str, Any]], *, fast: bool
) -> list[Any]:
    """Return the candidates for these rows, with the settings for models of each type."""
    wide = math.inf if sp.issparse(domains.X) else domains.X.shape[1]
    pool = []
    for one, fewest, widest, thorough in kind.candidates:
        if domains.n_target < fewest or widest < wide or (thorough and fast):
            continue
        model, *embedding = parts = [clone(part) for part in (one.model, *one.embedding)]
        for part in parts:
            part.set_params(**settings.get(type(part), {}))
        pool.append(replace(one, model=model, embedding=embedding))
    return pool


# -- fits --------------------------------------------------------------------------------------


def fit_pool(
    pool: list[Any],
    domains: Domains,
    y: NDArray[Any],
    *,
    n_jobs: int | None = None,
    max_seconds: float | None = None,
    max_memory: int | str | None = None,
    who: str = "AutoAdapter",
) -> tuple[list[Any], dict[str, list[Any]]]:
    """Fit the candidates, in processes, and warn of those that are left out.

    Those that see the same rows share kernels and a process. The first is always fitted. `y` are
    the labels of all rows in canonical order, with marks for those of the target; `who` fits them.

    Returns
    -------
    members : list of Candidate
        The fitted ones, without copies.
    found : dict of lists
        Name, block, seconds and error of each candidate; None for those fitted.
    """
    weights = None if (domains.weights == 1.0).all() else domains.weights
    ids = np.where(domains.ids < 0, -1, domains.ids)  # several targets are one
    deadline = math.inf if max_seconds is None else monotonic() + max_seconds
    adapts = [isinstance(one.model, DomainAdapter) for one in pool]
    groups = [
        list(some)
        for _, some in groupby(
            pool,
            lambda one: (
                one.view if isinstance(one.model, DomainAdapter) and not one.embedding else one.name
            ),
        )
    ]
    # Models that come back must hold arrays, not files that are mapped while processes run.
    parallel = Parallel(
        n_jobs=n_jobs and min(n_jobs, len(groups)), return_as="generator", max_nbytes=None
    )
    most = min(_SHARED_BYTES, memory_budget(max_memory, CPU) // 2)
    problem = domains.X[:], y, ids, weights
    attempts = chain.from_iterable(
        parallel(
            delayed(_fit_all)(group, problem, deadline if k else math.inf, max_seconds, most)
            for k, group in enumerate(groups)
        )
    )
    costs = [1.0 if adapting else _CHEAP for adapting in adapts]
    fitted: list[Candidate | None] = []
    errors: list[str | None] = []
    seconds: list[float] = []
    for k, candidate in enumerate(pool):
        step = f"{k + 1} of {len(pool)}, {candidate.name}"
        if max_seconds is not None:
            step += f", at most {max(0.0, deadline - monotonic()):.0f} s more"
        stage("Fitting candidates", sum(costs[:k]) / sum(costs), step)
        one, error, taken = next(attempts)
        fitted.append(one)
        errors.append(error)
        seconds.append(taken)
    if any(adapts) and not any(
        one for one, adapting in zip(fitted, adapts, strict=True) if adapting
    ):
        # Candidates that merely scale by domain are, alone, no check on anything.
        for k, one in enumerate(fitted):
            if one and one.view != "source-only":
                fitted[k], errors[k] = None, "no candidate that aligns was fitted"
    missing = [f"{c.name} ({error})" for c, error in zip(pool, errors, strict=True) if error]
    if len(missing) == len(pool):
        raise RuntimeError(f"No candidate of {who} could be fitted: {'; '.join(missing)}.")
    if missing:
        alone = not any(one and one.view != "source-only" for one in fitted)
        ends = " Nothing adapted: the answer is that of the source alone." if alone else ""
        warnings.warn(
            f"{who} left out {len(missing)} of {len(pool)} candidates: {'; '.join(missing)}."
            + ends,
            stacklevel=5,
        )
    members: dict[Any, Candidate] = {}
    for k, one in enumerate(fitted):
        if one and members.setdefault(one.identity, one) is not one:
            errors[k] = f"same model and input as {members[one.identity].name}"
    return list(members.values()), {
        "name": [one.name for one in pool],
        "block": ["source-only" if c.view == "source-only" else "adapted" for c in pool],
        "seconds": seconds,
        "error": errors,
    }


class OutOfTime(Exception):  # noqa: N818 (no error: the limit was set)
    """Time limit of the fits exceeded."""


def _fit_all(
    group: Sequence[Candidate],
    problem: tuple[Any, ...],
    deadline: float,
    max_seconds: float | None,
    most_bytes: int,
) -> list[Attempt]:
    """Fit candidates that see the same rows, one after the other, until the deadline."""

    def stop(_: Event) -> None:
        if monotonic() > deadline:
            raise OutOfTime

    attempts: list[Attempt] = []
    store = Store(most_bytes=most_bytes) if len(group) > 1 else None
    clock = () if deadline == math.inf else (stop,)
    for candidate in group:
        start, fitted, error = monotonic(), None, None
        try:
            if start > deadline:
                raise OutOfTime
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NoTargetWarning)  # AutoAdapter itself warns
                warnings.filterwarnings("ignore", "sample_weight counts rows")
                warnings.simplefilter("ignore", ConvergenceWarning)  # scores are calibrated
                for text in _EXPECTED:
                    warnings.filterwarnings("ignore", text, UserWarning)
                fitted = candidate.fit(*problem, store=store, clock=clock)
        except OutOfTime:
            error = f"max_seconds={max_seconds} had passed"
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        attempts.append((fitted, error, monotonic() - start))
    return attempts


# -- target rows -------------------------------------------------------------------------------


@dataclass(frozen=True)
class TargetRows:
    """Target rows of a fit: they are known again, and neighbours of new ones are found.

    Rows are in the canonical order of the fit. Their directions are kept in their own precision.

    Attributes
    ----------
    places : ndarray of shape (n_target,)
        Number of each row among the target rows of the input.
    hashes : ndarray of shape (n_target,)
        Hash of each row, by which it is recognised.
    near : ndarray of shape (n_target, n_near)
        The nearest target rows of each, the row itself first.
    gap : ndarray of shape (n_target,)
        How much less similar the nearest source rows of each are than the nearest target rows.
    directions, lengths : array of shape (n_target, n_features + 1), ndarray of shape (n_target,)
        Direction and distance of each row from the centre; sparse rows, n_features wide, are not
        centred. None without a target.
    centre : ndarray of shape (n_features + 1,) or None
        The centre, with a further coordinate; None for sparse rows.
    """

    places: Codes
    hashes: NDArray[np.uint64]
    near: Codes
    gap: NDArray[np.float64]
    directions: Any = None
    lengths: Any = None
    centre: Any = None

    @classmethod
    def of(cls, domains: Domains) -> TargetRows:
        """Keep the target rows of a problem, and compare them with its source rows."""
        rows, n = domains.Xt, domains.n_target
        hashes, order = row_hash(rows), domains.order[domains.target]
        if n == 0:
            return cls(order, hashes, order[:, None], np.zeros(0))
        centre = None if sp.issparse(rows) else centre_of(rows)
        directions, gap = unit_rows(rows, None, centre), np.zeros(n)
        near, cosines = _nearest(directions, directions)
        if n > 1:
            own = None if centre is None else centre_of(domains.Xs)
            ours = unit_rows(domains.Xs, None, own)
            to_source = nearest(directions, ours, min(_NEAR, domains.n_source)).similarities
            gap = cosines[:, 1 : 1 + _NEAR].mean(axis=1) - to_source.mean(axis=1)
        if centre is None:
            lengths = sp.linalg.norm(rows, axis=1)
        else:
            lengths = np.hypot(np.linalg.norm(rows - centre[:-1], axis=1), centre[-1])
        places = np.searchsorted(np.sort(order), order)
        return cls(places, hashes, near, gap, directions, lengths, centre)

    @property
    def rows(self) -> Any:
        """The rows as they were fitted, in single precision."""
        if sp.issparse(self.directions):
            return sp.csr_array(sp.diags_array(self.lengths) @ self.directions, dtype=np.float32)
        rows = self.directions * self.lengths[:, None] + self.centre
        return rows[:, :-1].astype(np.float32)

    def found(self, rows: Any) -> tuple[Codes, NDArray[np.bool_]]:
        """Return the position of each row among the fitted ones, and which are new."""
        found, order = row_hash(rows), np.argsort(self.hashes)
        if not len(order):
            return np.zeros(len(found), dtype=np.intp), np.ones(len(found), dtype=bool)
        at = order[np.searchsorted(self.hashes, found, sorter=order) % len(order)]
        return at, self.hashes[at] != found

    def nearest(self, rows: Any) -> tuple[Codes, NDArray[np.float64]]:
        """Return the nearest fitted rows of new ones, nearest first, and their cosines."""
        return _nearest(unit_rows(rows, None, self.centre), self.directions)

    def are(self, rows: Any) -> bool:
        """Return whether these are the fitted rows, in the order of the input."""
        if len(self.places) != rows.shape[0] or not rows.shape[0]:
            return False
        gap = unit_rows(rows[self.places], None, self.centre) - self.directions
        return bool(abs(gap).max() < _SAME_DIRECTION)


def _nearest(directions: Any, fitted: Any) -> tuple[Codes, NDArray[np.float64]]:
    """Return the nearest fitted target rows of each row, nearest first, and their cosines."""
    found = nearest(directions, fitted, min(_WALKED, fitted.shape[0]))
    order = np.lexsort((found.indices, -found.similarities.round(9)), axis=1)
    return (
        np.take_along_axis(found.indices, order, axis=1),
        np.take_along_axis(found.similarities, order, axis=1),
    )
