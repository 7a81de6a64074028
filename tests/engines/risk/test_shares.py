"""Class shares: met where they are known, followed where they show, left alone where not."""

import numpy as np
import pytest

from problems import small_problem
from transferable import ARTL, MEDA, TFDF, TFDFV
from transferable.datasets import fetch_office_caltech, load_printed_to_handwritten
from transferable.domains import Domains
from transferable.engines.risk.calibration import left_out_scores
from transferable.engines.risk.features import ManifoldFeatures
from transferable.engines.risk.rounds import Rounds, solve
from transferable.engines.risk.rows import left_out_error
from transferable.engines.risk.shares import doubt_shift
from transferable.engines.shares import Labelling, wanted_shares
from transferable.limits import LIMITS
from transferable.persistence import load, save

METHODS = [TFDF, TFDFV, MEDA, ARTL]
KNOWN = np.array([0.55, 0.0, 0.45])


@pytest.fixture(scope="module")
def problem():
    return small_problem(2, n_source=60, n_target=50, n_features=8)


@pytest.fixture(scope="module")
def partial():
    """Printed digits, of which only the first five are in the handwritten target."""
    task = load_printed_to_handwritten()
    few = np.flatnonzero(task.yt < 5)[:300]
    return task.Xs[:500], task.ys[:500], task.Xt[few], task.yt[few]


def test_ratios_that_are_one_change_nothing(problem):
    rows = TFDFV(second_order=0.5, n_neighbors=3), (problem.Xs, problem.ys, problem.Xt)
    for n_landmarks in (None, 30):
        solver = solver_of(rows[0].set_params(n_landmarks=n_landmarks), *rows[1])
        same = solver.with_shares(solver.domains.source_shares)
        target = solver.source_only_labels()
        found, expected = (s.solve(s.at(target)) for s in (same, solver))
        np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def solver_of(model, Xs, ys, Xt):
    domains = Domains.from_stacked(np.vstack([Xs, Xt]), np.r_[ys, np.full(len(Xt), -1)])
    return model._solver(model._objective(), model._rows(domains, model._map(domains)))


def test_the_system_is_the_weighted_one(problem):
    """(S K + eta I) beta = A Y with A the ratios of shares, and columns of weighted means."""
    model = TFDFV(manifold=0, variance=0, balance=0.3, n_landmarks=None)
    solver = solver_of(model, problem.Xs, problem.ys, problem.Xt)
    shares = np.array([0.2, 0.7, 0.1])
    solver, domains = solver.with_shares(shares), solver.domains
    target = solver.source_only_labels()
    ratios, C = shares / domains.source_shares, 3
    n, m = domains.n_source, domains.n_target
    member = [domains.y == c for c in range(C)], [target == c for c in range(C)]
    columns = [np.r_[ratios[domains.y] / n, np.full(m, -1 / m)] * np.sqrt(0.7 * C)]
    columns += [
        min(1.0, ratios[c]) * np.r_[s / s.sum(), t / -t.sum()] * np.sqrt(0.3)
        for c, (s, t) in enumerate(zip(*member, strict=True))
    ]
    M = sum(np.outer(e, e) for e in columns)
    A = np.diag(np.r_[ratios[domains.y], np.zeros(m)])
    S = A + 10.0 * M / np.linalg.norm(M)
    expected = np.linalg.solve(S @ solver.K + 0.1 * np.eye(n + m), A @ domains.one_hot())
    np.testing.assert_allclose(solver.solve(solver.at(target)), expected, atol=1e-9)


@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_left_out_scores_are_those_of_a_fit_without_the_row(problem, n_landmarks):
    """With weights by class too; pseudo-labels and means are kept, as the formula keeps them."""
    model = TFDFV(alignment=0, n_landmarks=n_landmarks, n_neighbors=3)
    solver = solver_of(model, problem.Xs, problem.ys, problem.Xt)
    solver = solver.with_shares(np.array([0.2, 0.7, 0.1]))
    labelled = solver.at(solver.source_only_labels())
    left_out = left_out_scores(solver, labelled, solver.scores(solver.solve(labelled)), 5)
    rows = slice(None) if n_landmarks is None else solver.features[slice(0, solver.features.n)]
    for i in range(5):
        weights = np.asarray(solver.domains.ratios)[solver.domains.y].copy()
        weights[i] = 0.0
        A = np.diag(np.r_[weights, np.zeros(solver.domains.n_target)])
        S = A + sum(f.apply(np.eye(len(A))) for k, f in solver.fixed.items() if k != "source")
        rhs = A @ solver.domains.one_hot()
        if n_landmarks is None:
            beta = np.linalg.solve(S @ solver.K + solver.ridge * np.eye(len(A)), rhs)
            expected = solver.K[i] @ beta
        else:
            inside = rows.T @ S @ rows + solver.ridge * np.eye(rows.shape[1])
            expected = rows[i] @ np.linalg.solve(inside, rows.T @ rhs)
        np.testing.assert_allclose(left_out[i], expected, atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_known_shares_are_met_and_absent_classes_never_given(method, problem):
    model = method(class_shares=KNOWN, n_neighbors=3)
    if method is MEDA:
        model.set_params(manifold_dim=4)
    model.adapt(problem.Xs, problem.ys, problem.Xt)
    labels = model.predict(problem.Xt)
    assert np.abs(np.bincount(labels, minlength=3) - 50 * KNOWN).max() <= 1
    assert np.array_equal(model.transduction_[-50:], labels)
    np.testing.assert_array_equal(model.class_shares_, KNOWN)
    new = np.vstack([problem.Xs, 10 * np.random.default_rng(0).normal(size=(200, 8))])
    assert not (model.predict(new) == 1).any()
    assert (model.predict_proba(new)[:, 1] == 0).all()
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1.0)


