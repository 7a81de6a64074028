"""Fits over Dask on two worker processes: those in memory, whatever the partitions and deaths."""

import os
import pickle
import signal
import time
from threading import Timer

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
import pytest
from dask.distributed import Client, LocalCluster
from sklearn.base import clone

import transferable.classifiers as classifiers
import transferable.dask as over_dask
import transferable.transformers as transformers
from problems import small_problem
from transferable.dask._rows import Workers
from transferable.events import Progress, listen
from transferable.limits import LIMITS

pytestmark = pytest.mark.processes

P = small_problem(3, n_source=240, n_target=200, n_features=6)
MEMORY = 1_000_000_000
SHIFTED = {"class_shares": [0.1, 0.3, 0.6]}
KERNEL = {"n_landmarks": 30, "graph": "anchors", "max_iter": 3}
FLOW = KERNEL | {"manifold_dim": 3}
FITS = {
    "TFDFV": FLOW | {"manifold_dim": "auto"},
    "TFDFV, second order": FLOW | {"second_order": 0.5},
    "TFDFV, known shares": FLOW | SHIFTED | {"manifold": 0},
    "TFDF": FLOW,
    "MEDA": FLOW,
    "ARTL": KERNEL,
    "CORAL": {},
    "PerDomainScaler": {},
}


@pytest.fixture(scope="module")
def client():
    options = {"dashboard_address": ":0", "memory_limit": MEMORY}
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


def cut(X, sizes):
    """Blocks of these sizes, which may be 0; the last has what is left."""
    parts = np.split(X, np.cumsum(sizes))
    return da.concatenate([da.from_array(part, chunks=part.shape or 1) for part in parts])


def unknown(X):
    """A collection whose chunks nobody knows the sizes of."""
    columns = [f"x{i}" for i in range(X.shape[1])] if X.ndim == 2 else None
    frame = pd.DataFrame(X, columns=columns) if columns else pd.Series(X)
    return dd.from_pandas(frame, npartitions=3).to_dask_array()


def partitionings():
    """Empty ones, one of ten rows, a class absent from most; even ones; of unknown sizes."""
    by_class = np.argsort(P.ys, kind="stable")
    Xs, ys, sizes = P.Xs[by_class], P.ys[by_class], [0, 10, 100, 0, 90]
    yield "uneven", (cut(Xs, sizes), cut(ys, sizes), cut(P.Xt, [0, 10, 130, 0]))
    yield "even", (cut(P.Xs, [80, 80]), cut(P.ys, [80, 80]), cut(P.Xt, [50, 50, 50]))
    yield "unknown", (unknown(P.Xs), unknown(P.ys), unknown(P.Xt))


def local_and_dask(name):
    kind, settings = name.split(",")[0], FITS[name]
    home = classifiers if hasattr(classifiers, kind) else transformers
    return getattr(home, kind)(**settings), getattr(over_dask, kind)(**settings)


@pytest.mark.parametrize("name", FITS)
def test_a_fit_is_that_in_memory_whatever_the_partitions(name, client):
    local, model = local_and_dask(name)
    local.adapt(P.Xs, P.ys, P.Xt)
    cuts = list(partitionings())
    for cut_as, (Xs, ys, Xt) in cuts if name == "TFDFV" else cuts[:1]:
        model.adapt(Xs, ys, Xt)
        for method in ("transform",) if hasattr(local, "transform") else ("decision_function",):
            expected, found = getattr(local, method)(P.Xt), getattr(model, method)(Xt)
            assert found.shape[1:] == expected.shape[1:]
            found = found.compute()
            np.testing.assert_allclose(
                found, expected, atol=1e-8 * np.abs(expected).max(), err_msg=cut_as
            )
        for attribute in ("temperature_", "balance_", "n_iter_"):
            if hasattr(local, attribute):
                assert getattr(model, attribute) == pytest.approx(getattr(local, attribute))
        if hasattr(local, "predict"):
            np.testing.assert_array_equal(model.transduction_.compute(), local.predict(P.Xt))


def test_shares_that_shift_are_followed_as_in_memory(client):
    """A target with few rows of most classes: estimated shares, weighted loss, other offsets."""
    few = np.flatnonzero((P.yt == 0) | (np.arange(200) % 10 == 0))
    local = classifiers.TFDFV(**FLOW, class_shares="auto").adapt(P.Xs, P.ys, P.Xt[few])
    assert np.abs(local.class_shares_ - 1 / 3).max() > 0.2
    model = over_dask.TFDFV(**FLOW, class_shares="auto")
    model.adapt(cut(P.Xs, [100]), cut(P.ys, [100]), cut(P.Xt[few], [30]))
    np.testing.assert_allclose(model.class_shares_, local.class_shares_, atol=1e-8)
    expected = local.decision_function(P.Xt)
    np.testing.assert_allclose(model.to_local().decision_function(P.Xt), expected, atol=1e-8)


