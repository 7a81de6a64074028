"""What every scorer must do, and what each one means on cases that are worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from transferable import TFDFV, model_selection
from transferable.classifiers import AdaptedClassifier
from transferable.model_selection import (
    SCORERS,
    AgreementScore,
    CircularScore,
    ConfusionScore,
    DensityScore,
    DevScore,
    EntropyScore,
    ImportanceWeightedScore,
    InformationScore,
    NeighborsScore,
    RankSum,
    SilhouetteScore,
)

every_scorer = pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS.keys())


class Oracle(ClassifierMixin, BaseEstimator):
    """Predicts given distributions for given rows; adapting to other rows changes nothing."""

    def __init__(self, rows, probabilities):
        self.rows = rows
        self.probabilities = probabilities

    def fit(self, X, y):
        self.classes_ = np.arange(self.probabilities.shape[1])
        return self

    def predict_proba(self, X):
        index = [int(np.flatnonzero((self.rows == row).all(axis=1))[0]) for row in X]
        return self.probabilities[index]

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def predicting(stacked, codes, sure=1.0):
    """A model that gives the target rows these classes and the source rows their own."""
    codes = np.concatenate([stacked.ys, codes])
    P = np.full((len(codes), 3), (1.0 - sure) / 2)
    P[np.arange(len(codes)), codes] = sure
    return Oracle(stacked.X, P).fit(None, None)


def test_classes_are_named_after_their_scores():
    for name, scorer in SCORERS.items():
        assert type(scorer).__name__ == name.title().replace("_", "") + "Score"
        assert getattr(model_selection, type(scorer).__name__) is type(scorer)


@every_scorer
def test_finite_and_independent_of_row_order(scorer, stacked):
    score = scorer(stacked.model, stacked.X, stacked.y)
    order = np.random.default_rng(1).permutation(len(stacked.y))
    again = scorer(stacked.model, stacked.X[order], stacked.y[order])
    assert np.isfinite(score)
    assert again == pytest.approx(score, abs=1e-9)


@every_scorer
def test_target_labels_are_never_read(scorer, stacked):
    marked = scorer(stacked.model, stacked.X, stacked.y)
    for garbage in (stacked.yt, stacked.yt[::-1], np.full(len(stacked.yt), 99)):
        y = np.concatenate([stacked.ys, garbage])
        assert scorer(stacked.model, stacked.X, y, stacked.marks) == pytest.approx(marked)
    y = np.concatenate([stacked.ys, np.full(len(stacked.yt), np.nan)])
    assert scorer(stacked.model, stacked.X, y) == pytest.approx(marked)


@every_scorer
def test_constant_predictions_and_absent_classes(scorer, stacked):
    for codes in (np.zeros(50, dtype=int), np.arange(50) % 2):
        assert np.isfinite(scorer(predicting(stacked, codes), stacked.X, stacked.y))


@every_scorer
def test_no_target_rows(scorer, stacked):
    with pytest.raises(ValueError, match="None of the 60 rows is a target row"):
        scorer(stacked.model, stacked.Xs, stacked.ys)
    with pytest.raises(ValueError, match="target domain empty"):
        scorer(stacked.model, stacked.Xs, stacked.ys, np.ones(60))


@every_scorer
def test_string_labels_and_named_columns(scorer, stacked):
    names = np.array(["ant", "bee", "cat"])
    X = pd.DataFrame(stacked.X, columns=[f"f{i}" for i in range(stacked.X.shape[1])])
    y = np.concatenate([names[stacked.ys], np.full(len(stacked.yt), None)])
    model = TFDFV(max_iter=3, n_neighbors=3).fit(X, y)
    plain = scorer(stacked.model, stacked.X, stacked.y)
    assert scorer(model, X, y) == pytest.approx(plain, abs=1e-9)


def test_scikit_learn_takes_them_as_scoring(stacked):
    model = TFDFV(max_iter=2, n_neighbors=3)
    scores = cross_val_score(model, stacked.X, stacked.y, cv=2, scoring=EntropyScore())
    assert np.isfinite(scores).all()


def test_models_without_probabilities(stacked):
    class Bare(BaseEstimator):
        classes_ = np.arange(3)

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    assert EntropyScore()(Bare(), stacked.X, stacked.y) == 0.0


def test_confidence_scores_of_known_distributions(stacked):
    balanced = np.arange(50) % 3
    shares = np.bincount(balanced) / 50
    sure = predicting(stacked, balanced)
    diversity = -float(np.sum(shares * np.log(shares)))
    assert EntropyScore()(sure, stacked.X, stacked.y) == 0.0
    assert InformationScore()(sure, stacked.X, stacked.y) == pytest.approx(diversity)
    assert ConfusionScore()(sure, stacked.X, stacked.y) == pytest.approx(0.0, abs=1e-3)
    constant = predicting(stacked, np.zeros(50, dtype=int))
    assert EntropyScore()(constant, stacked.X, stacked.y) == 0.0
    assert InformationScore()(constant, stacked.X, stacked.y) == 0.0
    unsure = predicting(stacked, balanced, sure=0.5)
    for scorer in (EntropyScore(), InformationScore(), ConfusionScore()):
        assert scorer(unsure, stacked.X, stacked.y) < scorer(sure, stacked.X, stacked.y)


def test_neighborhood_scores_prefer_the_true_classes(stacked):
    true = predicting(stacked, stacked.yt)
    random = predicting(stacked, np.random.default_rng(0).integers(3, size=50))
    constant = predicting(stacked, np.zeros(50, dtype=int))
    for scorer in (NeighborsScore(), SilhouetteScore()):
        right = scorer(true, stacked.X, stacked.y)
        assert right > scorer(random, stacked.X, stacked.y)
        assert right > scorer(constant, stacked.X, stacked.y)
    assert NeighborsScore()(constant, stacked.X, stacked.y) == 0.0
    assert SilhouetteScore()(constant, stacked.X, stacked.y) == -1.0


def test_density_of_equal_predictions_is_the_entropy_of_all_other_rows(stacked):
    constant = predicting(stacked, np.zeros(50, dtype=int))
    score = DensityScore()(constant, stacked.X, stacked.y)
    assert score == pytest.approx(np.log(49))


class Told(TFDFV):
    """TFDF-V that predicts what it was told; its copies predict for themselves."""

    def predict(self, X):
        if not hasattr(self, "told_"):
            return super().predict(X)
        return np.array([self.told_[row.tobytes()] for row in X])


def test_circular_validation_prefers_the_true_classes(stacked):
    scores = []
    for codes in (stacked.yt, (stacked.yt + np.arange(50)) % 3):
        model = Told(n_neighbors=3).fit(stacked.X, stacked.y)
        model.told_ = {row.tobytes(): code for row, code in zip(stacked.Xt, codes, strict=True)}
        scores.append(CircularScore()(model, stacked.X, stacked.y))
    assert scores[0] > scores[1]
    constant = predicting(stacked, np.ones(50, dtype=int))
    assert CircularScore()(constant, stacked.X, stacked.y) == np.mean(stacked.ys == 1)


def test_importance_scores_without_shift_are_held_out_accuracy():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 3)) + 1.5 * y[:, None]
    labels = np.where(np.arange(400) < 200, y, -1).astype(float)
    labels[200:] = np.nan
    model = AdaptedClassifier(None, LogisticRegression()).fit(X, labels)
    truth = model.score(X[200:], y[200:])
    for scorer in (ImportanceWeightedScore(), DevScore()):
        assert scorer(model, X, labels) == pytest.approx(truth, abs=0.12)


def test_agreement_with_a_given_panel(stacked):
    constant = predicting(stacked, np.zeros(50, dtype=int))
    panel = (AdaptedClassifier(None, LogisticRegression()),)
    vote = panel[0].adapt(stacked.Xs, stacked.ys, stacked.Xt).predict(stacked.Xt)
    score = AgreementScore(panel)(constant, stacked.X, stacked.y)
    assert score == pytest.approx(np.mean(vote == 0))


def test_rank_sum_adds_ranks_and_leaves_gaps():
    scores = {"a": np.array([3.0, 1.0, np.nan, 2.0]), "b": np.array([10.0, 10.0, 0.0, 30.0])}
    total = RankSum(("a", "b")).combine(scores)
    np.testing.assert_array_equal(total, [4.5, 2.5, np.nan, 5.0])
    nothing = RankSum(("a",)).combine({"a": np.full(2, np.nan)})
    assert np.isnan(nothing).all()
