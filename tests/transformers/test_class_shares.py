"""Class shares in JDA, BDA and McDA: means, covariances and pseudo-labels follow them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from problems import small_problem
from transferable.classifiers import AdaptedClassifier
from transferable.datasets import load_printed_to_handwritten
from transferable.domains import Domains
from transferable.transformers import BDA, JDA, McDA
from transferable.transformers._features import row_features
from transferable.transformers.mcda import _Covariances

METHODS = [JDA, BDA, McDA]
KNOWN = np.array([0.5, 0.0, 0.5])


@pytest.fixture(scope="module")
def problem():
    return small_problem(2, n_source=60, n_target=50, n_features=8)


@pytest.fixture(scope="module")
def partial():
    """Printed digits, of which only the first five are in the handwritten target."""
    task = load_printed_to_handwritten()
    few = np.flatnonzero(task.yt < 5)[:300]
    return task.Xs[:500], task.ys[:500], task.Xt[few], task.yt[few]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_known_shares_are_those_of_the_labels(method, estimator, problem):
    model = method(3, class_shares=KNOWN, estimator=estimator)
    model.adapt(problem.Xs, problem.ys, problem.Xt)
    counts = np.bincount(model.transduction_[60:], minlength=3)
    assert np.abs(counts - 50 * KNOWN).max() <= 1
    assert counts[1] == 0
    np.testing.assert_array_equal(model.class_shares_, KNOWN)
    assert model.class_shares_history_.shape == (model.n_iter_, 3)


@pytest.mark.parametrize("method", METHODS)
def test_the_source_shares_given_as_known_weight_nothing(method, problem):
    """The first round has no pseudo-labels yet, so only weights could make a difference."""
    shares = np.bincount(problem.ys) / 60
    plain, given = (
        method(3, class_shares=value, max_iter=1).adapt(problem.Xs, problem.ys, problem.Xt)
        for value in ("source", shares)
    )
    np.testing.assert_allclose(given.eigenvalues_, plain.eigenvalues_, rtol=1e-9)
    other = method(3, class_shares=KNOWN, max_iter=1).adapt(problem.Xs, problem.ys, problem.Xt)
    assert not np.allclose(other.eigenvalues_, plain.eigenvalues_, rtol=1e-3)


def test_covariances_are_those_of_weighted_rows(problem):
    domains = Domains.from_stacked(problem.X, np.r_[problem.ys, np.full(50, -1)])
    domains = domains.with_shares(np.array([0.2, 0.7, 0.1]))
    features = row_features(domains, 1)
    Phi, weights = features.times(np.eye(features.rank)), np.asarray(domains.ratios)[domains.y] / 60
    codes = np.arange(50) % 3
    D = np.cov(Phi[:60].T, aweights=weights, ddof=0) - np.cov(Phi[60:].T, ddof=0)
    classes = np.zeros_like(D)
    for c, trust in enumerate(np.minimum(1.0, domains.ratios)):
        pair = Phi[:60][domains.y == c], Phi[60:][codes == c]
        difference = trust * np.subtract(*(np.cov(rows.T, ddof=0) for rows in pair))
        classes += difference @ difference
    for many in (False, True):
        covariances = _Covariances(domains, features)
        covariances.Phi = None if many else Phi
        np.testing.assert_allclose(covariances.of_domains(), D @ D, atol=1e-9)
        np.testing.assert_allclose(covariances.of_classes(codes), classes, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_auto_follows_a_shift(method, partial):
    Xs, ys, Xt, yt = partial
    source, auto = (
        method(20, class_shares=shares, max_iter=5).adapt(Xs, ys, Xt)
        for shares in ("source", "auto")
    )
    correct = [np.mean(model.transduction_[len(ys) :] == yt) for model in (source, auto)]
    assert correct[1] > correct[0] + 0.02
    assert auto.class_shares_[:5].sum() > source.class_shares_[:5].sum() + 0.2
    assert len(auto.class_shares_history_) == auto.n_iter_
    np.testing.assert_array_equal(source.class_shares_, np.bincount(ys) / len(ys))


def test_auto_makes_no_bet_on_few_rows(partial):
    Xs, ys, Xt, _ = partial
    model = JDA(20, class_shares="auto", max_iter=2).adapt(Xs, ys, Xt[:29])
    np.testing.assert_array_equal(model.class_shares_, np.bincount(ys) / len(ys))


def test_shares_by_name_and_within_a_classifier(problem):
    names = np.array(["b", "a", "c"])
    by_name, by_position = (
        JDA(3, class_shares=shares).adapt(problem.Xs, names[problem.ys], problem.Xt)
        for shares in ({"a": 0.2, "c": 0.5, "b": 0.3}, [0.2, 0.3, 0.5])
    )
    assert np.array_equal(by_name.transduction_, by_position.transduction_)
    model = AdaptedClassifier(JDA(3, class_shares=[0.2, 0.3, 0.5]))
    model.adapt(problem.Xs, names[problem.ys], problem.Xt)
    np.testing.assert_array_equal(
        model.transformer_.class_shares_history_, by_position.class_shares_history_
    )


def test_one_class_left_is_every_rows(problem):
    with pytest.warns(UserWarning, match="one class, 2: every row gets it"):
        model = McDA(3, class_shares=[0, 0, 1]).adapt(problem.Xs, problem.ys, problem.Xt)
    assert (model.transduction_[60:] == 2).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ([0.5, 0.2, 0.2], "sum to 1.*0.9"),
        ([np.nan, 0.5, 0.5], "from 0 to 1"),
        ({0: 0.5, 1: 0.5}, r"no share for \[2\]"),
        ("known", "auto"),
    ],
)
def test_bad_shares_are_named(method, problem, shares, words):
    with pytest.raises(ValueError, match=words):
        method(3, class_shares=shares).adapt(problem.Xs, problem.ys, problem.Xt)


def test_labels_without_probabilities_cannot_follow_shares(problem):
    with pytest.raises(ValueError, match=r"needs an estimator with predict_proba, which LinearSVC"):
        JDA(3, class_shares=KNOWN, estimator=LinearSVC()).adapt(problem.Xs, problem.ys, problem.Xt)
