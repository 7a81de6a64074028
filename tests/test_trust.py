"""Verdicts without labels, audits of a few rows, and what AutoAdapter does with what is known."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import StandardScaler

import transferable
from problems import small_problem
from transferable import AutoAdapter
from transferable.datasets import load_printed_to_handwritten
from transferable.tables import TableClassifier
from transferable.trust import (
    Audit,
    Trust,
    agreement,
    assess,
    audited_accuracy,
    better_of,
    compared,
    consensus_weights,
    correction,
    overlap,
    rows_to_label,
    stratum_weights,
)

PROBLEM = small_problem(n_source=60, n_target=48, n_features=5)
CLASSES = np.array(["a", "b"])


def two_classes(seed=0, n=300, width=3, move=0.0, separation=2.5):
    """Two classes in the direction of a random vector; every column of the target is moved."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    direction = rng.normal(size=width)
    direction *= separation / np.linalg.norm(direction)
    Xs, Xt = (rng.normal(size=(n, width)) + np.outer(y - 0.5, direction) for _ in range(2))
    return Xs, y, Xt + move * Xs.std(axis=0), y


@pytest.fixture(scope="module")
def model():
    return AutoAdapter(effort="fast").adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)


# -- the verdict -------------------------------------------------------------------------------


def table(n, confidence, codes=None):
    """Probabilities of two classes, as many rows of each unless codes are given."""
    codes = np.arange(n) % 2 if codes is None else codes
    P = np.full((n, 2), 1 - confidence)
    P[np.arange(n), codes] = confidence
    return P


def state(P, views=None, **given):
    codes = P.argmax(axis=1)
    return judged(P, [codes] * 3 if views is None else views, **given).state


def judged(P, views, alone=None, prior=(0.5, 0.5), **given):
    names = ["source-only", "as given", "per domain"]
    alone = P.argmax(axis=1) if alone is None else alone
    return assess(
        P, dict(zip(names, views, strict=False)), alone, CLASSES, np.array(prior), **given
    )


def test_labels_can_be_used_only_with_confidence_and_three_views_that_agree():
    rng = np.random.default_rng(0)
    P = table(400, 0.95)
    codes = P.argmax(axis=1)
    assert state(P) == "use"
    assert state(table(400, 0.8)) == "check"
    assert state(P, [codes] * 2) == "check"
    assert state(P, one_column=True) == "check"
    assert state(P, [rng.integers(2, size=400) for _ in range(3)]) == "reject"
    assert state(table(400, 0.55)) == "reject"


def test_a_large_class_is_no_evidence():
    codes = (np.arange(400) < 8).astype(int)  # 98 % of one class
    P = table(400, 0.95, codes)
    found = judged(P, [codes] * 3)
    assert (found.state, found.low > 0.75) == ("check", True)
    assert "98 % of rows get a" in found.reasons
    assert "a rises from 50 % of the source to 98 %" in found.reasons


def test_the_interval_widens_with_doubt_and_with_few_rows():
    widths = []
    for n, confidence in ((3000, 0.95), (3000, 0.8), (30, 0.8)):
        found = judged(table(n, confidence), [])
        assert 0 <= found.low < found.high <= 1
        widths.append(found.high - found.low)
    assert widths == sorted(widths)


def test_changes_are_counted_and_no_line_claims_that_adapting_paid():
    P = table(100, 0.95)
    codes = P.argmax(axis=1)
    alone = np.where(np.arange(100) < 30, 0, codes)
    found = judged(P, [alone, codes, codes], alone)
    assert found.changed == np.sum(alone != codes) == 15
    assert found.changes == [("a", "b", 15)]
    doubtful = judged(table(100, 0.85), [alone, codes, codes])
    assert doubtful.reasons == (
        "Models of the source alone and those of rows as given disagree on 15 % of rows",
        "the mean confidence is 85 %",
    )
    for which in ("use", "check", "reject"):
        text = " ".join(Trust(which, 0.5, 0.9, 0.3, 9, 0, []).lines)
        assert "cannot show" in text
        assert not re.search(r"\b(paid|pays|harm)", text)


