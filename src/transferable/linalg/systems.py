"""Linear systems that change by a few columns from one iteration to the next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve

__all__ = ["UpdatedSystem", "effective_ridge"]

Matrix = NDArray[np.float64]

# A ridge of 0 is taken to its limit: the systems are singular without any.
_SMALLEST_RIDGE = 1e-9


def effective_ridge(ridge: float, K: Matrix) -> float:
    """The ridge itself, or the least that keeps K + ridge I invertible in floating point."""
    return max(float(ridge), _SMALLEST_RIDGE * float(np.mean(np.diag(K))))


class UpdatedSystem:
    """Solves (P + E E' K) x = R for many E with one factorisation of P.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        The part that stays, here S_0 K + eta I. It is overwritten.
    K : ndarray of shape (n, n)
        Symmetric and positive semi-definite, such that K P^-1 is symmetric.

    Notes
    -----
    By the Woodbury identity x = y - Q (I + E' K Q)^-1 E' K y with P y = R and P Q = E. The small
    matrix is symmetric and positive definite because K P^-1 = (S_0 + eta K^-1)^-1 is.
    """

    def __init__(self, P: Matrix, K: Matrix) -> None:
        self.K = K
        self.factors = lu_factor(P, overwrite_a=True, check_finite=False)

    def solve(self, R: Matrix, E: Matrix) -> Matrix:
        """The solution x, of the shape of R."""
        both = lu_solve(self.factors, np.hstack([R, E]), check_finite=False)
        y, Q = np.split(both, [R.shape[1]], axis=1)
        KE = self.K @ E
        small = np.eye(E.shape[1]) + KE.T @ Q
        factor = cho_factor((small + small.T) / 2, check_finite=False)
        return y - Q @ cho_solve(factor, KE.T @ y, check_finite=False)
