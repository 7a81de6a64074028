"""The report of predicted numbers, before and after an audit."""

import numpy as np
import pytest

from report.examples import Page
from transferable import AutoRegressor
from transferable.regressors import AdaptedRegressor
from transferable.report.data import Facts, describe
from transferable.report.sections import render_report


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    Xs, Xt = rng.normal(size=(80, 3)), rng.normal([2.0, 0.0, 0.0], size=(60, 3))
    ys, yt = (X @ [3.0, -2.0, 0.5] + 50 for X in (Xs, Xt))
    return Xs, ys, Xt, yt + 4


@pytest.fixture(scope="module")
def model(problem):
    return AutoRegressor().adapt(*problem[:3])


def text_of(model, problem, **more):
    page = Page(render_report(describe(model, *problem[:3], facts=Facts(), **more)))
    assert not page.misplaced
    return " ".join(page.text.split())


def test_says_that_the_error_is_unknown_and_what_can_be_seen(model, problem):
    page = text_of(model, problem)
    for words in (
        "Measure some rows before these numbers are used",
        "cannot be known without labels; measure 20 rows",
        "To measure the error, measure 20 rows by hand",
        "target, by the source alone",
        "Where the candidates disagree",
        "target rows outside of the source's range",
        "Columns out of range",
    ):
        assert words in page, words
    assert "Measured rows" not in page


def test_an_audit_is_shown_with_its_interval(model, problem):
    rows, _ = model.audit_rows(20)
    audited = model.audit(rows, problem[3][rows])
    page = text_of(audited.model, problem, yt=problem[3])
    for words in (
        "These numbers are corrected by measured rows",
        "Half of the corrected predictions are off by less than",
        "20 measured rows",
        "90 % interval",
        "root mean squared",
        f"{problem[3][rows[0]]:.4g}",
    ):
        assert words in page, words


def test_other_regressors_are_not_judged(problem):
    page = text_of(AdaptedRegressor().adapt(*problem[:3]), problem)
    assert "Not judged" in page
    assert "predicted the numbers of 60 rows" in page