def test_an_interval_is_shown_where_it_tells_something_and_never_of_rejected_labels():
    narrow, wide = (Trust("check", low, 0.9, 0.3, 9, 0, []) for low in (0.5, 0.49))
    assert (narrow.shown, wide.shown) == (True, False)
    assert "estimated at 50 to 90 %" in narrow.lines[0]
    for unknown in (wide, judged(table(400, 0.55), [])):
        assert not unknown.shown
        assert "cannot be estimated without labels" in unknown.lines[0]
        assert not re.search(r"\d to \d+ %", str(unknown))
    assert (unknown.state, unknown.low, unknown.high) == ("reject", 0, 1)


def test_constant_labels_agree_by_chance():
    assert agreement(np.zeros(5, int), np.zeros(5, int)) == 0
    spam = table(400, 0.95, np.zeros(400, int))
    assert judged(spam, [np.zeros(400, int)] * 3).state == "reject"
    rng = np.random.default_rng(0)
    right = np.eye(2)[rng.integers(0, 2, 200)]
    constant = np.tile([1.0, 0.0], (200, 1))
    weights, kappas = consensus_weights(np.array([constant, constant, right]), np.full(3, 1 / 3))
    assert kappas[:2] == pytest.approx([0, 0])
    assert weights.sum() == pytest.approx(1)


def test_a_verdict_names_columns_with_few_values_in_common():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    source = pd.DataFrame({"age": rng.normal(40 + 3 * y, 10), "size": rng.normal(y), "label": y})
    target = source.drop(columns="label").assign(age=source["age"] + 40)
    trust = TableClassifier(scale="joint").adapt(source, "label", target).trust_
    assert [name for name, _ in trust.moved] == ["age"]
    assert "columns with few values in common: age (" in trust.lines[1]
    arrays = target.to_numpy(), y, target.to_numpy() - 90
    moved = AutoAdapter(effort="fast").adapt(*arrays).trust_.moved
    assert [name for name, _ in moved] == [1, 0]


def test_labels_less_sure_than_one_class_for_all_have_a_wider_interval():
    P = np.tile([0.8, 0.2], (100, 1))
    views = dict.fromkeys(("source-only", "as given", "per domain"), np.repeat([0, 1], 50))
    given = views, np.zeros(100, dtype=int), np.array(["a", "b"]), np.array([0.5, 0.5])
    one = assess(P, *given)
    P[:40] = P[:40, ::-1]
    assert assess(P, *given).low - one.low == pytest.approx(0.2)


def test_overlap_is_that_of_normal_columns():
    rng = np.random.default_rng(0)
    source = rng.normal(size=(4000, 3))
    assert overlap(source, source + 3) == pytest.approx(0.134, abs=0.01)
    assert (overlap(source, rng.normal(size=(4000, 3))) > 0.97).all()
    assert (overlap(np.ones((4, 2)), np.ones((4, 2))) == 1).all()
    flags = (source > 0).astype(float)
    assert overlap(csr_array(flags), csr_array(flags + 0.0)) == pytest.approx(1)


@pytest.mark.parametrize("width", [3, 8])
def test_columns_that_moved_are_scaled_alike_by_every_way_in(width):
    """Arrays as they are, tables, and domains scaled by hand: within a point of one another."""
    Xs, ys, Xt, yt = two_classes(1, width=width, move=3)
    arrays = AutoAdapter().adapt(Xs, ys, Xt)
    tables = TableClassifier(AutoAdapter()).adapt(Xs, ys, Xt)
    scaled = [StandardScaler().fit_transform(X) for X in (Xs, Xt)]
    by_hand = AutoAdapter().adapt(scaled[0], ys, scaled[1])
    scores = [arrays.score(Xt, yt), tables.score(Xt, yt), by_hand.score(scaled[1], yt)]
    assert max(scores) - min(scores) <= 0.01
    assert min(scores) > 0.8
    assert {arrays.trust_.state, tables.trust_.state} == {"check"}


def test_a_target_without_signal_is_never_to_be_used():
    task = load_printed_to_handwritten()
    rng = np.random.default_rng(1)
    noise = np.column_stack([rng.permutation(column) for column in task.Xt[::6].T])
    found = AutoAdapter(effort="fast").adapt(task.Xs[::6], task.ys[::6], noise)
    assert found.trust_.state != "use"
    numbers = rng.integers(54, size=300)  # a column of numbers taken for classes
    found = AutoAdapter(effort="fast").adapt(rng.normal(size=(300, 3)), numbers, noise[:, :3])
    assert found.trust_.state == "reject"


