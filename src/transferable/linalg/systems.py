"""Linear systems that change by a few columns from one iteration to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, lu_solve
from scipy.linalg.lapack import dgetrf, dpotri

from transferable.linalg.arrays import is_torch_array, namespace, to_numpy

__all__ = [
    "LU",
    "Cholesky",
    "Inverse",
    "Update",
    "UpdatedSystem",
    "add_to_diagonal",
    "effective_ridge",
    "symmetric_times",
]

Matrix = Any

# A ridge of 0 is taken to its limit: the systems are singular without any.
_SMALLEST_RIDGE = 1e-9


def effective_ridge(ridge: float, K: Matrix, weights: Any = None) -> float:
    """The ridge itself, or the least that keeps K + ridge I invertible in floating point."""
    diagonal = to_numpy(namespace(K).linalg.diagonal(K))
    return max(float(ridge), _SMALLEST_RIDGE * float(np.average(diagonal, weights=weights)))


def add_to_diagonal(A: Matrix, value: Any) -> Matrix:
    """A + value I, in place; of several values one for each entry."""
    if is_torch_array(A):
        A.diagonal().add_(value)
    else:
        np.einsum("ii->i", A)[...] += value
    return A


def symmetric_times(K: Matrix, T: Matrix) -> Matrix:
    """K T for symmetric K and a table T of few columns.

    BLAS takes nearly half the time for T'K where K lies in memory row by row.
    """
    return K @ T if is_torch_array(K) else (T.T @ K).T


class LU:
    """A square matrix, factored in place; solves A x = R."""

    def __init__(self, A: Matrix) -> None:
        if is_torch_array(A):
            self.factors = namespace(A).linalg.lu_factor(A)
        else:
            # Its transpose is laid out as LAPACK wants it, and needs no copy.
            factors, swaps, singular = dgetrf(A.T, overwrite_a=True)
            if singular:  # rounding has taken what made the matrix regular
                pivots = np.einsum("ii->i", factors)
                least = np.finfo(float).eps * np.abs(pivots).max()
                pivots[pivots == 0.0] = least or 1.0
            self.factors = factors, swaps

    def solve(self, R: Matrix) -> Matrix:
        """The solution x, of the shape of R."""
        if is_torch_array(R):
            return namespace(R).linalg.lu_solve(*self.factors, R)
        return lu_solve(self.factors, R, trans=1, check_finite=False)


class Cholesky:
    """A symmetric positive definite matrix, factored; solves A x = R.

    A matrix that is positive definite but for rounding errors is taken without them.
    """

    def __init__(self, A: Matrix) -> None:
        if is_torch_array(A):
            factor, info = namespace(A).linalg.cholesky_ex(A)
            self.factor = factor if int(info) == 0 else _root(A).mT
            return
        try:
            self.factor = cho_factor(A, check_finite=False)
        except LinAlgError:
            self.factor = _root(A), False

    def solve(self, R: Matrix) -> Matrix:
        """The solution x, of the shape of R."""
        if is_torch_array(R):
            return namespace(R).cholesky_solve(R, self.factor)
        return cho_solve(self.factor, R, check_finite=False)


def _root(A: Matrix) -> Matrix:
    """Upper triangular R with R'R = A, for A with rounding errors in place of small eigenvalues."""
    xp = namespace(A)
    if not bool(xp.all(xp.isfinite(A))):
        raise ValueError(
            "The weights of the objective lead to numbers too large to compute with; bring them "
            "closer to 1."
        )
    values, V = xp.linalg.eigh(A)
    least = len(A) * np.finfo(float).eps * float(xp.max(xp.abs(values)))
    return xp.linalg.qr((V * xp.sqrt(xp.clip(values, least, None))).T, mode="reduced")[1]


class Inverse:
    """A symmetric positive definite matrix, inverted; solves A x = R for many R in turn.

    An inverse takes three times a factor, and then a product where a factor takes two solves.
    """

    def __init__(self, A: Matrix) -> None:
        if is_torch_array(A):
            self.matrix = namespace(A).cholesky_inverse(Cholesky(A).factor)
            return
        try:
            half = dpotri(cholesky(A, check_finite=False))[0]
            self.matrix = np.triu(half) + np.triu(half, 1).T
        except LinAlgError:
            self.matrix = Cholesky(A).solve(np.eye(len(A)))

    def solve(self, R: Matrix) -> Matrix:
        """The solution x, of the shape of R."""
        return self.matrix @ R


class UpdatedSystem:
    """Solves (P + w E E' K) x = R for many E and w with one factorisation of P.

    Parameters
    ----------
    P : LU or Inverse
        The part that stays, factored; here S_0 K + eta I.
    K : array of shape (n, n) or None
        Symmetric and positive semi-definite, such that K P^-1 is symmetric; None is the identity.

    Notes
    -----
    By the Woodbury identity x = y - w Q (I + w E' K Q)^-1 E' K y with P y = R and P Q = E. The
    small matrix is symmetric and positive definite because K P^-1 = (S_0 + eta K^-1)^-1 is.
    """

    def __init__(self, P: LU | Inverse, K: Matrix | None = None) -> None:
        self.P, self.K = P, K

    def solve(self, R: Matrix, E: Matrix, weight: float = 1.0) -> Matrix:
        """The solution x, of the shape of R."""
        both, k = self.P.solve(namespace(R).concat([R, E], axis=1)), R.shape[1]
        return Update(self, E, both[:, k:]).apply(both[:, :k], weight)


class Update:
    """What it takes to correct solutions of P y = R for the columns E, with P Q = E if known."""

    def __init__(self, system: UpdatedSystem, E: Matrix, Q: Matrix | None = None) -> None:
        self.Q = system.P.solve(E) if Q is None else Q
        self.KE = E if system.K is None else symmetric_times(system.K, E)
        self.small = self.KE.T @ self.Q

    def apply(self, y: Matrix, weight: float = 1.0) -> Matrix:
        """The solution x of (P + w E E' K) x = R, from that of P y = R."""
        symmetric = (0.5 * weight) * (self.small + self.small.T)
        inside = Cholesky(add_to_diagonal(symmetric, 1.0))
        return y - self.Q @ inside.solve(weight * (self.KE.T @ y))
