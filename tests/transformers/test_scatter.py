"""Scatters, graphs and the weighted discrepancy against sums written out; labels by nearest row."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances_argmin

from problems import random_codes, small_problem
from transferable.domains import Domains
from transferable.limits import LIMITS
from transferable.transformers._spectral import between_columns, predicted
from transferable.transformers.lpjt import (
    WeightedDiscrepancy,
    edge_scatter,
    nearest_between,
    nearest_inside,
)

X = np.array([[0.0], [1.0], [3.0], [3.5], [10.0], [3.6]])
GROUPS = np.array([0, 0, 0, 1, 1, 2])


def test_between_and_within_add_up_to_the_scatter_of_the_source():
    task = small_problem(n_source=30, n_target=20, n_features=4)
    marks = np.repeat([1, -1], [30, 20])
    domains = Domains.from_stacked(task.X, np.r_[task.ys, task.yt], marks)
    F = np.random.default_rng(0).normal(size=(50, 3))
    rows = F[domains.source]
    within = sum(
        np.sum((rows[domains.y == c] - rows[domains.y == c].mean(axis=0)) ** 2) for c in range(3)
    )
    E = between_columns(domains)
    assert not E[domains.target].any()
    total = np.sum((rows - rows.mean(axis=0)) ** 2)
    assert within + np.sum((E.T @ F) ** 2) == pytest.approx(total)


def test_edges_sum_squared_differences():
    F = np.random.default_rng(0).normal(size=(8, 3))
    W = np.zeros((8, 8))
    W[0, 3] = W[3, 0] = 2.0
    W[4, 5] = W[5, 4] = 1.0
    expected = 2 * np.sum((F[0] - F[3]) ** 2) + np.sum((F[4] - F[5]) ** 2)
    assert np.trace(edge_scatter(sp.csr_array(W), F)) == pytest.approx(expected)


def test_landmark_discrepancy_is_its_three_sums():
    codes = random_codes(1, 12, 9, 3)
    rng = np.random.default_rng(2)
    Z, w, share = rng.normal(size=(21, 4)), rng.random(21), 0.4
    domains = Domains(Z, codes[:12], np.arange(3), np.arange(21))
    term = WeightedDiscrepancy(domains, codes[12:], share=share)
    source = np.arange(21) < 12
    V = w[:, None] * Z / share

    def gap(members):
        difference = V[members & source].sum(0) / (members & source).sum()
        return np.sum((difference - V[members & ~source].sum(0) / (members & ~source).sum()) ** 2)

    expected = gap(np.ones(21, dtype=bool))
    for c in (0, 1):  # the last class has no target row
        members = codes == c
        pairs = V[members & source][:, None] - V[members & ~source][None]
        expected += gap(members) + np.mean(np.sum(pairs**2, axis=2))
    weighted = w[:, None] * Z
    assert np.sum(weighted * term.apply(weighted)) == pytest.approx(expected)
    assert w @ term.product_for_weights(Z, w) == pytest.approx(expected)


def edges(graph):
    i, j = graph.nonzero()
    assert set(zip(i, j, strict=True)) == set(zip(j, i, strict=True))
    assert (graph.data == 1).all()
    return {(a, b) for a, b in zip(i.tolist(), j.tolist(), strict=True) if a < b}


def test_nearest_of_the_same_group():
    assert edges(nearest_inside(X, GROUPS, 1)) == {(0, 1), (1, 2), (3, 4)}
    assert edges(nearest_inside(X, GROUPS, 5)) == {(0, 1), (0, 2), (1, 2), (3, 4)}


def test_closest_pairs_of_different_groups():
    assert edges(nearest_between(X, GROUPS, 1)) == {(3, 5)}
    assert edges(nearest_between(X, GROUPS, 3)) == {(3, 5), (2, 3), (2, 5)}


def test_one_group_has_no_pairs_between():
    assert nearest_between(X, np.zeros(6, dtype=int), 4).nnz == 0
    assert nearest_inside(X[:0], GROUPS[:0], 2).shape == (0, 0)


def rows(n, d=8, seed=0):
    """Rows of ten classes, far from the origin and of different lengths."""
    rng = np.random.default_rng(seed)
    centres = 4.0 * np.random.default_rng(1).normal(size=(10, d))
    return (centres[rng.integers(10, size=n)] + rng.normal(size=(n, d))) * 3.0 + 50.0


@pytest.mark.parametrize("n", [300, 4000])
@pytest.mark.parametrize("pairs", [LIMITS.labelled_pairs, 100_000, 0])
def test_labels_are_those_of_the_nearest_row_however_many_are_asked_at_once(n, pairs, monkeypatch):
    monkeypatch.setattr(LIMITS, "labelled_pairs", pairs)
    base, queries, labels = rows(n), rows(200, seed=3), np.arange(n) % 7
    expected = labels[pairwise_distances_argmin(queries, base)]
    np.testing.assert_array_equal(predicted(None, base, labels, np.ones(n), queries), expected)


def test_labels_of_rows_that_are_all_alike():
    found = predicted(None, np.ones((5, 2)), np.full(5, 7), np.ones(5), np.zeros((4, 2)))
    assert set(found) == {7}
