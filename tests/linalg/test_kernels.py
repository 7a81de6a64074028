"""Kernel matrices by name and by function."""

import numpy as np
import pytest
import scipy.sparse as sp

from transferable._linalg.arrays import dense, unit_rows
from transferable._linalg.kernels import KERNELS, KernelFunction

PARAMETERS = {"gamma": 0.7, "degree": 2, "coef0": 1.5}


def kernel_matrix(X, Y, kernel, **parameters):
    return KernelFunction(kernel, **parameters)(X, Y)


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    return rng.normal(size=(6, 3)), rng.normal(size=(4, 3))


def test_named_kernels_are_their_formulas(tables):
    X, Y = tables
    inner = X @ Y.T
    apart = ((X[:, None] - Y[None]) ** 2).sum(axis=2)
    expected = {"linear": inner, "poly": (0.7 * inner + 1.5) ** 2, "rbf": np.exp(-0.7 * apart)}
    assert set(expected) == set(KERNELS)
    for name, K in expected.items():
        np.testing.assert_allclose(kernel_matrix(X, Y, name, **PARAMETERS), K, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_sparse_rows_have_the_same_kernel_and_float32_rows_nearly(kernel, tables):
    X, Y = tables
    K = kernel_matrix(X, Y, kernel, **PARAMETERS)
    sparse = kernel_matrix(sp.csr_array(X), sp.csr_array(Y), kernel, **PARAMETERS)
    single = kernel_matrix(X.astype(np.float32), Y.astype(np.float32), kernel, **PARAMETERS)
    np.testing.assert_allclose(sparse, K, atol=1e-12)
    np.testing.assert_allclose(single, K, rtol=1e-4, atol=1e-5)
    assert single.dtype == np.float32


def test_a_function_receives_both_tables_whole(tables):
    X, Y = tables
    K = kernel_matrix(X, Y, lambda A, B: A @ B.T, **PARAMETERS)
    np.testing.assert_allclose(K, X @ Y.T)


def test_a_function_that_returns_another_shape_is_refused(tables):
    with pytest.raises(ValueError, match=r"shape \(3, 3\) .*for tables of 6 and 4 rows"):
        kernel_matrix(*tables, lambda A, B: A.T @ A, **PARAMETERS)


def test_the_polynomial_is_a_cube_by_default(tables):
    X, Y = tables
    np.testing.assert_allclose(KernelFunction("poly", 0.7)(X, Y), (0.7 * X @ Y.T + 1.0) ** 3)


def test_kernels_are_equal_by_their_parameters():
    assert KernelFunction("rbf", 0.5) == KernelFunction("rbf", 0.5)
    assert KernelFunction("rbf", 0.5) != KernelFunction("rbf", 0.6)
    assert hash(KernelFunction("poly", 1.0)) == hash(KernelFunction("poly", 1.0, 3, 1.0))


def test_a_buffer_holds_the_matrix(tables):
    X, Y = tables
    for kernel in ("rbf", "linear"):
        buffer = np.empty(100)
        K = KernelFunction(kernel, 0.7)(X, Y, buffer)
        assert np.shares_memory(K, buffer)
        np.testing.assert_allclose(K, KernelFunction(kernel, 0.7)(X, Y))


def test_unit_rows_leave_zero_rows_alone():
    X = np.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(unit_rows(X), [[0.6, 0.8], [0.0, 0.0]])
    np.testing.assert_allclose(dense(unit_rows(sp.csr_array(X))), [[0.6, 0.8], [0.0, 0.0]])


def test_unit_rows_of_a_product(tables):
    X, factor = tables[0], np.random.default_rng(1).normal(size=(3, 2))
    expected = unit_rows(X @ factor)
    np.testing.assert_allclose(unit_rows(X, factor), expected)
    np.testing.assert_allclose(dense(unit_rows(sp.csr_array(X), factor)), expected)
    np.testing.assert_array_equal(unit_rows(X, np.zeros((3, 0))), unit_rows(X))
    single = unit_rows(X.astype(np.float32), factor)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-6)
