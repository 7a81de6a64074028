"""Ratios by who tells rows of two samples apart: neighbours, or a logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import pairwise_distances_argmin

from transferable.linalg.rows import dense
from transferable.ratios._samples import Matrix, Vector, checked_samples, mean_one, order_free

__all__ = ["logistic_ratio", "nearest_neighbor_ratio"]

_LIMITS = {"maxiter": 500, "gtol": 1e-4}
_ROUNDING = 1e-12


def nearest_neighbor_ratio(Xs: Any, Xt: Any, *, smoothing: float = 1.0) -> Vector:
    """Target rows in the Voronoi cell of each source row, plus `smoothing`.

    Parameters
    ----------
    Xs, Xt : array-like or sparse matrix of shapes (n_source, n_features), (n_target, n_features)
        The rows to weight, and those to resemble.
    smoothing : float, default=1.0
        Added to every count; 1 as published, so that no row is lost.

    Returns
    -------
    weights : ndarray of shape (n_source,)
        One on average.

    References
    ----------
    M. Loog, "Nearest neighbor-based importance weighting", MLSP 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.ratios import nearest_neighbor_ratio
    >>> nearest_neighbor_ratio(np.array([[0.0], [1.0]]), np.array([[0.8], [0.9], [2.0]]))
    array([0.4, 1.6])
    """
    Xs, Xt = checked_samples(Xs, Xt, 1, as_dense=False)
    counts = np.bincount(pairwise_distances_argmin(Xt, Xs), minlength=Xs.shape[0])
    return mean_one(counts.astype(np.float64) + smoothing)


@order_free(fewest_target=1, as_dense=False)
def logistic_ratio(
    Xs: Any, Xt: Any, *, C: float = 0.1, n_directions: int = 50, n_folds: int = 2
) -> Vector:
    """Odds that a logistic regression gives held-out source rows of being the target's.

    Parameters
    ----------
    Xs, Xt : array-like or sparse matrix of shapes (n_source, n_features), (n_target, n_features)
        The rows to weight, and those to resemble.
    C : float, default=0.1
        Inverse penalty of the regression.
    n_directions : int, default=50
        Leading directions of the rows that it sees, standardised; all columns if they are no more.
    n_folds : int, default=2
        Parts of the rows, of which each is judged by the others.

    Returns
    -------
    weights : ndarray of shape (n_source,)
        One on average.

    References
    ----------
    S. Bickel, M. Brueckner, T. Scheffer, "Discriminative learning under covariate shift", JMLR
    2009.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.ratios import logistic_ratio
    >>> Xs = np.linspace(0, 1, 50)[:, None]
    >>> weights = logistic_ratio(Xs, Xs[25:])
    >>> bool(weights[25:].mean() > 1.5 * weights[:25].mean())
    True
    """
    n_source = Xs.shape[0]
    X = sp.vstack([Xs, Xt], format="csr") if sp.issparse(Xs) else np.concatenate([Xs, Xt])
    k = min(n_directions, min(X.shape) - 1)
    if X.shape[1] > n_directions and k >= 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            X = TruncatedSVD(k, random_state=0).fit_transform(X)
    Z = _standardized(dense(X))
    is_target = np.arange(len(Z)) >= n_source
    odds = np.ones(len(Z))
    folds = np.arange(len(Z)) % n_folds
    for fold in range(n_folds):
        kept = folds != fold
        if len(np.unique(is_target[kept])) == 2:
            weights, intercept = _logistic_regression(Z[kept], is_target[kept], C)
            scores = Z[~kept] @ weights + intercept
            odds[~kept] = np.exp(np.clip(scores, -20.0, 20.0))
    return mean_one(odds[:n_source])


def _standardized(X: Matrix) -> Matrix:
    """Columns of mean 0 and variance 1 in place of the given; 0 but for rounding if constant."""
    means = X.mean(axis=0)
    X -= means
    deviations = np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))
    X *= 1.0 / np.where(deviations > _ROUNDING * np.abs(means), deviations, 1.0)
    return X


def _logistic_regression(Z: Matrix, positive: NDArray[np.bool_], C: float) -> tuple[Vector, float]:
    """Weights and intercept, as scikit-learn finds them; its checks take longer than small fits."""
    n, ones = len(Z), positive.astype(np.float64)
    penalty = 1.0 / (C * n)

    def mean_loss(w: Vector) -> tuple[float, Vector]:
        scores = Z @ w[:-1]
        scores += w[-1]
        loss = (np.logaddexp(0.0, scores).sum() - ones @ scores) / n
        excess = expit(scores) - ones
        gradient = np.append(Z.T @ excess, excess.sum()) / n
        gradient[:-1] += penalty * w[:-1]
        return float(loss + penalty * w[:-1] @ w[:-1] / 2), gradient

    start = np.zeros(Z.shape[1] + 1)
    found = minimize(mean_loss, start, jac=True, method="L-BFGS-B", options=_LIMITS).x
    return found[:-1], float(found[-1])
