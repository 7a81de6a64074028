"""Density ratios of the target to the source, which weight source rows.

Each function takes two tables and gives every row of the first the ratio of the second's density to
the first's at that row, scaled so that ratios are 1 on average. Classifiers weight source rows by
them (:class:`~transferable.classifiers.ImportanceWeighted`), and so does importance-weighted
validation. All assume that the source covers the target.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from inspect import cleandoc
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances_argmin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_array

from transferable._linalg.arrays import dense, taken_rows
from transferable._linalg.simplex import descend, largest_eigenvalue, project_on_simplices
from transferable.domains import row_hash

__all__ = [
    "RATIOS",
    "effective_sample_size",
    "kernel_mean_matching",
    "kliep",
    "logistic_ratio",
    "nearest_neighbor_ratio",
    "rulsif",
    "ulsif",
]


Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Ratio = TypeVar("Ratio", bound=Callable[..., NDArray[np.float64]])

_MEDIAN_ROWS = 250  # of each sample, among which distances are measured
_ROUNDING = 1e-12
_WIDTHS = (0.1, 0.3, 1.0, 3.0, 10.0)  # times the coefficient given by the median distance
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
_FOLDS = 5
_EM_STEPS = 100
_FEWER_STEPS = 30  # to choose a kernel by


# By the names that `ratio=` takes.
RATIOS: dict[str, Callable[[Any, Any], Vector]] = {}
_SHARED = """Returns
-------
weights : ndarray of shape (n_source,)
    One on average.

Examples
--------
>>> import numpy as np
>>> from transferable.ratios import {name}
>>> Xs = np.linspace(0, 1, 50)[:, None]
>>> weights = {name}(Xs, Xs[25:])
>>> bool(weights[25:].mean() > 1.4 * weights[:25].mean())
True

"""
_SAMPLES = """Xs, Xt : array-like or sparse matrix of shape (n_rows, n_features)
    The rows to weight, and those to resemble.
"""


def _ratio(name: str) -> Callable[[Ratio], Ratio]:
    """Name a function for `ratio=`, and describe what all of them have."""

    def named(function: Ratio) -> Ratio:
        RATIOS[name] = function
        head, line, rest = cleandoc(function.__doc__ or "").partition("Parameters\n----------\n")
        entries, *others = re.split(r"\n\n(?=\w+\n-+\n)", rest, maxsplit=1)
        shared = _SHARED.format(name=getattr(function, "__name__"))  # noqa: B009 (of a callable)
        function.__doc__ = head + line + _SAMPLES + entries + "\n\n" + shared + "".join(others)
        return function

    return named


def _checked_samples(
    Xs: Any, Xt: Any, fewest_target: int, *, as_dense: bool = True
) -> tuple[Any, Any]:
    """Validate both tables and return them; the source needs at least two rows."""
    Xs, Xt = (check_array(X, accept_sparse="csr", dtype=np.float64) for X in (Xs, Xt))
    if Xs.shape[1] != Xt.shape[1]:
        raise ValueError(f"Xs has {Xs.shape[1]} features, but Xt has {Xt.shape[1]}.")
    if Xs.shape[0] < 2 or Xt.shape[0] < fewest_target:
        raise ValueError(
            f"The samples have {Xs.shape[0]} and {Xt.shape[0]} rows; a ratio of densities needs at "
            f"least 2 and {fewest_target}."
        )
    return (dense(Xs), dense(Xt)) if as_dense else (Xs, Xt)


def _ordered_samples(
    Xs: Any, Xt: Any, fewest_target: int, *, as_dense: bool = True
) -> tuple[Any, Any, NDArray[np.intp]]:
    """Validate both samples and sort their rows by content; the positions restore the source."""
    samples = _checked_samples(Xs, Xt, fewest_target, as_dense=as_dense)
    orders = [np.argsort(row_hash(X)) for X in samples]
    Xs, Xt = (
        X[order] if sp.issparse(X) else taken_rows(X, order)
        for X, order in zip(samples, orders, strict=True)
    )
    return Xs, Xt, np.argsort(orders[0])


def _mean_one(weights: Vector) -> Vector:
    """Divide weights by their mean; raise ValueError if they cannot be weights."""
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
    """Return the number of equally weighted rows with as much information (Kish, 1965).

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
    w = _mean_one(np.asarray(weights, dtype=np.float64))
    return float(w.sum() ** 2 / np.sum(w**2))


