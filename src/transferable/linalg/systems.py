"""Symmetric positive definite systems, of numpy or of torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky
from scipy.linalg.lapack import dpotri

from transferable.linalg.arrays import is_torch_array, namespace, to_numpy

Matrix = Any

# A ridge of 0 is taken to its limit: the systems are singular without any.
_SMALLEST_RIDGE = 1e-9


def effective_ridge(ridge: float, K: Matrix, weights: Any = None) -> float:
    """Return the ridge, or the least that keeps K + ridge I invertible in floating point."""
    diagonal = to_numpy(namespace(K).linalg.diagonal(K))
    return max(float(ridge), _SMALLEST_RIDGE * float(np.average(diagonal, weights=weights)))


def solve_positive(A: Matrix, R: Matrix) -> Matrix:
    """Return the solution x of A x = R.

    A matrix that is positive definite but for rounding errors is taken without them.
    """
    if is_torch_array(A):
        factor, info = namespace(A).linalg.cholesky_ex(A)
        return namespace(A).cholesky_solve(R, factor if int(info) == 0 else _root(A).mT)
    try:
        factor = cho_factor(A, check_finite=False)
    except LinAlgError:
        factor = _root(A), False
    return cho_solve(factor, R, check_finite=False)


def inverse(A: Matrix) -> Matrix:
    """Return the inverse of A.

    It costs three factors, and then a product where a factor takes two solves.
    """
    if is_torch_array(A):
        factor, info = namespace(A).linalg.cholesky_ex(A)
        return namespace(A).cholesky_inverse(factor if int(info) == 0 else _root(A).mT)
    try:
        half = dpotri(cholesky(A, check_finite=False))[0]
    except LinAlgError:
        return solve_positive(A, np.eye(len(A)))
    return np.triu(half) + np.triu(half, 1).T


def _root(A: Matrix) -> Matrix:
    """Return upper triangular R with R'R = A, small eigenvalues of A being rounding errors."""
    xp = namespace(A)
    if not bool(xp.all(xp.isfinite(A))):
        raise ValueError(
            "The weights of the objective lead to numbers too large to compute with; bring them "
            "closer to 1."
        )
    values, V = xp.linalg.eigh(A)
    least = len(A) * np.finfo(float).eps * float(xp.max(xp.abs(values)))
    return xp.linalg.qr((V * xp.sqrt(xp.clip(values, least, None))).T, mode="reduced")[1]
