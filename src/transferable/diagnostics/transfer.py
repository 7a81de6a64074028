"""Comparison of methods without target labels, and the verdict on the labels of one of them.

The verdict is that of :class:`~transferable.AutoAdapter`'s pool. `diagnose`, `compare`, `adapt` and
the report take it from :func:`assess_trust`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter, time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from transferable._sklearn import safe_indexing
from transferable.classifiers import AdaptedClassifier, AutoAdapter
from transferable.domains import are_several
from transferable.events import Event, listen, stage
from transferable.tables import TableClassifier
from transferable.trust import Trust, changes_of, percent

_Named = tuple[str, Any]

_MOST_ROWS = 1000  # of each domain: the pool is seven fits


@dataclass(frozen=True)
class MethodOutcome:
    """Labels of the target rows by one method.

    Attributes
    ----------
    name : str
        The method.
    predicted : ndarray of shape (n_target,) or None
        The labels it gave; None if it failed.
    seconds : float
        Time to fit and predict.
    failure : str
        Why there are no labels; empty if there are.
    left_out : bool
        Whether it could not be run, for lack of time or of an extra, rather than failed.
    """

    name: str
    predicted: NDArray[Any] | None
    seconds: float
    failure: str = ""
    left_out: bool = False


def source_only_methods() -> dict[str, Any]:
    """Return models of the source alone, which an adapted one should beat."""
    return {
        "1-NN": AdaptedClassifier(None, KNeighborsClassifier(1)),
        "logistic regression": AdaptedClassifier(None, LogisticRegression(max_iter=1000)),
    }


def compare_methods(
    methods: Mapping[str, Any],
    Xs: Any,
    ys: ArrayLike,
    Xt: Any,
    *,
    track: Callable[[Iterable[_Named]], Iterable[_Named]] = iter,
    max_seconds: float | None = None,
    n_jobs: int = 1,
) -> list[MethodOutcome]:
    """Adapt with each method and label the target rows.

    A method that fails does not stop the others.

    Parameters
    ----------
    methods : mapping of str to estimator
        Methods by name, unfitted. A transformer is followed by one nearest neighbour.
    Xs, ys, Xt : array-like
        Source rows, their labels, and target rows.
    track : callable, default=iter
        Goes through the methods while they are fitted, for a progress bar.
    max_seconds : float or None, default=None
        Time for all of them together. Methods not begun by then are left out; a running one is
        stopped at its next round, if it has rounds.
    n_jobs : int, default=1
        Methods that are fitted at a time, each in a process of its own.

    Returns
    -------
    outcomes : list of MethodOutcome
        In the order of the methods.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable import TFDFV
    >>> from transferable.diagnostics import compare_methods, vote
    >>> from transferable.transformers import CORAL
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat(["cat", "dog"], 20)
    >>> Xs = rng.normal(size=(40, 3)) + 5 * (ys == "dog")[:, None]
    >>> outcomes = compare_methods({"TFDF-V": TFDFV(), "CORAL": CORAL()}, Xs, ys, Xs + 0.1)
    >>> bool(np.all(vote(outcomes) == ys))
    True
    """
    deadline = inf if max_seconds is None else time() + max_seconds
    given = methods.items()
    if n_jobs == 1:
        return [_outcome(name, method, Xs, ys, Xt, deadline) for name, method in track(given)]
    found = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_outcome)(name, method, Xs, ys, Xt, deadline) for name, method in given
    )
    return [outcome for _, outcome in zip(track(given), found, strict=True)]


class _OutOfTime(Exception):  # noqa: N818 (it is no error)
    """Time limit exceeded."""


def _outcome(
    name: str, method: Any, Xs: Any, ys: ArrayLike, Xt: Any, deadline: float
) -> MethodOutcome:
    def stop_when_late(event: Event | None = None) -> None:
        if time() >= deadline:
            raise _OutOfTime

    model = AdaptedClassifier(method) if hasattr(method, "transform") else clone(method)
    start = perf_counter()
    try:
        with warnings.catch_warnings(), listen(stop_when_late):
            warnings.simplefilter("ignore")
            stop_when_late()
            predicted = model.adapt(Xs, ys, Xt).predict(Xt)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError) as error:
        return MethodOutcome(name, None, perf_counter() - start, str(error) or repr(error))
    except _OutOfTime:
        return MethodOutcome(name, None, perf_counter() - start, "no time was left", left_out=True)
    except ImportError as error:
        return MethodOutcome(name, None, perf_counter() - start, str(error), left_out=True)
    return MethodOutcome(name, predicted, perf_counter() - start)


def vote(outcomes: Iterable[MethodOutcome]) -> NDArray[Any]:
    """Return the label that most methods give each target row; of equals, the first in order.

    Parameters
    ----------
    outcomes : iterable of MethodOutcome
        Those that failed have no vote.

    Returns
    -------
    labels : ndarray of shape (n_target,)
        One label for each row.
    """
    table = np.array([outcome.predicted for outcome in outcomes if outcome.predicted is not None])
    if not len(table):
        raise ValueError("No method succeeded; there is no vote to count.")
    classes, codes = np.unique(table, return_inverse=True)
    codes = codes.reshape(table.shape)
    counts = np.stack([np.sum(codes == k, axis=0) for k in range(len(classes))])
    return classes[counts.argmax(axis=0)]


def draw_rows(
    groups: NDArray[Any], rng: np.random.Generator, most: int = _MOST_ROWS
) -> NDArray[np.intp]:
    """Return positions of all rows, or of about `most`, the same share of every group."""
    share = min(1.0, most / max(1, len(groups)))
    if share == 1.0:
        return np.arange(len(groups))
    members = (np.flatnonzero(groups == group) for group in np.unique(groups))
    drawn = [rng.choice(m, max(1, round(share * len(m))), replace=False) for m in members]
    return np.sort(np.concatenate(drawn))


@dataclass(frozen=True)
class Assessment:
    """Verdict on the labels that a method gives target rows.

    Attributes
    ----------
    trust : Trust
        The verdict of AutoAdapter's pool; the changes are those of the method.
    source_only : ndarray of shape (n_target,)
        Labels by the pool's models of the source alone.
    agreement : float or None
        Share of target rows that the method and the pool label alike; None if it is the pool.
    method : str
        The method.
    pool : AutoAdapter or TableClassifier
        The fitted pool.
    """

    trust: Trust
    source_only: NDArray[Any]
    agreement: float | None
    method: str
    pool: Any

    @property
    def lines(self) -> list[str]:
        """The verdict in words, and whose it is."""
        if self.agreement is None:
            return self.trust.lines
        whose = (
            f"The verdict is AutoAdapter's on its own labels, which are those of {self.method} for "
            f"{percent(self.agreement)} % of the rows"
        )
        return [*self.trust.lines, whose]


def assess_trust(model: Any, Xs: Any, ys: Any, Xt: Any, *, random_state: int = 0) -> Assessment:
    """Judge without labels whether those of a fitted model can be used.

    Parameters
    ----------
    model : classifier
        Fitted to these rows: an :class:`~transferable.AutoAdapter`, whose own verdict it is, or
        another classifier or :class:`~transferable.tables.TableClassifier`, for which an
        AutoAdapter is fitted to at most 1,000 rows of each domain. One that is not fitted has no
        labels of its own: the verdict is on AutoAdapter's.
    Xs, ys, Xt : array-like, frame, or list of such
        Source rows, their labels, and target rows, as the model takes them.
    random_state : int, default=0
        Seed of the pool and of the rows drawn.

    Returns
    -------
    assessment : Assessment
        The verdict, and labels by the source alone.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable import TFDFV
    >>> from transferable.diagnostics import assess_trust
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(120) % 2
    >>> X = rng.normal(size=(120, 4)) + 3 * y[:, None]
    >>> Xs, ys, Xt = X[:60], y[:60], X[60:]
    >>> assess_trust(TFDFV().adapt(Xs, ys, Xt), Xs, ys, Xt).trust.state
    'use'
    """
    method, pool = model, model
    if getattr(model, "trust_", None) is None:
        method = getattr(model, "estimator_", model)
        method = getattr(method, "best_estimator_", method)
        pool = AutoAdapter(random_state=random_state)
        if isinstance(model, TableClassifier):
            pool = clone(model).set_params(estimator=pool)
        stage("Judging the labels")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits on parts of the rows
            pool.adapt(*_drawn(Xs, ys, Xt, np.random.default_rng(random_state)))
    trust, alone, alike = pool.trust_, pool.predict_source_only(Xt), None
    if pool is not model:
        own = pool.predict(Xt)
        labels = model.predict(Xt) if hasattr(model, "classes_") else own
        alike = float(np.mean(own == labels)) if hasattr(model, "classes_") else None
        changes = changes_of(alone, labels)
        changed = sum(rows for *_, rows in changes)
        trust = replace(trust, rows=len(labels), changed=changed, changes=changes)
    return Assessment(
        trust,
        alone,
        alike,
        type(getattr(method, "transformer", None) or method).__name__,
        pool,
    )


def _drawn(Xs: Any, ys: Any, Xt: Any, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return at most 1,000 rows of each domain, the same share of every class."""
    rows = draw_rows(np.zeros(np.shape(Xt)[0]), rng)
    target = safe_indexing(Xt, rows)
    if are_several(Xs):
        labels = [ys] * len(Xs) if isinstance(ys, str) else ys
        parts = [_drawn(X, y, X, rng)[:2] for X, y in zip(Xs, labels, strict=True)]
        found = [part[1] for part in parts]
        return [part[0] for part in parts], ys if isinstance(ys, str) else found, target
    rows = draw_rows(np.asarray(Xs[ys] if isinstance(ys, str) else ys), rng)
    return safe_indexing(Xs, rows), ys if isinstance(ys, str) else np.asarray(ys)[rows], target
