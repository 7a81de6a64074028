"""Leading eigenpairs of pencils by every route."""

import numpy as np
import pytest
from scipy.linalg import eigh

from transferable._linalg.eigen import Root, leading_dense, leading_updated, row_basis


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
