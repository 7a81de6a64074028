"""Linear systems of numpy or of torch, symmetric positive definite or any."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, lu_solve
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dgetrf, dpotri

from transferable._linalg.arrays import is_torch_array, namespace, to_numpy

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
        factor = cho_factor(A.T, check_finite=False)  # in the order of LAPACK
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


def factored(rows: Matrix) -> tuple[Matrix, NDArray[np.intp], Matrix]:
    """Return the LU of a wide matrix, with pivots from all of its columns.

    Parameters
    ----------
    rows : array of shape (k, n)
        The matrix in float64, k <= n, which may be overwritten.

    Returns
    -------
    factor : array of shape (k, k)
        LU of the transpose of H, the square matrix of the columns chosen for pivots.
    order : ndarray of shape (n,)
        Positions of the columns, those of H first.
    V : array of shape (k, n - k)
        H^-1 N, with N the other columns.
    """
    (k, n), on_torch = rows.shape, is_torch_array(rows)
    if k == 0:
        return rows[:, :0], np.arange(n), rows
    if on_torch:
        xp = namespace(rows)
        if rows.device.type != "cpu":  # where the LU of a square matrix takes a third of the time
            more = xp.eye(n, n - k, k=-k, dtype=rows.dtype, device=rows.device)
            rows = xp.concat([rows, more.T])
        factor, swaps, _ = xp.linalg.lu_factor_ex(rows.T)
        factor, unit = factor[:, :k], {"upper": False, "left": False, "unitriangular": True}
        V = xp.linalg.solve_triangular(factor[:k], factor[k:], **unit)
    else:
        factor, swaps, singular = dgetrf(rows.T, overwrite_a=True)
        if singular:  # rounding has made the matrix singular
            pivots = np.einsum("ii->i", factor[:k])
            pivots[pivots == 0.0] = np.finfo(float).eps * np.abs(pivots).max() or 1.0
        head, rest = np.asfortranarray(factor[:k]), factor[k:]
        factor, V = head, dtrsm(1.0, head, rest, side=1, lower=1, diag=1)
    order = np.arange(n)
    for i, j in enumerate((to_numpy(swaps) - on_torch).tolist()):  # torch counts from 1
        order[[i, j]] = order[[j, i]]
    return factor[:k], order, V.T


def eliminated(rows: Matrix, order: NDArray[np.intp], V: Matrix) -> tuple[Matrix, Matrix]:
    """Return the columns of more rows that were chosen for pivots, and what is left of the others.

    Both are linear in the rows.
    """
    B, S = rows[:, order[: len(V)]], rows[:, order[len(V) :]]
    S -= B @ V
    return B, S


def solve_factored(factor: Matrix, R: Matrix) -> Matrix:
    """Return H^-1 R from the LU of H'."""
    if is_torch_array(R):
        solve = namespace(R).linalg.solve_triangular
        R = solve(factor.mT, R, upper=False)
        return solve(factor.mT, R, upper=True, unitriangular=True)
    return lu_solve((factor, np.arange(len(R))), R, trans=1, check_finite=False)
