"""Kernel matrices by name or by function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from transferable._linalg.arrays import is_torch_array, namespace, products

KERNELS = ("linear", "poly", "rbf")
_LARGEST = 1e60  # value of a kernel: methods multiply several
Kernel = str | Callable[[Any, Any], NDArray[np.float64]]


@dataclass(frozen=True)
class KernelFunction:
    """Kernel with its parameters; equal parameters make equal kernels."""

    kernel: Kernel
    gamma: float
    degree: int = 3
    coef0: float = 1.0

    def __call__(self, X: Any, Y: Any, buffer: Any = None) -> Any:
        """Return K(X, Y) in the tables' precision, in the buffer's memory if there is one.

        A callable receives both tables whole and returns the matrix, as in `sklearn.svm.SVC`.
        """
        kernel, gamma = self.kernel, self.gamma
        if callable(kernel):
            return _called(kernel, X, Y)
        K = products(X, Y, buffer)
        if kernel == "linear":
            return K
        if kernel == "poly":
            with np.errstate(over="ignore"):
                K = (gamma * K + self.coef0) ** self.degree
            name = f"The kernel (gamma x'y + coef0)^{self.degree}"
            return _moderate(K, name, "a smaller degree")
        K *= 2.0 * gamma
        K -= gamma * squared_lengths(X)[:, None]
        K -= gamma * squared_lengths(Y)[None, :]
        if is_torch_array(K):
            return K.clamp_(max=0.0).exp_()
        return np.exp(np.minimum(K, 0.0, out=K), out=K)


def squared_lengths(X: Any) -> Any:
    """Return the squared Euclidean length of each row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return namespace(X).vecdot(X, X, axis=1)


def _called(kernel: Callable[[Any, Any], Any], X: Any, Y: Any) -> Any:
    if is_torch_array(X):
        raise ValueError(
            'A kernel function computes with numpy; take device="cpu", or a kernel by name: '
            f"{', '.join(KERNELS)}."
        )
    K = np.asarray(kernel(X, Y))
    if K.shape != (X.shape[0], Y.shape[0]) or K.dtype.kind not in "fiub":
        raise ValueError(
            f"The kernel function returned shape {K.shape} and dtype {K.dtype} for tables of "
            f"{X.shape[0]} and {Y.shape[0]} rows; it must return a real number for each pair of "
            "rows."
        )
    K = _moderate(K.astype(np.float64), "The kernel function", "scaled rows")
    if X is Y:
        _check_inner_products(K)
    return K


def _check_inner_products(K: NDArray[np.float64]) -> None:
    """Refuse a matrix that violates k(x, y) = k(y, x) or k(x, y)^2 <= k(x, x) k(y, y)."""
    squares = np.diagonal(K)
    rounding = 1e-6 * np.abs(K).max(initial=0.0)
    bound = np.sqrt(np.maximum(np.outer(squares, squares), 0.0)) + rounding
    if (
        (squares < -rounding).any()
        or np.abs(K - K.T).max(initial=0.0) > rounding
        or (np.abs(K) > bound).any()
    ):
        raise ValueError(
            "The kernel function is not positive semi-definite: k(x, y) = k(y, x) and "
            "k(x, y)^2 <= k(x, x) k(y, y) must hold for all rows. Take another one."
        )


def _moderate(K: Any, name: str, remedy: str) -> Any:
    """Return the matrix, or raise if values are not finite or too large to compute with."""
    lowest, highest = (float(K.min()), float(K.max())) if K.shape[0] * K.shape[1] else (0.0, 0.0)
    if not (lowest >= -_LARGEST and highest <= _LARGEST):
        raise ValueError(
            f"{name} has values from {lowest:.3g} to {highest:.3g}; they must be numbers of at "
            f"most {_LARGEST:.0e}. Take {remedy}, or another kernel."
        )
    return K
