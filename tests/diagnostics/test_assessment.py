"""The verdict on labels of a method, and rows that are drawn for it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from problems import small_problem
from transferable import TFDFV, AutoAdapter
from transferable.diagnostics import assess_trust
from transferable.diagnostics.assessment import _MOST_ROWS, draw_rows
from transferable.tables import TableClassifier

PROBLEM = small_problem(n_source=60, n_target=48, n_features=5)
ROWS = PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt


def test_a_pool_is_judged_by_itself_without_another_fit():
    model = AutoAdapter(effort="fast").adapt(*ROWS)
    found = assess_trust(model, *ROWS)
    assert found.pool is model
    assert found.trust is model.trust_
    assert found.agreement is None
    np.testing.assert_array_equal(found.source_only, model.predict_source_only(PROBLEM.Xt))


def test_another_method_has_its_own_changes_and_a_wider_verdict_than_the_pool():
    model = TFDFV().adapt(*ROWS)
    found, pool = assess_trust(model, *ROWS), AutoAdapter().adapt(*ROWS)
    apart = 1 - found.agreement
    assert found.trust.state in {"check", "reject"}
    assert found.trust.low == max(0, pool.trust_.low - apart)
    assert found.trust.high == min(1, pool.trust_.high + apart)
    labels = model.predict(PROBLEM.Xt)
    assert found.trust.changed == np.sum(found.source_only != labels)
    assert found.agreement == np.mean(pool.predict(PROBLEM.Xt) == labels)
    assert "AutoAdapter's on its own labels, which are those of TFDFV" in found.trust.lines[1]


def test_figures_that_are_not_shown_are_not_in_the_record():
    model = AutoAdapter(effort="fast").adapt(*ROWS)
    model.trust_ = replace(model.trust_, state="reject", low=0.0, high=1.0)
    record = assess_trust(model, *ROWS).record
    assert (record["state"], record["low"], record["high"]) == ("reject", None, None)


def test_of_many_rows_some_of_each_class_are_drawn():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [5000, 2990, 10])
    rows = draw_rows(labels, rng)
    assert len(rows) == _MOST_ROWS
    assert np.bincount(labels[rows]).tolist() == [625, 374, 1]
    assert draw_rows(labels[:50], rng).tolist() == list(range(50))


@pytest.mark.parametrize("several", [False, True])
def test_tables_are_judged_as_tables(several):
    columns = list("abcde")
    source = pd.DataFrame(PROBLEM.Xs, columns=columns).assign(kind=PROBLEM.ys)
    target = pd.DataFrame(PROBLEM.Xt, columns=columns)
    model = TableClassifier(TFDFV())
    given = [source[:30], source[30:]] if several else source
    found = assess_trust(model.adapt(given, "kind", target), given, "kind", target)
    assert isinstance(found.pool, TableClassifier)
    assert found.trust.rows == len(target)
    unfitted = assess_trust(TableClassifier(TFDFV()), given, "kind", target)
    assert unfitted.agreement is None
    assert unfitted.trust.low >= found.trust.low
