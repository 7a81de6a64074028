"""The exact search against sorting all inner products, on numpy and on torch."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from transferable._linalg.arrays import Arrays, to_numpy, unit_rows
from transferable._linalg.search import largest, nearest
from transferable.limits import LIMITS

LIBRARIES = [
    pytest.param("cpu", id="numpy"),
    pytest.param("torch", id="torch"),
]


def arrays_of(library):
    if library == "torch":
        pytest.importorskip("torch")
    return Arrays.on(library)


@pytest.mark.parametrize("library", LIBRARIES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), width=st.integers(3, 2000), k=st.integers(1, 3))
def test_the_largest_entries_are_those_of_sorting(library, seed, width, k):
    S = np.random.default_rng(seed).normal(size=(4, width)).round(2)  # with ties
    values, columns = map(to_numpy, largest(arrays_of(library).table(S), k))
    np.testing.assert_array_equal(np.sort(values, axis=1), np.sort(S, axis=1)[:, width - k :])
    np.testing.assert_array_equal(np.take_along_axis(S, columns, axis=1), values)
    assert all(len(set(row)) == k for row in columns)


def test_rows_with_infinities_have_finite_largest_entries():
    S = np.full((3, 1000), -np.inf)
    S[:, [4, 999]] = 1.0, 2.0
    values, columns = largest(S, 2)
    np.testing.assert_array_equal(np.sort(columns, axis=1), [[4, 999]] * 3)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("alone", [False, True])
def test_search_is_the_dense_transcription_in_blocks_of_any_size(library, alone, monkeypatch):
    rng = np.random.default_rng(0)
    base = rng.normal(size=(150, 6))
    queries = base if alone else rng.normal(size=(90, 6))
    S = queries @ base.T
    if alone:
        np.fill_diagonal(S, -np.inf)
    expected = np.sort(S, axis=1)[:, -5:]
    table = arrays_of(library).table
    for values in (2**24, 700):
        monkeypatch.setattr(LIMITS, "similarity_values", values)
        monkeypatch.setattr(LIMITS, "fewest_queries", 1)
        found = map(to_numpy, nearest(table(queries), None if alone else table(base), 5))
        indices, similarities = found
        np.testing.assert_allclose(np.sort(similarities, axis=1), expected, atol=1e-12)
        np.testing.assert_allclose(np.take_along_axis(S, indices, axis=1), similarities, atol=1e-12)


def test_a_long_search_of_sparse_rows_is_announced(monkeypatch):
    X = sp.random_array((60, 12), density=0.5, rng=np.random.default_rng(0), format="csr")
    monkeypatch.setattr(LIMITS, "announced_seconds", 0.0)
    with pytest.warns(UserWarning, match=r"nearest of 60 rows to each of 60 .* minutes"):
        nearest(X, None, 2)


def planted_ties(width, dtype, seed=0):
    """A table with ten equal entries in each row but for rounding, of which some are the largest.

    Also which columns are the three largest: those above the equal ones, then the first of these.
    """
    rng = np.random.default_rng(seed)
    S = rng.uniform(-0.9, 0.3, size=(40, width)).astype(dtype)
    expected = np.empty((40, 3), dtype=int)
    for row in range(40):
        picked = rng.permutation(width)[:12]
        above, equal = picked[: row % 3], np.sort(picked[2:])
        S[row, equal] = 0.5 + rng.integers(-3, 4, size=10) * np.finfo(dtype).eps
        S[row, above] = 0.75
        expected[row] = np.sort(np.r_[above, equal[: 3 - len(above)]])
    return S, expected


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [12, 100, 1003])  # compared at once, and by groups
def test_of_equal_entries_those_of_the_lowest_columns_are_taken(library, dtype, width, monkeypatch):
    S, expected = planted_ties(width, dtype)
    table = arrays_of(library).table
    for held in (2**24, 8 * 7 * width):  # tied rows at once, and seven at a time
        monkeypatch.setattr(LIMITS, "similarity_values", held)
        values, columns = map(to_numpy, largest(table(S), 3, 16))
        np.testing.assert_array_equal(np.sort(columns, axis=1), expected)
        np.testing.assert_array_equal(np.take_along_axis(S, columns, axis=1), values)


@pytest.mark.parametrize("library", LIBRARIES)
def test_all_columns_of_a_table_are_not_those_of_the_next(library, monkeypatch):
    monkeypatch.setattr(LIMITS, "similarity_values", 1)
    monkeypatch.setattr(LIMITS, "fewest_queries", 2)
    queries, base = np.random.default_rng(0).normal(size=(2, 5, 4))
    table = arrays_of(library).table
    indices, similarities = map(to_numpy, nearest(table(queries), table(base), 5))
    np.testing.assert_array_equal(np.sort(indices, axis=1), [range(5)] * 5)
    found = np.take_along_axis(similarities, np.argsort(indices, axis=1), axis=1)
    np.testing.assert_allclose(found, queries @ base.T, atol=1e-12)


def with_twins(n, dtype, seed):
    """Unit rows of which each is there about four times, and the five nearest to each.

    Rows are integers at first, so that equal cosines are known without rounding.
    """
    rng = np.random.default_rng(seed)
    distinct = np.unique(rng.integers(0, 4, size=(n // 4, 30)), axis=0)
    X = distinct[rng.integers(len(distinct), size=n)]
    squares = np.sum(X**2, axis=1)
    exact = (X @ X.T) ** 2 / squares  # cos^2 |query|^2: equal fractions are equal numbers
    np.fill_diagonal(exact, -1.0)
    first = np.argsort(-exact, axis=1, kind="stable")[:, :5]
    return unit_rows(X.astype(dtype)), np.sort(first, axis=1)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [97, 401])
def test_twins_anywhere_give_the_same_neighbors_in_blocks_of_any_size(
    library, dtype, n, monkeypatch
):
    monkeypatch.setattr(LIMITS, "fewest_queries", 1)
    table = arrays_of(library).table
    for seed in range(3):
        Z, expected = with_twins(n, dtype, seed)
        for values in (2**24, 37 * n, 5 * n, 1):
            monkeypatch.setattr(LIMITS, "similarity_values", values)
            indices, _ = nearest(table(Z), None, 5)
            np.testing.assert_array_equal(np.sort(to_numpy(indices), axis=1), expected)
