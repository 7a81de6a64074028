"""What the fits of a search share: kept by key in its store, and by nobody else."""

import numpy as np
import pytest

from problems import small_problem
from transferable import TFDF, TFDFV
from transferable._linalg.arrays import Arrays
from transferable._linalg.search import cosine_neighbors
from transferable.domains import Domains
from transferable.model_selection import LabelFreeSearch, search
from transferable.model_selection.scorers import Store

P = small_problem(n_source=40, n_target=30)


def counting(log, value=0.0):
    return lambda: log.append(value) or np.full(100, value)


def fitted(model, store, *rows):
    """The model, fitted as one of the search that has this store."""
    model._store = store
    return model.adapt(*(rows or (P.Xs, P.ys, P.Xt)))


def test_a_value_is_made_once_for_each_key():
    log, store = [], Store()
    first = store.get(("kernel", 1), counting(log))
    assert store.get(("kernel", 1), counting(log)) is first
    assert store.get(("kernel", 2), counting(log)) is not first
    assert store.get(("graph", 1), counting(log)) is not first
    assert len(log) == 3


def test_arguments_reach_what_makes_the_value():
    assert Store().get("sum", lambda a, b: a + b, 2, 3) == 5


def test_the_oldest_values_go_first():
    log, store = [], Store(most_bytes=2000)
    for i in range(4):
        store.get(i, counting(log, i))
    store.get(3, counting(log))
    assert len(log) == 4
    store.get(0, counting(log))
    assert len(log) == 5


def test_values_asked_for_lately_stay():
    log, store = [], Store(most_bytes=1600)
    for i in (0, 1, 0, 2):  # the third is no longer the oldest when the fourth comes
        store.get(i, counting(log, i))
    store.get(0, counting(log))
    assert log == [0, 1, 2]
    store.get(1, counting(log, 1))
    assert log == [0, 1, 2, 1]


def test_what_is_larger_than_the_store_is_not_kept_and_drives_nothing_out():
    store = Store(most_bytes=10)
    store.get("error", lambda: 0.5)
    assert store.get("kernel", counting([])).shape == (100,)
    log = []
    store.get("kernel", counting(log))
    assert len(log) == 1
    assert store.get("error", lambda: 0.7) == 0.5


class Noting(Store):
    """A store that keeps a list of all of its kind, and of what was made."""

    all: list["Noting"]

    def __init__(self, **options):
        super().__init__(**options)
        self.made = []
        Noting.all.append(self)

    def get(self, key, make, *arguments):
        return super().get(key, lambda *given: self.made.append(key) or make(*given), *arguments)


@pytest.fixture
def noting(monkeypatch):
    Noting.all = []
    monkeypatch.setattr(search, "Store", Noting)
    return Noting.all


@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_a_sparse_graph_counts_by_its_edges(device):
    if device == "torch":
        pytest.importorskip("torch")
    store, rng = Store(most_bytes=20_000), np.random.default_rng(0)
    X = Arrays.on(device).table(rng.normal(size=(100, 4)))  # 80,000 bytes if it were dense
    graphs = [store.get("graph", cosine_neighbors, X, 3) for _ in range(2)]
    assert graphs[0] is graphs[1]


def test_fits_of_a_search_share_one_and_others_have_none(noting):
    model = LabelFreeSearch(TFDFV(), {"alignment": [1.0, 5.0, 10.0]}, anchor=None).adapt(
        P.Xs, P.ys, P.Xt
    )
    [store] = noting
    names = [key[1][0] if isinstance(key[1], tuple) else key[1] for key in store.made]
    # One kernel and graph for the fits, and one of each for their way back.
    assert names.count("kernel") == names.count("graph") == names.count("factor") == 2
    assert model.best_estimator_._store is None
    assert TFDFV()._store is None
    LabelFreeSearch(TFDFV(), {"alignment": [1.0]}, anchor=None).adapt(P.Xs, P.ys, P.Xt)
    assert len(noting) == 2
    assert noting[1].made != []


def test_rows_are_split_once_for_all_settings(noting, monkeypatch):
    """They are known by identity: the very same objects are meant."""
    calls, split = [], search.split_rows
    monkeypatch.setattr(search, "split_rows", lambda *given: calls.append(given) or split(*given))
    grid = {"alignment": [1.0, 10.0], "ridge": [0.1, 1.0]}
    LabelFreeSearch(TFDFV(), grid, anchor=None).adapt(P.Xs, P.ys, P.Xt)
    assert len(calls) == 1
    assert calls[0][3] is noting[0]


