"""Rounds of solve and relabel: what they record, when they end, what they show."""

from functools import partial

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from problems import domains_of, published, rounds_of, small_problem
from transferable import MEDA, TFDF, TFDFV
from transferable._linalg.arrays import CPU
from transferable.classifiers._kernel import NearestSource
from transferable.limits import LIMITS

P = small_problem(seed=1)
NAMES = {
    "source",
    "ridge",
    "means",
    "covariances",
    "manifold",
    "variance",
    "confusion",
    "objective",
    "balance",
    "changed",
}


def adapt(estimator):
    return estimator.adapt(P.Xs, P.ys, P.Xt)


def test_history_names_every_term_and_adds_up(estimator):
    model = adapt(estimator)
    assert len(model.history_) == model.n_iter_
    for entry in model.history_:
        assert set(entry) <= NAMES
        terms = sum(v for k, v in entry.items() if k not in {"objective", "balance", "changed"})
        assert entry["objective"] == pytest.approx(terms)
        assert all(entry[name] >= -1e-9 for name in entry)
        assert 0 <= entry["balance"] <= 1
        assert 0 <= entry["changed"] <= 1
    assert model.balance_ == model.history_[-1]["balance"]


def test_history_holds_the_terms_that_are_switched_on():
    everything = adapt(TFDF(second_order=0.1)).history_[-1]
    assert set(everything) == NAMES
    plain = adapt(TFDFV(manifold=0, variance=0, second_order=0)).history_[-1]
    assert set(plain) == NAMES - {"manifold", "variance", "covariances", "confusion"}


@pytest.mark.parametrize("most", [1, 3])
def test_rounds_can_be_made_one_after_the_other(most):
    """What is recorded changes nothing: so many rounds at once, or each by itself."""
    target = np.random.default_rng(0).integers(3, size=len(P.yt))
    at_once, one_by_one = (rounds_of(TFDFV(balance=0.5), domains_of(P), target) for _ in range(2))
    at_once.run(most, until_settled=False)
    for _ in range(most):
        one_by_one.run(1, until_settled=False)
    np.testing.assert_array_equal(at_once.F, one_by_one.F)
    assert at_once.history == one_by_one.history
    assert len(at_once.history) == len(at_once.shares_history) == most


@pytest.mark.parametrize("second_order", [0.0, 0.1])
def test_rounds_end_once_no_label_changes(second_order):
    """More rounds would be equal: letting them run on changes nothing."""
    short = adapt(TFDFV(max_iter=50, second_order=second_order))
    assert short.n_iter_ < 50
    assert short.history_[-1]["changed"] == 0
    long = adapt(TFDFV(max_iter=500, second_order=second_order))
    assert long.n_iter_ == short.n_iter_


def test_max_iter_is_the_most():
    assert adapt(TFDFV(max_iter=1)).n_iter_ == 1
    model = adapt(published(max_iter=1, confusion_iter=3))
    assert model.n_iter_ == 4
    assert ["confusion" in entry for entry in model.history_[1:]] == [True] * 3
    assert adapt(TFDF(max_iter=1)).n_iter_ == 11
    for solver, rounds in (("adam", 100), ("closed_form", 10)):
        assert adapt(published(max_iter=1, solver=solver)).n_iter_ == 1 + rounds


@pytest.mark.parametrize("form", ["printed", "normalised"])
@pytest.mark.parametrize("solver", ["closed_form", "adam"])
def test_class_confusion_lowers_the_objective_that_has_it(form, solver):
    settings = {"confusion": 0.2, "confusion_form": form, "solver": solver, "balance": 0.5}
    settings |= {"manifold": 1.0}
    history = adapt(published(**settings, confusion_iter=10)).history_
    settled = [entry for entry in history if "confusion" in entry and entry["changed"] == 0]
    assert settled[-1]["objective"] <= history[0]["objective"]


def test_a_progress_bar_is_shown_on_a_terminal_when_asked_for(method, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes any stream for a terminal then
    adapt(method.set_params(verbose=True))
    shown = capsys.readouterr()
    assert "elapsed" in shown.err
    assert shown.out == ""


def test_nothing_is_shown_otherwise(method, monkeypatch, capfd, caplog):
    monkeypatch.setenv("FORCE_COLOR", "1")
    adapt(method)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_rounds_do_not_wait_for_a_few_labels_that_go_to_and_fro(n_landmarks, monkeypatch):
    settings = {"max_iter": 50, "class_shares": "source", "estimator": DummyClassifier()}
    whole = adapt(TFDFV(n_landmarks=n_landmarks, **settings))
    assert whole.history_[0]["changed"] > 0 == whole.history_[-1]["changed"]
    monkeypatch.setattr(LIMITS, "unsettled_share", 1.0)
    short = adapt(TFDFV(n_landmarks=n_landmarks, **settings))
    assert short.n_iter_ == 1 < whole.n_iter_


def test_nearest_source_rows_are_sought_among_the_first(monkeypatch):
    """Beyond the pool, first labels come from the rows that any partitioning would have."""
    domains = domains_of(P)
    solver = rounds_of(MEDA(manifold_dim=None), domains).base
    monkeypatch.setattr(LIMITS, "pool_rows", 7)
    found = solver.label_by(partial(NearestSource, arrays=CPU)).codes
    Z = solver.problem.Z
    cosines = Z[domains.target] @ Z[:7].T
    np.testing.assert_array_equal(found, domains.y[cosines.argmax(axis=1)])
