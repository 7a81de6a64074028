"""Leading solutions of symmetric pencils B v = w A v, with A positive definite.

A small pencil is solved by LAPACK, a large one of which few vectors are needed by Lanczos
iterations with a Cholesky factor of A. Where A is easy to invert plus a few columns, A = A_0 + E E'
with A_0^-1 = R R', the pencil is the symmetric problem of T' R' B R T, in which T = (I + R'E
E'R)^-1/2 differs from the identity by a few columns, so that products suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

Matrix = NDArray[np.float64]
Product = Callable[[Matrix], Matrix]

# Below this size, or if more than this share of the vectors is wanted, LAPACK is faster than
# Lanczos: an eighth of 800 where eigenvalues are well apart, fewer where they crowd.
_SMALL = 100
_FEW = 1 / 12
_ROUNDING = 1e-12


class Root(NamedTuple):
    """R with R R' = A_0^-1, as the two products x -> R x and x -> R'x."""

    apply: Product
    transposed: Product

    @classmethod
    def diagonal(cls, values: Matrix | float) -> Root:
        """Return R = diag(values), or a multiple of the identity."""
        return cls(lambda x: (values * x.T).T, lambda x: (values * x.T).T)

    @classmethod
    def of(cls, A: Matrix) -> Root:
        """Return R = L^-T of A = L L'; an A that is indefinite by rounding is made definite."""
        try:
            lower = cholesky(A, lower=True)
        except LinAlgError:
            values, V = eigh(A)
            least = len(A) * np.finfo(float).eps * max(np.abs(values).max(), np.finfo(float).tiny)
            return cls.matrix(V / np.sqrt(np.maximum(values, least)))
        return cls(
            lambda x: solve_triangular(lower, x, lower=True, trans="T", check_finite=False),
            lambda x: solve_triangular(lower, x, lower=True, check_finite=False),
        )

    @classmethod
    def matrix(cls, R: Matrix) -> Root:
        """Return R given as a matrix."""
        return cls(lambda x: R @ x, lambda x: R.T @ x)


def row_basis(X: Matrix) -> tuple[Matrix, Matrix]:
    """Return an orthonormal basis V of the rows' span and singular values s: X = U diag(s) V'.

    They come from the eigenvectors of the smaller of X'X and X X', strongest first.
    """
    n, d = X.shape
    vectors, s = gram_basis(X.T @ X if d <= n else X @ X.T)
    return (vectors if d <= n else (X.T @ vectors) / s), s


def gram_basis(gram: Matrix, rounding: float = _ROUNDING) -> tuple[Matrix, Matrix]:
    """Return orthonormal V and s with the Gram matrix = V diag(s^2) V', strongest first.

    Directions of a share of the largest s^2 within rounding errors are left out.
    """
    squares, V = eigh(gram, driver="evd")  # the fastest for all vectors
    floor = rounding * max(squares[-1], np.finfo(float).tiny)
    first = np.searchsorted(squares, floor, side="right")
    return V[:, first:][:, ::-1], np.sqrt(squares[first:][::-1])


def leading_dense(B: Matrix, A: Matrix, k: int) -> tuple[Matrix, Matrix]:
    """Return the k largest w, in falling order, and their vectors with v'Av = 1, as columns."""
    size = len(B)
    if size <= _SMALL or k >= _FEW * size:
        try:
            values, vectors = eigh(B, A, subset_by_index=[max(size - k, 0), size - 1])
        except LinAlgError:  # by rounding: the root below does without
            pass
        else:
            return _significant(values[::-1], vectors[:, ::-1], size)
    return leading_updated(lambda x: B @ x, Root.of(A), np.zeros((size, 0)), k)


def leading_updated(product: Product, root: Root, columns: Matrix, k: int) -> tuple[Matrix, Matrix]:
    """Return the k leading solutions for A = A_0 + E E', with R R' = A_0^-1 and E the columns.

    `product` is x -> B x, for a vector or a table of columns.
    """
    size = len(columns)
    # R'E = Q diag(s) P' gives (I + R'E E'R)^-1/2 = I + Q diag((1 + s^2)^-1/2 - 1) Q'.
    Q, s, _ = np.linalg.svd(root.transposed(columns), full_matrices=False)
    shrink = 1.0 / np.sqrt(1.0 + s**2) - 1.0

    def whitened(x: Matrix) -> Matrix:
        return x + Q @ ((shrink * (Q.T @ x).T).T)

    def symmetric(x: Matrix) -> Matrix:
        return whitened(root.transposed(product(root.apply(whitened(x)))))

    values, vectors = _leading_symmetric(symmetric, size, k)
    values, vectors = _significant(values, vectors, size)
    return values, root.apply(whitened(vectors))


def _leading_symmetric(product: Product, size: int, k: int) -> tuple[Matrix, Matrix]:
    """Return the largest eigenvalues of a symmetric operator in falling order, with vectors."""
    if size > _SMALL and k < _FEW * size:
        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(size)
        try:
            values, vectors = eigsh(operator, k, which="LA", v0=start)
        except ArpackError:  # too many equal eigenvalues: LAPACK handles them
            pass
        else:
            order = np.argsort(-values)
            return values[order], vectors[:, order]
    full = product(np.eye(size))
    values, vectors = eigh((full + full.T) / 2, subset_by_index=[max(size - k, 0), size - 1])
    return values[::-1], vectors[:, ::-1]


def _significant(values: Matrix, vectors: Matrix, size: int) -> tuple[Matrix, Matrix]:
    """Return the pairs whose value is more than a rounding error of the largest."""
    floor = 10 * size * np.finfo(float).eps * max(values.max(initial=0.0), np.finfo(float).tiny)
    kept = values > floor
    return values[kept], vectors[:, kept]
