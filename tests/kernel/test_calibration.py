"""Probabilities: a softmax whose temperature comes from source rows left out in turn."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from problems import domains_of, made, rounds_of, small_problem
from transferable import TFDFV
from transferable._kernel.rounds import temperature

P = small_problem(seed=2)


def test_probabilities_sum_to_one_and_agree_with_labels(estimator):
    model = estimator.adapt(P.Xs, P.ys, P.Xt)
    probabilities = model.predict_proba(P.X)
    assert probabilities.shape == (len(P.X), 3)
    assert probabilities.min() >= 0
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(P.X))


def test_left_out_scores_are_those_of_a_fit_without_the_row_label():
    """The row stays, as every target row does; its label and its loss go."""
    model = TFDFV(balance=0.5, manifold_dim=None, second_order=0.1)
    rounds = made(rounds_of(model, domains_of(P), P.yt))
    solver, columns = rounds.solver, list(rounds.aligned.values())
    left_out = solver.left_out(rounds.F, columns, rounds.ratio, 12)
    n = len(P.X)
    forms = [(weight, form) for _, weight, form in solver.fixed]
    forms += [(1.0, form) for form in (solver.loss, *solver.extra)]
    S = sum(weight * form(np.eye(n)) for weight, form in forms)
    S += sum(E @ E.T for E in columns)
    for i in (0, 5, 11):
        without, Y = S.copy(), solver.Y.copy()
        without[i, i] -= 1.0
        Y[i] = 0.0
        system = without @ solver.K + solver.ridge * np.eye(n)
        np.testing.assert_allclose(
            left_out[i], (solver.K @ np.linalg.solve(system, Y))[i], atol=1e-8
        )


def test_temperature_is_the_most_likely():
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=200)
    scores = np.eye(3)[codes] + 0.6 * rng.normal(size=(200, 3))

    def loss(t):
        odds = np.exp(scores / t)
        return log_loss(codes, odds / odds.sum(axis=1, keepdims=True), labels=[0, 1, 2])

    best = temperature(scores, codes)
    assert loss(best) <= min(loss(0.9 * best), loss(1.1 * best))


def test_temperature_follows_the_scale_of_scores():
    rng = np.random.default_rng(1)
    codes = rng.integers(3, size=100)
    scores = np.eye(3)[codes] + 0.8 * rng.normal(size=(100, 3))
    assert temperature(2 * scores, codes) == pytest.approx(2 * temperature(scores, codes), rel=1e-3)


def test_probabilities_are_useful_where_domains_are_alike():
    """Without a shift the confidence is near the accuracy, and better than certainty."""
    p = small_problem(seed=3, n_source=150, n_target=150, shift=0.0)
    rng = np.random.default_rng(3)
    Xs, Xt = (X + 2.5 * rng.normal(size=X.shape) for X in (p.Xs, p.Xt))
    model = TFDFV().adapt(Xs, p.ys, Xt)
    confidence = model.predict_proba(Xt).max(axis=1).mean()
    assert abs(confidence - model.score(Xt, p.yt)) < 0.15
    assert log_loss(p.yt, model.predict_proba(Xt)) < np.log(3)


@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_known_labels_of_an_absent_class_leave_the_temperature(n_landmarks):
    """No temperature explains a label that the given shares rule out."""
    y = np.r_[P.ys, np.full(len(P.Xt), -1)]
    marks = np.repeat([1, -1], [len(P.Xs), len(P.Xt)])
    known = y.copy()
    known[len(P.Xs)] = 0
    asked = {"class_shares": [0.0, 0.5, 0.5], "target_labels": "use", "n_landmarks": n_landmarks}
    without, model = (TFDFV(**asked).fit(P.X, labels, sample_domain=marks) for labels in (y, known))
    assert model.transduction_[len(P.Xs)] == 0
    assert model.temperature_ < 2 * without.temperature_
