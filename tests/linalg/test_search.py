"""The nearest rows, on numpy and on torch."""

import numpy as np
import pytest

from transferable._linalg.arrays import Arrays, to_numpy, unit_rows
from transferable._linalg.search import nearest
from transferable.limits import LIMITS

LIBRARIES = [
    pytest.param("cpu", id="numpy"),
    pytest.param("torch", id="torch"),
]


def classes(n, d=16, seed=0):
    rng = np.random.default_rng(seed)
    centers = 2.0 * rng.normal(size=(10, d))
    return unit_rows(centers[rng.integers(10, size=n)] + rng.normal(size=(n, d)))


@pytest.fixture(params=LIBRARIES)
def table(request):
    if request.param == "torch":
        pytest.importorskip("torch")
    return Arrays.on(request.param).table


def test_many_rows_are_searched_in_single_precision(table, monkeypatch):
    X, others = classes(300), classes(200, seed=2)
    for base in (None, others):
        exact = nearest(table(X), None if base is None else table(base), 7)
        monkeypatch.setattr(LIMITS, "double_pairs", 0)
        found = nearest(table(X), None if base is None else table(base), 7)
        monkeypatch.undo()
        assert to_numpy(found.similarities).dtype == np.float32
        similarities = [np.sort(to_numpy(each.similarities)) for each in (found, exact)]
        np.testing.assert_allclose(*similarities, atol=1e-6)
        own = X if base is None else base
        cosines = np.einsum("id,ijd->ij", X, own[to_numpy(found.indices)])
        np.testing.assert_allclose(to_numpy(found.similarities), cosines, atol=1e-6)


@pytest.mark.parametrize("double_pairs", [0, 2**30])
@pytest.mark.parametrize("kind", ["equal", "zero", "some zero", "twins", "few"])
def test_degenerate_rows(kind, double_pairs, table, monkeypatch):
    monkeypatch.setattr(LIMITS, "double_pairs", double_pairs)
    X = classes(600)
    if kind == "equal":
        X[:] = X[0]
    elif kind == "zero":
        X[:] = 0.0
    elif kind == "some zero":
        X[::3] = 0.0
    elif kind == "twins":
        X[300:] = X[:300]
    else:
        X = X[:12]
    found = nearest(table(X), None, 10)
    indices, similarities = to_numpy(found.indices), to_numpy(found.similarities)
    assert np.isfinite(similarities).all()
    assert not (indices == np.arange(len(X))[:, None]).any()
    assert all(len(set(row)) == 10 for row in indices)
    np.testing.assert_allclose(similarities, np.einsum("id,ijd->ij", X, X[indices]), atol=1e-6)
    if kind in ("equal", "twins"):
        np.testing.assert_allclose(similarities.max(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("double_pairs", [0, 2**30])
def test_of_rows_as_near_those_of_the_lowest_indices_are_taken(table, double_pairs, monkeypatch):
    monkeypatch.setattr(LIMITS, "double_pairs", double_pairs)
    which = np.random.default_rng(0).permutation(1200) % 100  # twelve rows are equal
    found = nearest(table(classes(100)[which]), None, 5)
    for row, indices in enumerate(np.sort(to_numpy(found.indices), axis=1)):
        twins = np.flatnonzero(which == which[row])
        np.testing.assert_array_equal(indices, twins[twins != row][:5])


def test_too_many_neighbors_are_refused():
    X = classes(5)
    with pytest.raises(ValueError, match=r"k=5 .* there are 4"):
        nearest(X, None, 5)
    assert nearest(X, X, 5).indices.shape == (5, 5)
