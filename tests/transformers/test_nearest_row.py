"""One nearest neighbour with probabilities that its distances tell."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsClassifier

from transferable.transformers._nearest_row import NearestRow


def blobs(n=90, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return 4 * np.eye(3)[y] + spread * rng.normal(size=(n, 3)), np.array(["a", "b", "c"])[y]


X, y = blobs()
NEW, TRUE = blobs(600, seed=1)


def test_labels_are_those_of_the_nearest_neighbour():
    expected = KNeighborsClassifier(1).fit(X, y).predict(NEW)
    model = NearestRow().fit(X, y)
    np.testing.assert_array_equal(model.predict(NEW), expected)
    np.testing.assert_array_equal(model.classes_[model.predict_proba(NEW).argmax(axis=1)], expected)


def test_probabilities_are_powers_of_the_distances_to_each_class():
    model = NearestRow().fit(X, y)
    distances = np.stack(
        [np.linalg.norm(NEW[:, None] - X[y == c], axis=2).min(axis=1) for c in "abc"], axis=1
    )
    powers = distances ** (-1 / model.temperature_)
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(NEW), expected, rtol=1e-6)


def test_confidence_is_about_the_accuracy_where_rows_are_of_the_same_kind():
    for spread in (1.0, 2.0):
        rows, labels = blobs(spread=spread)
        new, true = blobs(600, spread, seed=1)
        model = NearestRow().fit(rows, labels)
        accuracy = np.mean(model.predict(new) == true)
        assert model.predict_proba(new).max(axis=1).mean() == pytest.approx(accuracy, abs=0.06)


def test_sure_rows_are_right_more_often_than_unsure_ones():
    rows, labels = blobs(spread=2.0)
    new, true = blobs(600, 2.0, seed=1)
    model = NearestRow().fit(rows, labels)
    confidence, right = model.predict_proba(new).max(axis=1), model.predict(new) == true
    sure = confidence > np.median(confidence)
    assert right[sure].mean() > right[~sure].mean() + 0.1


def test_the_unit_of_rows_does_not_matter():
    expected = NearestRow().fit(X, y).predict_proba(NEW)
    np.testing.assert_allclose(NearestRow().fit(1e3 * X, y).predict_proba(1e3 * NEW), expected)


def test_sparse_rows():
    expected = NearestRow().fit(X, y).predict_proba(NEW)
    model = NearestRow().fit(sp.csr_array(X), y)
    np.testing.assert_allclose(model.predict_proba(sp.csr_array(NEW)), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "rows",
    [np.zeros((6, 2)), np.repeat(np.eye(3, 2), 2, axis=0), np.arange(12.0).reshape(6, 2)],
    ids=["all alike", "copies", "no copies"],
)
def test_copies_and_classes_of_one_row(rows):
    for labels in ([0, 0, 1, 1, 2, 2], [0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 1]):
        model = NearestRow().fit(rows, np.array(labels))
        probabilities = model.predict_proba(rows)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        best = model.classes_[probabilities.argmax(axis=1)]
        np.testing.assert_array_equal(best, model.predict(rows))
