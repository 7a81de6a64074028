"""Linear systems that change by a few columns from one iteration to the next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve

from transferable.linalg.reuse import remember

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
        self._last: _Update | None = None

    def solve(self, R: Matrix, E: Matrix) -> Matrix:
        """The solution x, of the shape of R; the same E as last time costs little."""
        if self._last is None or self._last.E is not E:
            self._last = _Update(self, E)
        return self._last.apply(remember(_without_update, self, R))


class _Update:
    """What it takes to correct solutions of P y = R for the columns E."""

    def __init__(self, system: UpdatedSystem, E: Matrix) -> None:
        self.E = E
        self.Q = _without_update(system, E)
        self.KE = system.K @ E
        small = np.eye(E.shape[1]) + self.KE.T @ self.Q
        self.factor = cho_factor((small + small.T) / 2, check_finite=False)

    def apply(self, y: Matrix) -> Matrix:
        return y - self.Q @ cho_solve(self.factor, self.KE.T @ y, check_finite=False)


def _without_update(system: UpdatedSystem, R: Matrix) -> Matrix:
    """The solution of P x = R."""
    return lu_solve(system.factors, R, check_finite=False)
