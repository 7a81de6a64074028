"""Listeners hear iterations in the order of the input, and nobody else does."""

import warnings

import numpy as np
import pytest

from transferable import TFDF, all_estimators
from transferable.classifiers import CAPLS, TrAdaBoost
from transferable.domains import Domains
from transferable.events import (
    LISTENERS,
    Iterate,
    Progress,
    Restored,
    iterate,
    listen,
    rounds,
    silence,
    stage,
)
from transferable.experimental import DMM
from transferable.transformers import JDA, TJM


def restoring(restore):
    """As a fit within does."""
    return silence(*(Restored(listener, restore) for listener in LISTENERS.get()))


def domains_of(X, y):
    return Domains.from_stacked(X, y)


def test_nobody_hears_what_is_emitted_outside():
    heard = []
    with listen(heard.append):
        iterate(np.arange(3), np.eye(3))
    iterate(np.arange(3), np.eye(3))
    assert len(heard) == 1


def test_what_is_emitted_within_nested_fits_comes_in_the_order_of_the_outer_input():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 2)), np.array([0, 1, 0, 1, -1, -1, 0, -1])
    heard = []
    with listen(heard.append):
        outer = domains_of(X, y)
        with restoring(outer.restore):
            inner = domains_of(np.exp(outer.X), outer.with_target(np.full(outer.n_target, -1)))
            with restoring(inner.restore):
                iterate(np.zeros(8, dtype=np.intp), np.log(inner.X))
    np.testing.assert_allclose(heard[0].table, X)


def test_a_listener_hears_every_round_of_a_fit():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    Xs = rng.normal(size=(30, 4)) + 3 * np.eye(3, 4)[y]
    heard = []
    with listen(heard.append):
        model = TFDF().adapt(Xs, y, Xs + 0.5)
    heard = [event for event in heard if isinstance(event, Iterate)]
    assert len(heard) == model.n_iter_
    np.testing.assert_array_equal(heard[-1].codes[30:], model.transduction_[30:])
    assert heard[-1].table.shape == (60, 3)


def test_what_nobody_asks_an_iterate_for_is_not_made():
    made = []

    def table():
        made.append("table")
        return np.ones((8, 2))

    def codes():
        made.append("codes")
        return np.arange(8)

    heard = []
    with listen(heard.append), restoring(lambda rows: rows[::-1]):
        iterate(codes, table)
    assert made == []
    np.testing.assert_array_equal(heard[0].codes, np.arange(8)[::-1])
    assert heard[0].codes is heard[0].codes
    assert made == ["codes"]


def test_a_listener_is_told_stages_and_rounds():
    told = []
    with listen(told.append):
        stage("Beginning")
        assert list(rounds(4, "Going on")) == [0, 1, 2, 3]
        with silence():
            stage("Never told")
    stage("Nobody is there")
    assert list(rounds(2)) == [0, 1]
    expected = [Progress("Going on", share) for share in (0.0, 0.25, 0.5, 0.75)]
    assert told == [Progress("Beginning"), *expected]


def test_methods_that_iterate_tell_their_rounds():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    Xs = rng.normal(size=(30, 4)) + 3 * np.eye(3, 4)[y]
    for model in (TFDF(), JDA(), TJM(), CAPLS(), DMM(), TrAdaBoost()):
        told = []
        with listen(told.append):
            model.adapt(Xs, y, Xs + 0.5)
        counted = [event for event in told if getattr(event, "share", None) is not None]
        assert counted[0] == Progress("Adapting", 0.0), type(model).__name__
        assert all(0 <= event.share < 1 for event in counted)


@pytest.mark.parametrize("name", dict(all_estimators()))
def test_iterates_are_of_all_rows(name):
    y = np.arange(40) % 3
    Xs = np.random.default_rng(0).normal(size=(40, 5)) + 3 * np.eye(3, 5)[y]
    heard = []
    with listen(heard.append), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dict(all_estimators())[name]().adapt(Xs, y, Xs[:30] + 0.5)
    for event in heard:
        if isinstance(event, Iterate):
            assert event.codes.shape == (70,)
            assert event.table.shape[0] == 70
