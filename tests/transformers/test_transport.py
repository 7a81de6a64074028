"""Optimal transport: against POT's own, on new rows, within memory, and without POT."""

import sys
import warnings

import numpy as np
import ot
import pytest

from problems import small_problem
from transferable.classifiers import JDOTClassifier
from transferable.transformers import LinearOTMapping, OTMapping

PROBLEM = small_problem(n_source=36, n_target=30)
STACKED = (PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
METHODS = ("exact", "entropic", "class", "laplace")


def pot_transport(method, scale):
    """POT's estimator with the same penalties, on costs over their mean."""
    return {
        "exact": lambda: ot.da.EMDTransport(),
        "entropic": lambda: ot.da.SinkhornTransport(reg_e=0.1 * scale, tol=1e-8),
        "class": lambda: ot.da.SinkhornLpl1Transport(reg_e=0.1 * scale, reg_cl=0.1 * scale),
    }[method]()


@pytest.mark.parametrize("method", ["exact", "entropic", "class"])
def test_moves_source_rows_as_pot_does(method):
    scale = float(ot.dist(PROBLEM.Xs, PROBLEM.Xt).mean())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # POT's inner solves say that they were cut short
        peer = pot_transport(method, scale)
        expected = peer.fit_transform(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    model = OTMapping(method).adapt(*STACKED)
    got = model.transform(PROBLEM.Xs, np.ones(36))
    np.testing.assert_allclose(got, expected, atol=1e-3)
    np.testing.assert_allclose(model.coupling_, peer.coupling_, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_unit_and_row_order_do_not_matter(method):
    marks = np.repeat([1, -1], [36, 30])
    y = np.r_[PROBLEM.ys, np.full(30, -1)]
    expected = OTMapping(method).fit_transform(PROBLEM.X, y, marks)
    order = np.random.default_rng(0).permutation(66)
    got = OTMapping(method).fit_transform(7 * PROBLEM.X[order], y[order], marks[order])
    np.testing.assert_allclose(got / 7, expected[order], atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_the_plan_carries_all_rows(method):
    G = OTMapping(method).adapt(*STACKED).coupling_
    np.testing.assert_allclose(G.sum(axis=1), 1 / 36, atol=1e-3)
    np.testing.assert_allclose(G.sum(axis=0), 1 / 30, atol=1e-3)
    assert G.min() >= 0


def test_new_source_rows_move_with_their_neighbour_and_target_rows_stay():
    model = OTMapping("exact").adapt(*STACKED)
    moved = model.transform(PROBLEM.Xs, np.ones(36))
    beside = model.transform(PROBLEM.Xs + 1e-6, np.ones(36))
    np.testing.assert_allclose(beside, moved + 1e-6, atol=1e-9)
    np.testing.assert_array_equal(model.transform(PROBLEM.Xt), PROBLEM.Xt)


def test_classes_share_fewer_target_rows_with_their_penalty():
    def shared(plan):
        by_class = np.array([plan[PROBLEM.ys == c].sum(axis=0) for c in range(3)]) * 30
        return 1 - by_class.max(axis=0).mean()

    plans = [OTMapping(m, class_weight=1.0).adapt(*STACKED).coupling_ for m in METHODS[1:3]]
    assert shared(plans[1]) < 0.7 * shared(plans[0])


def test_entropy_that_loses_rows_is_refused():
    far = (PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt + np.arange(30)[:, None])
    with pytest.raises(ValueError, match=r"entropy=1e-05 is too small .* Raise entropy"):
        OTMapping("class", entropy=1e-5).adapt(*far)
    assert np.isfinite(OTMapping("entropic", entropy=1e-3).adapt(*far).coupling_).all()


def test_linear_map_gives_the_source_the_mean_and_covariance_of_the_target():
    model = LinearOTMapping(regularization=1e-9).adapt(*STACKED)
    moved = model.transform(PROBLEM.Xs, np.ones(36))
    np.testing.assert_allclose(moved.mean(axis=0), PROBLEM.Xt.mean(axis=0))
    np.testing.assert_allclose(np.cov(moved.T, bias=True), np.cov(PROBLEM.Xt.T, bias=True), 1e-4)
    np.testing.assert_allclose(model.linear_, model.linear_.T, atol=1e-8)  # it turns nothing
    np.testing.assert_array_equal(model.transform(PROBLEM.Xt), PROBLEM.Xt)


@pytest.mark.filterwarnings("ignore::transferable.exceptions.NoTargetWarning")
def test_joint_transport_carries_labels_where_the_source_alone_fails():
    """Classes turned by a third of the angle between them."""
    rng = np.random.default_rng(0)
    ys = np.repeat([0, 1, 2], 30)

    def ring(offset, radius):
        angle = 2 * np.pi * ys / 3 + offset
        return radius * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(size=(90, 2))

    Xs, Xt = ring(0.0, 6.0), ring(0.7, 6.0)
    alone = JDOTClassifier().fit(Xs, ys).predict(Xt)
    joint = JDOTClassifier().adapt(Xs, ys, Xt).predict(Xt)
    assert np.mean(joint == ys) > np.mean(alone == ys)
    assert np.mean(joint == ys) > 0.95


@pytest.mark.parametrize("model", [OTMapping("exact"), OTMapping(), JDOTClassifier()], ids=str)
def test_too_many_rows_are_refused_with_the_number_that_fits(model):
    model.set_params(max_memory=20_000)
    with pytest.raises(MemoryError, match=r"(\d+) source and (\d+) target rows would fit") as told:
        model.adapt(*STACKED)
    words = str(told.value).split(";")[1].split()
    n_source, n_target = int(words[0]), int(words[3])
    assert 0 < n_source < 36
    model.adapt(PROBLEM.Xs[:n_source], PROBLEM.ys[:n_source], PROBLEM.Xt[:n_target])


@pytest.mark.parametrize("model", [OTMapping(), LinearOTMapping(), JDOTClassifier()], ids=str)
def test_without_pot_one_line_names_the_extra(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(ImportError, match=r"needs POT: pip install '\.\[ot\]' in a clone") as told:
        model.adapt(*STACKED)
    assert "\n" not in str(told.value)


def test_rows_far_from_the_origin_are_labelled_as_those_near_it():
    Xs, ys, Xt = STACKED
    Xs, Xt = (np.round(X * 2**10) / 2**10 for X in (Xs, Xt))  # sums with the offset are exact
    near = JDOTClassifier().adapt(Xs, ys, Xt)
    far = JDOTClassifier().adapt(Xs + 2.0**30, ys, Xt + 2.0**30)
    np.testing.assert_array_equal(far.transduction_, near.transduction_)
    for one in (slice(0, 1), slice(3, 5), slice(None)):
        labels = far.predict(Xt[one] + 2.0**30)
        np.testing.assert_array_equal(labels, far.transduction_[len(ys) :][one])


def test_covariances_that_do_not_fit_are_refused_with_the_width_that_does():
    wide = np.ones((3, 10**6))
    with pytest.raises(ValueError, match=r"1000000 columns needs about .* \d+ columns would fit"):
        LinearOTMapping().adapt(wide, [0, 1, 0], wide)