def test_one_column_is_never_enough():
    Xs, ys, Xt, _ = two_classes(width=1, separation=8)
    assert AutoAdapter().adapt(Xs, ys, Xt).trust_.state == "check"


# -- rows to label -----------------------------------------------------------------------------


def test_half_of_the_rows_are_those_that_changed_and_weights_are_unbiased():
    rng = np.random.default_rng(0)
    strata = np.repeat([0, 1, 2], [100, 40, 860])
    confidence = rng.random(1000)
    right = rng.random(1000) < 0.7
    estimates = []
    for seed in range(300):
        rows, weights = rows_to_label(strata, confidence, 30, np.random.default_rng(seed))
        assert len(set(rows.tolist())) == 30
        estimates.append(np.average(right[rows], weights=weights))
    assert np.bincount(strata[rows]).tolist() == [15, 5, 10]
    assert weights.sum() == pytest.approx(1000)
    np.testing.assert_allclose(stratum_weights(strata, rows), weights)
    assert np.mean(estimates) == pytest.approx(right.mean(), abs=0.02)


@pytest.mark.parametrize("sizes", [(0, 0, 20), (20, 0, 0), (3, 1, 4), (1, 30, 2)])
def test_a_stratum_that_is_short_leaves_its_rows_to_the_others(sizes):
    strata = np.repeat([0, 1, 2], sizes)
    n = min(8, len(strata))
    rows, weights = rows_to_label(strata, np.ones(len(strata)), n, np.random.default_rng(0))
    assert len(set(rows.tolist())) == n
    assert weights.sum() == pytest.approx(len(strata))


def test_rows_that_somebody_else_chose_stand_for_their_strata():
    strata = np.repeat([0, 2], [10, 90])
    assert stratum_weights(strata, np.array([0, 1, 50])).tolist() == [5, 5, 90]
    assert stratum_weights(strata, np.array([50, 51])).tolist() == [50, 50]  # none of a stratum


def test_the_interval_of_an_audit_holds_nine_times_of_ten():
    rng = np.random.default_rng(0)
    strata = np.repeat([0, 2], [200, 800])
    truth = np.where(strata == 0, rng.random(1000) < 0.4, rng.random(1000) < 0.9)
    held = []
    for seed in range(200):
        rows, weights = rows_to_label(strata, rng.random(1000), 20, np.random.default_rng(seed))
        share, low, high = audited_accuracy(truth[rows], weights)
        assert low <= share <= high
        held.append(low <= truth.mean() <= high)
    assert np.mean(held) > 0.87
    assert audited_accuracy(np.ones(5, bool), np.ones(5))[2] == 1
    assert audited_accuracy(np.zeros(5, bool), np.ones(5))[1] == 0


@pytest.mark.parametrize(("n_rows", "deleted"), [(30, 3), (30, 1), (5, 3)])
def test_rows_that_remain_stand_for_a_stratum_without_any(n_rows, deleted):
    """Of unfamiliar rows, 5 % here, some cannot be labelled; five rows are too few for three."""
    strata = np.repeat([0, 1, 2], [100, 50, 850])
    errors, held = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        right = rng.random(1000) < np.array([0.4, 0.6, 0.95])[strata]
        rows = rows_to_label(strata, rng.random(1000), n_rows, rng).rows
        rows = rows[strata[rows] != deleted]
        share, low, high = audited_accuracy(right[rows], stratum_weights(strata, rows))
        errors.append(share - right.mean())
        held.append(low <= right.mean() <= high)
    assert abs(np.mean(errors)) < 0.025  # the deleted rows may be right as seldom as they like
    assert np.mean(held) > 0.87


def test_the_better_labelling_is_named_only_if_the_rows_decide_it():
    truth = np.zeros(12, int)
    assert better_of(truth, truth + 1, truth) == ("adapted", (12, 0))
    assert better_of(truth + 1, truth, truth) == ("source-only", (0, 12))
    assert better_of(truth, truth, truth) == (None, (0, 0))
    assert better_of(truth[:4], truth[:4] + 1, truth[:4]) == (None, (4, 0))


# -- audits ------------------------------------------------------------------------------------


