"""Ratios that are sums of kernels about target rows, fitted by likelihood or by squares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.ratios._samples import (
    Matrix,
    Vector,
    evenly_spaced,
    mean_one,
    order_free,
    rbf,
    usual_gamma,
)

__all__ = ["kliep", "rulsif", "ulsif"]

_WIDTHS = (0.1, 0.3, 1.0, 3.0, 10.0)  # times the coefficient that the median distance suggests
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
_FOLDS = 5
_EM_STEPS = 100
_FEWER_STEPS = 30  # to choose a kernel by


@order_free(fewest_target=2)
def kliep(Xs: Any, Xt: Any, *, gamma: float | None = None, n_centers: int = 100) -> Vector:
    """Ratio of least Kullback-Leibler divergence among sums of RBF kernels (KLIEP).

    Parameters
    ----------
    Xs, Xt : array-like or sparse matrix of shapes (n_source, n_features), (n_target, n_features)
        The rows to weight, and those to resemble; at least two each.
    gamma : float or None, default=None
        Coefficient of the kernel; None is the likeliest of five by cross-validation on the target.
    n_centers : int, default=100
        Target rows, evenly spaced, about which kernels lie.

    Returns
    -------
    weights : ndarray of shape (n_source,)
        One on average.

    References
    ----------
    M. Sugiyama, T. Suzuki, S. Nakajima, H. Kashima, P. von Buenau, M. Kawanabe, "Direct importance
    estimation for covariate shift adaptation", AISM 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.ratios import kliep
    >>> Xs = np.linspace(0, 1, 50)[:, None]
    >>> weights = kliep(Xs, Xs[25:])
    >>> bool(weights[25:].mean() > 3 * weights[:25].mean())
    True
    """
    centers = Xt[evenly_spaced(len(Xt), n_centers)]

    def held_out_likelihood(kernels: tuple[Matrix, Matrix]) -> float:
        of_source, of_target = kernels
        scores = []
        for kept, left in _folds(len(of_target)):
            shares = _most_likely(of_target[kept], of_source.mean(axis=0), _FEWER_STEPS)
            scores.append(np.log(np.maximum(of_target[left] @ shares, 1e-300)).mean())
        return float(np.mean(scores))

    of_source, of_target = max(_kernels(Xs, Xt, centers, gamma), key=held_out_likelihood)
    return mean_one(of_source @ _most_likely(of_target, of_source.mean(axis=0)))


@order_free(fewest_target=2)
def ulsif(
    Xs: Any,
    Xt: Any,
    *,
    relative: float = 0.0,
    gamma: float | None = None,
    ridge: float | None = None,
    n_centers: int = 100,
) -> Vector:
    """Ratio of least squared error among sums of RBF kernels (uLSIF, RuLSIF).

    Parameters
    ----------
    Xs, Xt : array-like or sparse matrix of shapes (n_source, n_features), (n_target, n_features)
        The rows to weight, and those to resemble; at least two each.
    relative : float, default=0.0
        Share of the target in the density that the target's is divided by: above 0 the ratio is
        bounded by 1 / relative (RuLSIF).
    gamma : float or None, default=None
        Coefficient of the kernel; None is chosen by cross-validation, as is `ridge`.
    ridge : float or None, default=None
        Penalty on the coefficients.
    n_centers : int, default=100
        Target rows, evenly spaced, about which kernels lie.

    Returns
    -------
    weights : ndarray of shape (n_source,)
        One on average.

    References
    ----------
    T. Kanamori, S. Hido, M. Sugiyama, "A least-squares approach to direct importance estimation",
    JMLR 2009. M. Yamada, T. Suzuki, T. Kanamori, H. Hachiya, M. Sugiyama, "Relative density-ratio
    estimation for robust distribution comparison", Neural Computation 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.ratios import ulsif
    >>> Xs = np.linspace(0, 1, 50)[:, None]
    >>> weights = ulsif(Xs, Xs[25:])
    >>> bool(weights[25:].mean() > 3 * weights[:25].mean())
    True
    """
    centers = Xt[evenly_spaced(len(Xt), n_centers)]
    ridges = _RIDGES if ridge is None else (ridge,)

    def coefficients(of_source: Matrix, of_target: Matrix, penalties: Sequence[float]) -> Matrix:
        """One column for each penalty."""
        H = (1 - relative) * of_source.T @ of_source / len(of_source)
        H += relative * of_target.T @ of_target / len(of_target)
        h, ones = of_target.mean(axis=0), np.eye(len(H))
        columns = [np.linalg.solve(H + penalty * ones, h) for penalty in penalties]
        return np.maximum(np.column_stack(columns), 0.0)

    def held_out_errors(of_source: Matrix, of_target: Matrix) -> Vector:
        """One for each penalty."""
        errors = []
        pairs = zip(_folds(len(of_source)), _folds(len(of_target)), strict=True)
        for (kept_s, left_s), (kept_t, left_t) in pairs:
            C = coefficients(of_source[kept_s], of_target[kept_t], ridges)
            below, above = of_source[left_s] @ C, of_target[left_t] @ C
            squares = (1 - relative) * np.mean(below**2, axis=0)
            squares += relative * np.mean(above**2, axis=0)
            errors.append(squares / 2 - np.mean(above, axis=0))
        return np.asarray(np.mean(errors, axis=0))

    kernels = list(_kernels(Xs, Xt, centers, gamma))
    errors = np.array([held_out_errors(*pair) for pair in kernels])
    best, penalty = np.unravel_index(errors.argmin(), errors.shape)
    of_source, of_target = kernels[best]
    return mean_one(of_source @ coefficients(of_source, of_target, [ridges[penalty]])[:, 0])


def rulsif(Xs: Any, Xt: Any, *, relative: float = 0.1) -> Vector:
    """:func:`ulsif` of the relative ratio, which is bounded.

    Parameters
    ----------
    Xs, Xt : array-like or sparse matrix of shapes (n_source, n_features), (n_target, n_features)
        The rows to weight, and those to resemble; at least two each.
    relative : float, default=0.1
        Share of the target in the density that the target's is divided by.

    Returns
    -------
    weights : ndarray of shape (n_source,)
        One on average.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.ratios import rulsif
    >>> Xs = np.linspace(0, 1, 50)[:, None]
    >>> weights = rulsif(Xs, Xs[25:])
    >>> bool(weights[25:].mean() > 3 * weights[:25].mean())
    True
    """
    return ulsif(Xs, Xt, relative=relative)


def _kernels(
    Xs: Matrix, Xt: Matrix, centers: Matrix, gamma: float | None
) -> Iterator[tuple[Matrix, Matrix]]:
    """Kernels of both samples with the centers, for each coefficient to choose from."""
    usual = usual_gamma(Xs, Xt)
    for g in [usual * width for width in _WIDTHS] if gamma is None else [gamma]:
        yield rbf(Xs, centers, g), rbf(Xt, centers, g)


def _folds(n: int) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Rows to fit and rows to judge by, `_FOLDS` times."""
    fold = np.arange(n) % min(n, _FOLDS)
    for i in range(_FOLDS):
        left = fold == i % (fold.max() + 1)
        yield ~left, left


def _most_likely(of_target: Matrix, source_mean: Vector, n_steps: int = _EM_STEPS) -> Vector:
    """Coefficients c >= 0 of greatest mean log(of_target c) with source_mean'c = 1.

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
