"""Rows that are read block by block."""

import numpy as np
import pytest

from transferable._linalg.moments import RowTable, moments_of_blocks


@pytest.mark.parametrize("block_rows", [1, 7, 100, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_moments_do_not_depend_on_blocks(block_rows, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)).astype(dtype)
    w, T = rng.normal(size=(4, 3)), rng.normal(size=(50, 2))
    table = RowTable(X, block_rows)
    double = X.astype(np.float64)
    np.testing.assert_allclose(table.times(w), double @ w, rtol=1e-12)
    np.testing.assert_allclose(table.transposed_times(T), double.T @ T, rtol=1e-10)
    moments = moments_of_blocks(table, slice(5, 31))
    assert moments.count == 26
    np.testing.assert_allclose(moments.total, double[5:31].sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(moments.gram, double[5:31].T @ double[5:31], rtol=1e-10)


def test_no_rows_have_no_moments():
    assert moments_of_blocks(RowTable(np.ones((3, 2))), slice(3, 3)).count == 0
