"""Subspaces of the feature space: principal bases, angles between them, the geodesic flow.

The geodesic flow kernel (Gong, Shi, Sha and Grauman, CVPR 2012) integrates the projections onto
all subspaces on the geodesic from the source's to the target's. Its d x d matrix is G = Q Q' with
Q of 2k columns, so rows are mapped by Q and no d x d matrix, let alone its root, is ever formed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from transferable.linalg.moments import Moments, moments_of_rows
from transferable.linalg.rows import dense

__all__ = [
    "basis_of_moments",
    "common_rank",
    "geodesic_flow_factor",
    "principal_angles",
    "principal_bases",
    "principal_basis",
]

_TOLERANCE = 1e-10  # share of the largest variance below which a direction is a rounding error
_LARGEST = 4000  # the largest Gram matrix that is formed if few of its directions are wanted


def principal_basis(
    X: Any, n_components: int, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Orthonormal basis of the leading principal directions of centred rows, strongest first.

    Returns an array of shape (n_features, k), where k is smaller than `n_components` if the rows
    do not span that many directions. Sparse rows are never centred. Rows may have weights.
    """
    n, d = X.shape
    most = min(n - 1, d, n_components)
    if most < 1:
        return np.zeros((d, 0))
    if min(n, d) > _LARGEST and 3 * most < min(n, d):
        return _by_products(X, most, weights)
    if d <= n:
        return basis_of_moments(moments_of_rows(X, weights), n_components, n)
    X = X.astype(np.float64)
    mean = _mean(X, weights)
    cross = np.asarray(X @ mean).ravel()
    gram = dense(X @ X.T) - cross[:, None] - cross[None, :] + mean @ mean
    roots = np.ones(n) if weights is None else np.sqrt(weights)
    values, vectors = _leading(gram if weights is None else gram * np.outer(roots, roots), most)
    vectors = vectors if weights is None else roots[:, None] * vectors
    basis = (np.asarray(X.T @ vectors) - np.outer(mean, vectors.sum(axis=0))) / np.sqrt(values)
    return np.ascontiguousarray(basis)


def _mean(X: Any, weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    if weights is None:
        return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    return np.asarray(X.T @ weights, dtype=np.float64).ravel() / weights.sum()


def basis_of_moments(
    moments: Moments, n_components: int, n_rows: int | None = None
) -> NDArray[np.float64]:
    """The same from the moments of the rows; with weights, their number has to be told."""
    d = len(moments.total)
    most = min((int(moments.count) if n_rows is None else n_rows) - 1, d, n_components)
    if most < 1:
        return np.zeros((d, 0))
    return np.ascontiguousarray(_leading(moments.count * moments.covariance, most)[1])


def _leading(gram: NDArray[np.float64], most: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Leading eigenvalues and eigenvectors, strongest first, without those that are rounding."""
    size = len(gram)
    values, vectors = eigh(gram, subset_by_index=[size - most, size - 1])
    kept = values > _TOLERANCE * max(values[-1], np.finfo(float).tiny)
    return values[kept][::-1], vectors[:, kept][:, ::-1]


def _by_products(
    X: Any, most: int, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Leading directions where either Gram matrix would be large: Lanczos, with products only."""
    n, d = X.shape
    mean = _mean(X, weights)
    total = n if weights is None else float(weights.sum())

    def scatter(x: NDArray[np.float64]) -> NDArray[np.float64]:
        along = X @ x if weights is None else weights * (X @ x)
        return np.asarray(X.T @ along).ravel() - total * mean * (mean @ x)

    operator = LinearOperator((d, d), matvec=scatter, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(d)
    values, vectors = eigsh(operator, most, which="LA", v0=start)
    kept = np.argsort(-values)[: int(np.sum(values > _TOLERANCE * values.max()))]
    return np.ascontiguousarray(vectors[:, kept])


def principal_bases(
    Xs: Any,
    Xt: Any,
    n_components: int,
    weights: tuple[NDArray[np.float64] | None, NDArray[np.float64] | None] = (None, None),
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Principal bases of two tables with as many directions in both as each of them spans."""
    bases = (principal_basis(X, n_components, w) for X, w in zip((Xs, Xt), weights, strict=True))
    return common_rank(*bases)


def common_rank(
    Ps: NDArray[np.float64], Pt: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both bases with as many directions as the smaller has."""
    rank = min(Ps.shape[1], Pt.shape[1])
    return Ps[:, :rank], Pt[:, :rank]


def principal_angles(
    Ps: NDArray[np.float64], Pt: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Rotations U, V and angles t with Ps' Pt = U diag(cos t) V', smallest angle first."""
    U, cosines, Vt = np.linalg.svd(Ps.T @ Pt)
    return U, Vt.T, np.arccos(np.clip(cosines, 0.0, 1.0))


def geodesic_flow_factor(Ps: NDArray[np.float64], Pt: NDArray[np.float64]) -> NDArray[np.float64]:
    """Q with Q Q' = the integral of P(t) P(t)' along the geodesic from Ps to Pt.

    For principal vectors p (source) and r (the direction in which the flow leaves p) at angle t,
    the integral is a 2 x 2 matrix in the plane of p and r; its root gives two columns of Q.
    """
    U, V, angles = principal_angles(Ps, Pt)
    P = Ps @ U
    # The part of each target vector outside its source vector is sin(t) r.
    residual = Pt @ V - P * np.cos(angles)
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
