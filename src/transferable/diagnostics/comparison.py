"""Comparison of methods without target labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from time import perf_counter, time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from transferable.classifiers import AdaptedClassifier
from transferable.events import Event, listen
from transferable.regressors import AdaptedRegressor

_Named = tuple[str, Any]


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


def source_only_methods(*, numbers: bool = False) -> dict[str, Any]:
    """Return models of the source alone, which an adapted one should beat."""
    if numbers:
        return {
            "ridge": AdaptedRegressor(),
            "forest": AdaptedRegressor(None, RandomForestRegressor(200, random_state=0)),
            "boosting": AdaptedRegressor(None, GradientBoostingRegressor(random_state=0)),
        }
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
    >>> from transferable import TFDFV
    >>> from transferable.datasets import make_shifted
    >>> from transferable.diagnostics import compare_methods
    >>> from transferable.transformers import CORAL
    >>> task = make_shifted()
    >>> methods = {"TFDF-V": TFDFV(), "CORAL": CORAL()}
    >>> [found.name for found in compare_methods(methods, task.Xs, task.ys, task.Xt)]
    ['TFDF-V', 'CORAL']
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
            predicted = labels_by(model.adapt(Xs, ys, Xt), Xt)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError) as error:
        return MethodOutcome(name, None, perf_counter() - start, str(error) or repr(error))
    except _OutOfTime:
        return MethodOutcome(name, None, perf_counter() - start, "no time was left", left_out=True)
    except ImportError as error:
        return MethodOutcome(name, None, perf_counter() - start, str(error), left_out=True)
    return MethodOutcome(name, predicted, perf_counter() - start)


def labels_by(model: Any, Xt: Any) -> NDArray[Any]:
    """Return the labels of the target rows of a fitted model, as it holds them if it does."""
    table = getattr(model, "labels_", None)
    return np.asarray(model.predict(Xt) if table is None else table["prediction"])
