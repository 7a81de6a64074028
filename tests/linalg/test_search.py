"""The nearest rows: the exact search and the one by clusters, on numpy and on torch."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

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


@pytest.fixture
def by_clusters(monkeypatch):
    monkeypatch.setattr(LIMITS, "exact_pairs", 0)
    monkeypatch.setattr(LIMITS, "short_rows", 0)


def share_found(found, exact):
    """Share of the neighbours that are no farther than the k-th nearest."""
    lowest = to_numpy(exact.similarities).min(axis=1, keepdims=True)
    return np.mean(to_numpy(found.similarities) >= lowest - 1e-6)


def test_many_rows_are_searched_by_clusters_with_the_recall_promised():
    X = classes(33_000, seed=1)
    found = nearest(X, None, 10)
    assert found.method == "clustered"
    assert found.recall >= 0.95
    picked = np.arange(0, 33_000, 33)
    S = X[picked] @ X.T
    S[np.arange(1000), picked] = -np.inf
    lowest = np.partition(S, -10, axis=1)[:, -10]
    recall = np.mean(found.similarities[picked] >= lowest[:, None] - 1e-6)
    assert recall >= 0.95
    assert found.recall == pytest.approx(recall, abs=0.02)


@pytest.mark.usefixtures("by_clusters")
def test_a_bound_on_candidates_costs_recall_and_says_so(table, monkeypatch):
    X = table(classes(3000))
    free = nearest(X, None, 7)
    monkeypatch.setattr(LIMITS, "candidates", 60)
    bounded = nearest(X, None, 7)
    monkeypatch.setattr(LIMITS, "exact_pairs", 10**9)
    share = share_found(bounded, nearest(X, None, 7))
    assert 0.3 < bounded.recall < free.recall - 0.05
    assert bounded.recall == pytest.approx(share, abs=0.05)


@pytest.mark.usefixtures("by_clusters")
def test_neighbors_by_clusters(table, monkeypatch):
    X = table(classes(3000))
    found = nearest(X, None, 7)
    indices, similarities = to_numpy(found.indices), to_numpy(found.similarities)
    monkeypatch.setattr(LIMITS, "exact_pairs", 10**9)
    exact = nearest(X, None, 7)
    assert (found.method, exact.method, exact.recall) == ("clustered", "exact", 1.0)
    assert share_found(found, exact) >= 0.95
    assert found.recall >= 0.93
    assert not (indices == np.arange(3000)[:, None]).any()
    assert all(len(set(row)) == 7 for row in indices)
    cosines = np.einsum("id,ijd->ij", to_numpy(X), to_numpy(X)[indices])
    np.testing.assert_allclose(similarities, cosines, atol=1e-6)


@pytest.mark.usefixtures("by_clusters")
def test_nearest_rows_of_another_table(table, monkeypatch):
    source, target = table(classes(2000)), table(classes(2500, seed=2))
    found = nearest(target, source)
    assert found.indices.shape == (2500, 1)
    monkeypatch.setattr(LIMITS, "exact_pairs", 10**9)
    assert share_found(found, nearest(target, source)) >= 0.95


@pytest.mark.usefixtures("by_clusters")
def test_the_same_rows_have_the_same_neighbors(table, monkeypatch):
    X = table(classes(2000))
    once = nearest(X, None, 5)
    monkeypatch.setattr(LIMITS, "similarity_values", 3000)
    monkeypatch.setattr(LIMITS, "fewest_queries", 3)
    with threadpool_limits(1):
        again = nearest(X, None, 5)
    np.testing.assert_allclose(
        np.sort(to_numpy(once.similarities)), np.sort(to_numpy(again.similarities)), atol=1e-6
    )
    assert once.recall == pytest.approx(again.recall, abs=1e-3)


@pytest.mark.usefixtures("by_clusters")
def test_threads_share_the_clusters_without_changing_the_result():
    X = classes(2000)
    with threadpool_limits(1):
        alone = nearest(X, None, 5)
    with threadpool_limits(2):
        assert any(pool["num_threads"] == 2 for pool in threadpool_info())
        shared = nearest(X, None, 5)
    np.testing.assert_array_equal(alone.indices, shared.indices)
    np.testing.assert_array_equal(alone.similarities, shared.similarities)


@pytest.mark.usefixtures("by_clusters")
@pytest.mark.parametrize("kind", ["equal", "zero", "some zero", "twins", "few"])
def test_degenerate_rows_by_clusters(kind, table):
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


@pytest.mark.usefixtures("by_clusters")
def test_of_rows_as_near_by_clusters_those_of_the_lowest_indices_are_taken(table):
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
