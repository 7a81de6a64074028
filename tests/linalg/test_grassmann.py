"""Principal bases and the geodesic flow factor, against their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

import literal
from transferable._linalg.grassmann import (
    basis_of_moments,
    geodesic_flow_factor,
    principal_basis,
)
from transferable._linalg.moments import Moments


def orthonormal(seed, d, k):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, k)))[0]


def tilted(P, angles, seed=0):
    """A basis at the given angles to P's columns."""
    d, k = P.shape
    outside = np.linalg.qr(np.hstack([P, np.random.default_rng(seed).normal(size=(d, k))]))[0][
        :, k:
    ]
    return P * np.cos(angles) + outside * np.sin(angles)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 4), extra=st.integers(0, 6))
def test_factor_gives_the_integral_over_the_geodesic(seed, k, extra):
    Ps, Pt = orthonormal(seed, 2 * k + extra, k), orthonormal(seed + 1, 2 * k + extra, k)
    Q = geodesic_flow_factor(Ps, Pt)
    assert Q.shape == (2 * k + extra, 2 * k)
    np.testing.assert_allclose(Q @ Q.T, literal.geodesic_flow_matrix(Ps, Pt), atol=1e-9)


def test_factor_where_the_subspaces_must_meet():
    """k > d / 2: some angles are exactly zero."""
    Ps, Pt = orthonormal(0, 5, 4), orthonormal(1, 5, 4)
    Q = geodesic_flow_factor(Ps, Pt)
    np.testing.assert_allclose(Q @ Q.T, literal.geodesic_flow_matrix(Ps, Pt), atol=1e-7)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.3, np.pi / 2])
def test_factor_at_small_and_at_right_angles(angle):
    Ps = orthonormal(2, 8, 3)
    Pt = tilted(Ps, np.array([angle, 0.0, 0.7]))
    Q = geodesic_flow_factor(Ps, Pt)
    assert np.isfinite(Q).all()
    np.testing.assert_allclose(Q @ Q.T, literal.geodesic_flow_matrix(Ps, Pt), atol=1e-7)


def test_flow_between_equal_subspaces_is_the_projection():
    P = orthonormal(3, 7, 3)
    rotated = P @ orthonormal(4, 3, 3)
    Q = geodesic_flow_factor(P, rotated)
    np.testing.assert_allclose(Q @ Q.T, P @ P.T, atol=1e-7)


def test_flow_is_symmetric_in_the_domains_and_in_the_choice_of_basis():
    Ps, Pt = orthonormal(5, 9, 3), orthonormal(6, 9, 3)
    there, back = geodesic_flow_factor(Ps, Pt), geodesic_flow_factor(Pt @ orthonormal(7, 3, 3), Ps)
    np.testing.assert_allclose(there @ there.T, back @ back.T, atol=1e-9)


def test_flow_of_known_angles():
    """In the plane of a principal pair at angle t, G has the eigenvalues (1 +- |sin t / t|) / 2."""
    P = orthonormal(8, 10, 3)
    angles = np.array([0.1, 0.5, 1.2])
    Q = geodesic_flow_factor(P, tilted(P, angles) @ orthonormal(9, 3, 3))
    expected = np.r_[1 + np.sin(angles) / angles, 1 - np.sin(angles) / angles] / 2
    np.testing.assert_allclose(np.linalg.eigvalsh(Q.T @ Q), np.sort(expected), atol=1e-9)


@pytest.mark.parametrize(("n", "d"), [(30, 7), (8, 25), (12, 12)])
@pytest.mark.parametrize("k", [1, 4, 7])
def test_basis_is_that_of_pca(n, d, k):
    X = np.random.default_rng(n * d).normal(size=(n, d)) + 5.0
    P = principal_basis(X, k)
    expected = PCA(k).fit(X).components_.T
    np.testing.assert_allclose(P.T @ P, np.eye(k), atol=1e-8)
    np.testing.assert_allclose(np.abs(P.T @ expected), np.eye(k), atol=1e-6)  # same order too


@pytest.mark.parametrize(("n", "d"), [(30, 7), (8, 25)])
def test_sparse_rows_have_the_basis_of_dense_ones(n, d):
    X = sp.random_array((n, d), density=0.4, rng=np.random.default_rng(1), format="csr")
    dense, sparse = principal_basis(X.toarray(), 3), principal_basis(X, 3)
    np.testing.assert_allclose(sparse @ sparse.T, dense @ dense.T, atol=1e-8)


@pytest.mark.parametrize(
    ("X", "rank"),
    [
        (np.zeros((5, 4)), 0),
        (np.ones((5, 4)), 0),
        (np.outer(np.arange(5.0), np.ones(8)), 1),
        (np.eye(3), 2),
        (np.ones((1, 4)), 0),
    ],
)
def test_basis_stops_at_the_rank(X, rank):
    assert principal_basis(X, 4).shape == (X.shape[1], rank)


@pytest.mark.parametrize(("n", "d"), [(30, 7), (8, 25)])
def test_weighted_rows_are_repeated_rows(n, d):
    rng = np.random.default_rng(n)
    X, weights = rng.normal(size=(n, d)) + 2.0, rng.integers(1, 4, n)
    repeated = principal_basis(np.repeat(X, weights, axis=0), 3)
    for rows in (X, sp.csr_array(X)):
        P = principal_basis(rows, 3, weights.astype(float))
        np.testing.assert_allclose(P @ P.T, repeated @ repeated.T, atol=1e-8)
    P = basis_of_moments(Moments.of(X, weights.astype(float)), 3, n)
    np.testing.assert_allclose(P @ P.T, repeated @ repeated.T, atol=1e-8)


def test_float32_rows_give_a_float64_basis():
    X = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
    P = principal_basis(X, 3)
    assert P.dtype == np.float64
    np.testing.assert_allclose(P.T @ P, np.eye(3), atol=1e-12)
