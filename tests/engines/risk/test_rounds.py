"""Rounds of solve and relabel: what they record, when they end, what they show."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from problems import small_problem
from transferable import MEDA, TFDF, TFDFV
from transferable.domains import Domains
from transferable.engines.risk.features import ManifoldFeatures
from transferable.engines.risk.rows import NearestSource
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


def test_history_can_be_left_out(method):
    with_history = adapt(clone(method))
    without = adapt(method.set_params(record_history=False))
    assert not hasattr(without, "history_")
    np.testing.assert_array_equal(
        with_history.decision_function(P.X), without.decision_function(P.X)
    )


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
    model = adapt(TFDF(max_iter=1, confusion_iter=3))
    assert model.n_iter_ == 4
    assert ["confusion" in entry for entry in model.history_[1:]] == [True] * 3


@pytest.mark.parametrize("form", ["printed", "normalised"])
@pytest.mark.parametrize("solver", ["closed_form", "lbfgs"])
def test_class_confusion_lowers_the_objective_that_has_it(form, solver):
    settings = {"confusion": 0.2, "confusion_form": form, "solver": solver, "balance": 0.5}
    history = adapt(TFDF(**settings, confusion_iter=10)).history_
    settled = [entry for entry in history if "confusion" in entry and entry["changed"] == 0]
    assert settled[-1]["objective"] <= history[0]["objective"]


def test_a_progress_bar_is_shown_on_a_terminal_when_asked_for(method, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes any stream for a terminal then
    adapt(method.set_params(verbose=True))
    shown = capsys.readouterr()
    assert "so far" in shown.err
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
    domains = Domains.from_stacked(P.X, np.r_[P.ys, np.full(len(P.yt), -1)])
    rows = MEDA(manifold_dim=None)._rows(domains, ManifoldFeatures(None))
    monkeypatch.setattr(LIMITS, "pool_rows", 7)
    nearest = NearestSource(*rows.first_labelled(), arrays=rows.arrays)
    found = nearest(rows.Z[domains.target])
    cosines = rows.Z[domains.target] @ rows.Z[:7].T
    np.testing.assert_array_equal(found, domains.y[cosines.argmax(axis=1)])
