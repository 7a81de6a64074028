"""Importance weighting: covariate shift mended, few rows told."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from transferable.classifiers import ImportanceWeighted
from transferable.ratios import RATIOS, effective_sample_size


def covariate_shift(seed=0):
    """Labels that a line can tell apart near the target only; the same rule in both domains."""
    rng = np.random.default_rng(seed)

    def rule(X):
        return (X[:, 1] > np.sin(2.0 * X[:, 0])).astype(int)

    Xs = rng.uniform(-3, 3, size=(600, 2))
    Xt = rng.uniform([-0.7, -1.5], [0.7, 1.5], size=(300, 2))
    return Xs, rule(Xs), Xt, rule(Xt)


@pytest.mark.parametrize("ratio", RATIOS)
def test_weighting_mends_covariate_shift(ratio):
    Xs, ys, Xt, yt = covariate_shift()
    line = LogisticRegression(C=100)
    alone = np.mean(line.fit(Xs, ys).predict(Xt) == yt)
    weighted = np.mean(ImportanceWeighted(line, ratio).adapt(Xs, ys, Xt).predict(Xt) == yt)
    # A logistic regression cannot tell a square from one inside it; the others must gain.
    assert weighted >= alone - 0.01 if ratio == "logistic" else weighted > alone


def test_equal_weights_are_the_estimator_itself():
    Xs, ys, Xt, _ = covariate_shift()
    model = ImportanceWeighted(LogisticRegression(), ratio=lambda Xs, Xt: np.ones(len(Xs)))
    model.adapt(Xs, ys, Xt)
    expected = LogisticRegression().fit(Xs, ys).decision_function(Xt)
    np.testing.assert_allclose(model.decision_function(Xt), expected, rtol=1e-3, atol=1e-3)
    assert model.effective_sample_size_ == pytest.approx(len(Xs))


def test_clipping_and_the_effective_sample_size():
    Xs, ys, Xt, _ = covariate_shift()
    loose, tight = (
        ImportanceWeighted(ratio="kmm", clip=clip).adapt(Xs, ys, Xt) for clip in (None, 2.0)
    )
    weights = tight.sample_weight_[:600]
    assert weights.max() <= 2.0 / np.minimum(loose.sample_weight_[:600], 2.0).mean() + 1e-9
    assert loose.sample_weight_[600:].sum() == 0
    assert tight.effective_sample_size_ == pytest.approx(effective_sample_size(weights))
    assert loose.effective_sample_size_ < tight.effective_sample_size_


def test_says_if_a_few_rows_carry_the_weight():
    Xs, ys, Xt, _ = covariate_shift()
    one = np.eye(600)[[300, 301, 302]].sum(axis=0)
    with pytest.warns(UserWarning, match=r"The 600 weighted source rows are worth as much as 3\.0"):
        ImportanceWeighted(LogisticRegression(), lambda *_: one, clip=None).adapt(Xs, ys, Xt)


def test_refuses_what_cannot_be_weighted():
    Xs, ys, Xt, _ = covariate_shift()
    with pytest.raises(ValueError, match="KNeighborsClassifier takes no sample_weight"):
        ImportanceWeighted(KNeighborsClassifier()).adapt(Xs, ys, Xt)
    with pytest.raises(ValueError, match=r"shape \(3,\) .*a number for each of the 600"):
        ImportanceWeighted(ratio=lambda Xs, Xt: np.ones(3)).adapt(Xs, ys, Xt)


@pytest.mark.parametrize("learner", [None, SVC(), LogisticRegression()])
def test_a_class_without_any_weight_stays_known(learner):
    rng = np.random.default_rng(0)
    ys = np.arange(30) % 3
    Xs = rng.normal(size=(30, 2)) + 4 * np.c_[ys == 1, ys == 2]
    model = ImportanceWeighted(learner, ratio=lambda Xs, _: (ys < 2).astype(float))
    model.adapt(Xs, ys, Xs[ys < 2])
    assert model.predict_proba(Xs).shape == (30, 3)
    assert np.mean(model.predict(Xs[ys < 2]) == ys[ys < 2]) > 0.9
