"""Listeners hear iterations in the order of the input, and nobody else does."""

import numpy as np

from transferable import TFDF
from transferable._trace import emit, listen, restoring, rounds, stage, unheard, watch
from transferable.classifiers import CAPLS, DMM, TrAdaBoost
from transferable.domains import Domains
from transferable.transformers import JDA, TJM


def domains_of(X, y):
    return Domains.from_stacked(X, y)


def test_nobody_hears_what_is_emitted_outside():
    heard = []
    with listen(lambda codes, table: heard.append(codes)):
        emit(np.arange(3), np.eye(3))
    emit(np.arange(3), np.eye(3))
    assert len(heard) == 1


def test_what_is_emitted_within_nested_fits_comes_in_the_order_of_the_outer_input():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 2)), np.array([0, 1, 0, 1, -1, -1, 0, -1])
    heard = []
    with listen(lambda codes, table: heard.append(table)):
        outer = domains_of(X, y)
        with restoring(outer):
            inner = domains_of(np.exp(outer.X), outer.with_target(np.full(outer.n_target, -1)))
            with restoring(inner):
                emit(np.zeros(8, dtype=np.intp), np.log(inner.X))
    np.testing.assert_allclose(heard[0], X)


def test_a_listener_hears_every_round_of_a_fit():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    Xs = rng.normal(size=(30, 4)) + 3 * np.eye(3, 4)[y]
    heard = []
    with listen(lambda codes, table: heard.append((codes, table))):
        model = TFDF().adapt(Xs, y, Xs + 0.5)
    assert len(heard) == model.n_iter_
    codes, scores = heard[-1]
    np.testing.assert_array_equal(codes[30:], model.transduction_[30:])
    assert scores.shape == (60, 3)


def test_a_watcher_is_told_stages_and_rounds():
    told = []
    with watch(lambda *event: told.append(event)):
        stage("Beginning")
        assert list(rounds(4, "Going on")) == [0, 1, 2, 3]
        with unheard():
            stage("Never told")
    stage("Nobody is there")
    assert list(rounds(2)) == [0, 1]
    expected = [("Going on", share) for share in (0.0, 0.25, 0.5, 0.75)]
    assert told == [("Beginning", None), *expected]


def test_methods_that_iterate_tell_their_rounds():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    Xs = rng.normal(size=(30, 4)) + 3 * np.eye(3, 4)[y]
    for model in (TFDF(), JDA(), TJM(), CAPLS(), DMM(), TrAdaBoost()):
        told = []
        with watch(lambda *event, told=told: told.append(event)):
            model.adapt(Xs, y, Xs + 0.5)
        counted = [event for event in told if event[1] is not None]
        assert counted[0] == ("Adapting", 0.0), type(model).__name__
        assert all(0 <= share < 1 for _, share in counted)