def _evenly_spaced(n: int, count: int) -> NDArray[np.intp]:
    """Return at most `count` evenly spaced positions of n rows."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(np.intp))


def _usual_gamma(Xs: Matrix, Xt: Matrix) -> float:
    """Return one over the median squared distance between rows of both samples."""
    rows = np.concatenate([X[_evenly_spaced(len(X), _MEDIAN_ROWS)] for X in (Xs, Xt)])
    squared = euclidean_distances(rows, squared=True)[np.triu_indices(len(rows), 1)]
    return 1.0 / (float(np.median(squared)) or float(squared.mean()) or 1.0)


def _rbf(X: Matrix, centers: Matrix, gamma: float) -> Matrix:
    """Return the kernel exp(-gamma |x - c|^2)."""
    return np.asarray(np.exp(-gamma * euclidean_distances(X, centers, squared=True)))


@_ratio("nearest")
def nearest_neighbor_ratio(Xs: Any, Xt: Any, *, smoothing: float = 1.0) -> Vector:
    """Count the target rows in the Voronoi cell of each source row, plus `smoothing`.

    Parameters
    ----------
    smoothing : float, default=1.0
        Added to every count; 1 as published, so that no row is lost.

    References
    ----------
    M. Loog, "Nearest neighbor-based importance weighting", MLSP 2012.
    """
    Xs, Xt = _checked_samples(Xs, Xt, 1, as_dense=False)
    counts = np.bincount(pairwise_distances_argmin(Xt, Xs), minlength=Xs.shape[0])
    return _mean_one(counts.astype(np.float64) + smoothing)


@_ratio("logistic")
def logistic_ratio(
    Xs: Any, Xt: Any, *, C: float = 0.1, n_directions: int = 50, n_folds: int = 2
) -> Vector:
    """Return the odds of held-out source rows of being target rows, by logistic regression.

    Parameters
    ----------
    C : float, default=0.1
        Inverse penalty of the regression.
    n_directions : int, default=50
        Number of leading directions, standardised; all columns if they are no more.
    n_folds : int, default=2
        Folds; the ratio of each is predicted by a model of the others.

    References
    ----------
    S. Bickel, M. Brueckner, T. Scheffer, "Discriminative learning under covariate shift", JMLR
    2009.
    """
    Xs, Xt, restore = _ordered_samples(Xs, Xt, 1, as_dense=False)
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
            model = LogisticRegression(C=C, max_iter=500).fit(Z[kept], is_target[kept])
            scores = model.decision_function(Z[~kept])
            odds[~kept] = np.exp(np.clip(scores, -20.0, 20.0))
    return _mean_one(odds[:n_source])[restore]


def _standardized(X: Matrix) -> Matrix:
    """Scale columns in place to mean 0 and variance 1; constant ones become 0 but for rounding."""
    means = X.mean(axis=0)
    X -= means
    deviations = np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))
    X *= 1.0 / np.where(deviations > _ROUNDING * np.abs(means), deviations, 1.0)
    return X


@_ratio("kliep")
def kliep(Xs: Any, Xt: Any, *, gamma: float | None = None, n_centers: int = 100) -> Vector:
    """Fit the ratio of least Kullback-Leibler divergence among sums of RBF kernels (KLIEP).

    Parameters
    ----------
    gamma : float or None, default=None
        Coefficient of the kernel; None is the likeliest of five by cross-validation on the target.
    n_centers : int, default=100
        Target rows, evenly spaced, about which kernels lie.

    Notes
    -----
    The likelihood is raised by 100 steps of EM at most; exact weights can differ by some per cent.

    References
    ----------
    M. Sugiyama, T. Suzuki, S. Nakajima, H. Kashima, P. von Buenau, M. Kawanabe, "Direct importance
    estimation for covariate shift adaptation", AISM 2008.
    """
    Xs, Xt, restore = _ordered_samples(Xs, Xt, 2)

    def held_out_likelihood(kernels: tuple[Matrix, Matrix]) -> float:
        of_source, of_target = kernels
        scores = []
        for kept, left in _folds(len(of_target)):
            shares = _most_likely(of_target[kept], of_source.mean(axis=0), _FEWER_STEPS)
            scores.append(np.log(np.maximum(of_target[left] @ shares, 1e-300)).mean())
        return float(np.mean(scores))

    of_source, of_target = max(_kernels(Xs, Xt, n_centers, gamma), key=held_out_likelihood)
    return _mean_one(of_source @ _most_likely(of_target, of_source.mean(axis=0)))[restore]


@_ratio("ulsif")
def ulsif(
    Xs: Any,
    Xt: Any,
    *,
    relative: float = 0.0,
    gamma: float | None = None,
    ridge: float | None = None,
    n_centers: int = 100,
) -> Vector:
    """Fit the ratio of least squared error among sums of RBF kernels (uLSIF, RuLSIF).

    Parameters
    ----------
    relative : float, default=0.0
        Share of the target in the density that the target's is divided by: above 0 the ratio is
        bounded by 1 / relative (RuLSIF).
    gamma : float or None, default=None
        Coefficient of the kernel; None is chosen by cross-validation, as is `ridge`.
    ridge : float or None, default=None
        Penalty on the coefficients.
    n_centers : int, default=100
        Target rows, evenly spaced, about which kernels lie.

    References
    ----------
    T. Kanamori, S. Hido, M. Sugiyama, "A least-squares approach to direct importance estimation",
    JMLR 2009. M. Yamada, T. Suzuki, T. Kanamori, H. Hachiya, M. Sugiyama, "Relative density-ratio
    estimation for robust distribution comparison", Neural Computation 2013.
    """
    Xs, Xt, restore = _ordered_samples(Xs, Xt, 2)
    ridges = _RIDGES if ridge is None else (ridge,)

    def coefficients(of_source: Matrix, of_target: Matrix, penalties: Sequence[float]) -> Matrix:
        """Return one column for each penalty."""
        H = (1 - relative) * of_source.T @ of_source / len(of_source)
        H += relative * of_target.T @ of_target / len(of_target)
        h, ones = of_target.mean(axis=0), np.eye(len(H))
        columns = [np.linalg.solve(H + penalty * ones, h) for penalty in penalties]
        return np.maximum(np.column_stack(columns), 0.0)

    def held_out_errors(of_source: Matrix, of_target: Matrix) -> Vector:
        """Return one error for each penalty."""
        errors = []
        pairs = zip(_folds(len(of_source)), _folds(len(of_target)), strict=True)
        for (kept_s, left_s), (kept_t, left_t) in pairs:
            C = coefficients(of_source[kept_s], of_target[kept_t], ridges)
            below, above = of_source[left_s] @ C, of_target[left_t] @ C
            squares = (1 - relative) * np.mean(below**2, axis=0)
            squares += relative * np.mean(above**2, axis=0)
            errors.append(squares / 2 - np.mean(above, axis=0))
        return np.asarray(np.mean(errors, axis=0))

    kernels = list(_kernels(Xs, Xt, n_centers, gamma))
    errors = np.array([held_out_errors(*pair) for pair in kernels])
    best, penalty = np.unravel_index(errors.argmin(), errors.shape)
    of_source, of_target = kernels[best]
    return _mean_one(of_source @ coefficients(of_source, of_target, [ridges[penalty]])[:, 0])[
        restore
    ]


@_ratio("rulsif")
def rulsif(Xs: Any, Xt: Any, *, relative: float = 0.1) -> Vector:
    """Fit the relative ratio by :func:`ulsif`, which is bounded.

    Parameters
    ----------
    relative : float, default=0.1
        Share of the target in the density that the target's is divided by.
    """
    return ulsif(Xs, Xt, relative=relative)


def _kernels(
    Xs: Matrix, Xt: Matrix, n_centers: int, gamma: float | None
) -> Iterator[tuple[Matrix, Matrix]]:
    """Yield the kernels of both samples with the centers, for each candidate coefficient."""
    centers, usual = Xt[_evenly_spaced(len(Xt), n_centers)], _usual_gamma(Xs, Xt)
    for g in [usual * width for width in _WIDTHS] if gamma is None else [gamma]:
        yield _rbf(Xs, centers, g), _rbf(Xt, centers, g)


def _folds(n: int) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Yield masks of rows to fit and rows to validate, `_FOLDS` times."""
    fold = np.arange(n) % min(n, _FOLDS)
    for i in range(_FOLDS):
        left = fold == i % (fold.max() + 1)
        yield ~left, left


