"""Subspaces of the feature space: principal bases, angles between them, the geodesic flow.

The geodesic flow kernel (Gong, Shi, Sha and Grauman, CVPR 2012) integrates the projections onto
all subspaces on the geodesic from the source's to the target's. Its d x d matrix is G = Q Q' with
Q of 2k columns, so rows are mapped by Q and no d x d matrix, let alone its root, is ever formed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from transferable._linalg.arrays import products
from transferable._linalg.moments import Moments, moments_of_rows
from transferable.limits import LIMITS

_TOLERANCE = 1e-10  # share of the largest variance below which a direction is a rounding error
_LARGEST = 4000  # the largest Gram matrix that is formed if few of its directions are wanted


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