@pytest.mark.parametrize("name", ["MEDA", "TFDFV, known shares"])
def test_beyond_the_pool_both_choose_from_the_same_rows(name, client, monkeypatch):
    monkeypatch.setattr(LIMITS, "pool_rows", 90)
    local, model = local_and_dask(name)
    if name == "MEDA":
        for one in (local, model):
            one.set_params(graph=20)  # five of the pool's rows for each
    local.adapt(P.Xs, P.ys, P.Xt)
    model.adapt(cut(P.Xs, [100]), cut(P.ys, [100]), cut(P.Xt, [30, 60]))
    method = "transform" if hasattr(local, "transform") else "decision_function"
    expected = getattr(local, method)(P.Xt)
    np.testing.assert_allclose(getattr(model.to_local(), method)(P.Xt), expected, atol=1e-8)
    if "shares" in name:
        counts = np.bincount(model.predict(P.Xt), minlength=3)
        assert np.abs(counts - 200 * np.array(SHIFTED["class_shares"])).max() < 1


def slowly(block):
    time.sleep(0.05)
    return block


class KillAt:
    """Kills workers a moment after the given stage has been told for the given time."""

    def __init__(self, what, times, delay, deaths, client):
        self.what, self.left, self.delay = what, times, delay
        self.deaths, self.client = deaths, client

    def __call__(self, event):
        if not isinstance(event, Progress) or event.what != self.what:
            return
        self.left -= 1
        if self.left == 0:
            for pid in sorted(self.client.run(os.getpid).values())[: self.deaths]:
                Timer(self.delay, os.kill, (pid, signal.SIGKILL)).start()


@pytest.mark.parametrize(
    ("name", "what", "times", "delay", "deaths"),
    [
        ("TFDF", "Adapting", 2, 0.02, 1),
        ("MEDA", "Adapting", 1, 0.0, 2),  # nobody is left who knows how first labels were made
    ],
)
def test_workers_that_are_killed_change_no_bit(name, what, times, delay, deaths, client):
    rows = cut(P.Xs, [20] * 11), cut(P.ys, [20] * 11), cut(P.Xt, [20] * 9)
    rows = tuple(part.map_blocks(slowly, dtype=part.dtype) for part in rows)
    model = getattr(over_dask, name)(**FLOW)
    calm = clone(model).adapt(*rows)
    killer = KillAt(what, times, delay, deaths, client)
    with listen(killer):
        hurt = clone(model).adapt(*rows)
    assert killer.left <= 0
    np.testing.assert_array_equal(hurt._machine.coefficients, calm._machine.coefficients)
    assert hurt.temperature_ == calm.temperature_
    client.wait_for_workers(2, timeout=120)


def test_features_that_do_not_fit_are_computed_each_time(client):
    rows = cut(P.Xs, [60] * 3), cut(P.ys, [60] * 3), cut(P.Xt, [60] * 2)
    models = [over_dask.TFDF(**FLOW, max_memory=size).adapt(*rows) for size in ("1GB", "1KB")]
    scores = [model.to_local().decision_function(P.Xt) for model in models]
    np.testing.assert_allclose(*scores, atol=1e-8)
    peaks = client.run(lambda: psutil.Process().memory_info().rss)
    assert max(peaks.values()) < MEMORY


def test_graphs_are_small_and_no_rows_come_here_but_the_pool(client, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
        for part in range(8):
            rows = pd.DataFrame(rng.normal(size=(500, 6)), columns=list("abcdef"))
            rows["label"] = (rows["a"] > 0).astype(int)
            rows.to_parquet(tmp_path / name / f"{part}.parquet")
    monkeypatch.setattr(LIMITS, "pool_rows", 100)
    graphs, results = [], []
    persist, compute = Workers.persist, Workers.compute

    def persisting(self, tasks):
        merged = {key: value for task in tasks for key, value in dict(task.dask).items()}
        graphs.append(len(cloudpickle.dumps(merged)))
        return persist(self, tasks)

    def computing(self, task):
        result = compute(self, task)
        results.append(len(pickle.dumps(result)))
        return result

    monkeypatch.setattr(Workers, "persist", persisting)
    monkeypatch.setattr(Workers, "compute", computing)
    source, target = (dd.read_parquet(tmp_path / name) for name in ("source", "target"))
    settings = FLOW | {"n_landmarks": 20, "class_shares": "source"}
    model = over_dask.TFDF(**settings).adapt(source, "label", target)
    assert model.n_iter_ >= 11
    assert max(graphs) < 1_000_000
    rounds = graphs[-10:]
    assert max(rounds) < 1.05 * min(rounds)
    n_bytes = 2 * 8 * 500 * 6 * 8
    assert sorted(results)[-1] < 0.2 * n_bytes
    assert sum(results) < 0.5 * n_bytes


def test_a_client_is_used_but_never_part_of_a_model(client):
    model = over_dask.TFDFV(**FLOW, client=client)
    assert model.client_ is client
    assert clone(model).client is client
    assert pickle.loads(pickle.dumps(model)).client is None  # noqa: S301
    model.adapt(cut(P.Xs, [100]), cut(P.ys, [100]), cut(P.Xt, [30]))
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert again.client is None
    np.testing.assert_array_equal(again.predict(P.Xt), model.to_local().predict(P.Xt))
    assert over_dask.TFDFV().client_ is client  # the current one
