"""AutoRegressor: numbers that do not explode, and what measured rows make of them."""

import numpy as np
import pytest

import transferable
from transferable import AutoRegressor


def drawn(seed=0, n=120, shift=0.6, noise=0.3):
    rng = np.random.default_rng(seed)
    Xs, Xt = rng.normal(size=(n, 4)), rng.normal(size=(n, 4)) + shift
    ys, yt = (X[:, 0] - 2 * X[:, 1] + np.sin(2 * X[:, 2]) for X in (Xs, Xt))
    return Xs, ys + noise * rng.normal(size=n), Xt, yt + noise * rng.normal(size=n)


@pytest.fixture(scope="module")
def problem():
    return drawn()


@pytest.fixture(scope="module")
def model(problem):
    return AutoRegressor().adapt(*problem[:3])


@pytest.fixture(scope="module")
def audited(model, problem):
    rows, _ = model.audit_rows(20)
    return model.audit(rows, problem[3][rows] + 3)


def test_the_table_holds_what_is_known_of_each_row(model, problem):
    table = model.labels_
    assert list(table) == ["prediction", "spread", "source_only", "unfamiliar"]
    np.testing.assert_allclose(table.prediction, model.predict(problem[2]))
    np.testing.assert_allclose(table.source_only, model.predict_source_only(problem[2]))
    np.testing.assert_allclose(table.spread, model.spread(problem[2]))
    assert (table.unfamiliar == model.unfamiliar_).all()
    again = model.label(problem[2])
    np.testing.assert_allclose(again[table.columns[:3]], table[table.columns[:3]])


def test_candidates_are_weighted_by_their_left_out_errors(model):
    table = model.candidates_
    assert table.name.tolist() == ["ridge", "kernel ridge", "boosting", "forest"]
    assert table.weight.sum() == pytest.approx(1.0)
    assert (table.left_out_error > 0).all()
    assert table.error.isna().all()


def test_answers_never_leave_the_range_by_more_than_a_tenth(problem):
    Xs, ys, Xt, _ = problem
    far = np.vstack([Xt, 1e6 * Xt, -1e3 * Xt])
    found = AutoRegressor().adapt(Xs, ys, far)
    margin = 0.1 * np.ptp(ys) + 1e-9
    for answers in (found.predict(far), found.predict(1e9 * Xt)):
        assert answers.min() >= ys.min() - margin
        assert answers.max() <= ys.max() + margin


def test_a_target_far_outside_is_unfamiliar_row_by_row(problem):
    Xs, ys, Xt, _ = problem
    found = AutoRegressor().adapt(Xs, ys, Xt + 100)
    assert found.unfamiliar_.all()
    assert found.trust_.unfamiliar == len(Xt)
    assert found.trust_.columns == [(k, 1.0) for k in range(4)]
    assert "cannot be known without labels; measure 20 rows" in str(found.trust_)
    assert not AutoRegressor().adapt(Xs, ys, Xs).unfamiliar_.any()


def test_a_target_off_the_leading_directions_is_scaled_by_domain_too():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(80, 2))
    Xs = latent @ rng.normal(size=(2, 12)) + 0.01 * rng.normal(size=(80, 12))
    Xt = Xs + 3 * rng.normal(size=12)
    found = AutoRegressor().adapt(Xs, latent[:, 0], Xt)
    weight = found.candidates_.set_index("name").weight
    assert weight["ridge after CORAL"] == pytest.approx(0.25)
    assert weight.filter(like="per domain").sum() == pytest.approx(0.25)
    assert found.score(Xt, latent[:, 0]) > 0.5


def test_an_audit_measures_and_corrects(model, audited, problem):
    *_, Xt, yt = problem
    off = np.abs(model.predict(Xt) - yt - 3)
    assert audited.rows == 20
    assert audited.low <= np.median(off) <= audited.high
    assert audited.better == "corrected"
    corrected = audited.model.predict(Xt)
    assert np.sqrt(np.mean((corrected - yt - 3) ** 2)) < 1
    rows, _ = model.audit_rows(20)
    np.testing.assert_array_equal(audited.labels[rows], yt[rows] + 3)
    rest = np.setdiff1d(np.arange(len(yt)), rows)
    np.testing.assert_allclose(audited.labels[rest], corrected[rest])
    assert audited.model.transduction_[len(Xt) + rows[0]] == yt[rows[0]] + 3
    assert "off by less than" in str(audited)


def test_intervals_need_measured_rows_and_then_hold(model, audited, problem):
    *_, Xt, yt = problem
    with pytest.raises(ValueError, match=r"measure those of audit_rows\(20\)"):
        model.predict_interval(Xt)
    low, high = audited.model.predict_interval(Xt).T
    assert 0.8 <= np.mean((low <= yt + 3) & (yt + 3 <= high)) <= 1.0
    np.testing.assert_allclose(audited.model.labels_.low, low)
    narrow = audited.model.predict_interval(Xt, coverage=0.5)
    assert (narrow[:, 0] > low).all()
    with pytest.raises(ValueError, match=r"coverage=1\.5: take a share"):
        audited.model.predict_interval(Xt, coverage=1.5)


