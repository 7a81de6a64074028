"""Symmetric systems: linear ones, leading solutions of pencils, principal bases and their flow.

A small pencil B v = w A v, with A positive definite, is solved by LAPACK, a large one of which few
vectors are needed by Lanczos iterations with a Cholesky factor of A. Where A is easy to invert plus
a few columns, A = A_0 + E E' with A_0^-1 = R R', the pencil is the symmetric problem of T' R' B R
T, in which T = (I + R'E E'R)^-1/2 differs from the identity by a few columns, so that products
suffice.

The geodesic flow kernel (Gong, Shi, Sha and Grauman, CVPR 2012) integrates the projections onto
all subspaces on the geodesic from the source's to the target's. Its d x d matrix is G = Q Q' with
Q of 2k columns, so rows are mapped by Q and no d x d matrix, let alone its root, is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import (
    LinAlgError,
    cho_factor,
    cho_solve,
    cholesky,
    eigh,
    lu_solve,
    solve_triangular,
)
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dgetrf, dpotri
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from transferable._linalg.arrays import is_torch_array, namespace, products, to_numpy
from transferable._linalg.moments import Moments, moments_of_rows
from transferable.limits import LIMITS

Matrix = NDArray[np.float64]
Product = Callable[[Matrix], Matrix]

# A ridge of 0 is taken to its limit: the systems are singular without any.
_SMALLEST_RIDGE = 1e-9
# Below this size, or if more than this share of the vectors is wanted, LAPACK is faster than
# Lanczos: an eighth of 800 where eigenvalues are well apart, fewer where they crowd.
_SMALL = 100
_FEW = 1 / 12
_WHOLE = 128  # size of a matrix of which all vectors take no longer than some
_ROUNDING = 1e-12
_TOLERANCE = 1e-10  # share of the largest variance below which a direction is a rounding error
_LARGEST = 4000  # the largest Gram matrix that is formed if few of its directions are wanted


# -- linear systems, of numpy or torch ------------------------------------------------------------


def effective_ridge(ridge: float, K: Any, weights: Any = None) -> float:
    """Return the ridge, or the least that keeps K + ridge I invertible in floating point."""
    diagonal = to_numpy(namespace(K).linalg.diagonal(K))
    return max(float(ridge), _SMALLEST_RIDGE * float(np.average(diagonal, weights=weights)))


def solve_positive(A: Any, R: Any) -> Any:
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


def inverse(A: Any) -> Any:
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


def _root(A: Any) -> Any:
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


def factored(rows: Any) -> tuple[Any, NDArray[np.intp], Any]:
    """Return the LU of a wide matrix, with pivots from all of its columns.

    The matrix, of shape (k, n) with k <= n, may be overwritten. Returned are the LU of the
    transpose of H, the square matrix of the columns chosen for pivots; the positions of all
    columns, those of H first; and H^-1 N, with N the other columns.
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


def eliminated(rows: Any, order: NDArray[np.intp], V: Any) -> tuple[Any, Any]:
    """Return the columns of more rows that were chosen for pivots, and what is left of the others.

    Both are linear in the rows.
    """
    B, S = rows[:, order[: len(V)]], rows[:, order[len(V) :]]
    S -= B @ V
    return B, S


def solve_factored(factor: Any, R: Any) -> Any:
    """Return H^-1 R from the LU of H'."""
    if is_torch_array(R):
        solve = namespace(R).linalg.solve_triangular
        R = solve(factor.mT, R, upper=False)
        return solve(factor.mT, R, upper=True, unitriangular=True)
    return lu_solve((factor, np.arange(len(R))), R, trans=1, check_finite=False)


# -- pencils --------------------------------------------------------------------------------------


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


# -- subspaces ------------------------------------------------------------------------------------


