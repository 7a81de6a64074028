"""Nystrom features against the formulas they stand for, held and streamed, numpy and torch."""

from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from transferable._linalg.arrays import CPU, Arrays, to_numpy, unit_rows
from transferable._linalg.kernels import KernelFunction
from transferable._linalg.moments import moments_of_blocks
from transferable._linalg.nystrom import FeatureTable, Nystrom, draw_landmarks

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
