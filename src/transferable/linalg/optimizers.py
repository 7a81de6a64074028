"""First-order minimisation of a function of one matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from transferable.linalg.arrays import Arrays, to_numpy

__all__ = ["Adam", "lbfgs"]

Matrix = Any


class Adam:
    """Adam as Algorithm 2 of the paper prints it: epsilon stands inside the root."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.step = 0
        self.mean: Matrix | float = 0.0
        self.square: Matrix | float = 0.0

    def update(self, x: Matrix, gradient: Matrix) -> Matrix:
        """The next iterate."""
        self.step += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean = self.mean / (1 - 0.9**self.step)
        square = self.square / (1 - 0.999**self.step)
        return x - self.learning_rate * mean / (square + 1e-8) ** 0.5


def lbfgs(
    function: Callable[[Matrix], tuple[float, Matrix]], start: Matrix, max_iter: int
) -> Matrix:
    """Minimise a function that returns its value and gradient, from `start`."""
    arrays = Arrays.of(start)

    def flat(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = function(arrays.table(x.reshape(start.shape)))
        return value, to_numpy(gradient).ravel()

    result = minimize(
        flat, to_numpy(start).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iter}
    )
    return arrays.table(result.x.reshape(start.shape))