@pytest.mark.parametrize(
    ("scoring", "labels_only"),
    [("circular", True), ("recommended", True), ("entropy", False), ("information", False)],
)
def test_probabilities_are_calibrated_only_for_scores_that_ask_for_them(
    noting, scoring, labels_only
):
    LabelFreeSearch(TFDFV(), {"alignment": [1.0]}, scoring=scoring, anchor=None).adapt(
        P.Xs, P.ys, P.Xt
    )
    assert noting[0].labels_only == labels_only


def test_fits_that_only_give_labels_are_the_same_but_for_probabilities():
    plain, only = (fitted(TFDF(), Store(labels_only=only)) for only in (False, True))
    assert np.isnan(only.temperature_)
    assert plain.temperature_ > 0
    np.testing.assert_array_equal(plain.transduction_, only.transduction_)
    np.testing.assert_array_equal(plain.decision_function(P.X), only.decision_function(P.X))


@pytest.mark.parametrize(
    "change", ["rows", "labels", "weights", "sources", "known rows", "known labels"]
)
@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_problems_that_differ_share_nothing_that_depends_on_it(change, n_landmarks):
    """Fits of one store are those they would be alone."""
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(40) % 2, np.zeros(30, dtype=int)]
    X = rng.normal(size=(70, 4))
    X[:40] += 3 * y[:40, None]
    ids, weights = np.repeat([1, -1], [40, 30]), np.ones(70)
    other = {"X": X, "y": y, "sample_domain": ids, "sample_weight": weights}
    settings = {"second_order": 0.1, "n_landmarks": n_landmarks}
    if change == "known labels":
        other["y"] = np.where((ids > 0) | (np.arange(70) % 2 == 0), y, -1)
        settings["target_labels"] = "use"
    before = TFDF(**settings)
    before._store = store = Store()
    before.fit(**other)
    if change == "rows":
        other["X"] = np.where(ids[:, None] > 0, X, 2 * X + 1)
    elif change == "labels":
        other["y"] = np.where(ids > 0, np.roll(y, 1), y)
    elif change == "weights":
        other["sample_weight"] = 1.0 + np.arange(70) % 3
    elif change == "sources":
        other["sample_domain"] = np.where(ids > 0, 1 + np.arange(70) % 2, -1)
    elif change == "known rows":
        other["y"] = np.where((ids > 0) | (np.arange(70) % 2 == 0), y, -1)
        settings["target_labels"] = "use"
    else:
        other["y"] = np.where((ids < 0) & (other["y"] == 0), 1, other["y"])
    together = TFDF(**settings)
    together._store = store
    alone = TFDF(**settings).fit(**other).decision_function(X)
    np.testing.assert_array_equal(together.fit(**other).decision_function(X), alone)
    assert np.abs(alone - before.decision_function(X)).max() > 1e-6


@pytest.mark.parametrize("name", ["ridge", "gamma", "manifold", "variance", "n_neighbors", "graph"])
def test_settings_that_differ_share_nothing_that_depends_on_it(name):
    values = {"n_neighbors": 3, "graph": 7}
    settings, store = {"manifold": 1.0, name: values.get(name, 2.5)}, Store()
    before = fitted(TFDF(manifold=1.0), store)
    together = fitted(TFDF(**settings), store).decision_function(P.X)
    alone = TFDF(**settings).adapt(P.Xs, P.ys, P.Xt).decision_function(P.X)
    np.testing.assert_array_equal(together, alone)
    assert np.abs(alone - before.decision_function(P.X)).max() > 1e-6


def test_keys_of_problems_tell_their_rows_apart():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.r_[np.arange(10) % 2, np.full(10, -1)]
    order = np.random.default_rng(1).permutation(20)
    domains = Domains.from_stacked(X, y)
    assert Domains.from_stacked(X[order], y[order]).key == domains.key
    assert Domains.from_stacked(X + 1e-9, y).key != domains.key
    assert Domains.from_stacked(X, np.r_[y[:9], np.full(11, -1)]).key != domains.key
