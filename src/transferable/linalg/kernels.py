"""Kernel matrices by name or by function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import pairwise_kernels

__all__ = ["KERNELS", "Kernel", "KernelFunction", "kernel_matrix"]

KERNELS = ("linear", "poly", "rbf")
Kernel = str | Callable[[Any, Any], NDArray[np.float64]]


@dataclass(frozen=True)
class KernelFunction:
    """A kernel with its parameters; two with the same ones are equal."""

    kernel: Kernel
    gamma: float
    degree: int
    coef0: float

    def __call__(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """K(X, Y)."""
        return kernel_matrix(
            X, Y, self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )


def kernel_matrix(
    X: Any, Y: Any, kernel: Kernel, *, gamma: float, degree: int, coef0: float
) -> NDArray[np.float64]:
    """K(X, Y) in float64, of shape (rows of X, rows of Y).

    A callable receives both tables whole and returns the matrix, as in `sklearn.svm.SVC`.
    """
    if callable(kernel):
        K = np.asarray(kernel(X, Y), dtype=np.float64)
        if K.shape != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"The kernel function returned shape {K.shape} for tables of {X.shape[0]} and "
                f"{Y.shape[0]} rows; it must return one value for each pair of rows."
            )
        return K
    parameters = {"gamma": gamma, "degree": degree, "coef0": coef0}
    K = pairwise_kernels(X, Y, metric=kernel, filter_params=True, **parameters)
    return np.asarray(K, dtype=np.float64)
