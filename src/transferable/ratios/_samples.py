"""Two samples, checked, the kernels between their rows, and what weights amount to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_array

from transferable.domains import row_hash
from transferable.linalg.rows import dense
from transferable.threads import taken_rows

__all__ = [
    "Matrix",
    "Vector",
    "checked_samples",
    "effective_sample_size",
    "evenly_spaced",
    "mean_one",
    "order_free",
    "rbf",
    "usual_gamma",
]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
P = ParamSpec("P")
_Ratio = Callable[Concatenate[Any, Any, P], Vector]

_MEDIAN_ROWS = 250  # of each sample, among which distances are measured


def checked_samples(
    Xs: Any, Xt: Any, fewest_target: int, *, as_dense: bool = True
) -> tuple[Any, Any]:
    """Both tables, numbers of one width, at least two rows to weight."""
    Xs, Xt = (check_array(X, accept_sparse="csr", dtype=np.float64) for X in (Xs, Xt))
    if Xs.shape[1] != Xt.shape[1]:
        raise ValueError(f"Xs has {Xs.shape[1]} features, but Xt has {Xt.shape[1]}.")
    if Xs.shape[0] < 2 or Xt.shape[0] < fewest_target:
        raise ValueError(
            f"The samples have {Xs.shape[0]} and {Xt.shape[0]} rows; a ratio of densities needs at "
            f"least 2 and {fewest_target}."
        )
    return (dense(Xs), dense(Xt)) if as_dense else (Xs, Xt)


def order_free(fewest_target: int, *, as_dense: bool = True) -> Callable[[_Ratio[P]], _Ratio[P]]:
    """Check both samples and bring them into an order of their own before a ratio cuts folds."""

    def decorate(ratio: _Ratio[P]) -> _Ratio[P]:
        @wraps(ratio)
        def ordered(Xs: Any, Xt: Any, *args: P.args, **options: P.kwargs) -> Vector:
            Xs, Xt = checked_samples(Xs, Xt, fewest_target, as_dense=as_dense)
            source, target = (np.argsort(row_hash(X)) for X in (Xs, Xt))
            weights = np.empty(len(source))
            weights[source] = ratio(_taken(Xs, source), _taken(Xt, target), *args, **options)
            return weights

        return cast(_Ratio[P], ordered)

    return decorate


def _taken(X: Any, order: NDArray[np.intp]) -> Any:
    return X[order] if sp.issparse(X) else taken_rows(X, order)


def mean_one(weights: Vector) -> Vector:
    """Weights over their mean; an error if they cannot be weights."""
    weights = np.asarray(weights, dtype=np.float64)
    if not np.isfinite(weights).all():
        bad = int((~np.isfinite(weights)).sum())
        raise ValueError(f"{bad} of the {len(weights)} weights are infinite or not a number.")
    if weights.min() < 0:
        raise ValueError(
            f"The smallest of the weights is {weights.min():.3g}; none may be below 0."
        )
    if weights.max() == 0:
        raise ValueError(
            f"All {len(weights)} weights are zero: no source row lies where the target does. "
            "Scale the features, or use a wider kernel or another ratio."
        )
    return np.asarray(weights / weights.max() / np.mean(weights / weights.max()))


def effective_sample_size(weights: ArrayLike) -> float:
    """Rows of equal weight that tell as much: (sum w)^2 / sum w^2 (Kish, 1965).

    Parameters
    ----------
    weights : array-like of shape (n,)
        Weights, none below 0.

    Returns
    -------
    size : float
        Between 1 and n.

    Examples
    --------
    >>> from transferable.ratios import effective_sample_size
    >>> effective_sample_size([1.0, 1.0, 1.0]), effective_sample_size([5.0, 0.0, 0.0])
    (3.0, 1.0)
    """
    w = mean_one(np.asarray(weights, dtype=np.float64))
    return float(w.sum() ** 2 / np.sum(w**2))


def evenly_spaced(n: int, count: int) -> NDArray[np.intp]:
    """Positions of at most so many of n rows."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(np.intp))


def usual_gamma(Xs: Matrix, Xt: Matrix) -> float:
    """One over the median squared distance between rows of both samples."""
    rows = np.concatenate([X[evenly_spaced(len(X), _MEDIAN_ROWS)] for X in (Xs, Xt)])
    squared = euclidean_distances(rows, squared=True)[np.triu_indices(len(rows), 1)]
    return 1.0 / (float(np.median(squared)) or float(squared.mean()) or 1.0)


def rbf(X: Matrix, centers: Matrix, gamma: float) -> Matrix:
    """The kernel exp(-gamma |x - c|^2)."""
    return np.asarray(np.exp(-gamma * euclidean_distances(X, centers, squared=True)))
