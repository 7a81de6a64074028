"""Class shares: met where they are known, followed where they show, left alone where not."""

import numpy as np
import pytest

from problems import domains_of, rounds_of, small_problem
from transferable import ARTL, MEDA, TFDF, TFDFV
from transferable._kernel import choose
from transferable._kernel.class_shares import agreement, small_class_offsets
from transferable._linalg.arrays import CPU
from transferable._linalg.kernels import KernelFunction
from transferable.datasets import fetch_office_caltech, load_printed_to_handwritten
from transferable.domains import Domains
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


@pytest.mark.parametrize("n_landmarks", [None, 30])
def test_ratios_that_are_one_change_nothing(problem, n_landmarks):
    """The rounds of the source's prior, and of one so near that every weight is computed."""
    model = TFDFV(second_order=0.5, n_neighbors=3, n_landmarks=n_landmarks)
    rounds, other = (rounds_of(model, domains_of(problem)) for _ in range(2))
    near = rounds.shares * (1.0 + 1e-13 * np.array([1.0, -1.0, 0.0]))
    other.restart(near, other.target, other.labelling)
    assert (rounds.ratio == 1.0).all()
    assert (other.ratio != 1.0).any()
    expected, found = rounds.solve([])[0], other.solve([])[0]
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    assert other.alone.norm == pytest.approx(rounds.alone.norm)


SHIFTED = np.array([0.2, 0.7, 0.1])


def shifted(model, problem):
    """Rounds with another class prior, before the first is made."""
    rounds = rounds_of(model, domains_of(problem))
    rounds.restart(SHIFTED, rounds.target, rounds.labelling)
    return rounds


def test_the_system_is_the_weighted_one(problem):
    """(S K + eta I) beta = A Y with A the ratios of shares, and columns of weighted means."""
    model = TFDFV(manifold=0, variance=0, balance=0.3, n_landmarks=None)
    rounds = shifted(model, problem)
    domains, target, K = rounds.domains, rounds.target.codes, rounds.solver.K
    ratios, C = SHIFTED / domains.prior, 3
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
    expected = np.linalg.solve(S @ K + 0.1 * np.eye(n + m), A @ domains.one_hot())
    np.testing.assert_allclose(rounds.solve([])[0], expected, atol=1e-9)


@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_left_out_scores_are_those_of_a_fit_without_the_row(problem, n_landmarks):
    """With weights by class too; pseudo-labels and means are kept, as the formula keeps them."""
    rounds = shifted(TFDFV(alignment=0, n_landmarks=n_landmarks, n_neighbors=3), problem)
    solver, domains = rounds.solver, rounds.domains
    left_out = solver.left_out(solver.scores(*rounds.solve([])), [], rounds.ratio, 5)
    rows = slice(None) if n_landmarks is None else solver.features[slice(0, solver.features.n)]
    for i in range(5):
        weights = rounds.ratio[domains.y]
        weights[i] = 0.0
        A = np.diag(np.r_[weights, np.zeros(domains.n_target)])
        S = A + sum(t.weight * t.form(np.eye(len(A))) for t in rounds.objective.fixed)
        rhs = A @ domains.one_hot()
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
    np.testing.assert_allclose(passed._machine.coefficients, held._machine.coefficients, atol=1e-9)


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


@pytest.mark.parametrize("kind", ["partial", "one class"])
def test_a_shift_is_followed_if_labels_agree_with_the_first_about_as_before(kind, partial):
    """Classes may be emptied that the target lacks, but not one of two that first labels see."""
    Xs, ys, Xt, _ = partial if kind == "partial" else drifted("turned by 60 degrees", 0)
    source, estimated, auto = (
        TFDFV(class_shares=asked).adapt(Xs, ys, Xt) for asked in ("source", "estimated", "auto")
    )
    first = TFDFV(class_shares="source", alignment=0, manifold=0, variance=0, max_iter=1)
    first = first.set_params(manifold_dim=auto.manifold_dim_).adapt(Xs, ys, Xt).predict(Xt)
    before, after = (agreement(m.predict(Xt), first) for m in (source, estimated))
    follows = after > before / 2 + 0.05
    assert follows == (kind == "partial")
    expected = estimated if follows else source
    np.testing.assert_allclose(auto.class_shares_, expected.class_shares_, atol=1e-9)


def drifted(kind, seed, n=200):
    """Two classes of n rows each, of which the source's view gives one to the other."""
    rng, y = np.random.default_rng(seed), np.repeat([0, 1], n)

    def gaussians(distance=2.0):
        return rng.normal(size=(2 * n, 2)) + np.outer(2 * y - 1, [distance, 0])

    def near_gaussians():
        return gaussians(1.5)

    def moons():
        angle = rng.uniform(0, np.pi, 2 * n) + np.pi * y
        middles = np.c_[np.cos(angle) + y - 0.5, np.sin(angle) + 0.5 * y - 0.25]
        return middles + 0.1 * rng.normal(size=(2 * n, 2))

    draw, degrees, scale, move = {
        "means moved": (near_gaussians, 0, 1.0, [2.5, 1.0]),
        "turned by 60 degrees": (gaussians, 60, 1.0, [2.0, 0.0]),
        "turned by 30 degrees": (moons, 30, 1.0, 0.5),
    }[kind]
    cos, sin = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    return draw(), y, scale * draw() @ [[cos, sin], [-sin, cos]] + move, y


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "kind",
    ["means moved", "turned by 60 degrees", "turned by 30 degrees"],
)
def test_a_concept_that_drifts_leaves_both_classes(kind, seed):
    """The source's view gives nearly all rows to one class, which is no reason to follow it."""
    Xs, ys, Xt, yt = drifted(kind, seed)
    auto, source = (TFDF(class_shares=asked).adapt(Xs, ys, Xt) for asked in ("auto", "source"))
    least = source.score(Xt, yt) - 0.1
    assert auto.score(Xt, yt) > (least if kind == "means moved" else max(0.6, least))
    assert np.bincount(auto.predict(Xt), minlength=2).min() > 20