@pytest.mark.parametrize("shares", ["auto", KNOWN], ids=["auto", "known"])
@pytest.mark.parametrize("second_order", [0.0, 0.5])
def test_all_solves_agree(problem, partial, shares, second_order):
    pytest.importorskip("torch")
    if isinstance(shares, str):
        Xs, ys, Xt = partial[0][:250], partial[1][:250], partial[2][:150]
    else:
        Xs, ys, Xt = problem.Xs, problem.ys, problem.Xt
    settings = {"class_shares": shares, "second_order": second_order, "n_neighbors": 3}
    found = [
        TFDF(**settings, **solve).adapt(Xs, ys, Xt)
        for solve in ({}, {"n_landmarks": len(Xs) + len(Xt)}, {"device": "torch"})
    ]
    if isinstance(shares, str):
        assert np.abs(found[0].class_shares_ - np.bincount(ys) / len(ys)).max() > 0.02  # followed
    finite = np.isfinite(found[0].decision_function(Xt))
    for other in found[1:]:
        np.testing.assert_allclose(other.class_shares_, found[0].class_shares_, atol=1e-9)
        np.testing.assert_allclose(
            other.decision_function(Xt)[finite], found[0].decision_function(Xt)[finite], atol=1e-6
        )


def test_grams_by_class_are_bounded_in_bytes(problem, monkeypatch):
    settings = {"class_shares": KNOWN, "n_neighbors": 3, "n_landmarks": 30}
    held = TFDF(**settings).adapt(problem.Xs, problem.ys, problem.Xt)
    monkeypatch.setattr(LIMITS, "class_bytes", 0)
    passed = TFDF(**settings).adapt(problem.Xs, problem.ys, problem.Xt)
    np.testing.assert_allclose(passed._beta, held._beta, atol=1e-9)


def test_auto_follows_a_shift(partial):
    Xs, ys, Xt, yt = partial
    source, auto = (TFDFV(class_shares=shares).adapt(Xs, ys, Xt) for shares in ("source", "auto"))
    assert auto.score(Xt, yt) > source.score(Xt, yt) + 0.05
    assert auto.class_shares_[:5].sum() > 0.8
    np.testing.assert_allclose(source.class_shares_, 0.1, atol=0.05)
    shares = auto.class_shares_history_
    assert len(shares) == auto.n_iter_
    assert len(np.unique(shares, axis=0)) > 2  # the source's, the first estimate, renewals
    np.testing.assert_array_equal(shares[-1], auto.class_shares_)


def test_a_shift_that_leaves_neighbours_as_they_were_is_not_followed(partial):
    """Labels of the source stay where following a shift makes no target row agree with its own."""
    Xs, ys, Xt, _ = partial
    solver = solver_of(TFDFV(), Xs, ys, Xt)
    first = solver.source_only_labels()
    rounds = Rounds(solver, first)
    rounds.run(solve, 5)
    before = rounds.coefficients, rounds.target
    shares = np.r_[np.full(5, 0.19), np.full(5, 0.01)]
    rounds.restart(shares, rounds.target, Labelling())
    assert doubt_shift(rounds, *before), "the labels are the same, so no neighbour agrees more"
    assert rounds.solver.domains.shares is None
    np.testing.assert_array_equal(rounds.target, before[1])
    rounds.restart(shares, np.zeros_like(before[1]), Labelling())
    assert not doubt_shift(rounds, *before), "one label for all, so that every neighbour agrees"
    np.testing.assert_allclose(rounds.solver.domains.shares, shares)


def test_shares_that_are_asked_to_be_estimated_are_not_doubted(partial, monkeypatch):
    Xs, ys, Xt, _ = partial

    def doubt_all(rounds, coefficients, target):
        rounds.restart(None, target, Labelling())
        return True

    monkeypatch.setattr("transferable.classifiers._risk.doubt_shift", doubt_all)
    followed, doubted = (
        TFDFV(class_shares=asked).adapt(Xs, ys, Xt) for asked in ("estimated", "auto")
    )
    assert followed.class_shares_[:5].sum() > 0.8
    np.testing.assert_allclose(doubted.class_shares_, 0.1, atol=0.05)