def test_errors_are_passed_on_to_neighbours_as_far_as_left_out_rows_confirm():
    """Rows on a line: one end is wrong throughout, and an audited row there corrects it."""
    n = 60
    truth = (np.arange(n) < 30).astype(int)
    P = table(n, 0.7, np.zeros(n, int))[None]
    near = np.clip(np.arange(n)[:, None] + np.arange(-3, 4), 0, n - 1)
    rows = np.array([3, 9, 15, 21, 27, 33, 39, 45, 51, 57])
    found = correction(P, np.ones(1), near, rows, truth[rows], np.ones(10))
    labels = (P[0] + found.influence @ (found.wanted - P[0][rows])).argmax(axis=1)
    assert np.mean(labels == truth) > 0.95
    assert np.mean(found.left_out.argmax(axis=1) == truth[rows]) > 0.7
    assert found.alpha >= 0.95
    shuffled = np.random.default_rng(0).integers(0, n, size=near.shape)
    random = correction(P, np.ones(1), shuffled, rows, truth[rows], np.ones(10))
    assert random.alpha < found.alpha


def test_known_labels_weight_the_members():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=40)
    tables = np.array([table(40, 0.9, truth), table(40, 0.9, 1 - truth)])
    near = np.arange(40)[:, None]
    found = correction(tables, np.full(2, 0.5), near, np.arange(6), truth[:6], np.ones(6))
    assert found.weights[0] > 0.95


def test_an_audit_measures_corrects_and_leaves_the_model_as_it_is(model):
    before = model.predict_proba(PROBLEM.Xt)
    rows, weights = model.audit_rows(20)
    assert rows.tolist() == model.audit_rows(20).rows.tolist()
    assert weights.sum() == pytest.approx(48)
    found = model.audit(rows, PROBLEM.yt[rows])
    assert found.low <= found.accuracy <= found.high
    assert found.corrected[1] <= found.corrected[0] <= found.corrected[2]
    np.testing.assert_array_equal(found.labels[rows], PROBLEM.yt[rows])
    np.testing.assert_array_equal(found.model.predict(PROBLEM.Xt), found.labels)
    np.testing.assert_array_equal(found.model.transduction_[60:], found.labels)
    np.testing.assert_array_equal(model.predict_proba(PROBLEM.Xt), before)
    assert found.unknown == {}
    assert len(found.lines) == 3
    P = found.model.predict_proba(PROBLEM.Xt + 0.01)
    np.testing.assert_allclose(P.sum(axis=1), 1)


def test_known_labels_in_the_fit_do_what_an_audit_does(model):
    rows, _ = model.audit_rows(20)
    known = np.full(48, -1)
    known[rows] = PROBLEM.yt[rows]
    given = AutoAdapter(effort="fast").adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt, yt=known)
    marks = np.repeat([1, -1], [60, 48])
    used = AutoAdapter(effort="fast", target_labels="use")
    used.fit(PROBLEM.X, np.r_[PROBLEM.ys, known], sample_domain=marks)
    audited = model.audit(rows, PROBLEM.yt[rows]).model
    for other in (given, used):
        np.testing.assert_allclose(
            other.predict_proba(PROBLEM.X), audited.predict_proba(PROBLEM.X), atol=1e-12
        )
    ignored = AutoAdapter(effort="fast").fit(PROBLEM.X, np.r_[PROBLEM.ys, known], marks)
    np.testing.assert_array_equal(ignored.predict(PROBLEM.Xt), model.predict(PROBLEM.Xt))


def test_a_corrected_model_knows_its_rows_in_single_precision():
    Xs, ys, Xt, yt = two_classes(width=40, move=0.3, separation=1.5)
    model = AutoAdapter(effort="fast").adapt(Xs.astype(np.float32), ys, Xt.astype(np.float32))
    rows = model.audit_rows(30).rows
    found = model.audit(rows, yt[rows])
    P = found.model.predict_proba(Xt.astype(np.float32))
    np.testing.assert_allclose(P.max(axis=1), found.model.labels_.confidence, atol=1e-5)
    np.testing.assert_array_equal(P.argmax(axis=1)[rows], yt[rows])


def test_one_audited_row_is_in_the_singular():
    told = str(Audit(1, 1.0, 0.5, 1.0, None, (1, 0), {}))
    assert "Accuracy by 1 audited row: " in told
    assert "1 is right only as adapted and 0 only by the source alone" in told