def test_a_second_audit_adds_to_the_first(model, problem):
    yt = problem[3]
    first = model.audit(range(10), yt[:10] + 3)
    second = first.model.audit(range(10, 14), yt[10:14] + 3)
    at_once = model.audit(range(14), yt[:14] + 3)
    np.testing.assert_allclose(second.labels, at_once.labels)
    replaced = first.model.audit(range(10), yt[:10])
    np.testing.assert_allclose(replaced.labels, model.audit(range(10), yt[:10]).labels)
    with pytest.raises(ValueError, match="7 measured rows, all audits together, are too few"):
        model.audit(range(7), yt[:7])
    with pytest.raises(ValueError, match="choose at least 8 rows"):
        model.audit_rows(7)


def test_known_target_labels_correct_as_an_audit_does(model, problem):
    Xs, ys, Xt, yt = problem
    known = np.where(np.arange(len(yt)) % 6 == 0, yt + 3, np.nan)
    rows = np.flatnonzero(~np.isnan(known))
    taught = AutoRegressor().adapt(Xs, ys, Xt, yt=known)
    audited = model.audit(rows, known[rows])
    np.testing.assert_allclose(taught.predict(Xt), audited.model.predict(Xt))
    np.testing.assert_allclose(taught.transduction_, audited.model.transduction_)


def test_rows_to_measure_are_spread_over_the_predictions(model):
    rows, weights = model.audit_rows(20)
    places = np.argsort(np.argsort(model.labels_.prediction))[rows]
    assert sorted(places // 6) == list(range(20))
    assert weights.sum() == pytest.approx(len(model.labels_))
    np.testing.assert_array_equal(model.audit_rows(20).rows, rows)


def test_processes_give_the_same_numbers(model, problem):
    parallel = AutoRegressor(n_jobs=2).adapt(*problem[:3])
    np.testing.assert_array_equal(parallel.predict(problem[2]), model.predict(problem[2]))


def test_without_time_ridge_answers(problem):
    with pytest.warns(UserWarning, match="AutoRegressor left out 3 of 4 candidates"):
        found = AutoRegressor(max_seconds=1e-9).adapt(*problem[:3])
    assert found.candidates_.weight.tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("measured", [False, True])
def test_a_model_file_answers_to_the_bit(model, audited, problem, tmp_path, measured):
    given = audited.model if measured else model
    transferable.save(given, tmp_path / "m.tfm")
    again = transferable.load(tmp_path / "m.tfm")
    new = drawn(seed=3)[2]
    np.testing.assert_array_equal(again.predict(new), given.predict(new))
    np.testing.assert_array_equal(again.label(new), given.label(new))
    if measured:
        np.testing.assert_array_equal(again.predict_interval(new), given.predict_interval(new))
    rows, _ = again.audit_rows(20)
    np.testing.assert_array_equal(
        again.audit(rows, problem[3][rows]).labels, given.audit(rows, problem[3][rows]).labels
    )


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(80, 2))
    X = latent @ rng.normal(size=(2, 700)) + 0.05 * rng.normal(size=(80, 700))
    found = AutoRegressor().adapt(X[:40], latent[:40, 0], X[40:])
    assert found.score(X[40:], latent[40:, 0]) > 0.8


def test_one_column_and_constant_columns(problem):
    Xs, ys, Xt, _ = problem
    one = AutoRegressor().adapt(Xs[:, 1:2], ys, Xt[:, 1:2])
    assert np.isfinite(one.predict(Xt[:, 1:2])).all()
    constant = [np.column_stack([X, np.full(len(X), 7.0)]) for X in (Xs, Xt)]
    expected = AutoRegressor().adapt(Xs, ys, Xt).predict(Xt)
    found = AutoRegressor().adapt(constant[0], ys, constant[1]).predict(constant[1])
    assert np.abs(found - expected).max() < np.ptp(ys) / 5


def test_few_rows_are_refused(problem):
    Xs, ys, Xt, _ = problem
    with pytest.raises(ValueError, match="n_samples=9 source rows with a number are too few"):
        AutoRegressor().adapt(Xs[:9], ys[:9], Xt)


def test_an_audit_refuses_what_is_no_measurement(model):
    with pytest.raises(ValueError, match="not a number"):
        model.audit(range(8), ["3 %"] * 8)
    with pytest.raises(ValueError, match="8 of the 8 audited rows have no label"):
        model.audit(range(8), [np.nan] * 8)
    with pytest.raises(ValueError, match="infinity"):
        model.audit(range(8), [np.inf] * 8)
