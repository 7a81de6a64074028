"""Candidates that differ, fitted and calibrated."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from time import monotonic
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from transferable.base import DomainAdapter
from transferable.classifiers._consensus import Probabilities
from transferable.classifiers._scores import class_scores
from transferable.engines.risk.calibration import temperature
from transferable.events import Event, listen, silence
from transferable.threads import n_processes
from transferable.workspace import sharing

__all__ = ["Attempt", "Block", "Candidate", "Limits", "Member", "OutOfTime", "attempts"]

Block = Literal["source-only", "adapted"]
Scores = NDArray[np.float64]

_FOLDS = 3
_LEFT_OUT = 1000  # source rows that are enough to calibrate by
_SMALLEST = 1e-3  # probability: a forest whose trees all agree is no more certain than that


class OutOfTime(Exception):  # noqa: N818 (no error: the limit was asked for)
    """The seconds that fits may take have passed."""


@dataclass(frozen=True)
class Candidate:
    """A model to be fitted, and what to.

    Attributes
    ----------
    name : str
        What it is called in tables.
    block : {"source-only", "adapted"}
        Whether target rows take part in its fit, or in how rows are scaled for it.
    model : classifier
        One of the library, or of scikit-learn for the source alone.
    per_domain : bool
        Whether each domain is standardised by itself first.
    """

    name: str
    block: Block
    model: Any
    per_domain: bool = False

    def fit(self, X: Any, codes: NDArray[np.intp], deadline: float) -> Member:
        """Fit to rows, those of the target behind and of code -1, until :func:`monotonic` says."""
        n_source, scaler, X = int(np.sum(codes >= 0)), None, _with_short_indices(X)
        if self.per_domain:
            parts = X[:n_source], X[n_source:]
            own, scaler = (_standardiser(part, _flags(X)) for part in parts)
            X = _stacked(own.transform(parts[0]), scaler.transform(parts[1]))
        if isinstance(self.model, DomainAdapter):
            found = self._adapt(X, codes, deadline)
        else:
            y = codes[:n_source]
            model = _quietly(self.model.fit, X[:n_source], y)
            found = _fitted_temperature(model, X[:n_source], y)
        return Member(self.name, self.block, self.model, scaler, found)

    def _adapt(self, X: Any, codes: NDArray[np.intp], deadline: float) -> float:
        """Fit a model of the library; the temperature of source rows it has not seen."""
        with silence(), listen(_stop_after(deadline)), warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*reduced to", UserWarning)  # few rows or columns
            self.model.fit(X, codes, sample_domain=np.where(codes < 0, -1, 1))
        decides = getattr(self.model, "estimator_", self.model)
        self.model._target_sample = decides._target_sample = None  # the pool keeps one for all
        return float(decides._source_temperature)


@dataclass
class Member:
    """A fitted candidate.

    Attributes
    ----------
    name, block
        As of the candidate.
    model : classifier
        Fitted; its classes are codes.
    scaler : StandardScaler or None
        What brings target rows to the scale that the model knows, if that is its domain's own.
    temperature : float
        The divisor of its scores that suits source rows it has not seen.
    """

    name: str
    block: Block
    model: Any
    scaler: Any
    temperature: float

    @property
    def view(self) -> str:
        """What it looks at: models of one view err together, and count as one."""
        if self.block == "source-only":
            return self.block
        return "as given" if self.scaler is None else "per domain"

    def probabilities(self, rows: Any) -> Probabilities:
        """Calibrated probabilities of target rows, a column for each class."""
        rows = _with_short_indices(rows)
        rows = rows if self.scaler is None else self.scaler.transform(rows)
        return softmax(_scores(self.model, rows) / self.temperature, axis=1)


@dataclass(frozen=True)
class Attempt:
    """A fitted candidate, or why there is none, and the seconds that took."""

    member: Member | None
    error: str | None
    seconds: float


@dataclass(frozen=True)
class Limits:
    """What fits may take: seconds in all, None for any, and bytes of what they share."""

    max_seconds: float | None
    shared_bytes: int


def attempts(
    pool: Sequence[Candidate],
    X: Any,
    codes: NDArray[np.intp],
    limits: Limits,
    n_jobs: int | None = None,
) -> Iterator[Attempt]:
    """Fit the candidates, in `n_jobs` processes, and yield what became of each in their order.

    Those that see the same rows share kernels and graphs, and so a process. The first one is fitted
    whatever the time.
    """
    deadline = math.inf if limits.max_seconds is None else monotonic() + limits.max_seconds
    groups = [list(g) for _, g in groupby(pool, lambda c: "per domain" if c.per_domain else c.name)]
    # Models that come back must hold arrays, not files that are mapped while processes run.
    jobs = n_processes(n_jobs, len(groups))
    parallel = Parallel(n_jobs=jobs, return_as="generator", max_nbytes=None)
    found = parallel(
        delayed(_fit_all)(group, X, codes, limits, deadline if k else math.inf)
        for k, group in enumerate(groups)
    )
    for group in found:
        yield from group


def _fit_all(
    group: Sequence[Candidate], X: Any, codes: NDArray[np.intp], limits: Limits, deadline: float
) -> list[Attempt]:
    with sharing(most_bytes=limits.shared_bytes):
        return [_attempt(candidate, X, codes, limits, deadline) for candidate in group]


def _attempt(
    candidate: Candidate, X: Any, codes: NDArray[np.intp], limits: Limits, deadline: float
) -> Attempt:
    start, member, error = monotonic(), None, None
    try:
        if start > deadline:
            raise OutOfTime
        member = candidate.fit(X, codes, deadline)
    except OutOfTime:
        error = f"max_seconds={limits.max_seconds} had passed"
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
    return Attempt(member, error, monotonic() - start)


def _stop_after(deadline: float) -> Callable[[Event], None]:
    """A listener that ends the fit it hears of once the time has come."""

    def stop(_: Event) -> None:
        if monotonic() > deadline:
            raise OutOfTime

    return stop


def _fitted_temperature(model: Any, X: Any, y: NDArray[np.intp]) -> float:
    """The temperature of source rows that the model, or copies of it, have not seen."""
    if isinstance(model, RandomForestClassifier):
        seen = np.isfinite(model.oob_decision_function_).all(axis=1)
        scores, codes = _log(model.oob_decision_function_[seen]), y[seen]
    else:
        scores, codes = _left_out(model, X, y)
    return temperature(scores, codes) if len(codes) else 1.0


def _left_out(model: Any, X: Any, y: NDArray[np.intp]) -> tuple[Scores, NDArray[np.intp]]:
    """Scores of rows left out in folds that keep a row of every class, and their codes."""
    counts = np.bincount(y)
    order = np.argsort(y, kind="stable")
    fold = np.empty_like(y)
    fold[order] = (np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)) % _FOLDS
    fold[counts[y] < 2] = _FOLDS
    tables, codes = [np.empty((0, len(counts)))], [y[:0]]
    for k in range(_FOLDS):
        out = fold == k
        if out.any() and sum(map(len, codes)) < _LEFT_OUT:
            copy = _quietly(clone(model).fit, X[~out], y[~out])
            tables.append(_scores(copy, X[out]))
            codes.append(y[out])
    return np.concatenate(tables), np.concatenate(codes)


def _quietly(fit: Callable[..., Any], X: Any, y: NDArray[np.intp]) -> Any:
    """Fit a model of scikit-learn; one that has not converged is calibrated as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        return fit(X, y)