def test_a_second_audit_keeps_what_the_first_one_learnt(model):
    rows, _ = model.audit_rows(20)
    first = model.audit(rows[:10], PROBLEM.yt[rows[:10]])
    second = first.model.audit(rows[10:], PROBLEM.yt[rows[10:]])
    np.testing.assert_array_equal(second.labels[rows], PROBLEM.yt[rows])
    at_once = model.audit(rows, PROBLEM.yt[rows])
    np.testing.assert_allclose(
        second.model.predict_proba(PROBLEM.Xt), at_once.model.predict_proba(PROBLEM.Xt), atol=1e-9
    )


def test_few_rows_are_refused_unless_there_are_no_more(model):
    rows, _ = model.audit_rows(12)
    with pytest.raises(ValueError, match=r"^9 rows with a label, all .*; label at least 10.$"):
        model.audit(rows[:9], PROBLEM.yt[rows[:9]])
    first = model.audit(rows[:10], PROBLEM.yt[rows[:10]]).model
    assert first.audit(rows[10:], PROBLEM.yt[rows[10:]]).rows == 2  # twelve in both batches
    few = AutoAdapter(effort="fast").adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt[:4])
    every, _ = few.audit_rows()
    assert sorted(every) == [0, 1, 2, 3]
    assert few.audit(every, PROBLEM.yt[every]).rows == 4
    with pytest.raises(ValueError, match=r"3 rows with a label.*; label at least 4"):
        few.audit(every[:3], PROBLEM.yt[every[:3]])
    codes = np.zeros(20, int)
    with pytest.raises(ValueError, match="1 row with a label"):
        compared(codes, codes, np.array([3]), codes[:1], np.ones(1), {})


def test_labels_that_the_source_lacks_count_as_wrong_and_are_named(model):
    rows, _ = model.audit_rows(10)
    labels = PROBLEM.yt[rows].astype(object)
    labels[0] = "zebra"
    found = model.audit(rows, [str(label) for label in labels])
    assert found.accuracy < 1
    ours = model.audit(rows, ["zebra"] * 10)
    assert list(ours.unknown) == ["zebra"]
    assert rows[0] in ours.unknown["zebra"]
    assert ours.labels[rows[0]] == "zebra"
    assert "Class 'zebra' is not in the source" in " ".join(ours.lines)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        ([0, 0], [0, 1], "row 0 is there 2 times"),
        ([48], [0], "48 is not a fitted target row; rows are 0 to 47"),
        ([0, 1], [0], "2 rows have 1 labels"),
        ([0.5], [0], "numbers of target rows"),
        ([], [], "numbers of target rows"),
        ([0, 1], [0, np.nan], "1 of the 2 audited rows have no label"),
    ],
)
def test_bad_audits_are_refused(model, rows, labels, message):
    with pytest.raises(ValueError, match=message):
        model.audit(rows, labels)


@pytest.mark.parametrize("n_rows", [0, 9, 20.5])
def test_no_fewer_rows_than_an_audit_needs_and_no_more_than_there_are(model, n_rows):
    with pytest.raises(ValueError, match="choose at least 10 rows"):
        model.audit_rows(n_rows)
    assert sorted(model.audit_rows(50).rows) == list(range(48))


@pytest.mark.filterwarnings("ignore::transferable.exceptions.NoTargetWarning")
def test_without_a_target_there_is_nothing_to_audit():
    alone = AutoAdapter().fit(PROBLEM.Xs, PROBLEM.ys)
    assert alone.trust_ is None
    assert alone.unfamiliar_.shape == (0,)
    with pytest.raises(ValueError, match="without a target"):
        alone.audit([0], [0])


def test_corrected_models_are_saved_and_tables_are_audited_by_their_rows(model, tmp_path):
    rows, _ = model.audit_rows(10)
    found = model.audit(rows, PROBLEM.yt[rows])
    transferable.save(found.model, tmp_path / "model")
    loaded = transferable.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict_proba(PROBLEM.X), found.model.predict_proba(PROBLEM.X)
    )
    assert loaded.trust_ == found.model.trust_
    table = TableClassifier(AutoAdapter(effort="fast"))
    y = np.r_[PROBLEM.ys, np.full(48, -1)]
    order = np.random.default_rng(0).permutation(len(y))
    table.fit(PROBLEM.X[order], y[order])
    truth = np.r_[PROBLEM.ys, PROBLEM.yt][order][y[order] == -1]
    chosen, _ = table.audit_rows(10)
    audited = table.audit(chosen, truth[chosen])
    np.testing.assert_array_equal(audited.model.transduction_[y[order] == -1], audited.labels)
    rows = PROBLEM.X[order][y[order] == -1]
    np.testing.assert_array_equal(audited.model.predict(rows), audited.labels)
    assert table.trust_.rows == 48


