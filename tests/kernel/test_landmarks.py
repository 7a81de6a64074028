"""Fits over landmarks: what they agree with, what they take, what they refuse."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from problems import small_problem
from transferable import ARTL, MEDA, TFDF, TFDFV
from transferable._kernel import choose
from transferable._kernel.choose import KernelSizes
from transferable._kernel.solvers import Sums
from transferable._linalg.arrays import CPU, Reordered
from transferable._linalg.kernels import FeatureTable, KernelFunction, Nystrom
from transferable._linalg.memory import Plan, memory_budget, warn_of_landmarks
from transferable._linalg.search import Anchors
from transferable.domains import Domains
from transferable.limits import LIMITS
from transferable.model_selection import LabelFreeSearch

P = small_problem(seed=3, n_source=90, n_target=70)
METHODS = [TFDF, TFDFV, MEDA, ARTL]
MARKS = np.r_[np.ones(len(P.Xs)), -np.ones(len(P.Xt))]


def adapted(estimator, dtype=np.float64):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="manifold_dim=20 is more")
        return estimator.adapt(P.Xs.astype(dtype), P.ys, P.Xt.astype(dtype))


@pytest.mark.parametrize("Method", METHODS)
def test_landmarks_approach_the_exact_solve(Method):
    exact = adapted(Method(n_landmarks=None)).decision_function(P.X)
    errors = [
        np.abs(adapted(Method(n_landmarks=m)).decision_function(P.X) - exact).max()
        for m in (10, 40, 160)
    ]
    assert errors[2] < 1e-8
    assert errors[2] < errors[1] < errors[0] < 1.0


@pytest.mark.parametrize("Method", METHODS)
def test_a_fit_is_the_same_whatever_the_order_of_rows(Method):
    order = np.random.default_rng(0).permutation(len(P.X))
    y = np.r_[P.ys, np.zeros_like(P.yt)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="manifold_dim=20 is more")
        one = Method(n_landmarks=30).fit(P.X, y, MARKS)
        other = Method(n_landmarks=30).fit(P.X[order], y[order], MARKS[order])
    np.testing.assert_array_equal(one.transduction_[order], other.transduction_)
    np.testing.assert_array_equal(one.decision_function(P.X), other.decision_function(P.X))


def test_the_seed_draws_the_landmarks():
    scores = [
        adapted(TFDF(n_landmarks=20, random_state=seed)).decision_function(P.X)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])


@pytest.mark.parametrize("Method", METHODS)
def test_single_precision_agrees_to_a_thousandth(Method, monkeypatch):
    """Of rows that are the same in both: others would be put in another order."""
    monkeypatch.setitem(P, "Xs", P.Xs.astype(np.float32).astype(np.float64))
    monkeypatch.setitem(P, "Xt", P.Xt.astype(np.float32).astype(np.float64))
    double, single = (adapted(Method(n_landmarks=40), t) for t in (np.float64, np.float32))
    np.testing.assert_array_equal(double.transduction_, single.transduction_)
    np.testing.assert_allclose(
        single.decision_function(P.X), double.decision_function(P.X), atol=1e-3
    )


def test_sparse_rows_are_fitted_as_dense_ones():
    settings = {"n_landmarks": 40, "manifold_dim": None}
    dense = MEDA(**settings).adapt(P.Xs, P.ys, P.Xt)
    sparse = MEDA(**settings).adapt(sp.csr_array(P.Xs), P.ys, sp.csr_array(P.Xt))
    np.testing.assert_array_equal(sparse.transduction_, dense.transduction_)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(P.X)), dense.decision_function(P.X), atol=1e-8
    )


def test_prediction_in_blocks_is_the_same(monkeypatch):
    model = adapted(TFDF(n_landmarks=40))
    whole = model.predict_proba(P.X)
    monkeypatch.setattr(LIMITS, "block_values", 40 * 7)
    np.testing.assert_allclose(model.predict_proba(P.X), whole, atol=1e-12)
    np.testing.assert_array_equal(model.predict(P.X), model.classes_[whole.argmax(axis=1)])


def test_prediction_takes_the_memory_of_a_block_and_of_the_labels(monkeypatch, tmp_path):
    model = adapted(TFDF(n_landmarks=40))
    n = 200_000
    rows = np.memmap(tmp_path / "new", dtype=np.float32, mode="w+", shape=(n, P.X.shape[1]))
    rows[:] = np.random.default_rng(0).normal(size=rows.shape)
    monkeypatch.setattr(LIMITS, "block_values", 2**16)
    tracemalloc.start()
    labels = model.predict(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert labels.shape == (n,)
    assert peak < 3 * labels.nbytes + 20 * 8 * 2**16


@pytest.fixture
def in_place(monkeypatch):
    """No table is small enough to be copied into canonical order."""
    monkeypatch.setattr(LIMITS, "copied_bytes", 0)


@pytest.mark.parametrize("manifold_dim", [None, 3, "auto"])
def test_a_memory_map_is_read_where_it_lies(tmp_path, in_place, monkeypatch, manifold_dim):
    file = np.memmap(tmp_path / "rows", dtype=np.float64, mode="w+", shape=P.X.shape)
    file[:] = P.X
    y = np.r_[P.ys, np.zeros_like(P.yt)]
    assert isinstance(Domains.from_stacked(file, y, MARKS).X, Reordered)
    model = TFDF(n_landmarks=40, manifold_dim=manifold_dim)
    mapped = model.fit(file, y, MARKS).decision_function(file)
    monkeypatch.undo()
    np.testing.assert_allclose(mapped, model.fit(P.X, y, MARKS).decision_function(P.X), atol=1e-8)


def test_reordered_rows_are_those_of_a_copy():
    order = np.random.default_rng(0).permutation(len(P.X))
    rows = Reordered(P.X, order)
    assert rows.shape == P.X.shape
    np.testing.assert_array_equal(rows[5:9], P.X[order[5:9]])
    np.testing.assert_array_equal(np.asarray(rows), P.X[order])
    collected = np.empty_like(P.X)
    for positions, block in rows.blocks(7):
        collected[positions] = block
    np.testing.assert_array_equal(collected, P.X[order])


def test_sums_of_blocks_add_up_to_those_of_all_rows():
    """Whoever holds a block of rows, the solve needs no more of them."""
    Z = P.X / np.linalg.norm(P.X, axis=1, keepdims=True)
    nystrom = Nystrom(Z[::4], KernelFunction("rbf", 0.5), CPU)
    anchors, weights = Anchors(Z[::10], 3), np.random.default_rng(0).uniform(0.5, 2.0, 160)

    def sums(*parts):
        table = FeatureTable(np.vstack([Z[part] for part in parts]), nystrom, CPU)
        own = np.concatenate([weights[part] for part in parts])
        return Sums.of(table, len(Z[parts[0]]), anchors, own)

    whole = sums(slice(0, 90), slice(90, 160))
    parts = sums(slice(0, 30), slice(90, 91)) + sums(slice(30, 90), slice(91, 160))
    for name in ("source", "target", "whole"):
        one, other = getattr(whole, name), getattr(parts, name)
        assert one.count == pytest.approx(other.count)
        np.testing.assert_allclose(one.total, other.total, atol=1e-10)
        np.testing.assert_allclose(one.gram, other.gram, atol=1e-10)
    np.testing.assert_allclose(whole.anchors.counts, parts.anchors.counts, atol=1e-10)
    np.testing.assert_allclose(whole.anchors.totals, parts.anchors.totals, atol=1e-10)
    assert not whole.uniform


# Memory


def problem(n_rows, *, second_order=False, itemsize=4):
    """Ten classes, 40 features, five neighbours of each row."""
    row_bytes = 2 * 40 * itemsize + 100 * 5 + 12 * 8 * 11
    return KernelSizes(n_rows, 10, itemsize, row_bytes, 7 if second_order else 4)


@pytest.mark.parametrize("Method", METHODS)
def test_an_exact_solve_that_does_not_fit_is_refused_before_it_begins(Method):
    model = adapted(Method())
    before = dict(vars(model))
    model.set_params(n_landmarks=None, max_memory="800KB")
    with pytest.raises(
        MemoryError, match=r"exact solve of 160 rows needs .* n_landmarks=\d+ would"
    ):
        adapted(model)
    unchanged = {k: v for k, v in vars(model).items() if k not in {"n_landmarks", "max_memory"}}
    assert all(unchanged[name] is before[name] for name in unchanged)


def test_the_second_order_takes_more_memory():
    budget = 4 * 8 * 3000**2 + 3000 * problem(3000).row_bytes
    assert Plan.make(problem(3000), None, budget).n_bytes == budget
    with pytest.raises(MemoryError, match="exact solve of 3000 rows"):
        Plan.make(problem(3000, second_order=True), None, budget)
    once, twice = (
        problem(3000, second_order=second).landmark_bytes(500, held=True, chunk=128)
        for second in (False, True)
    )
    assert twice - once == 8 * (2 * 10 + 4) * 500**2


def test_the_refusal_names_landmarks_that_fit():
    sizes, budget = problem(200_000), 2**30
    with pytest.raises(MemoryError, match=r"n_landmarks=(\d+) would fit") as refused:
        Plan.make(sizes, None, budget)
    fitting = int(str(refused.value).split("n_landmarks=")[1].split()[0])
    assert Plan.make(sizes, fitting, budget).n_bytes <= budget
    with pytest.raises(MemoryError, match=f"n_landmarks={fitting} would fit"):
        Plan.make(sizes, 2 * fitting, budget)


def test_rows_that_do_not_fit_are_refused_whatever_the_landmarks():
    with pytest.raises(MemoryError, match="no number of landmarks fits"):
        Plan.make(problem(10**9), "auto", 2**30)


def test_auto_is_exact_while_that_is_affordable():
    assert Plan.make(problem(3000), "auto", 2**32).n_landmarks is None
    assert Plan.make(problem(20_000), "auto", 2**40).n_landmarks == 1000
    assert Plan.make(problem(3000), "auto", 2**27).n_landmarks <= 1000
    with pytest.warns(UserWarning, match="takes 90 landmarks: .* cube of the rows"):
        warn_of_landmarks(problem(20_000), 90, 2**40)
    with pytest.warns(UserWarning, match="takes 90 landmarks, which leave 5% .* 128 MB of memory"):
        warn_of_landmarks(problem(3000), 90, 2**27, 0.05)


@pytest.fixture
def few(monkeypatch):
    """Have 20, 40 or 60 landmarks tried, of however few rows."""
    monkeypatch.setattr(choose, "_LANDMARKS", (20, 40, 60))
    monkeypatch.setattr(choose, "_ROWS_PER_LANDMARK", 2)
    monkeypatch.setattr(choose, "_FEWEST_ROWS", 160)


@pytest.mark.parametrize("Method", METHODS)
def test_a_share_takes_the_fewest_landmarks_that_leave_it(Method, few):
    left = {m: adapted(Method(n_landmarks=m)).residual_ for m in (20, 40, 60, 160)}
    assert left[20] > left[40] > left[60] > left[160]
    assert left[160] == pytest.approx(0.0, abs=1e-9)
    for m in (20, 40, 60):
        model = adapted(Method(n_landmarks=left[m]))
        assert (model.n_landmarks_, model.residual_) == (m, left[m])
        same = adapted(Method(n_landmarks=m)).decision_function(P.X)
        np.testing.assert_array_equal(model.decision_function(P.X), same)
    exact = adapted(Method(n_landmarks=left[60] / 2))
    assert (exact.n_landmarks_, exact.residual_) == (None, None)


def test_auto_takes_landmarks_that_leave_three_hundredths(few, monkeypatch):
    taken = {}
    for gamma in (0.5, 1.0, 9.0):
        left = {m: adapted(TFDFV(gamma=gamma, n_landmarks=m)).residual_ for m in (20, 40, 60)}
        taken[gamma] = next((m for m in left if left[m] <= 0.03), None)
        assert adapted(TFDFV(gamma=gamma)).n_landmarks_ == taken[gamma]
    assert (taken[0.5], taken[9.0]) == (20, None)
    monkeypatch.setattr(choose, "_FEWEST_ROWS", 161)
    assert adapted(TFDFV()).n_landmarks_ is None


def test_the_most_landmarks_are_taken_of_too_many_rows_with_a_warning(few, monkeypatch):
    monkeypatch.setattr(LIMITS, "exact_rows", 100)
    with pytest.warns(UserWarning, match='"auto" takes 60 landmarks, which leave') as told:
        model = TFDFV(manifold_dim=None, gamma=20.0).adapt(P.Xs, P.ys, P.Xt)
    assert len(told) == 1
    assert model.n_landmarks_ == 60


def test_fits_that_share_results_have_the_landmarks_of_one_alone(few):
    grid = {"alignment": [0.1, 10.0]}
    search = LabelFreeSearch(TFDFV(n_landmarks=40), grid).adapt(P.Xs, P.ys, P.Xt)
    alone = adapted(clone(search.best_estimator_))
    np.testing.assert_array_equal(
        search.best_estimator_.decision_function(P.X), alone.decision_function(P.X)
    )


def test_features_are_not_held_where_they_do_not_fit():
    sizes = problem(10**6)
    roomy, tight = (Plan.make(sizes, 1000, budget) for budget in (2**34, 2**32))
    assert roomy.held
    assert not tight.held
    assert tight.n_bytes <= 2**32


def test_streamed_features_give_the_same_fit(monkeypatch):
    held = adapted(TFDF(n_landmarks=40, second_order=0.1))
    streamed = Plan(40, held=False, chunk=7, n_bytes=0)
    monkeypatch.setattr(Plan, "make", classmethod(lambda *_: streamed))
    monkeypatch.setattr(LIMITS, "block_values", 40 * 11)
    model = adapted(TFDF(n_landmarks=40, second_order=0.1))
    np.testing.assert_allclose(model.decision_function(P.X), held.decision_function(P.X), atol=1e-8)


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("4GB", 2**32), ("0.5 gib", 2**29), ("800MB", 800 * 2**20), ("17", 17), (123, 123)],
)
def test_memory_is_given_in_bytes_or_as_text(text, n_bytes):
    assert memory_budget(text, None) == n_bytes


def test_a_size_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r'max_memory="lots" is not a size; .* "4GB"'):
        TFDF(max_memory="lots").adapt(P.Xs, P.ys, P.Xt)


def test_a_device_that_is_none_is_refused():
    with pytest.raises((ValueError, ImportError), match='device="tpu"'):
        TFDF(device="tpu").adapt(P.Xs, P.ys, P.Xt)