def _most_likely(of_target: Matrix, source_mean: Vector, n_steps: int = _EM_STEPS) -> Vector:
    """Return c >= 0 of greatest mean log(of_target c) with source_mean'c = 1.

    With shares c * source_mean it is the likelihood of a mixture, which EM steps never lower.
    """
    near = source_mean > 1e-12 * source_mean.max()
    parts = of_target[:, near] / source_mean[near]
    shares = np.full(parts.shape[1], 1.0 / parts.shape[1])
    for _ in range(n_steps):
        renewed = shares * (parts.T @ (1.0 / np.maximum(parts @ shares, 1e-300)))
        renewed /= renewed.sum() or 1.0
        settled = np.abs(renewed - shares).max() < 1e-7
        shares = renewed
        if settled:
            break
    coefficients = np.zeros(len(source_mean))
    coefficients[near] = shares / source_mean[near]
    return coefficients


@_ratio("kmm")
def kernel_mean_matching(
    Xs: Any, Xt: Any, *, gamma: float | None = None, bound: float = 1000.0
) -> Vector:
    """Match the source's weighted mean in an RBF kernel's space to the target's (KMM).

    Parameters
    ----------
    gamma : float or None, default=None
        Coefficient of the kernel; None is one over the median squared distance.
    bound : float, default=1000.0
        Largest weight, as published.

    Notes
    -----
    Takes the kernel matrix of the source. The mean may deviate from 1 by 1 - 1 / sqrt(n_source), as
    published, while weights are sought. That ends after 300 accelerated steps, before the quadratic
    program is solved to the end: its exact weights are sharper, and single ones can differ much.

    References
    ----------
    J. Huang, A. Smola, A. Gretton, K. Borgwardt, B. Schoelkopf, "Correcting sample selection bias
    by unlabeled data", NIPS 2006.
    """
    Xs, Xt, restore = _ordered_samples(Xs, Xt, 1)
    gamma = _usual_gamma(Xs, Xt) if gamma is None else gamma
    n = len(Xs)
    K = _rbf(Xs, Xs, gamma)
    attraction = n * _rbf(Xs, Xt, gamma).mean(axis=1)
    slack = (1.0 - 1.0 / np.sqrt(n)) * n
    one_group = np.zeros(n, dtype=np.intp)

    def project(w: Vector) -> Vector:
        clipped = np.clip(w, 0.0, bound)
        total = np.clip(clipped.sum(), n - slack, n + slack)
        if total == clipped.sum():
            return clipped
        return bound * project_on_simplices(w / bound, one_group, np.array([total / bound]))

    step = 1.0 / largest_eigenvalue(lambda w: K @ w, n)
    weights = descend(
        lambda w: K @ w - attraction, project, np.ones(n), step, max_iter=300, tolerance=1e-3
    )
    return _mean_one(weights)[restore]
