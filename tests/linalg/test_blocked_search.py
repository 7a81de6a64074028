"""The exact search against sorting all inner products, on numpy and on torch."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from transferable.limits import LIMITS
from transferable.linalg.arrays import Arrays, to_numpy
from transferable.linalg.blocked_search import exact_search, largest

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
    own = table(np.arange(150)) if alone else None
    for values in (2**24, 700):
        monkeypatch.setattr(LIMITS, "similarity_values", values)
        monkeypatch.setattr(LIMITS, "fewest_queries", 1)
        found = map(to_numpy, exact_search(table(queries), table(base), 5, own))
        indices, similarities = found
        np.testing.assert_allclose(np.sort(similarities, axis=1), expected, atol=1e-12)
        np.testing.assert_allclose(np.take_along_axis(S, indices, axis=1), similarities, atol=1e-12)


def test_a_long_search_of_sparse_rows_is_announced(monkeypatch):
    X = sp.random_array((60, 12), density=0.5, rng=np.random.default_rng(0), format="csr")
    monkeypatch.setattr(LIMITS, "announced_seconds", 0.0)
    with pytest.warns(UserWarning, match=r"nearest of 60 rows to each of 60 .* minutes"):
        exact_search(X, X, 2, np.arange(60))
