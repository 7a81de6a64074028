"""Drift: rows like the fitted target pass, others raise an alarm, in arrays, tables and files."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import transferable
from problems import small_problem
from transferable import AutoAdapter
from transferable.classifiers import TFDFV, AdaptedClassifier, EasyTL
from transferable.diagnostics import drift, remembers_target
from transferable.exceptions import NoTargetWarning
from transferable.model_selection import LabelFreeSearch
from transferable.tables import TableClassifier

PROBLEM = small_problem(n_source=60, n_target=400, n_features=6)
OURS, THEIRS = PROBLEM.Xt[::2], PROBLEM.Xt[1::2]


@pytest.fixture(scope="module")
def model():
    return EasyTL().adapt(PROBLEM.Xs, PROBLEM.ys, OURS)


def test_one_alarm_in_twenty_is_false():
    rng = np.random.default_rng(0)
    alarms = []
    for _ in range(100):
        rows = rng.exponential(size=(90, 3))
        fitted = AdaptedClassifier().adapt(rows[:30], np.arange(30) % 2, rows[30:60])
        alarms.append(drift(fitted, rows[60:]).likely)
    assert 0 < np.mean(alarms) <= 0.1


def test_what_moved_is_found_and_named(model):
    assert not drift(model, THEIRS).likely
    moved = drift(model, THEIRS + np.eye(6)[2])
    assert moved.likely
    assert moved.columns[0].name == "2"
    assert "2" in moved.reason.split("moved most: ")[1]
    assert drift(model, 3 * THEIRS).likely, "another spread"


def test_the_test_is_exact_for_any_number_of_rows(model):
    assert drift(model, THEIRS[:1]).p_value > 0.05
    assert drift(model, np.repeat(THEIRS, 20, axis=0)).n_new == 1000
    assert drift(model, THEIRS[:1] + 1e3).likely, "one row far from all others"


@pytest.mark.parametrize(
    "estimator",
    [TFDFV(max_iter=2), LabelFreeSearch(TFDFV(max_iter=2), {"alignment": [1.0, 10.0]}), EasyTL()],
    ids=lambda e: type(e).__name__,
)
def test_a_saved_model_remembers(estimator, tmp_path):
    fitted = estimator.adapt(PROBLEM.Xs, PROBLEM.ys, OURS)
    transferable.save(fitted, tmp_path / "m.tfm")
    again = transferable.load(tmp_path / "m.tfm")
    assert drift(again, THEIRS) == drift(fitted, THEIRS)
    assert again._target_sample.shape == (200, 6)


def test_a_pool_keeps_one_sample():
    fitted = AutoAdapter(effort="fast").adapt(PROBLEM.Xs, PROBLEM.ys, OURS)
    assert remembers_target(fitted)
    assert not any(remembers_target(member.model) for member in fitted.consensus_.members)


def test_sparse_rows_and_tables():
    Xs, Xt = csr_array(PROBLEM.Xs), csr_array(OURS)
    fitted = TFDFV(max_iter=2).adapt(Xs, PROBLEM.ys, Xt)
    assert drift(fitted, csr_array(THEIRS + 2)).likely
    names = [f"c{i}" for i in range(6)]
    source, target, new = (pd.DataFrame(X, columns=names) for X in (PROBLEM.Xs, OURS, THEIRS))
    table = TableClassifier(EasyTL()).adapt(source, PROBLEM.ys, target)
    assert not drift(table, new).likely
    assert drift(table, new.assign(c3=new.c3 + 3)).columns[0].name == "c3"


@pytest.mark.filterwarnings("ignore::transferable.exceptions.NoTargetWarning")
def test_no_sample_no_answer(model):
    with pytest.warns(NoTargetWarning):
        alone = EasyTL().fit(PROBLEM.Xs, PROBLEM.ys)
    assert not remembers_target(alone)
    with pytest.raises(ValueError, match="keeps no sample of its target"):
        drift(alone, THEIRS)
    with pytest.raises(ValueError, match="has 5 features"):
        drift(model, THEIRS[:, :5])


def test_rows_too_wide_to_keep_are_not_kept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 2**19))
    assert not remembers_target(AdaptedClassifier().adapt(X[:3], [0, 1, 0], X[3:]))
