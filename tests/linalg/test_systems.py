"""Linear systems, leading solutions of pencils, principal bases and the geodesic flow."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from sklearn.decomposition import PCA

import literal
from transferable._linalg.moments import Moments
from transferable._linalg.systems import (
    Root,
    basis_of_moments,
    effective_ridge,
    eliminated,
    factored,
    geodesic_flow_factor,
    inverse,
    leading_dense,
    leading_updated,
    principal_basis,
    row_basis,
    solve_factored,
    solve_positive,
)


def positive(seed=0, n=7):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    return root @ root.T + np.eye(n), rng.normal(size=(n, 3))


def test_solutions_are_those_of_the_matrix():
    A, R = positive()
    expected = np.linalg.solve(A, R)
    np.testing.assert_allclose(inverse(A.copy()) @ R, expected, atol=1e-12)
    np.testing.assert_allclose(inverse(A.copy()), np.linalg.inv(A), atol=1e-12)
    np.testing.assert_allclose(solve_positive(A.copy(), R), expected, atol=1e-12)


def test_rounding_errors_in_place_of_small_eigenvalues_are_left_out():
    """A matrix with an eigenvalue just below zero has a solution all the same."""
    basis = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    A = (basis * np.array([3.0, 1.0, 0.5, 0.2, -1e-12])) @ basis.T
    A = (A + A.T) / 2
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(A)
    R = A @ np.ones((5, 1))
    np.testing.assert_allclose(A @ solve_positive(A.copy(), R), R, atol=1e-9)
    assert np.isfinite(inverse(A.copy())).all()


def test_numbers_too_large_to_compute_with_are_refused():
    A = np.array([[1.0, np.inf], [np.inf, 1.0]])
    with pytest.raises(ValueError, match="bring them closer to 1"):
        solve_positive(A, np.ones((2, 1)))


def test_a_ridge_of_zero_is_taken_to_its_limit():
    K = np.diag([1.0, 3.0])
    assert effective_ridge(0.1, K) == 0.1
    assert 0 < effective_ridge(0.0, K) < 1e-8
    weighted = effective_ridge(0.0, K, np.array([3.0, 1.0]))
    assert weighted == pytest.approx(effective_ridge(0.0, np.diag([1.0, 1.0, 1.0, 3.0])))


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize(("n", "k"), [(7, 0), (7, 3), (40, 15)])
def test_rows_that_change_are_factored_alone(library, n, k):
    """Px = R for a P whose first rows are a weighted sum, from the LU of its last k rows."""
    table = np.asarray if library == "numpy" else pytest.importorskip("torch").as_tensor
    rng = np.random.default_rng(n + k)
    P, more, R = rng.normal(size=(n, n)), rng.normal(size=(n - k, n)), rng.normal(size=(n, 3))
    P[n - k :, : n // 2] *= 1e-12  # pivots have to come from other columns
    factor, order, V = factored(table(P[n - k :].copy()))
    weights = rng.normal(size=(n - k, 1))
    both = (eliminated(table(rows), order, V) for rows in (P[: n - k], more))
    B, S = (one + table(weights) * other for one, other in zip(*both, strict=True))
    last, last_order, _ = factored(1.0 * S)
    y = solve_factored(factor, table(R[n - k :]))
    z = np.empty((n - k, 3))
    z[last_order] = solve_factored(last, table(R[: n - k]) - B @ y)
    x = np.empty((n, 3))
    x[order] = np.concatenate([np.asarray(y) - np.asarray(V) @ z, z])
    P[: n - k] += weights * more
    np.testing.assert_allclose(P @ x, R, atol=1e-9)


def test_a_singular_matrix_has_finite_factors():
    factor, order, V = factored(np.zeros((2, 3)))
    assert np.isfinite(solve_factored(factor, np.ones((2, 1)))).all()
    assert sorted(order) == [0, 1, 2]
    assert V.shape == (2, 1)


def pencil(size, n_columns, seed=0):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(size, size))
    return B @ B.T, rng.normal(size=(size, n_columns)), rng.uniform(0.5, 2.0, size)


@pytest.mark.parametrize(("size", "k"), [(8, 3), (8, 20), (150, 4), (150, 80)])
@pytest.mark.parametrize("n_columns", [0, 1, 5])
def test_update_by_columns_agrees_with_lapack(size, k, n_columns):
    B, E, diagonal = pencil(size, n_columns)
    A = np.diag(diagonal) + E @ E.T
    root = Root.diagonal(1.0 / np.sqrt(diagonal))
    values, V = leading_updated(lambda x: B @ x, root, E, k)
    k = min(k, size)
    expected = eigh(B, A, eigvals_only=True)[::-1][: len(values)]
    np.testing.assert_allclose(values, expected, rtol=1e-8)
    np.testing.assert_allclose(V.T @ A @ V, np.eye(len(values)), atol=1e-8)
    np.testing.assert_allclose(V.T @ B @ V, np.diag(values), atol=1e-7 * values[0])


@pytest.mark.parametrize(("size", "k"), [(8, 3), (150, 4)])
def test_dense_pencil(size, k):
    B, E, diagonal = pencil(size, 4)
    A = np.diag(diagonal) + E @ E.T
    values, V = leading_dense(B, A, k)
    np.testing.assert_allclose(values, eigh(B, A, eigvals_only=True)[::-1][:k], rtol=1e-9)
    np.testing.assert_allclose(V.T @ A @ V, np.eye(k), atol=1e-8)


def test_every_root_is_a_root():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(6, 6))
    A = A @ A.T + np.eye(6)
    for root in (Root.of(A), Root.matrix(np.linalg.cholesky(np.linalg.inv(A)))):
        R = root.apply(np.eye(6))
        np.testing.assert_allclose(R @ R.T, np.linalg.inv(A), atol=1e-10)
        np.testing.assert_allclose(root.transposed(np.eye(6)), R.T, atol=1e-10)


def test_directions_without_content_are_left_out():
    B = np.diag([3.0, 2.0, 0.0, 0.0])
    values, _ = leading_dense(B, np.eye(4), 4)
    np.testing.assert_allclose(values, [3.0, 2.0])


def test_equal_eigenvalues_in_plenty():
    values, V = leading_updated(lambda x: x, Root.diagonal(1.0), np.zeros((200, 1)), 10)
    np.testing.assert_allclose(values, 1.0)
    np.testing.assert_allclose(V.T @ V, np.eye(10), atol=1e-8)


@pytest.mark.parametrize("shape", [(30, 7), (7, 30)])
def test_row_basis_spans_the_rows(shape):
    X = np.random.default_rng(2).normal(size=shape)
    X[:, 1] = X[:, 0]
    V, s = row_basis(X)
    np.testing.assert_allclose(V.T @ V, np.eye(len(s)), atol=1e-9)
    np.testing.assert_allclose(X @ V @ V.T, X, atol=1e-8)
    np.testing.assert_allclose(s, np.linalg.svd(X)[1][: len(s)], rtol=1e-7)


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
