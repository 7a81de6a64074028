"""Blocks of rows by threads: the same result, whoever works on them."""

from contextlib import ExitStack

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from transferable import domains
from transferable._linalg import arrays
from transferable._linalg.arrays import (
    in_threads,
    limited_threads,
    taken_rows,
    thread_blocks,
    unit_rows,
)
from transferable.domains import Domains, content_order, row_hash, row_places, stack_domains
from transferable.limits import LIMITS

X = np.random.default_rng(0).normal(size=(900, 7))


@pytest.fixture
def many_blocks(monkeypatch):
    monkeypatch.setattr(LIMITS, "threaded_values", 0)
    monkeypatch.setattr(arrays, "_VALUES", 700)


@pytest.fixture(params=[1, 2])
def _threads(request):
    with threadpool_limits(request.param):
        yield


def test_small_tables_are_one_block_and_empty_ones_none():
    assert thread_blocks(X) == [slice(0, 900)]
    assert thread_blocks(X[:0]) == []
    assert thread_blocks(np.empty((10, 0))) == [slice(0, 10)]


@pytest.mark.usefixtures("many_blocks")
def test_blocks_cover_the_rows_in_order():
    assert np.concatenate([X[rows] for rows in thread_blocks(X)]).shape == X.shape
    assert len(thread_blocks(X)) == 9


@pytest.mark.usefixtures("_threads")
def test_results_come_in_the_order_of_the_parts():
    assert in_threads(lambda part: part**2, range(50)) == [part**2 for part in range(50)]
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda part: 1 / part, [1, 0, 2])


@pytest.mark.usefixtures("many_blocks", "_threads")
def test_rows_are_taken_and_brought_to_unit_length_alike():
    order = np.random.default_rng(1).permutation(900)
    np.testing.assert_array_equal(taken_rows(X, order), X[order])
    np.testing.assert_array_equal(taken_rows(X[:, ::2], order[:5]), X[order[:5], ::2])
    unit = unit_rows(np.vstack([X, np.zeros((1, 7))]))
    np.testing.assert_allclose(np.linalg.norm(unit[:-1], axis=1), 1.0)
    np.testing.assert_allclose(unit[:-1] * np.linalg.norm(X, axis=1, keepdims=True), X)
    assert not unit[-1].any()
    np.testing.assert_allclose(unit_rows(sp.csr_array(X)).toarray(), unit[:-1])


def test_tables_are_stacked_in_the_larger_precision():
    stacked, y, marks = stack_domains(X[:300], np.arange(300) % 2, X[300:])
    np.testing.assert_array_equal(stacked, X)
    np.testing.assert_array_equal(marks, np.repeat([1, -1], [300, 600]))
    np.testing.assert_array_equal(y[:300], np.arange(300) % 2)
    integers = np.arange(14).reshape(2, 7)
    mixed = stack_domains(X[:300].astype(np.float32), np.arange(300) % 2, integers)[0]
    assert mixed.dtype == np.float64
    np.testing.assert_array_equal(mixed[300:], integers)


@pytest.mark.usefixtures("_threads")
def test_places_and_hashes_do_not_depend_on_blocks(monkeypatch):
    place, hashes = row_places(X), row_hash(X)
    monkeypatch.setattr(domains, "_CACHED_VALUES", 30)
    np.testing.assert_array_equal(row_places(X), place)
    np.testing.assert_array_equal(row_hash(X), hashes)


def test_the_order_is_that_of_a_sort_by_all_keys():
    rng = np.random.default_rng(0)
    source = rng.random(500) < 0.4
    place, hashes = rng.integers(90, size=500) / 90, rng.integers(3, size=500)
    codes = rng.integers(2, size=500)
    expected = np.lexsort((codes, hashes, place, ~source))
    np.testing.assert_array_equal(content_order(source, place, hashes.__getitem__, codes), expected)
    none = np.ones(500, dtype=bool)
    expected = np.lexsort((codes, hashes, place))
    np.testing.assert_array_equal(content_order(none, place, hashes.__getitem__, codes), expected)


@pytest.mark.usefixtures("many_blocks", "_threads")
def test_domains_are_the_same():
    y, marks = np.arange(900) % 3, np.where(np.arange(900) % 2, 1, -1)
    domains = Domains.from_stacked(X, y, marks)
    np.testing.assert_array_equal(domains.X, X[domains.order])
    assert domains.n_source == 450


def test_limits_that_end_in_any_order_leave_the_threads_as_they_were():
    def of_blas():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(3), ExitStack() as first, ExitStack() as second:
        assert first.enter_context(limited_threads(1)) == 3
        assert second.enter_context(limited_threads(4)) == 1
        first.close()
        assert of_blas() == {1}
        second.close()
        assert of_blas() == {3}
