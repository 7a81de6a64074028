"""Fits with a graph of anchors: both solvers, torch, the order of rows, what is refused."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from problems import small_problem
from transferable import ARTL, MEDA, TFDF, TFDFV
from transferable._kernel import choose
from transferable._linalg.search import Anchors
from transferable.domains import Domains

P = small_problem(seed=3, n_source=90, n_target=70)
METHODS = [TFDF, TFDFV, MEDA, ARTL]
ANCHORED = {"graph": 20, "manifold": 1.0}
MARKS = np.r_[np.ones(len(P.Xs)), -np.ones(len(P.Xt))]


def adapted(estimator):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="manifold_dim=20 is more")
        return estimator.adapt(P.Xs, P.ys, P.Xt)


@pytest.mark.parametrize("Method", METHODS)
def test_with_every_row_a_landmark_both_solvers_agree(Method):
    exact = adapted(Method(n_landmarks=None, **ANCHORED))
    landmarks = adapted(Method(n_landmarks=160, **ANCHORED))
    assert exact.n_anchors_ == landmarks.n_anchors_ == 20
    np.testing.assert_allclose(
        landmarks.decision_function(P.X), exact.decision_function(P.X), atol=1e-8
    )
    for name in ("objective", "manifold"):
        values = [[entry[name] for entry in model.history_] for model in (exact, landmarks)]
        np.testing.assert_allclose(*values, rtol=1e-6)
    neighbors = adapted(Method(n_landmarks=160, **ANCHORED | {"graph": "neighbors"}))
    assert neighbors.n_anchors_ is None
    assert np.abs(neighbors.decision_function(P.X) - exact.decision_function(P.X)).max() > 1e-3


def test_the_form_is_that_of_the_dense_graph():
    domains = Domains.from_stacked(P.X, np.r_[P.ys, np.zeros_like(P.yt)], MARKS)
    model = TFDFV(manifold=2.0, manifold_dim=None, graph=20)
    problem = choose.parameters(model, domains)
    [term] = problem.graph(3)
    assert (term.weight, problem.n_anchors) == (2.0, 20)
    Z = term.anchors.ties(problem.Z).toarray()
    assert Z.shape == (160, 20)
    assert ((Z > 1e-9).sum(axis=1) <= 3).all()
    W = Z @ np.diag(1 / Z.sum(axis=0)) @ Z.T
    F = np.random.default_rng(0).normal(size=(160, 4))
    np.testing.assert_allclose(term.form(F), F - W @ F, atol=1e-12)
    [heavier] = choose.parameters(model.set_params(manifold=3.0), domains).graph(3)
    assert heavier.key == term.key
    np.testing.assert_array_equal(heavier.form(F), term.form(F))


@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_torch_agrees(n_landmarks):
    pytest.importorskip("torch")
    numpy, torch = (
        adapted(TFDF(n_landmarks=n_landmarks, device=device, **ANCHORED)).decision_function(P.X)
        for device in ("cpu", "torch")
    )
    np.testing.assert_allclose(torch, numpy, atol=1e-8)


@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_the_order_of_rows_does_not_matter(n_landmarks):
    order = np.random.default_rng(0).permutation(len(P.X))
    y = np.r_[P.ys, np.zeros_like(P.yt)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="manifold_dim=20 is more")
        one = TFDFV(n_landmarks=n_landmarks, **ANCHORED).fit(P.X, y, MARKS)
        other = TFDFV(n_landmarks=n_landmarks, **ANCHORED).fit(P.X[order], y[order], MARKS[order])
    np.testing.assert_array_equal(one.decision_function(P.X), other.decision_function(P.X))


def test_sparse_rows_are_tied_to_rows():
    model = ARTL(n_landmarks=40, **ANCHORED)
    sparse = model.adapt(sp.csr_array(P.Xs), P.ys, sp.csr_array(P.Xt))
    assert sparse.n_anchors_ == 20
    assert np.mean(sparse.predict(P.X) == ARTL().adapt(P.Xs, P.ys, P.Xt).predict(P.X)) > 0.9


def test_auto_takes_anchors_for_landmarks_of_many_rows(monkeypatch):
    assert choose.n_anchors("auto", 3_000) == 0
    assert choose.n_anchors("auto", 1_000_000) == 1000
    assert choose.n_anchors("neighbors", 1_000_000) == 0
    assert choose.n_anchors("anchors", 3_000) == 600
    assert choose.n_anchors("anchors", 1_000_000) == 1000
    assert choose.n_anchors(70, 3_000) == 70
    assert choose.n_anchors(2_000, 1_000_000) == 2000
    monkeypatch.setattr(choose, "_MANY_ROWS", 100)

    def taken(graph, n_landmarks):
        return adapted(TFDFV(graph=graph, n_landmarks=n_landmarks)).n_anchors_

    assert taken("auto", None) is None
    assert taken("auto", 40) == taken("anchors", 40) == taken("anchors", None) == 32
    assert taken("neighbors", 40) is None
    assert taken(7, None) == taken(7, 40) == 7
    assert adapted(TFDFV(graph="anchors", manifold=0.0)).n_anchors_ is None


def test_too_many_anchors_are_reduced_and_too_few_rows_refused():
    with pytest.warns(UserWarning, match="graph=100 .* reduced to 32"):
        assert adapted(TFDFV(**ANCHORED | {"graph": 100})).n_anchors_ == 32
    few = small_problem(n_source=9, n_target=8)
    with pytest.raises(ValueError, match=r'17 rows are too few\. Take graph="neighbors"'):
        TFDFV(graph="anchors", manifold_dim=None).adapt(few.Xs, few.ys, few.Xt)


@pytest.mark.parametrize("wrong", [{"graph": "anchor"}, {"graph": 1}, {"graph": 2.5}])
def test_other_values_are_refused(wrong):
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter"):
        adapted(TFDF(**wrong))


@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_other_class_shares_leave_the_graph_as_it_is(n_landmarks, monkeypatch):
    """Of three rounds of shares none searches or places anything again."""
    placed = []
    for name in ("spherical_means", "cosine_neighbors"):
        monkeypatch.setattr(choose, name, _noting(placed, getattr(choose, name)))
    known = {"class_shares": {0: 0.5, 1: 0.3, 2: 0.2}, "n_landmarks": n_landmarks}
    adapted(TFDFV(**ANCHORED, **known))
    adapted(TFDFV(graph="neighbors", **known))
    assert len(placed) == 2


def _noting(calls, function):
    def noted(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return noted


@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_rows_are_tied_to_anchors_once(n_landmarks, monkeypatch):
    tied, ties = [], Anchors.ties
    monkeypatch.setattr(Anchors, "ties", lambda self, Z: tied.append(len(Z)) or ties(self, Z))
    weights = np.tile([1.0, 2.0], len(P.X) // 2)
    y = np.r_[P.ys, np.full(len(P.Xt), -1)]
    TFDF(n_landmarks=n_landmarks, **ANCHORED).fit(P.X, y, sample_weight=weights)
    assert tied.count(len(P.X)) <= 2  # for the term and, over landmarks, for the sums
