"""Kernel matrices by name or by function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from transferable.linalg.arrays import is_torch_array, namespace
from transferable.linalg.rows import dense

__all__ = ["KERNELS", "Kernel", "KernelFunction", "kernel_matrix", "squared_lengths"]

KERNELS = ("linear", "poly", "rbf")
Kernel = str | Callable[[Any, Any], NDArray[np.float64]]


@dataclass(frozen=True)
class KernelFunction:
    """A kernel with its parameters; two with the same ones are equal."""

    kernel: Kernel
    gamma: float
    degree: int
    coef0: float

    def __call__(self, X: Any, Y: Any) -> Any:
        """K(X, Y)."""
        return kernel_matrix(
            X, Y, self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )


def kernel_matrix(
    X: Any, Y: Any, kernel: Kernel, *, gamma: float, degree: int, coef0: float
) -> Any:
    """K(X, Y), of shape (rows of X, rows of Y), in the tables' own precision.

    A callable receives both tables whole and returns the matrix, as in `sklearn.svm.SVC`.
    """
    if callable(kernel):
        return _called(kernel, X, Y)
    K = dense(X @ Y.T)
    if kernel == "linear":
        return K
    if kernel == "poly":
        return (gamma * K + coef0) ** degree
    K *= 2.0 * gamma
    K -= gamma * squared_lengths(X)[:, None]
    K -= gamma * squared_lengths(Y)[None, :]
    if is_torch_array(K):
        return K.clamp_(max=0.0).exp_()
    return np.exp(np.minimum(K, 0.0, out=K), out=K)


def squared_lengths(X: Any) -> Any:
    """The squared Euclidean length of each row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return namespace(X).vecdot(X, X, axis=1)


def _called(kernel: Callable[[Any, Any], Any], X: Any, Y: Any) -> Any:
    if is_torch_array(X):
        raise ValueError(
            'A kernel function computes with numpy; take device="cpu", or a kernel by name: '
            f"{', '.join(KERNELS)}."
        )
    K = np.asarray(kernel(X, Y), dtype=np.float64)
    if K.shape != (X.shape[0], Y.shape[0]):
        raise ValueError(
            f"The kernel function returned shape {K.shape} for tables of {X.shape[0]} and "
            f"{Y.shape[0]} rows; it must return one value for each pair of rows."
        )
    return K
