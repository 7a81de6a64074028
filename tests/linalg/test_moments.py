"""Statistics of rows that add up over blocks."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from transferable._linalg.arrays import row_blocks
from transferable._linalg.moments import Moments, moments_of_rows
from transferable.limits import LIMITS


def assert_same(one, other, **tolerance):
    assert one.count == other.count
    np.testing.assert_allclose(one.total, other.total, **tolerance)
    np.testing.assert_allclose(one.gram, other.gram, **tolerance)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), cuts=st.tuples(st.integers(0, 20), st.integers(0, 20)))
def test_moments_merge_in_any_grouping(seed, cuts):
    X = np.random.default_rng(seed).normal(size=(20, 3))
    a, b, c = (Moments.of(part) for part in np.split(X, sorted(cuts)))
    whole = Moments.of(X)
    for merged in ((a + b) + c, a + (b + c), c + (a + b), a + b + c + Moments.none(3)):
        assert_same(merged, whole, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 7, 100])
def test_blocks_of_any_size_give_the_same_moments(rows):
    X = np.random.default_rng(0).normal(size=(50, 4))
    blocks = (Moments.of(X[block]) for block in row_blocks(50, 4, rows))
    assert_same(sum(blocks, Moments.none(4)), Moments.of(X), atol=1e-12)


def test_mean_and_covariance():
    X = np.random.default_rng(1).normal(size=(30, 4)) + 5
    moments = Moments.of(X)
    np.testing.assert_allclose(moments.mean, X.mean(axis=0))
    np.testing.assert_allclose(moments.covariance, np.cov(X.T, bias=True), atol=1e-12)


def test_sums_are_in_double_precision_whatever_the_rows_are_in():
    """A million ones and one: in single precision the sum would lose what is small."""
    X = np.full((1000, 2), 1.0 + 2**-12, dtype=np.float32)
    single = sum((Moments.of(X) for _ in range(1000)), Moments.none(2))
    assert single.total.dtype == single.gram.dtype == np.float64
    np.testing.assert_allclose(single.total, 10**6 * (1.0 + 2**-12), rtol=1e-12)


def test_sparse_rows_have_the_moments_of_dense_ones():
    X = np.random.default_rng(2).normal(size=(12, 5)) * (np.arange(5) % 2)
    for kind in (sp.csr_array, sp.csr_matrix):
        assert_same(Moments.of(kind(X)), Moments.of(X), atol=1e-12)


def test_blocks_cover_all_rows_once():
    for n, width, rows in ((0, 3, None), (10, 3, 4), (10**6, 2000, None)):
        blocks = row_blocks(n, width, rows)
        assert [i for block in blocks for i in (block.start, block.stop)] == sorted(
            i for block in blocks for i in (block.start, block.stop)
        )
        assert sum(block.stop - block.start for block in blocks) == n


@pytest.mark.parametrize("n_threads", [1, 2])
def test_moments_of_many_narrow_rows_are_those_of_all_at_once(monkeypatch, n_threads):
    rows = np.random.default_rng(0).normal(size=(3000, 5)).astype(np.float32)
    monkeypatch.setattr(LIMITS, "block_values", 2000)
    with threadpool_limits(n_threads):
        found = moments_of_rows(rows)
    expected = Moments.of(rows.astype(np.float64))
    assert_same(found, expected, rtol=1e-12)
    assert_same(moments_of_rows(sp.csr_array(rows)), expected, rtol=1e-12)


def test_weighted_rows_are_repeated_rows():
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(20, 4)), rng.integers(1, 4, 20)
    expected = Moments.of(np.repeat(X, weights, axis=0))
    for rows in (X, sp.csr_array(X)):
        assert_same(Moments.of(rows, weights.astype(float)), expected, atol=1e-12)
        assert_same(moments_of_rows(rows, weights.astype(float)), expected, atol=1e-12)
        assert_same(Moments.of(rows, np.ones(20)), Moments.of(X), atol=1e-12)
