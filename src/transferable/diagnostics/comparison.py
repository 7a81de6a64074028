"""Several methods on the same two domains."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from transferable.classifiers import AdaptedClassifier

__all__ = ["MethodOutcome", "compare_methods", "source_only_methods", "vote"]

_Named = tuple[str, Any]


@dataclass(frozen=True)
class MethodOutcome:
    """What one method made of the target rows.

    Attributes
    ----------
    name : str
        The method.
    predicted : ndarray of shape (n_target,) or None
        The labels it gave; None if it failed.
    seconds : float
        Time to fit and predict.
    failure : str
        Why it failed; empty if it did not.
    """

    name: str
    predicted: NDArray[Any] | None
    seconds: float
    failure: str = ""


def source_only_methods() -> dict[str, Any]:
    """Models of the source alone, which an adapted one should beat."""
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
    return [_outcome(name, method, Xs, ys, Xt) for name, method in track(methods.items())]


def _outcome(name: str, method: Any, Xs: Any, ys: ArrayLike, Xt: Any) -> MethodOutcome:
    model = AdaptedClassifier(method) if hasattr(method, "transform") else clone(method)
    start = perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = model.adapt(Xs, ys, Xt).predict(Xt)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError) as error:
        return MethodOutcome(name, None, perf_counter() - start, str(error) or repr(error))
    return MethodOutcome(name, predicted, perf_counter() - start)


def vote(outcomes: Iterable[MethodOutcome]) -> NDArray[Any]:
    """The label that most methods give each target row; of equals, the first in order.

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
