"""Self-training: the balance of its rounds, and any classifier."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.semi_supervised import SelfTrainingClassifier

from problems import small_problem
from transferable.classifiers import SelfTraining

PROBLEM = small_problem(n_source=60, n_target=60)


class Recorder(GaussianNB):
    """Keeps the labels of every fit."""

    seen = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.seen.append(np.array(y))
        return super().fit(X, y, sample_weight)


def test_each_round_trains_on_the_same_growing_share_of_every_guessed_class():
    Recorder.seen = []
    SelfTraining(Recorder(), max_iter=4, trusted=0.8).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    sizes = [len(y) - len(PROBLEM.ys) for y in Recorder.seen]
    assert len(sizes) == 5
    assert sizes[0] == 0
    for t, size in enumerate(sizes):  # rounded down in each of three classes
        assert 0.2 * t * 60 - 3 < size <= 0.2 * t * 60 + 1e-9


@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression(max_iter=500)], ids=str)
def test_does_not_crowd_classes_out_where_one_threshold_does(estimator):
    """One class is spread widely, so that a threshold common to all never takes its rows."""
    rng = np.random.default_rng(1)
    ys = np.repeat([0, 1, 2], 40)
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    Xs = centres[ys] + rng.normal(size=(120, 2))
    Xt = centres[ys] + [2.2, 0.6] + rng.normal(size=(120, 2))
    ours = SelfTraining(estimator).adapt(Xs, ys, Xt).predict(Xt)
    alone = estimator.fit(Xs, ys).predict(Xt)
    y = np.r_[ys, np.full(120, -1)]
    peer = SelfTrainingClassifier(estimator).fit(np.vstack([Xs, Xt]), y).predict(Xt)
    assert np.mean(ours == ys) > np.mean(alone == ys)
    assert np.mean(ours == ys) >= np.mean(peer == ys)
