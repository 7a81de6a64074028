"""CAPLS: its projection against the dense definition, its selection, its published accuracy."""

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.preprocessing import normalize

from problems import small_problem
from transferable.classifiers import CAPLS, SPL
from transferable.classifiers.self_training import most_confident
from transferable.datasets import fetch_office_caltech

PROBLEM = small_problem(n_features=8)
STACKED = (PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)


def nearest_mean_of_dense_projection(Xs, ys, Xt, ridge):
    """The first round as the paper writes it: W, D and L in full, then distances to class means."""
    X = normalize(np.vstack([Xs, Xt]))
    W = np.zeros((len(X), len(X)))
    W[: len(ys), : len(ys)] = ys[:, None] == ys
    D = np.diag(W.sum(axis=1))
    below = X.T @ (D - W) @ X + ridge * np.eye(X.shape[1])
    _, P = eigh(X.T @ D @ X, below)
    np.testing.assert_allclose(P.T @ below @ P, np.eye(X.shape[1]), atol=1e-8)
    Z = normalize(X @ P - (X @ P).mean(axis=0))
    means = normalize([Z[: len(ys)][ys == c].mean(axis=0) for c in np.unique(ys)])
    distances = np.linalg.norm(Z[:, None] - means, axis=2)
    return np.exp(-distances) / np.exp(-distances).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("ridge", [0.1, 1.0])
def test_first_round_is_the_dense_definition(ridge):
    model = CAPLS(ridge=ridge, max_iter=1).adapt(*STACKED)
    expected = nearest_mean_of_dense_projection(*STACKED, ridge)
    np.testing.assert_allclose(model.predict_proba(PROBLEM.X), expected, atol=1e-8)


@pytest.mark.parametrize("method", [CAPLS, SPL])
def test_equal_rows_are_told_apart_by_no_rounding_error(method):
    rows = np.full((7, 12), 12**-0.5)
    model = method().adapt(rows[:5], np.arange(5) % 2, rows[5:])
    np.testing.assert_allclose(model.predict_proba(rows), 0.5)
    assert model.predict(rows[5:]).tolist() == model.transduction_[5:].tolist()


def test_more_features_than_rows_change_nothing():
    """Rows rotated into a larger space, as deep features are: all distances stay as they were."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(90, 8)))[0].T
    narrow = CAPLS(5).adapt(*STACKED)
    wide = CAPLS(5).adapt(PROBLEM.Xs @ turn, PROBLEM.ys, PROBLEM.Xt @ turn)
    np.testing.assert_allclose(
        wide.predict_proba(PROBLEM.Xt @ turn), narrow.predict_proba(PROBLEM.Xt), atol=1e-6
    )


def test_row_length_does_not_matter():
    model = SPL(pca_components=4).adapt(*STACKED)
    np.testing.assert_allclose(
        model.predict_proba(7 * PROBLEM.Xt), model.predict_proba(PROBLEM.Xt), atol=1e-10
    )


def test_selection_takes_the_surest_share_of_each_class():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40, 3))
    codes, confidence = scores.argmax(axis=1), scores.max(axis=1)
    for share in (0.0, 0.1, 0.3, 0.5, 1.0):
        trusted = most_confident(scores, share)
        assert np.array_equal(trusted[trusted >= 0], codes[trusted >= 0])
        for code in range(3):
            chosen = confidence[trusted == code]
            left = confidence[(codes == code) & (trusted < 0)]
            assert len(chosen) == int(share * np.sum(codes == code) + 1e-9)
            assert not len(chosen) or not len(left) or chosen.min() >= left.max()


def test_selection_keeps_whole_tenths():
    scores = np.column_stack([np.arange(1.0, 11.0), np.zeros(10)])
    assert [np.sum(most_confident(scores, t / 10) >= 0) for t in range(11)] == list(range(11))


def test_structured_prediction_keeps_the_mean_of_a_class_without_target_rows():
    ys = np.r_[PROBLEM.ys, 3, 3]
    Xs = np.vstack([PROBLEM.Xs, -9 * np.ones((2, 8)) + np.eye(2, 8)])
    model = SPL().adapt(Xs, ys, PROBLEM.Xt)
    assert set(model.predict(Xs[-2:])) == {3}
    np.testing.assert_allclose(model.predict_proba(PROBLEM.Xt).sum(axis=1), 1.0)


def test_too_many_components_are_reduced_with_a_warning():
    with pytest.warns(UserWarning, match="n_components=50 .* reduced to 8"):
        model = CAPLS(50, max_iter=1).adapt(*STACKED)
    assert model.n_components_ == 8
    assert CAPLS(3).adapt(*STACKED).n_components_ == 3


def test_structured_prediction_follows_clusters_that_class_means_miss():
    """Target clusters far off the source's means, each nearer to its own mean than to others."""
    rng = np.random.default_rng(0)
    ys = np.repeat([0, 1, 2], 30)
    centres = 6 * np.eye(3, 6)
    Xs = centres[ys] + rng.normal(size=(90, 6))
    turned = centres + 2.6 * centres[[1, 2, 0]] / 6 * 2
    Xt = turned[ys] + 0.9 * rng.normal(size=(90, 6))
    plain, structured = (
        np.mean(cls(max_iter=1).adapt(Xs, ys, Xt).predict(Xt) == ys) for cls in (CAPLS, SPL)
    )
    assert structured > plain


@pytest.mark.parametrize(("task", "least"), [("WD", 99.3), ("DW", 100.0)])
def test_published_accuracy_on_decaf6(data_home, task, least):
    """Wang et al. print 100 and 100; 99.3 allows one of the 157 images of D."""
    pair = fetch_office_caltech("decaf6", data_home=data_home).task(*task)
    model = CAPLS(128, pca_components=None).adapt(pair.Xs, pair.ys, pair.Xt)
    assert 100 * np.mean(model.transduction_[len(pair.ys) :] == pair.yt) >= least
