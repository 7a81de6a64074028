"""Labels by the nearest row."""

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances_argmin

from transferable.limits import LIMITS
from transferable.linalg.nearest_labels import nearest_labels


def rows(n, d=8, seed=0):
    """Rows of ten classes, far from the origin and of different lengths."""
    rng = np.random.default_rng(seed)
    centres = 4.0 * np.random.default_rng(1).normal(size=(10, d))
    return (centres[rng.integers(10, size=n)] + rng.normal(size=(n, d))) * 3.0 + 50.0


@pytest.mark.parametrize("n", [300, 4000])
def test_exact_search_finds_the_nearest_by_distance(n, monkeypatch):
    base, queries = rows(n), rows(200, seed=4)  # without ties in single precision
    expected = pairwise_distances_argmin(queries, base)
    labels = np.arange(n) % 7
    np.testing.assert_array_equal(nearest_labels(base, labels, queries), labels[expected])
    monkeypatch.setattr(LIMITS, "labelled_pairs", 0)
    np.testing.assert_array_equal(nearest_labels(base, np.arange(n), queries), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_search_by_clusters_nearly_always_does(dtype, monkeypatch):
    base, queries = rows(6000).astype(dtype), rows(3000, seed=3).astype(dtype)
    monkeypatch.setattr(LIMITS, "labelled_pairs", 0)
    monkeypatch.setattr(LIMITS, "exact_pairs", 0)
    found = nearest_labels(base, np.arange(6000), queries)
    expected = pairwise_distances_argmin(queries, base)
    assert np.mean(found == expected) > 0.9
    distances, least = (np.linalg.norm(queries - base[i], axis=1) for i in (found, expected))
    assert np.median(distances / least) == 1.0
    assert np.max(distances / least) < 3.0


def test_rows_that_are_all_alike(monkeypatch):
    monkeypatch.setattr(LIMITS, "labelled_pairs", 0)
    assert set(nearest_labels(np.ones((5, 2)), np.full(5, 7), np.zeros((4, 2)))) == {7}
