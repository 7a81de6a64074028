"""Estimates of accuracy without labels."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from transferable import TFDFV
from transferable.classifiers import AdaptedClassifier
from transferable.model_selection import AccuracyEstimate, estimate_accuracy

METHODS = {
    *("confidence", "calibrated_confidence", "difference_of_confidences"),
    *("thresholded_confidence", "agreement_of_halves", "agreement_of_methods"),
    "agreement_of_neighbors",
}


def overlapping(shift=0.0, n=300):
    """Two classes that no model separates, and the same moved."""
    rng = np.random.default_rng(0)
    y = np.arange(2 * n) % 2
    X = rng.normal(size=(2 * n, 3)) + 1.2 * y[:, None]
    return X[:n], y[:n], X[n:] + shift, y[n:]


def test_without_shift_every_method_is_near_the_truth():
    Xs, ys, Xt, yt = overlapping()
    model = AdaptedClassifier(None, LogisticRegression()).adapt(Xs, ys, Xt)
    truth = model.score(Xt, yt)
    estimate = estimate_accuracy(model, Xt, Xs, ys)
    assert set(estimate.methods) == METHODS
    assert estimate.low <= truth <= estimate.high
    for name in (name for name in METHODS if "confidence" in name):
        assert estimate.methods[name] == pytest.approx(truth, abs=0.08), name


def test_without_source_rows_it_is_the_confidence(stacked):
    estimate = estimate_accuracy(stacked.model, stacked.Xt)
    confidence = stacked.model.predict_proba(stacked.Xt).max(axis=1).mean()
    assert estimate.methods == {"confidence": pytest.approx(confidence)}
    assert estimate.accuracy == pytest.approx(confidence)
    assert 0 <= estimate.low <= estimate.accuracy <= estimate.high <= 1


def test_row_order_does_not_matter(stacked):
    plain = estimate_accuracy(stacked.model, stacked.Xt, stacked.Xs, stacked.ys)
    s, t = (np.random.default_rng(0).permutation(n) for n in (60, 50))
    other = estimate_accuracy(stacked.model, stacked.Xt[t], stacked.Xs[s], stacked.ys[s])
    assert other.methods == pytest.approx(plain.methods)


def test_more_rows_narrow_the_interval():
    few, many = (
        estimate_accuracy(TFDFV(max_iter=1).adapt(Xs, ys, Xt), Xt)
        for Xs, ys, Xt, _ in (overlapping(n=20), overlapping(n=200))
    )
    assert few.accuracy - few.low > many.accuracy - many.low


def test_a_class_with_a_single_row(stacked):
    ys = stacked.ys.copy()
    ys[0] = 7
    model = TFDFV(max_iter=2, n_neighbors=3).adapt(stacked.Xs, ys, stacked.Xt)
    estimate = estimate_accuracy(model, stacked.Xt, stacked.Xs, ys)
    assert set(estimate.methods) == METHODS
    two = np.array([0, 1])
    model = TFDFV(max_iter=2, n_neighbors=3).adapt(stacked.Xs[:2], two, stacked.Xt)
    estimate = estimate_accuracy(model, stacked.Xt, stacked.Xs[:2], two)
    assert "calibrated_confidence" not in estimate.methods


def test_constant_predictions():
    Xs, ys, Xt, _ = overlapping(shift=100.0)
    model = AdaptedClassifier(None, LogisticRegression()).adapt(Xs, ys, Xt)
    assert len(np.unique(model.predict(Xt))) == 1
    assert 0 <= estimate_accuracy(model, Xt, Xs, ys).accuracy <= 1


def test_bad_input(stacked):
    with pytest.raises(ValueError, match="Xs and ys go together"):
        estimate_accuracy(stacked.model, stacked.Xt, stacked.Xs)
    with pytest.raises(ValueError, match=r"Xt has shape \(0, 8\)"):
        estimate_accuracy(stacked.model, stacked.Xt[:0])
    with pytest.raises(NotFittedError):
        estimate_accuracy(TFDFV(), stacked.Xt)


def test_printed_form():
    assert str(AccuracyEstimate(0.5, 0.25, 1.0)) == "50 % (25 to 100 %)"
