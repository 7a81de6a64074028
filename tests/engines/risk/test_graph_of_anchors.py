"""Fits with a graph of anchors: both solvers, torch, the order of rows, what is refused."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from problems import small_problem
from transferable import ARTL, MEDA, TFDF, TFDFV
from transferable.domains import Domains
from transferable.engines.risk.features import ManifoldFeatures
from transferable.engines.risk.graphs import with_graph
from transferable.engines.risk.rows import Rows
from transferable.linalg.arrays import CPU
from transferable.linalg.kernels import KernelFunction
from transferable.terms.smoothness import Smoothness

P = small_problem(seed=3, n_source=90, n_target=70)
METHODS = [TFDF, TFDFV, MEDA, ARTL]
ANCHORED = {"graph": "anchors", "n_anchors": 20, "manifold": 1.0}
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
    kernel = KernelFunction("rbf", 0.5, 3, 1.0)
    rows = Rows(domains, ManifoldFeatures(None), kernel, 0.1, CPU, 0)
    form = Smoothness(2.0, 3, n_anchors=20).bind(rows)
    Z = form.anchors.ties(rows.Z).toarray()
    assert ((Z > 1e-9).sum(axis=1) <= 3).all()
    W = Z @ np.diag(1 / Z.sum(axis=0)) @ Z.T
    F = np.random.default_rng(0).normal(size=(160, 4))
    np.testing.assert_allclose(form.apply(F), 2.0 * (F - W @ F), atol=1e-12)


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


def test_auto_takes_anchors_for_landmarks_of_many_rows():
    term = Smoothness(1.0, 5)

    def taken(graph, n_rows, by_landmarks, n_anchors="auto"):
        return with_graph(term, graph, n_anchors, n_rows, by_landmarks=by_landmarks).n_anchors

    assert taken("auto", 1_000_000, by_landmarks=False) is None
    assert taken("auto", 3_000, by_landmarks=True) is None
    assert taken("auto", 1_000_000, by_landmarks=True) == 1000
    assert taken("neighbors", 1_000_000, by_landmarks=True) is None
    assert taken("anchors", 3_000, by_landmarks=False) == 600
    assert taken("anchors", 3_000, by_landmarks=False, n_anchors=70) == 70


def test_too_many_anchors_are_reduced_and_too_few_rows_refused():
    with pytest.warns(UserWarning, match="n_anchors=100 .* reduced to 32"):
        assert adapted(TFDFV(**ANCHORED | {"n_anchors": 100})).n_anchors_ == 32
    few = small_problem(n_source=9, n_target=8)
    with pytest.raises(ValueError, match=r'17 rows are too few\. Take graph="neighbors"'):
        TFDFV(graph="anchors", manifold_dim=None).adapt(few.Xs, few.ys, few.Xt)


@pytest.mark.parametrize("wrong", [{"graph": "anchor"}, {"n_anchors": 1}, {"n_anchors": 2.5}])
def test_other_values_are_refused(wrong):
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter"):
        adapted(TFDF(**wrong))


@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_other_class_shares_leave_the_graph_as_it_is(n_landmarks, monkeypatch):
    """Of three rounds of shares none searches or places anything again."""
    placed = []
    monkeypatch.setattr(Rows, "anchor_laplacian", _noting(placed, Rows.anchor_laplacian))
    monkeypatch.setattr(Rows, "laplacian", _noting(placed, Rows.laplacian))
    known = {"class_shares": {0: 0.5, 1: 0.3, 2: 0.2}, "n_landmarks": n_landmarks}
    adapted(TFDFV(**ANCHORED, **known))
    adapted(TFDFV(graph="neighbors", **known))
    assert len(placed) == 2


def _noting(calls, function):
    def noted(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return noted
