"""Graphs over rows in groups."""

import numpy as np

from transferable.linalg.group_graphs import nearest_between, nearest_inside

X = np.array([[0.0], [1.0], [3.0], [3.5], [10.0], [3.6]])
GROUPS = np.array([0, 0, 0, 1, 1, 2])


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
