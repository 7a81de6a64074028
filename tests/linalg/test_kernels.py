"""Kernel matrices by name and by function, and Nystrom features, held and streamed."""

from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from transferable._linalg.arrays import CPU, Arrays, dense, to_numpy, unit_rows
from transferable._linalg.kernels import (
    KERNELS,
    FeatureTable,
    KernelFunction,
    Nystrom,
    draw_landmarks,
)
from transferable._linalg.moments import moments_of_blocks

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


RBF = KernelFunction("rbf", 0.5, 3, 1.0)
N, M = 60, 15
ABSENT = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
PLACES = [CPU, pytest.param(Arrays("cpu"), marks=ABSENT)]


@pytest.fixture
def rows():
    return unit_rows(np.random.default_rng(0).normal(size=(N, 4)))


@pytest.fixture(params=PLACES, ids=["numpy", "torch"])
def arrays(request):
    return request.param


def nystrom_of(rows, arrays, kernel=RBF):
    return Nystrom(rows[:M], kernel, arrays)


@pytest.mark.parametrize("name", ["rbf", "linear", "poly"])
def test_features_multiply_to_the_best_kernel_the_landmarks_span(rows, arrays, name):
    kernel = KernelFunction(name, 0.5, 2, 1.0)
    Phi = to_numpy(nystrom_of(rows, arrays, kernel)(rows))
    C, inner = kernel(rows, rows[:M]), kernel(rows[:M], rows[:M])
    expected = C @ np.linalg.pinv(inner, rcond=1e-13, hermitian=True) @ C.T
    np.testing.assert_allclose(Phi @ Phi.T, expected, atol=1e-7)


def test_with_every_row_a_landmark_they_multiply_to_the_kernel(rows, arrays):
    Phi = to_numpy(Nystrom(rows, RBF, arrays)(rows))
    np.testing.assert_allclose(Phi @ Phi.T, RBF(rows, rows), atol=1e-10)


def test_single_precision_leaves_out_directions_that_are_rounding_errors(rows, arrays):
    single = nystrom_of(rows.astype(np.float32), arrays)
    assert single.rank <= nystrom_of(rows, arrays).rank
    Phi, exact = single(rows.astype(np.float32)), nystrom_of(rows, arrays)(rows)
    assert str(Phi.dtype).endswith("float32")
    Phi, exact = to_numpy(Phi), to_numpy(exact)
    np.testing.assert_allclose(Phi @ Phi.T, exact @ exact.T, atol=1e-4)


def test_sparse_rows_have_the_features_of_dense_ones(rows, arrays):
    sparse = Nystrom(sp.csr_array(rows[:M]), RBF, arrays)
    expected = to_numpy(nystrom_of(rows, arrays)(rows))
    np.testing.assert_allclose(to_numpy(sparse(sp.csr_array(rows))), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("n_source", "n_target", "count", "expected"),
    [
        (100, 100, 20, (10, 10)),
        (5, 100, 20, (5, 15)),
        (100, 5, 20, (15, 5)),
        (100, 0, 20, (20, 0)),
        (10, 10, 500, (10, 10)),
    ],
)
def test_half_of_the_landmarks_come_from_each_domain(n_source, n_target, count, expected):
    X = np.random.default_rng(3).normal(size=(n_source + n_target, 3))
    drawn = draw_landmarks(X, n_source, count, np.random.RandomState(0))
    assert (np.sum(drawn < n_source), np.sum(drawn >= n_source)) == expected
    assert np.all(np.diff(drawn) > 0)


def test_landmarks_are_spread_over_the_rows():
    """No row is as far from its nearest landmark as it would be from one of random rows."""
    X = np.random.default_rng(4).normal(size=(500, 3))

    def farthest(landmarks):
        return cdist(X, X[landmarks]).min(axis=1).max()

    spread = [farthest(draw_landmarks(X, 500, 40, np.random.RandomState(s))) for s in range(5)]
    random = [farthest(np.random.RandomState(s).choice(500, 40)) for s in range(5)]
    assert np.mean(spread) < 0.9 * np.mean(random)


def test_equal_rows_are_drawn_once():
    X = np.random.default_rng(0).permutation(np.repeat(np.eye(3), 50, axis=0))
    drawn = draw_landmarks(X, 150, 20, np.random.RandomState(0))
    assert 3 <= len(drawn) <= 20
    assert len(np.unique(X[drawn], axis=0)) == 3


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("block_rows", [1, 7, N])
@pytest.mark.parametrize("chunk", [1, 4, None])
def test_blocks_and_chunks_change_nothing_beyond_rounding(rows, arrays, held, block_rows, chunk):
    nystrom = nystrom_of(rows, arrays)
    Phi = to_numpy(nystrom(rows))
    place = arrays.table(rows)
    table = FeatureTable(place, nystrom, arrays, held=held, block_rows=block_rows, chunk=chunk)
    rng = np.random.default_rng(1)
    w, T, S = rng.normal(size=(Phi.shape[1], 3)), rng.normal(size=(N, 2)), rng.normal(size=(N, N))
    S = arrays.table(S + S.T)
    scale = np.abs(Phi).sum()
    for value, expected in (
        (table.times(arrays.table(w)), Phi @ w),
        (table.transposed_times(arrays.table(T)), Phi.T @ T),
        (table.between(lambda F: S @ F), Phi.T @ to_numpy(S) @ Phi),
        (moments_of_blocks(table, slice(5, 33), arrays).gram, Phi[5:33].T @ Phi[5:33]),
        (table[slice(3, 9)], Phi[3:9]),
    ):
        np.testing.assert_allclose(to_numpy(value), expected, atol=1e-10 * scale)


@pytest.mark.parametrize("held", [True, False])
def test_single_precision_agrees_with_double_to_a_thousandth(rows, held):
    double = FeatureTable(rows, nystrom_of(rows, CPU), CPU, held=held)
    single_rows = rows.astype(np.float32)
    single = FeatureTable(single_rows, nystrom_of(single_rows, CPU), CPU, held=held)
    T = np.random.default_rng(2).normal(size=(N, 3))

    def smoothed(table):
        """Phi (Phi'Phi + I)^-1 Phi'T, which no choice of basis changes."""
        gram = moments_of_blocks(table, slice(0, N)).gram + np.eye(table.rank)
        return table.times(np.linalg.solve(gram, table.transposed_times(T)))

    np.testing.assert_allclose(smoothed(single), smoothed(double), atol=1e-3)