def principal_basis(
    X: Any, n_components: int, weights: NDArray[np.float64] | float = 1.0
) -> NDArray[np.float64]:
    """Return an orthonormal basis of the leading directions of centred rows, strongest first.

    Its shape is (n_features, k), where k is smaller than `n_components` if the rows do not span
    that many directions. Sparse rows are never centred in memory.
    """
    n, d = X.shape
    w = np.broadcast_to(weights, n)
    most = min(n - 1, d, n_components)
    if most < 1:
        return np.zeros((d, 0))
    if min(n, d) > _LARGEST and 3 * most < min(n, d):
        return _by_products(X, most, w)
    if d <= n and n * d > LIMITS.block_values:
        return basis_of_moments(moments_of_rows(X, w), n_components, n)
    X = X.astype(np.float64)
    # Summed as moments are: where both subspaces are equal, their flow depends on the last digits.
    alike = not sp.issparse(X) and bool((w == 1.0).all())  # needs no weighted copies
    total = X.T @ w if sp.issparse(X) else (X if alike else w[:, None] * X).sum(axis=0)
    mean, roots = np.asarray(total).ravel() / w.sum(), np.sqrt(w)
    R = X.multiply(roots[:, None]).tocsr() if sp.issparse(X) else X
    R = R if sp.issparse(X) or alike else X * roots[:, None]
    if d <= n:
        gram = w.sum() * (products(R.T, R.T) / w.sum() - np.outer(mean, mean))
    else:
        cross = np.outer(np.asarray(R @ mean).ravel(), roots)
        gram = products(R, R) - cross - cross.T + (mean @ mean) * np.outer(roots, roots)
    values, vectors = leading_eigenvectors(gram, most)
    if d > n:
        vectors = np.asarray(R.T @ vectors) - np.outer(mean, roots @ vectors)
        vectors = vectors / np.sqrt(values)
    return np.ascontiguousarray(vectors)


def basis_of_moments(
    moments: Moments, n_components: int, n_rows: int | None = None
) -> NDArray[np.float64]:
    """Return :func:`principal_basis` from moments; with weights, the number of rows is needed."""
    d = len(moments.total)
    most = min((int(moments.count) if n_rows is None else n_rows) - 1, d, n_components)
    if most < 1:
        return np.zeros((d, 0))
    return np.ascontiguousarray(leading_eigenvectors(moments.count * moments.covariance, most)[1])


def leading_eigenvectors(gram: NDArray[np.float64], most: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return leading eigenvalues and eigenvectors, strongest first, without rounding errors."""
    size = len(gram)
    if size <= _WHOLE:
        values, vectors = (found[..., size - most :] for found in eigh(gram, driver="evd"))
    else:
        values, vectors = eigh(gram, subset_by_index=[size - most, size - 1])
    kept = values > _TOLERANCE * max(values[-1], np.finfo(float).tiny)
    return values[kept][::-1], vectors[:, kept][:, ::-1]


def _by_products(X: Any, most: int, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return leading directions where either Gram matrix would be large, by Lanczos iterations."""
    d = X.shape[1]
    mean, total = np.asarray(X.T @ w).ravel() / w.sum(), float(w.sum())

    def scatter(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(X.T @ (w * (X @ x))).ravel() - total * mean * (mean @ x)

    operator = LinearOperator((d, d), matvec=scatter, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(d)
    values, vectors = eigsh(operator, most, which="LA", v0=start)
    kept = np.argsort(-values)[: int(np.sum(values > _TOLERANCE * values.max()))]
    return np.ascontiguousarray(vectors[:, kept])


def geodesic_flow_factor(Ps: NDArray[np.float64], Pt: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Q with Q Q' = the integral of P(t) P(t)' along the geodesic from Ps to Pt.

    For principal vectors p (source) and r (the direction in which the flow leaves p) at angle t,
    the integral is a 2 x 2 matrix in the plane of p and r; its root gives two columns of Q.
    """
    U, cosines, Vt = np.linalg.svd(Ps.T @ Pt)
    angles, P = np.arccos(np.clip(cosines, 0.0, 1.0)), Ps @ U
    # The part of each target vector outside its source vector is sin(t) r.
    residual = Pt @ Vt.T - P * np.cos(angles)
    length = np.linalg.norm(residual, axis=0)
    moving = length > 1e-10
    R = np.where(moving, residual / np.where(moving, length, 1.0), 0.0)
    # np.sinc(x) = sin(pi x) / (pi x) is smooth at zero, where the plane degenerates.
    wave = np.sinc(2 * angles / np.pi)
    cross = np.where(moving, np.sin(angles) * np.sinc(angles / np.pi), 0.0)
    planes = np.empty((len(angles), 2, 2))
    planes[:, 0, 0] = (1 + wave) / 2
    planes[:, 1, 1] = (1 - wave) / 2
    planes[:, 0, 1] = planes[:, 1, 0] = cross / 2
    values, vectors = np.linalg.eigh(planes)
    roots = vectors * np.sqrt(np.clip(values, 0.0, None))[:, None, :]
    columns = P[:, :, None] * roots[None, :, 0, :] + R[:, :, None] * roots[None, :, 1, :]
    return columns.reshape(Ps.shape[0], -1)
