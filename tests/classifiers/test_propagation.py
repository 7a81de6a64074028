"""Label propagation: its fixed point, its reach, its balance."""

import numpy as np

from problems import small_problem
from transferable._linalg.search import cosine_neighbors
from transferable.classifiers import LabelPropagation

PROBLEM = small_problem(n_source=45, n_target=40)


def test_labels_are_at_rest():
    """Spreading once more, on the dense graph, changes nothing."""
    model = LabelPropagation(6, spread=0.9).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    W = cosine_neighbors(PROBLEM.X, 6).toarray()
    scale = W.sum(axis=1) ** -0.5
    Y = np.zeros((85, 3))
    Y[np.arange(45), PROBLEM.ys] = 1.0
    F = Y.copy()
    for _ in range(400):
        F = 0.9 * (scale[:, None] * W * scale) @ F + Y
    F *= Y.sum(axis=0) / F[45:].sum(axis=0)  # as much of the target as of the source
    expected = F / F.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.label_distributions_, expected, atol=1e-6)


def test_follows_a_chain_of_rows_that_no_straight_line_separates():
    """Two half-circles on the sphere; labels at one end only, the target is the rest."""
    angle = np.linspace(0.1, np.pi - 0.1, 60)
    arc = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(60)])
    up = np.array([0.0, 0.0, 0.35])
    X = np.vstack([arc + up, arc - up])
    y = np.repeat([0, 1], 60)
    source = np.tile(angle < 0.5, 2)
    model = LabelPropagation(4).adapt(X[source], y[source], X[~source])
    assert np.mean(model.predict(X[~source]) == y[~source]) == 1.0


def test_rows_that_no_label_reaches_are_scored_alike():
    Xs = np.array([[1.0, 0.0, 0.0], [1.0, 0.1, 0.0], [0.1, 1.0, 0.0], [0.0, 1.0, 0.0]])
    Xt = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]])
    model = LabelPropagation(1).adapt(Xs, [0, 0, 1, 1], Xt)
    np.testing.assert_allclose(model.predict_proba(Xt), 0.5)
    np.testing.assert_allclose(model.label_distributions_[4:], 0.0)