# -- what is known -----------------------------------------------------------------------------


def test_given_class_shares_are_met_and_an_absent_class_is_never_predicted():
    shares = {0: 0.5, 1: 0.5, 2: 0.0}
    model = AutoAdapter(class_shares=shares).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    counts = np.bincount(model.transduction_[60:], minlength=3)
    assert np.abs(counts - [24, 24, 0]).max() <= 1
    assert 2 not in model.predict(PROBLEM.X)
    assert model.predict_proba(PROBLEM.X)[:, 2].max() == 0
    assert 2 not in model.predict_source_only(PROBLEM.X)


def test_several_sources_and_weights_are_taken():
    p = PROBLEM
    sources = [p.Xs[::2], p.Xs[1::2] + 1], [p.ys[::2], p.ys[1::2]]
    model = AutoAdapter().adapt(*sources, p.Xt)
    assert all(error is None or "same model" in error for error in model.candidates_.error)
    assert np.mean(model.predict(p.Xt) == p.yt) > 0.6
    weights = np.r_[np.zeros(20), np.ones(40)]
    weighted = AutoAdapter().adapt(p.Xs, p.ys, p.Xt, sample_weight=weights)
    without = AutoAdapter().adapt(p.Xs[20:], p.ys[20:], p.Xt)
    np.testing.assert_allclose(weighted.predict_proba(p.Xt), without.predict_proba(p.Xt))
    heavy = AutoAdapter().adapt(p.Xs, p.ys, p.Xt, sample_weight=0.6 + 3 * (p.ys == 0))
    plain = AutoAdapter().adapt(p.Xs, p.ys, p.Xt)
    assert np.abs(heavy.predict_proba(p.Xt) - plain.predict_proba(p.Xt)).max() > 1e-3


def test_several_targets_are_one():
    p = PROBLEM
    marks = np.r_[np.ones(60), np.repeat([-1, -2], 24)]
    y = np.r_[p.ys, p.yt]
    several = AutoAdapter().fit(p.X, y, sample_domain=marks)
    one = AutoAdapter().fit(p.X, y, sample_domain=np.sign(marks))
    np.testing.assert_array_equal(several.predict_proba(p.Xt), one.predict_proba(p.Xt))


def test_target_rows_of_weight_zero_keep_their_numbers():
    p = PROBLEM
    weights = np.ones(48)
    weights[:5] = 0
    model = AutoAdapter(effort="fast").adapt(p.Xs, p.ys, p.Xt, np.r_[np.ones(60), weights])
    rows, _ = model.audit_rows(20)
    assert rows.min() >= 5
    found = model.audit(rows, p.yt[rows])
    assert len(found.labels) == len(model.unfamiliar_) == 48
    np.testing.assert_array_equal(found.labels[rows], p.yt[rows])
    with pytest.raises(ValueError, match="2 is not a fitted target row"):
        model.audit([2], [0])


@pytest.mark.parametrize("sparse", [False, True])
def test_no_two_members_are_copies_where_columns_are_flags(sparse):
    rng = np.random.default_rng(0)
    ys = np.arange(120) % 3
    Xs, Xt = ((rng.random((120, 30)) < 0.2 + 0.5 * np.eye(3, 30)[ys]) * 1.0 for _ in range(2))
    given = (csr_array(Xs), csr_array(Xt)) if sparse else (Xs, Xt)
    model = AutoAdapter().adapt(given[0], ys, given[1])
    names = list(model.agreement_.columns)
    assert "per domain" not in " ".join(names)
    assert "unaligned TFDF without flow" in names
    tables = model.consensus_.tables  # of the target rows
    for k, one in enumerate(tables):
        for other in tables[:k]:
            assert np.abs(one - other).max() > 1e-9