def test_a_shift_that_is_not_supported_is_not_followed(partial, monkeypatch):
    """Classifier, labels and shares are then those of the source's prior."""
    Xs, ys, Xt, _ = partial
    monkeypatch.setattr("transferable._kernel.rounds.SUPPORT", (8.0, 9.0))
    source, reverted = (
        TFDFV(class_shares=asked, max_iter=40).adapt(Xs, ys, Xt) for asked in ("source", "auto")
    )
    shares = reverted.class_shares_history_
    assert np.abs(shares - source.class_shares_).max() > 0.02, "it was followed at first"
    np.testing.assert_allclose(reverted.class_shares_, source.class_shares_, atol=1e-15)
    np.testing.assert_allclose(
        reverted._machine.coefficients, source._machine.coefficients, atol=1e-9
    )


def test_a_shift_that_is_supported_in_part_is_followed_in_part(partial, monkeypatch):
    Xs, ys, Xt, _ = partial
    found = []
    for part in (0.0, 0.5, 1.0):
        monkeypatch.setattr("transferable._kernel.rounds.SUPPORT", (-8.0 * part, 8.0 - 8.0 * part))
        found.append(TFDFV().adapt(Xs, ys, Xt).class_shares_[:5].sum())
    assert found[0] + 0.05 < found[1] < found[2] - 0.05


def test_shares_that_are_asked_to_be_estimated_are_not_doubted(partial, monkeypatch):
    Xs, ys, Xt, _ = partial
    monkeypatch.setattr("transferable._kernel.rounds.SUPPORT", (8.0, 9.0))
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
    assert found["source"] < y[fit].mean() - 0.03
    assert found["auto"] == pytest.approx(y[fit].mean(), abs=0.015)


def test_what_is_within_the_slack_is_left_alone():
    """From one to two slacks offsets grow with what is missed: one row more changes them little."""
    y = np.repeat([0, 1], [800, 200])

    def labelled(n_missed):
        """Scores by which so many rows of the rare class, with small margins, get the other."""
        margins = np.where(y == 1, 1.0, -1.0) + 0.001 * np.arange(1000)
        margins[-n_missed:] = -0.1 - 0.001 * np.arange(n_missed)
        scores = np.c_[np.zeros(1000), margins]
        return scores, small_class_offsets(scores, y, np.ones(1000), np.ones(2))

    assert not labelled(9)[1].any()  # the slack is a hundredth of all rows
    gaps = [np.ptp(labelled(n)[1]) for n in (11, 12, 15, 20)]
    assert 0 < gaps[0] < 0.2 * gaps[3]
    assert np.all(np.diff(gaps) > 0)
    scores, offsets = labelled(40)
    assert np.mean((scores + offsets).argmax(axis=1)) == pytest.approx(0.19, abs=0.0015)


def test_a_saved_model_keeps_its_offsets(problem, tmp_path):
    model = TFDF(class_shares=KNOWN, n_neighbors=3).adapt(problem.Xs, problem.ys, problem.Xt)
    save(model, tmp_path / "model.tfm")
    again = load(tmp_path / "model.tfm")
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


def accuracies_of_perturbed(Xs, ys, Xt, yt, times=10):
    """Target accuracy with the rows as they are, and with their seventh digits changed."""
    rng = np.random.default_rng(0)
    found = []
    for size in (0.0, *[1e-6] * times):
        source, target = (X * (1.0 + size * rng.normal(size=X.shape)) for X in (Xs, Xt))
        model = TFDF().adapt(source, ys, target)
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
        kernel = KernelFunction("rbf", 0.5)
        errors.append(
            choose._left_out_error(domains, kernel, 0.1, CPU, choose.Features(np.zeros((3, 0))))
        )
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


@pytest.mark.parametrize("ridge", [0.1, 1e-6, 1e-9])
def test_another_prior_is_solved_as_well_as_the_first(problem, ridge):
    """From the factors of the first system, by the residual and beside a solver of its own."""
    model = TFDFV(ridge=ridge, alignment=0, n_neighbors=3, n_landmarks=None)
    rounds, other = (rounds_of(model, domains_of(problem)) for _ in range(2))
    rounds.solve([])
    for each in (rounds, other):
        each.restart(SHIFTED, each.target, each.labelling)
    found, expected = rounds.solve([]), other.solve([])
    solver = rounds.solver
    assert "kernel" in solver._first
    assert "kernel" not in other.solver._first
    residuals = [
        solver.loss(x)
        + sum(t.weight * t.form(x) for t in rounds.objective.fixed)
        + solver.ridge * w
        - solver.image
        for w, x in (found, expected)
    ]
    one, own = (np.abs(residual).max() for residual in residuals)
    assert one <= max(1e-12, 10 * own)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-7)
