"""TrAdaBoost: the published algorithm for two classes, and what stands in for target labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from problems import small_problem
from transferable.classifiers import TrAdaBoost
from transferable.domains import Domains

PROBLEM = small_problem(n_classes=2, n_source=40, n_target=30, shift=2.0)
STACKED = (PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
STUMP = DecisionTreeClassifier(max_depth=1, random_state=0)


def published(learner, Xs, cs, Xt, ct, n_rounds):
    """Figure 1 of Dai et al., for labels 0 and 1: the final hypothesis and the final weights."""
    X, c, n = np.vstack([Xs, Xt]), np.r_[cs, ct], len(cs)
    w = np.ones(len(c)) / len(c)
    beta = 1 / (1 + np.sqrt(2 * np.log(n) / n_rounds))
    hypotheses, betas = [], []
    for _ in range(n_rounds):
        p = w / w.sum()
        h = learner().fit(X, c, sample_weight=p * len(p)).predict
        wrong = np.abs(h(X) - c)
        error = np.sum(w[n:] * wrong[n:]) / w[n:].sum()
        assert 0 < error < 0.5
        beta_t = error / (1 - error)
        w = np.r_[w[:n] * beta ** wrong[:n], w[n:] * beta_t ** -wrong[n:]]
        hypotheses.append(h)
        betas.append(beta_t)
    late = range(int(np.ceil(n_rounds / 2)) - 1, n_rounds)

    def final(rows):
        left = np.prod([betas[t] ** -hypotheses[t](rows).astype(float) for t in late], axis=0)
        return (left >= np.prod([betas[t] ** -0.5 for t in late])).astype(int)

    return final, w / w.sum()


@pytest.mark.parametrize("n_rounds", [4, 7])
def test_two_classes_are_boosted_as_published(n_rounds):
    labeler = LogisticRegression()
    domains = Domains.from_stacked(PROBLEM.X, np.r_[PROBLEM.ys, np.full(30, -1)])
    guesses = labeler.fit(domains.Xs, domains.y).predict(domains.Xt)
    final, weights = published(
        lambda: DecisionTreeClassifier(max_depth=1, random_state=0),
        domains.Xs,
        domains.y,
        domains.Xt,
        guesses,
        n_rounds,
    )
    model = TrAdaBoost(STUMP, labeler=labeler, trusted=1.0, n_estimators=n_rounds).adapt(*STACKED)
    assert len(model.estimators_) == n_rounds
    np.testing.assert_array_equal(model.predict(PROBLEM.X), final(PROBLEM.X))
    np.testing.assert_allclose(model.sample_weight_, domains.restore(weights), rtol=1e-8)


def test_only_the_surest_guesses_are_learnt_from():
    model = TrAdaBoost(trusted=0.3).adapt(*STACKED)
    labeler = LinearSVC(dual=False).fit(PROBLEM.Xs, PROBLEM.ys)
    confidence = labeler.decision_function(PROBLEM.Xt)
    used = model.sample_weight_[len(PROBLEM.ys) :] > 0
    for side in (confidence > 0, confidence < 0):
        assert used[side].sum() == int(0.3 * side.sum())
        assert np.abs(confidence[side & used]).min() >= np.abs(confidence[side & ~used]).max()


def test_a_source_row_with_a_wrong_label_loses_weight():
    Xs = np.array([-2.0, -1.5, -1.0, 1.0, 1.5, 2.0, 2.5])[:, None]
    ys = np.array([0, 0, 0, 1, 1, 1, 0])
    Xt = np.linspace(-2.2, 2.2, 12)[:, None]
    noisy = DecisionTreeClassifier(max_depth=1, random_state=0)
    model = TrAdaBoost(noisy, labeler=KNeighborsClassifier(3), trusted=1.0, n_estimators=5)
    model.adapt(Xs, ys, Xt)
    assert model.sample_weight_[6] <= model.sample_weight_[:6].min()


def test_probabilities_are_shares_of_the_votes():
    model = TrAdaBoost(STUMP, labeler=LogisticRegression(), n_estimators=6).adapt(*STACKED)
    P = model.predict_proba(PROBLEM.Xt)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    votes = model.estimator_weights_
    for_second = sum(
        v * (e.predict(PROBLEM.Xt) == 1) for v, e in zip(votes, model.estimators_, strict=True)
    )
    np.testing.assert_allclose(P[:, 1], for_second / votes.sum())


def test_a_learner_without_weights_is_refused():
    with pytest.raises(ValueError, match="KNeighborsClassifier takes no sample_weight"):
        TrAdaBoost(KNeighborsClassifier()).adapt(*STACKED)


def test_sparse_rows_where_the_learner_takes_them():
    dense = TrAdaBoost(LogisticRegression()).adapt(*STACKED)
    sparse = TrAdaBoost(LogisticRegression()).adapt(
        sp.csr_array(PROBLEM.Xs), PROBLEM.ys, sp.csr_array(PROBLEM.Xt)
    )
    np.testing.assert_array_equal(sparse.transduction_, dense.transduction_)


@pytest.mark.parametrize("of", [np.asarray, sp.csr_array])
def test_source_rows_that_are_nothing_beside_the_targets_come_to_an_end(of):
    Xs, ys, Xt = PROBLEM.Xs * 1e-188, PROBLEM.ys, PROBLEM.Xt
    model = TrAdaBoost(n_estimators=3).adapt(of(Xs), ys, of(Xt))
    plain = TrAdaBoost(n_estimators=3).adapt(of(0 * Xs), ys, of(Xt))
    np.testing.assert_array_equal(model.predict(of(Xt)), plain.predict(of(Xt)))
