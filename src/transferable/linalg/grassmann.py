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

from transferable.linalg.rows import dense

__all__ = ["geodesic_flow_factor", "principal_angles", "principal_bases", "principal_basis"]


def principal_basis(
    X: Any, n_components: int, *, relative_tolerance: float = 1e-10
) -> NDArray[np.float64]:
    """Orthonormal basis of the leading principal directions of centred rows, strongest first.

    Returns an array of shape (n_features, k), where k is smaller than `n_components` if the rows
    do not span that many directions.
    """
    n, d = X.shape
    most = min(n - 1, d, n_components)
    if most < 1:
        return np.zeros((d, 0))
    X = X.astype(np.float64)
    mean = np.asarray(X.mean(axis=0)).ravel()
    # The smaller of the two Gram matrices of the centred rows; sparse rows are never centred.
    if d <= n:
        gram = dense(X.T @ X) - n * np.outer(mean, mean)
    else:
        cross = np.asarray(X @ mean).ravel()
        gram = dense(X @ X.T) - cross[:, None] - cross[None, :] + mean @ mean
    size = len(gram)
    values, vectors = eigh(gram, subset_by_index=[size - most, size - 1])
    kept = values > relative_tolerance * max(values[-1], np.finfo(float).tiny)
    values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
    if d <= n:
        return np.ascontiguousarray(vectors)
    basis = (np.asarray(X.T @ vectors) - np.outer(mean, vectors.sum(axis=0))) / np.sqrt(values)
    return np.ascontiguousarray(basis)


def principal_bases(
    Xs: Any, Xt: Any, n_components: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Principal bases of two tables with as many directions in both as each of them spans."""
    Ps, Pt = principal_basis(Xs, n_components), principal_basis(Xt, n_components)
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