def _scores(model: Any, rows: Any) -> Scores:
    """Scores whose softmax, at some temperature, are the model's probabilities."""
    scores = class_scores(model, rows)
    return scores if hasattr(model, "decision_function") else _log(scores)


def _log(P: Probabilities) -> Scores:
    return np.log(np.maximum(P, _SMALLEST))


def _with_short_indices(X: Any) -> Any:
    """Sparse rows whose indices are of 32 bits, which trees insist on, where these are enough."""
    if not sp.issparse(X) or X.indices.dtype == np.int32 or max(X.nnz, X.shape[1]) >= 2**31:
        return X
    indices, indptr = (part.astype(np.int32) for part in (X.indices, X.indptr))
    return sp.csr_array((X.data, indices, indptr), shape=X.shape)


def _flags(X: Any) -> NDArray[np.bool_]:
    """Columns that hold 0 and 1 only: they have no unit."""
    if sp.issparse(X):
        other = (X.data != 0) & (X.data != 1)
        return np.bincount(X.indices[other], minlength=X.shape[1]) == 0
    return np.asarray(((X == 0) | (X == 1)).all(axis=0))


def _standardiser(rows: Any, flags: NDArray[np.bool_]) -> StandardScaler:
    """Brings columns to mean 0 and variance 1, sparse ones to variance 1, and leaves flags."""
    scaler = StandardScaler(with_mean=not sp.issparse(rows)).fit(rows)
    scaler.scale_[flags] = 1.0
    if scaler.with_mean:
        scaler.mean_[flags] = 0.0
    return scaler


def _stacked(source: Any, target: Any) -> Any:
    both = [source, target]
    return sp.vstack(both, format="csr") if sp.issparse(source) else np.concatenate(both)
