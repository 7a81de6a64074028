"""Rows as features Phi in which every spectral method is a small symmetric problem.

With X = U S V', a linear map W = V c of the features (kernel "primal") gives Z = X W = (U S) c, and
an expansion W = U c over the rows with a linear kernel gives Z = K W = (U S^2) c. V and U are
orthonormal, so c has the length of W and nothing with n rows and n columns is ever formed. Other
kernels have U and S^2 from the eigenvectors of K, or keep Phi = K where products with K suffice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dsymv

from transferable.linalg.eigen import Matrix, row_basis
from transferable.linalg.kernels import Kernel, kernel_matrix

__all__ = ["FeatureMap", "Features", "KernelOptions"]


class KernelOptions:
    """A kernel with its parameters; gamma "scale" is 1 / (n_features * variance of X)."""

    def __init__(
        self, kernel: Kernel, gamma: float | str, degree: int, coef0: float, X: Matrix
    ) -> None:
        self.kernel = kernel
        if isinstance(gamma, str):
            spread = X.shape[1] * X.var()
            gamma = 1.0 / spread if spread > 0 else 1.0
        self.parameters: dict[str, Any] = {"gamma": gamma, "degree": degree, "coef0": coef0}

    def __call__(self, X: Any, Y: Any) -> Matrix:
        """K(X, Y)."""
        return kernel_matrix(X, Y, self.kernel, **self.parameters)


class FeatureMap:
    """Phi of any rows: their kernel values with the fitted rows if need be, times a matrix."""

    def __init__(
        self, matrix: Matrix | None, options: KernelOptions, fitted: Matrix | None = None
    ) -> None:
        self.matrix = matrix
        self.options = options
        self.fitted = fitted

    def __call__(self, rows: NDArray[np.floating]) -> Matrix:
        """Phi of these rows."""
        Phi = np.asarray(rows, dtype=np.float64)
        if self.fitted is not None:
            Phi = self.options(Phi, self.fitted)
        return Phi if self.matrix is None else Phi @ self.matrix


class Features:
    """Phi of the fitted rows with what the methods ask of it.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The fitted rows.
    options : KernelOptions
        The kernel, with "primal" for linear maps of the features themselves.
    factored : bool
        Whether Phi must be U S^power; otherwise Phi = K will do for kernels that are not linear.
    power : int or None
        The power of S; None is 1 for "primal" and 2 for kernels.

    Attributes
    ----------
    Phi : ndarray of shape (n, r)
        The features of the fitted rows.
    map : FeatureMap
        The same features of any rows.
    scale : float
        Typical size of a squared feature; penalties on W are multiplied by it, so that they mean
        the same whatever unit the rows are in. It is 1 for rows of unit length.
    """

    def __init__(
        self, X: Matrix, options: KernelOptions, *, factored: bool, power: int | None = None
    ) -> None:
        primal = options.kernel == "primal"
        power = power or (1 if primal else 2)
        self._roots: Matrix | None = None  # S^power, where Phi is U S^power
        if primal or options.kernel == "linear":
            V, s = row_basis(X)
            self.map = FeatureMap(V * s ** (power - 1), options)
            self.Phi = self.map(X)
            self._roots = s**power
            mean_square = float(np.sum(X**2)) / len(X)
        else:
            K = options(X, X)
            mean_square = float(np.trace(K)) / len(K)
            if factored:
                U, s = _kernel_basis(K)
                self.map = FeatureMap(U * s ** (power - 2.0), options, X)
                self.Phi, self._roots = U * s**power, s**power
            else:
                self.map = FeatureMap(None, options, X)
                self.Phi = K
        self.scale = mean_square**power if mean_square > 0 else 1.0
        self._mean = self.Phi.mean(axis=0)

    @property
    def rank(self) -> int:
        """Number of columns of Phi."""
        return self.Phi.shape[1]

    def basis(self) -> Matrix | None:
        """U, orthonormal; None where Phi is K itself and U would be the identity."""
        return None if self._roots is None else self.Phi / self._roots

    def total_scatter(self, x: Matrix) -> Matrix:
        """Phi' H Phi x, at the cost of one product with a vector where Phi'Phi is diagonal."""
        if self._roots is None:
            y = self._times_kernel(x)
            return self._times_kernel(y - y.mean(axis=0))
        mean = len(self.Phi) * np.multiply.outer(self._mean, self._mean @ x)
        return (self._roots**2 * x.T).T - mean

    def _times_kernel(self, x: Matrix) -> Matrix:
        """K x; for a vector, K's symmetry halves what has to be read."""
        return dsymv(1.0, self.Phi.T, x) if x.ndim == 1 else self.Phi @ x


def _kernel_basis(K: Matrix) -> tuple[Matrix, Matrix]:
    """U and S with K = U S^2 U', strongest first, without directions that are rounding errors."""
    values, U = eigh(K)
    kept = values > 1e-12 * max(values[-1], np.finfo(float).tiny)
    return U[:, kept][:, ::-1], np.sqrt(values[kept][::-1])