def test_few_target_rows_are_no_reason_to_bet(partial):
    Xs, ys, Xt, _ = partial
    model = TFDFV().adapt(Xs, ys, Xt[:29])
    np.testing.assert_array_equal(model.class_shares_, np.bincount(ys) / len(ys))


def test_small_classes_do_not_shrink():
    """Source-like rows get labels with the source's shares, though classes overlap."""
    rng = np.random.default_rng(0)
    y = (rng.random(1600) < 0.15).astype(int)
    X = rng.normal(size=(1600, 5)) + 1.0 * y[:, None]
    fit, rest = slice(0, 600), slice(600, 1200)
    found = {}
    for shares in ("source", "auto"):
        model = TFDF(class_shares=shares).adapt(X[fit], y[fit], X[1200:])
        found[shares] = model.predict(X[rest]).mean()
    assert found["source"] < y[rest].mean() - 0.03
    assert found["auto"] == pytest.approx(y[rest].mean(), abs=0.03)


def test_a_saved_model_keeps_its_offsets(problem, tmp_path):
    model = TFDF(class_shares=KNOWN, n_neighbors=3).adapt(problem.Xs, problem.ys, problem.Xt)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(
        again.decision_function(problem.Xt), model.decision_function(problem.Xt)
    )


def test_shares_by_name_and_by_position(problem):
    names = np.array(["b", "a", "c"])
    by_name, by_position = (
        TFDFV(class_shares=shares, n_neighbors=3).adapt(problem.Xs, names[problem.ys], problem.Xt)
        for shares in ({"a": 0.2, "c": 0.5, "b": 0.3}, [0.2, 0.3, 0.5])
    )
    assert np.array_equal(by_name.transduction_, by_position.transduction_)


def test_one_class_left_is_every_rows(problem):
    with pytest.warns(UserWarning, match="one class, 2: every row gets it"):
        model = TFDF(class_shares=[0, 0, 1], n_neighbors=3).adapt(
            problem.Xs, problem.ys, problem.Xt
        )
    assert (model.predict(problem.Xt) == 2).all()


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ([0.5, 0.2, 0.2], "sum to 1.*0.9"),
        ([0.0, 0.0, 0.0], "sum to 1"),
        ([1.2, -0.2, 0.0], "from 0 to 1"),
        ([np.nan, 0.5, 0.5], "from 0 to 1"),
        ([0.5, 0.5], r"shape \(2,\).*3 classes"),
        ({"x": 0.5, 0: 0.5, 1: 0.0, 2: 0.0}, r"\['x'\], of which the source has no row"),
        ({0: 0.5, 1: 0.5}, r"no share for \[2\]"),
        ("known", "auto"),
    ],
)
def test_bad_shares_are_named(problem, shares, words):
    with pytest.raises(ValueError, match=words):
        TFDFV(class_shares=shares).adapt(problem.Xs, problem.ys, problem.Xt)


def test_words_are_left_to_the_method(problem):
    domains = Domains.from_stacked(problem.X, np.r_[problem.ys, np.full(50, -1)])
    assert wanted_shares("auto", domains) is None


def accuracies_of_perturbed(Xs, ys, Xt, yt, times=10):
    """Target accuracy with the rows as they are, and with their seventh digits changed."""
    rng = np.random.default_rng(0)
    found = []
    for size in (0.0, *[1e-6] * times):
        source, target = (X * (1.0 + size * rng.normal(size=X.shape)) for X in (Xs, Xt))
        model = TFDF(record_history=False).adapt(source, ys, target)
        found.append(np.mean(model.transduction_[len(ys) :] == yt))
    return np.array(found)


def test_left_out_errors_change_as_little_as_the_rows():
    """Counted by whole rows, one that is nearly a tie would change them by a row at once."""
    rng = np.random.default_rng(1)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 3)) + 0.3 * y[:, None]  # classes overlap, margins are small
    errors = []
    for size in (0.0, *[1e-4] * 10):
        rows = X * (1.0 + size * rng.normal(size=X.shape))
        domains = Domains.from_stacked(np.vstack([rows, rows]), np.r_[y, np.full(200, -1)])
        model = TFDFV(manifold_dim=None)
        errors.append(left_out_error(domains, ManifoldFeatures(None), model._kernel, model.ridge))
    assert 0.2 < errors[0] < 0.6
    assert 0 < np.ptp(errors) < 0.2 / 200


def test_no_decision_hangs_by_a_thread(partial):
    Xs, ys, Xt, yt = partial
    found = accuracies_of_perturbed(Xs[:250], ys[:250], Xt[:150], yt[:150])
    assert np.abs(found - found[0]).max() <= 1 / 150


def test_no_decision_hangs_by_a_thread_on_real_rows(data_home):
    task = fetch_office_caltech(data_home=data_home, download=False).task("W", "D")
    found = accuracies_of_perturbed(task.Xs, task.ys, task.Xt, task.yt)
    assert np.abs(found - found[0]).max() <= max(0.003, 1 / len(task.yt))
