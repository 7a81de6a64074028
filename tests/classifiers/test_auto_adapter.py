"""AutoAdapter: the pool, its consensus, and what it says when something is left out."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

import transferable
from problems import small_problem
from transferable import TFDF, TFDFV, AutoAdapter, _pool
from transferable._kernel.solvers import ExactSolver
from transferable._pool import Kind, Specification
from transferable.classifiers import _consensus, auto_adapter
from transferable.classifiers._consensus import Calibrated, prior_weights
from transferable.events import listen
from transferable.limits import LIMITS
from transferable.tables import TableClassifier
from transferable.transformers import GFK, JDA
from transferable.trust import agreement, consensus_weights

PROBLEM = small_problem(n_source=60, n_target=48, n_features=5)
FAST = AutoAdapter(effort="fast")


def adapted(model, p=PROBLEM):
    return model.adapt(p.Xs, p.ys, p.Xt)


@pytest.fixture(scope="module")
def thorough():
    return adapted(AutoAdapter(random_state=3))


def column(model, name):
    return model.candidates_[name].tolist()


def failing(message):
    def fit(self, *_, **__):
        raise MemoryError(message)

    return fit


def test_the_pool_holds_models_of_both_kinds_that_differ(thorough):
    assert column(thorough, "block") == ["source-only"] * 2 + ["adapted"] * 5
    assert len(set(column(thorough, "name"))) == 7
    assert column(thorough, "error") == [None] * 7
    assert sum(column(thorough, "weight")) == pytest.approx(1)
    assert min(column(thorough, "seconds")) > 0
    assert len(adapted(AutoAdapter(effort="fast")).candidates_) == 5
    columns = ["name", "block", "weight", "agreement", "seconds", "error"]
    assert list(thorough.candidates_.columns) == columns


def test_models_of_one_view_share_its_weight(thorough):
    """Of several that see the same rows, each knows little that the others do not."""
    members = thorough.consensus_.members
    weights = prior_weights([member.view for member in members], caution=0.4)
    prior = {member.name: weight for member, weight in zip(members, weights, strict=True)}
    assert prior["random forest"] == prior["logistic regression"] == pytest.approx(0.2)
    assert prior["TFDF"] == prior["TFDF after JDA"] == pytest.approx(0.3 / 2)
    assert sum(value for name, value in prior.items() if "per domain" in name) == pytest.approx(0.3)


def test_a_fitted_row_counts_half_and_five_neighbours_a_tenth_each(thorough):
    rows = PROBLEM.Xt
    parts = zip(thorough.consensus_.weights, thorough.consensus_.members, strict=True)
    own = sum(weight * member.probabilities(rows) for weight, member in parts)
    centred = rows - rows.mean(axis=0)
    further = np.sqrt(2 * (centred**2).mean())  # a coordinate of the size of two columns
    centred = np.column_stack([centred, np.full(len(rows), further)])
    units = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    others = np.argsort(-cosines, axis=1)[:, :5]
    expected = 0.5 * own + 0.1 * own[others].sum(axis=1)
    np.testing.assert_allclose(thorough.predict_proba(rows), expected)


def test_fitted_target_rows_are_not_predicted_again(thorough, monkeypatch):
    rows, mixed = PROBLEM.Xt, np.concatenate([PROBLEM.Xs[:9], PROBLEM.Xt[::-1]])
    apart = thorough.predict_proba(PROBLEM.Xs[:9])
    known = thorough.predict_proba(rows), thorough.predict_source_only(rows)
    np.testing.assert_allclose(thorough.predict_proba(mixed)[:9], apart, atol=1e-12)
    np.testing.assert_array_equal(thorough.predict_proba(mixed)[9:], known[0][::-1])
    monkeypatch.setattr(Calibrated, "probabilities", failing("a member was asked"))
    np.testing.assert_array_equal(thorough.predict_proba(rows), known[0])
    np.testing.assert_array_equal(thorough.predict_source_only(rows), known[1])
    with pytest.raises(MemoryError, match="a member was asked"):
        thorough.predict(rows + 1e-4)


def test_labels_are_a_table_that_is_made_once(monkeypatch):
    asked, ask = [], Calibrated.probabilities
    monkeypatch.setattr(
        Calibrated, "probabilities", lambda one, rows: asked.append(one.name) or ask(one, rows)
    )
    model = adapted(AutoAdapter(effort="fast"))
    table, rows = model.labels_, model.audit_rows().rows
    again = model.label(PROBLEM.Xt)
    assert asked == column(model, "name")  # each member once
    audited = model.audit(rows, PROBLEM.yt[rows]).model
    assert asked[len(model.candidates_) :] == ["logistic regression with known labels"]
    pd.testing.assert_frame_equal(again, table)
    assert list(table) == ["prediction", "confidence", "runner_up", "source_only", "unfamiliar"]
    P = np.sort(model.predict_proba(PROBLEM.Xt), axis=1)
    np.testing.assert_array_equal(table.prediction, model.transduction_[60:])
    np.testing.assert_allclose(table.confidence, P[:, -1], atol=1e-6)
    np.testing.assert_array_equal(table.source_only, model.predict_source_only(PROBLEM.Xt))
    np.testing.assert_array_equal(table.unfamiliar, model.unfamiliar_)
    assert (table.runner_up != table.prediction).all()
    np.testing.assert_array_equal(audited.labels_.prediction, audited.transduction_[60:])
    np.testing.assert_array_equal(audited.labels_.prediction, audited.predict(PROBLEM.Xt))
    new = audited.label(PROBLEM.Xt + 1e-3)
    np.testing.assert_array_equal(new.prediction, audited.predict(PROBLEM.Xt + 1e-3))
    alone = model.predict_source_only(PROBLEM.Xt + 1e-3)
    np.testing.assert_array_equal(new.source_only, alone)


def test_source_rows_have_their_given_label_also_if_their_weight_is_zero():
    p, weights = PROBLEM, np.ones(108)
    weights[[0, 1, 60, 61]] = 0
    model = AutoAdapter(effort="fast").adapt(p.Xs, 1 - p.ys, p.Xt, weights)
    np.testing.assert_array_equal(model.transduction_[:60], 1 - p.ys)
    assert len(model.labels_) == 48
    np.testing.assert_array_equal(model.labels_.prediction, model.predict(p.Xt))


@pytest.mark.parametrize("sparse", [False, True])
def test_the_consensus_keeps_the_rows_that_an_audit_can_fit_to(monkeypatch, sparse):
    p = PROBLEM
    monkeypatch.setattr(_consensus, "_KEPT_ROWS", 30)
    monkeypatch.setattr(LIMITS, "block_values", 100)  # else few sparse rows become dense
    X = np.where(np.abs(p.X) < 1, 0.0, p.X)
    X = csr_array(X) if sparse else X
    y = np.r_[p.ys, np.full(48, -1)]
    found = []
    for order in (np.arange(108), np.random.default_rng(0).permutation(108)):
        kept = AutoAdapter(effort="fast").fit(X[order], y[order]).consensus_
        both = kept.source, kept.target.rows
        source, target = (rows.toarray() if sparse else rows for rows in both)
        assert source.dtype == target.dtype == np.float32
        rows = X[order][y[order] < 0][kept.target.places]
        np.testing.assert_allclose(target, rows.toarray() if sparse else rows, atol=1e-6)
        np.testing.assert_array_equal(np.bincount(kept.source_labels), np.bincount(p.ys) * 30 // 60)
        found.append(source)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(("limit", "left"), [(None, ""), (600.0, ", at most 600 s more")])
def test_the_fit_reports_the_candidate_and_what_is_left(limit, left):
    heard = []
    with listen(heard.append):
        adapted(AutoAdapter(effort="fast", max_seconds=limit))
    told = [event for event in heard if getattr(event, "what", "") == "Fitting candidates"]
    assert [event.detail.split(", at")[0] for event in told] == [
        "1 of 5, logistic regression",
        "2 of 5, random forest",
        "3 of 5, TFDF",
        "4 of 5, TFDF after JDA",
        "5 of 5, unaligned TFDF per domain",
    ]
    assert told[0].detail.endswith(left)
    np.testing.assert_allclose([event.share for event in told], np.r_[0, 0.1, 0.2, 1.2, 2.2] / 3.2)


def test_members_of_the_same_rows_share_one_factorisation(monkeypatch):
    factored, made = ExactSolver._factored, []
    monkeypatch.setattr(ExactSolver, "_factored", lambda self: made.append(1) or factored(self))
    model = adapted(AutoAdapter(class_shares="source"))
    assert sum("TFDF" in name for name in column(model, "name")) == 4
    assert len(made) == 3  # the aligned one and the unaligned one per domain have the same
    assert not any("_store" in vars(member.model) for member in model.consensus_.members)


def test_new_rows_are_averaged_with_fitted_target_rows(thorough):
    rows, new = PROBLEM.Xt, PROBLEM.Xt + 1e-4  # so near that they have the same neighbours
    parts = zip(thorough.consensus_.weights, thorough.consensus_.members, strict=True)
    change = sum(w * (m.probabilities(new) - m.probabilities(rows)) for w, m in parts)
    assert np.abs(change).max() > 1e-7
    expected = thorough.predict_proba(rows) + 0.4 * change
    np.testing.assert_allclose(thorough.predict_proba(new), expected, atol=1e-12)


def test_caution_is_the_prior_weight_of_the_source_only_models():
    share = {}
    for caution in (0.0, 0.3, 0.5, 1.0):
        model = adapted(AutoAdapter(effort="fast", caution=caution))
        expected = np.repeat([caution / 2, (1 - caution) / 4, (1 - caution) / 2], [2, 2, 1])
        views = [member.view for member in model.consensus_.members]
        np.testing.assert_allclose(prior_weights(views, caution), expected)
        share[caution] = sum(column(model, "weight")[:2])
    assert share[0.0] == 0 < share[0.3] < share[0.5] < share[1.0] == 1


def test_a_candidate_that_nobody_agrees_with_counts_for_little():
    rng = np.random.default_rng(0)
    right = np.eye(3)[rng.integers(0, 3, 200)]
    wrong = np.roll(right, 1, axis=1)
    tables = np.array([right, right, right, wrong])
    weights, kappas = consensus_weights(tables, np.full(4, 1 / 4))
    assert kappas[:3] == pytest.approx([1, 1, 1])
    assert kappas[3] < 0
    assert weights[3] < 1e-4


def test_agreement_is_kappa():
    one, other = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0])
    assert agreement(one, one) == 1
    assert agreement(one, other) == pytest.approx(0.5)
    assert agreement(np.zeros(5, int), np.zeros(5, int)) == 0
    assert agreement(np.zeros(5, int), np.ones(5, int)) == 0


def test_class_shares_are_a_distribution_and_candidates_are_compared_in_pairs(thorough):
    assert thorough.class_shares_.sum() == pytest.approx(1)
    assert thorough.agreement_.shape == (7, 7)
    np.testing.assert_allclose(np.diag(thorough.agreement_), 1)
    np.testing.assert_allclose(thorough.agreement_, thorough.agreement_.T)


def test_a_candidate_that_fails_is_left_out_named_and_warned_of(monkeypatch):
    monkeypatch.setattr(transferable.transformers.JDA, "_fit_domains", failing("too large"))
    with pytest.warns(UserWarning, match=r"left out 1 of 7 candidates: TFDF after JDA \(Memory"):
        model = adapted(AutoAdapter())
    errors = dict(zip(column(model, "name"), column(model, "error"), strict=True))
    assert errors.pop("TFDF after JDA") == "MemoryError: too large"
    assert set(errors.values()) == {None}
    assert column(model, "weight")[column(model, "name").index("TFDF after JDA")] == 0
    assert sum(column(model, "weight")) == pytest.approx(1)
    assert np.mean(model.predict(PROBLEM.Xt) == PROBLEM.yt) > 0.6


def test_where_nothing_fits_in_memory_the_answer_is_the_source_alone_and_says_so():
    with pytest.warns(UserWarning, match="the answer is that of the source alone"):
        model = adapted(AutoAdapter(max_memory=1))
    assert list(model.agreement_.columns) == ["logistic regression", "random forest"]
    assert model.trust_.state != "use"
    assert np.mean(model.predict(PROBLEM.Xt) == PROBLEM.yt) > 0.4


def test_candidates_and_what_they_share_stay_within_max_memory():
    p = small_problem(n_source=400, n_target=400, n_features=8)
    adapted(FAST)  # modules that fits import are not theirs
    allowed = 40_000_000
    tracemalloc.start()
    try:
        model = adapted(AutoAdapter(effort="fast", max_memory=allowed), p)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert column(model, "error") == [None] * 5
    assert taken < 1.1 * allowed


def test_where_nothing_at_all_can_be_fitted_every_reason_is_told(monkeypatch):
    monkeypatch.setattr(Calibrated, "fit", failing("no room"))
    with pytest.raises(RuntimeError, match=r"logistic regression \(MemoryError: no room\); random"):
        adapted(AutoAdapter(effort="fast"))


def test_a_forest_that_would_take_too_much_has_fewer_trees():
    p = small_problem(n_source=200, n_target=20, n_features=5)
    per_tree = 16 * 200 * 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what does not fit
        model = adapted(AutoAdapter(effort="fast", max_memory=30 * per_tree), p)
    forest = model.consensus_.members[1].model
    assert forest.n_estimators == 30
    assert sum(tree.tree_.value.nbytes for tree in forest) < 30 * per_tree


def test_what_time_cut_short_says_so():
    with pytest.warns(UserWarning, match="max_seconds=1e-06 had passed"):
        model = adapted(AutoAdapter(max_seconds=1e-6))
    assert column(model, "error")[0] is None  # logistic regression is always there
    assert all("had passed" in error for error in column(model, "error")[1:])


def test_a_fit_that_is_being_adapted_stops_between_rounds():
    codes = np.r_[PROBLEM.ys, np.full(48, -1)]

    def stop(_):
        raise _pool.OutOfTime

    candidate = Calibrated("TFDF", "as given", TFDFV())
    with pytest.raises(_pool.OutOfTime):
        candidate.fit(PROBLEM.X, codes, np.sign(codes + 0.5), None, clock=[stop])


def test_any_number_of_processes_gives_the_same_bits(thorough):
    side_by_side = adapted(AutoAdapter(random_state=3, n_jobs=2))
    rows = PROBLEM.Xt
    np.testing.assert_array_equal(side_by_side.predict_proba(rows), thorough.predict_proba(rows))
    told = (model.candidates_.drop(columns="seconds") for model in (side_by_side, thorough))
    pd.testing.assert_frame_equal(*told, check_exact=True)


def test_no_process_at_all_is_refused():
    with pytest.raises(ValueError, match=r"n_jobs.*Got 0"):
        adapted(AutoAdapter(n_jobs=0))


def test_what_fails_in_another_process_is_named_all_the_same():
    with pytest.warns(UserWarning, match="left out 3 of 5 candidates"):
        model = adapted(AutoAdapter(effort="fast", max_memory=1, n_jobs=2))
    assert column(model, "error")[:2] == [None, None]


def test_few_sparse_rows_are_learnt_from_as_dense_ones(monkeypatch):
    p = PROBLEM
    Xs, Xt = (np.where(np.abs(X) < 1, 0.0, X) for X in (p.Xs, p.Xt))
    expected = AutoAdapter().adapt(Xs, p.ys, Xt)
    model = AutoAdapter().adapt(csr_array(Xs), p.ys, csr_array(Xt))
    assert column(model, "weight") == column(expected, "weight")
    for rows in (Xt, csr_array(Xt)):
        for one in (model, expected):
            assert one.predict_proba(rows).tobytes() == expected.predict_proba(Xt).tobytes()
    monkeypatch.setattr(LIMITS, "block_values", 3 * Xt.shape[1])
    in_blocks = model.predict_proba(csr_array(Xt))
    np.testing.assert_allclose(in_blocks, expected.predict_proba(Xt), atol=1e-12)


def test_many_sparse_rows_are_scaled_and_not_centred(monkeypatch):
    p = PROBLEM
    monkeypatch.setattr(LIMITS, "block_values", 100)
    Xs, Xt = (np.where(np.abs(X) < 1, 0.0, X) for X in (p.Xs, p.Xt))
    model = AutoAdapter().adapt(csr_array(Xs), p.ys, csr_array(Xt))
    scaler = model.consensus_.members[-1].scaler
    assert not scaler.with_mean
    np.testing.assert_allclose(scaler.scale_, Xt.std(axis=0))
    np.testing.assert_array_equal(model.predict(csr_array(Xt)), model.transduction_[len(Xs) :])


def test_sparse_rows_with_long_indices_are_taken(monkeypatch):
    monkeypatch.setattr(LIMITS, "block_values", 100)
    stacked = csr_array(np.where(np.abs(PROBLEM.X) < 1, 0.0, PROBLEM.X))
    y = np.r_[PROBLEM.ys, np.full(len(PROBLEM.yt), -1)]
    short = AutoAdapter(effort="fast").fit(stacked, y)
    stacked.indices, stacked.indptr = (
        part.astype(np.int64) for part in (stacked.indices, stacked.indptr)
    )
    long = AutoAdapter(effort="fast").fit(stacked, y)
    assert column(long, "error") == [None] * 4
    np.testing.assert_array_equal(long.predict(stacked), short.predict(stacked))


def test_columns_of_zeros_and_ones_keep_their_scale():
    p = PROBLEM
    flags = np.random.default_rng(0).integers(0, 2, (len(p.X), 1)).astype(float)
    X = np.hstack([p.X, flags])
    model = AutoAdapter().adapt(X[: len(p.ys)], p.ys, X[len(p.ys) :])
    scaler = model.consensus_.members[-1].scaler
    assert (scaler.mean_[-1], scaler.scale_[-1]) == (0, 1)
    np.testing.assert_allclose(scaler.mean_[:-1], p.Xt.mean(axis=0))


@pytest.mark.parametrize("n_target", [1, 3, 9])
def test_fewer_target_rows_than_neighbours(n_target):
    p = PROBLEM
    model = AutoAdapter().adapt(p.Xs, p.ys, p.Xt[:n_target])
    assert "per domain" not in "".join(column(model, "name"))
    np.testing.assert_array_equal(model.predict(p.Xt[:n_target]), model.transduction_[-n_target:])
    np.testing.assert_allclose(model.predict_proba(p.Xt).sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore::transferable.exceptions.NoTargetWarning")
def test_without_a_target_the_source_is_fitted_alone():
    model = AutoAdapter().fit(PROBLEM.Xs, PROBLEM.ys)
    assert column(model, "block") == ["source-only"] * 2
    assert model.trust_ is None
    np.testing.assert_array_equal(model.transduction_, PROBLEM.ys)  # the given labels
    assert np.mean(model.predict(PROBLEM.Xs) == PROBLEM.ys) > 0.9
    assert len(model.labels_) == 0
    assert model.label(PROBLEM.Xt).prediction.tolist() == model.predict(PROBLEM.Xt).tolist()


def test_many_classes_of_few_rows():
    rng = np.random.default_rng(0)
    ys = np.r_[np.arange(120) % 50, np.arange(50, 60)]  # the last ten classes have one row
    Xs = rng.normal(size=(130, 8)) + 3 * np.eye(60, 8)[ys]
    model = AutoAdapter(effort="fast").adapt(Xs, ys, Xs[:40] + 0.1)
    assert model.predict_proba(Xs).shape == (130, 60)


def test_a_saved_model_says_the_same(thorough, tmp_path):
    transferable.save(thorough, tmp_path / "model")
    loaded = transferable.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.predict_proba(PROBLEM.X), thorough.predict_proba(PROBLEM.X)
    )
    pd.testing.assert_frame_equal(loaded.candidates_, thorough.candidates_)
    pd.testing.assert_frame_equal(loaded.labels_, thorough.labels_)
    assert loaded.trust_ == thorough.trust_


def test_tables_are_scaled_together_so_that_the_pool_can_compare():
    rng = np.random.default_rng(0)
    label = np.repeat(["ill", "well"], 30)
    size = rng.normal(size=60) + 4 * (label == "well")
    colour = np.where(label == "ill", "red", "blue")
    source = pd.DataFrame({"size": size, "colour": colour, "label": label})
    target = pd.DataFrame({"size": size + 1, "colour": colour})
    target.loc[3, "size"] = np.nan
    model = TableClassifier(FAST).adapt(source, "label", target)
    assert model.encoder_.scale_ == "joint"
    assert (
        TableClassifier(FAST, scale="per-domain").adapt(source, "label", target).encoder_.scale_
        == "per-domain"
    )
    assert np.mean(model.predict(target) == label) > 0.95


def test_logistic_regression_that_has_not_converged_warns_of_nothing():
    p = PROBLEM
    scale = 10.0 ** np.arange(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AutoAdapter(effort="fast").adapt(p.Xs * scale, p.ys, p.Xt * scale)


def test_a_copy_is_the_same_model_of_the_same_rows_and_not_equal_output():
    p = small_problem(0, n_source=60, n_target=60)
    easy = AutoAdapter().adapt(p.Xs + 40 * p.ys[:, None], p.ys, p.Xt + 40 * p.yt[:, None])
    assert column(easy, "error") == [None] * 7
    for width, copied in ((3, "same model and input as TFDF"), (40, None)):
        rng = np.random.default_rng(0)
        flags = [(rng.random((60, width)) < 0.2 + 0.3 * y[:, None]) * 1.0 for y in (p.ys, p.yt)]
        pool = AutoAdapter().adapt(flags[0], p.ys, flags[1])
        assert column(pool, "name")[-1] == "TFDF without flow"
        assert column(pool, "error")[-1] == copied
        assert (TFDF().adapt(flags[0], p.ys, flags[1]).manifold_dim_ is None) == bool(copied)


def test_a_kind_of_rows_is_data(monkeypatch):
    """How it is recognised, its candidates, who judges, and what neighbours weigh."""
    p, asked = PROBLEM, []
    shares = Kind(
        lambda X: X.min() >= 0,
        (
            Specification(Calibrated("plain", "source-only", LogisticRegression())),
            Specification(Calibrated("flow", "source-only", LogisticRegression(), [GFK(), JDA()])),
        ),
        lambda P, *_, **__: asked.append(P.shape) or "measure some",
        lambda own, near: 0.25 * len(own) / len(near),
    )
    monkeypatch.setattr(auto_adapter, "KINDS", {"shares": shares} | auto_adapter.KINDS)
    Xs, Xt = np.abs(p.Xs), np.abs(p.Xt)
    model = AutoAdapter().adapt(Xs, p.ys, Xt)
    assert (model.trust_, asked) == ("measure some", [(48, 3)])
    assert column(model, "block") == ["source-only"] * 2
    kept = model.consensus_
    own = sum(w * m.probabilities(Xt) for w, m in zip(kept.weights, kept.members, strict=True))
    near = kept.target.places[kept.target.near[np.argsort(kept.target.places), :6]]
    expected = 0.75 * own + 0.25 * own[near].mean(axis=1)
    np.testing.assert_allclose(model.predict_proba(Xt), expected)
    rows = model.audit_rows(10).rows
    assert len(model.audit(rows, p.yt[rows]).labels) == 48
    assert len(adapted(FAST).candidates_) == 5
