"""Agreement of neighbours."""

import numpy as np
import pytest

from transferable.metrics import neighbor_consistency


def clusters(n=60):
    rng = np.random.default_rng(0)
    codes = np.arange(n) % 3
    return np.eye(3)[codes] + 0.05 * rng.normal(size=(n, 3)), codes


def test_one_for_clusters_and_zero_for_constant_labels():
    X, codes = clusters()
    assert neighbor_consistency(X, codes) == 1.0
    assert neighbor_consistency(X, np.zeros_like(codes)) == 0.0


def test_random_labels_are_near_zero_whatever_their_frequencies():
    X, _ = clusters(3000)
    rng = np.random.default_rng(1)
    for p in ([0.5, 0.5], [0.95, 0.05]):
        assert neighbor_consistency(X, rng.choice(2, 3000, p=p)) == pytest.approx(0.0, abs=0.05)


def test_few_rows():
    X, codes = clusters(3)
    assert neighbor_consistency(X[:1], codes[:1]) == 0.0
    assert np.isfinite(neighbor_consistency(X, codes, n_neighbors=50))