def test_rows_of_classes_that_the_source_lacks_are_unfamiliar():
    """Features in orthogonal directions: the third class is like nothing in the source."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    Xs, Xt = (rng.normal(size=(150, 12)) + 6 * np.eye(3, 12)[y] for _ in range(2))
    known = y < 2
    model = AutoAdapter().adapt(Xs[known], y[known], Xt)
    unfamiliar = model.unfamiliar_
    assert unfamiliar[y == 2].mean() > unfamiliar[y < 2].mean() + 0.2
    closed = AutoAdapter().adapt(Xs, y, Xt)
    assert closed.unfamiliar_.mean() < 0.05


def test_notebooks_show_the_verdict_and_short_texts_of_values(model):
    trust = model.trust_
    for shown in (trust._repr_html_(), model._repr_html_()):
        assert trust.title in shown
    assert "AutoAdapter" in model._repr_html_()
    rows = model.audit_rows(20).rows
    audit = model.audit(rows, PROBLEM.yt[rows])
    assert audit.lines[0] in audit._repr_html_()
    assert max(len(repr(trust)), len(repr(audit))) < 250
    hostile = Trust("check", 0.5, 0.9, 0.3, 9, 1, [("<b>", "&", 1)])
    assert "<b>" not in hostile._repr_html_().split("Adapting")[1]
    assert model.class_shares_.index.tolist() == model.classes_.tolist()


def test_a_model_refitted_with_the_audited_rows_counts_by_its_lead_on_rows_left_out(model):
    """Labels that the columns give and the source has otherwise: only the refitted model sees."""
    rng = np.random.default_rng(0)
    Xs, Xt = rng.normal(size=(300, 4)), rng.normal(size=(300, 4))
    fitted = AutoAdapter(effort="fast").adapt(Xs, (Xs[:, 0] > 0).astype(int), Xt)
    yt = (Xt[:, 0] + 2 * Xt[:, 1] > 0).astype(int)
    rows = fitted.audit_rows(60).rows
    model = fitted.audit(rows, yt[rows]).model
    assert model.consensus_.share > 0.5
    assert model.score(Xt, yt) > fitted.score(Xt, yt) + 0.05
    assert (model.predict(Xt[rows]) == yt[rows]).all()
    few = fitted.consensus_.corrected(np.arange(9), np.zeros(9, dtype=int))
    assert few.refitted is None, "fewer rows do not tell which is better"


def test_a_second_batch_leaves_out_the_rows_that_are_known(model):
    rows = model.audit_rows(20).rows
    audit = model.audit(rows, PROBLEM.yt[rows])
    second = audit.model.audit_rows(20)
    assert not np.isin(second.rows, rows).any()
    assert second.weights.sum() == pytest.approx(len(PROBLEM.Xt) - 20)
    other = model.audit_rows(20, random_state=1).rows
    assert set(other.tolist()) != set(rows.tolist())
    both = audit.model.audit(second.rows, PROBLEM.yt[second.rows]).model
    assert both.trust_.state == "measured"


def test_after_an_audit_there_is_one_answer(model):
    rows = model.audit_rows(20).rows
    found = model.audit(rows, PROBLEM.yt[rows])
    trust = found.model.trust_
    assert (trust.low, trust.high) == found.corrected[1:]
    assert "without labels, the accuracy" not in str(trust)
    assert "20 labelled rows" in trust.reasons[0]
    assert model.trust_.state != "measured"
    assert trust.changed == (found.labels != model.labels_["source_only"]).sum()


@pytest.mark.parametrize("n_rows", [10, 30, 50])
@pytest.mark.parametrize("others", [0.95, 1.0])
def test_the_interval_holds_where_undisputed_rows_are_right(n_rows, others):
    """A tenth of the rows disputed and a twentieth unfamiliar, half of them right."""
    rng, sizes = np.random.default_rng(0), np.array([300, 150, 2550])
    strata = np.repeat([0, 1, 2], sizes)
    right = np.concatenate(
        [np.arange(n) < share * n for n, share in zip(sizes, (0.5, 0.5, others), strict=True)]
    )
    held = 0
    for _ in range(400):
        rows, weights = rows_to_label(strata, np.zeros(3000), n_rows, rng)
        _, low, high = audited_accuracy(right[rows], weights)
        held += low <= right.mean() <= high
    assert held >= 0.88 * 400
