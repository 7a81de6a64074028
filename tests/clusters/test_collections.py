"""What Dask collections are taken for, what is refused by name, and lazy results: in threads."""

import importlib
import sys
from types import SimpleNamespace

import cloudpickle
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import KilledWorker
from sklearn.base import clone

import transferable.classifiers as classifiers
from problems import small_problem
from transferable import load, save
from transferable.dask import CORAL, MEDA, TFDF, TFDFV, PerDomainScaler
from transferable.exceptions import NoTargetWarning

P = small_problem(5, n_source=90, n_target=60, n_features=4)
FEW = {"n_landmarks": 12, "manifold_dim": 2, "max_iter": 2}
NAMES = list("abcd")


def frame(X, labels=None):
    rows = pd.DataFrame(X, columns=NAMES)
    return rows if labels is None else rows.assign(label=labels)


def frames(parts):
    """A dataframe of these partitions, which claims that all are like the first."""
    return dd.from_map(lambda i: parts[i], range(len(parts)), meta=parts[0].iloc[:0])


def fitted(**settings):
    Xs, Xt = (dd.from_pandas(frame(X), npartitions=2) for X in (P.Xs, P.Xt))
    ys = dd.from_pandas(pd.Series(P.ys), npartitions=2)
    return TFDFV(**FEW, **settings).adapt(Xs, ys, Xt), Xt


@pytest.fixture(scope="module")
def local():
    return classifiers.TFDFV(**FEW, graph="anchors").adapt(P.Xs, P.ys, P.Xt)


def test_every_form_of_input_is_the_same_problem(local):
    source = dd.from_pandas(frame(P.Xs, P.ys), npartitions=3)
    target = dd.from_pandas(frame(P.Xt, np.full(60, 7)), npartitions=2)
    X = da.from_array(P.X, chunks=(40, 4))
    marks = np.r_[np.ones(90), -np.ones(60)]
    labels = np.r_[P.ys, np.full(60, -1)]
    everything = dd.from_pandas(frame(P.X, labels), npartitions=4)
    models = [
        TFDFV(**FEW).adapt(source, "label", target),
        TFDFV(**FEW).adapt(source[NAMES], source["label"], target[NAMES]),
        TFDFV(**FEW).fit(X, da.from_array(labels, chunks=30)),
        TFDFV(**FEW).fit(
            X,
            da.zeros(150, dtype=int, chunks=40) + da.from_array(np.r_[P.ys, P.ys[:60]], chunks=40),
            da.from_array(marks, chunks=40),
        ),
        TFDFV(**FEW, graph="auto").fit(everything, "label"),  # anchors here, too
        TFDFV(**FEW).fit(X, da.from_array(np.where(labels < 0, None, labels), chunks=40)),
    ]
    expected = local.decision_function(P.X)
    for model in models:
        scores = model.to_local().decision_function(
            frame(P.X) if hasattr(model, "feature_names_in_") else P.X
        )
        np.testing.assert_allclose(scores, expected, atol=1e-8)


UNLIKE = {
    "the columns a, z, c, d in place of a, b, c, d": lambda rows: rows.rename(columns={"b": "z"}),
    "the columns a, b, c in place of": lambda rows: rows.drop(columns="d"),
    "no column 'label'": lambda rows: rows.drop(columns="label"),
    "rows in float32": lambda rows: rows.astype(dict.fromkeys(NAMES, "float32")),
    "the column 'c' of dtype": lambda rows: rows.assign(c="x"),
    "2 rows with NaN or infinity in column 'c'": lambda rows: rows.assign(
        c=[np.nan] * 2 + [1.0] * 28
    ),
    "30 source rows without a label": lambda rows: rows.assign(label=np.nan),
}


@pytest.mark.parametrize("message", UNLIKE)
def test_a_partition_unlike_the_others_is_named(message):
    parts = [frame(P.Xs[i : i + 30], P.ys[i : i + 30]) for i in (0, 30, 60)]
    parts[1] = UNLIKE[message](parts[1])
    target = dd.from_pandas(frame(P.Xt), npartitions=2)
    model = TFDFV(**FEW)
    with pytest.raises((ValueError, TypeError), match=f"partition 1 of Xs has {message}"):
        model.adapt(frames(parts), "label", target)
    assert not hasattr(model, "classes_")


def misdeclared(X, change):
    """An array whose second block has more or fewer rows than it declares."""
    blocks = da.from_array(X, chunks=(30, *X.shape[1:]))

    def changed(block, block_info=None):
        return change(block) if block_info[0]["chunk-location"][0] == 1 else block

    return blocks.map_blocks(changed, dtype=X.dtype, chunks=blocks.chunks)


@pytest.mark.parametrize(
    ("change", "found"),
    [(lambda block: block[:-1], 29), (lambda block: np.concatenate([block, block[:1]]), 31)],
)
def test_a_block_of_other_rows_than_it_declares_is_named(change, found):
    Xs, ys, Xt = (da.from_array(X, chunks=(30, *X.shape[1:])) for X in (P.Xs, P.ys, P.Xt))
    told = f"partition 1 of {{}} has {found} rows, but its collection declares 30; cut it again"
    for where, rows in {
        "Xs": (misdeclared(P.Xs, change), misdeclared(P.ys, change), Xt),
        "Xt": (Xs, ys, misdeclared(P.Xt, change)),
    }.items():
        with pytest.raises(ValueError, match=told.format(where)) as refused:
            TFDFV(**FEW).adapt(*rows)
        assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match=rf"partition 1 of Xs has 30 rows, but labels.*{found},"):
        TFDFV(**FEW).adapt(Xs, misdeclared(P.ys, change), Xt)
    y = da.from_array(np.r_[P.ys, np.full(60, -1)], chunks=30)
    with pytest.raises(ValueError, match=told.format("X")):
        TFDFV(**FEW).fit(misdeclared(P.X, change), y)
    model = TFDFV(**FEW).adapt(Xs, ys, Xt)
    with pytest.raises(ValueError, match=told.format("X")):
        model.predict(misdeclared(P.Xt, change)).compute()


def test_the_file_of_a_partition_is_named(tmp_path):
    for i in range(3):
        rows = frame(P.Xs[i * 30 : i * 30 + 30], P.ys[i * 30 : i * 30 + 30])
        rows.iloc[0, 1] = np.inf if i == 2 else 0.0
        rows.to_parquet(tmp_path / f"part{i}.parquet")
    target = dd.from_pandas(frame(P.Xt), npartitions=2)
    with pytest.raises(
        ValueError, match=r"partition 2 of Xs \(.*part2.parquet\) has 1 rows with NaN"
    ):
        TFDFV(**FEW).adapt(dd.read_parquet(tmp_path), "label", target)


@pytest.mark.parametrize("kind", [CORAL, PerDomainScaler])
def test_methods_that_look_at_no_label_need_none(kind):
    Xs, Xt = da.from_array(P.Xs, chunks=(40, 4)), da.from_array(P.Xt, chunks=(50, 4))
    local = kind._local().adapt(P.Xs, None, P.Xt)
    found = kind().adapt(Xs, None, Xt).transform(Xs, 1)
    np.testing.assert_allclose(found, local.transform(P.Xs, np.ones(90)), atol=1e-8)
    with pytest.raises(ValueError, match="y"):
        TFDFV().adapt(Xs, None, Xt)


def test_without_a_target_the_source_is_fitted_alone():
    X, y = da.from_array(P.Xs, chunks=(40, 4)), da.from_array(P.ys.astype(float), chunks=40)
    local = classifiers.TFDFV(**FEW, graph="anchors")
    with pytest.warns(NoTargetWarning):
        expected = local.fit(P.Xs, P.ys.astype(float)).decision_function(P.Xt)
    with pytest.warns(NoTargetWarning):
        model = TFDFV(**FEW).fit(X, y)
    np.testing.assert_allclose(model.to_local().decision_function(P.Xt), expected, atol=1e-8)


def test_what_cannot_be_done_is_refused_before_anything_is_read():
    X, y = da.from_array(P.X), da.from_array(np.r_[P.ys, np.full(60, -1)])
    for model, message in [
        (TFDFV(n_landmarks=None), "n_landmarks=None"),
        (TFDFV(n_landmarks=100_000), "n_landmarks=100000"),
        (TFDFV(device="torch"), 'device="torch"'),
        (MEDA(graph="neighbors"), 'graph="neighbors" reaches across partitions'),
        (MEDA(graph=100_000), "graph=100000"),
        (TFDFV(ridge=-1.0), "ridge"),
        (TFDF(target_labels="use"), "takes no target labels"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
    with pytest.raises(TypeError, match="fit, then call transform"):
        CORAL().fit_transform(X, y)
    with pytest.raises(TypeError, match="Xs must be a Dask dataframe, or a Dask array"):
        TFDFV().adapt(P.Xs, P.ys, P.Xt)
    with pytest.raises(ValueError, match="Xt has 3 features in float64, but Xs has 4"):
        TFDFV().adapt(X, y, X[:, :3])
    with pytest.raises(ValueError, match="one class, 0"):
        TFDFV().fit(X, da.zeros(150, dtype=int))
    with pytest.raises(ValueError, match="rescale the columns"):
        TFDFV().fit(1e40 * X, y)
    with pytest.raises(ValueError, match="y has 3 partitions, but X has 1"):
        TFDFV().fit(dd.from_pandas(frame(P.X), npartitions=1), da.from_array(P.ys, chunks=30))


def test_several_sources_are_refused_and_several_targets_where_memory_tells_them_apart():
    X, y = da.from_array(P.X, chunks=(50, 4)), da.from_array(np.r_[P.ys, P.ys[:60]], chunks=50)
    sources, targets = np.r_[np.ones(60), np.full(30, 2), -np.ones(60)], np.ones(150)
    targets[90:120], targets[120:] = -1, -2
    for model in (TFDFV(**FEW), CORAL()):
        with pytest.raises(
            ValueError, match=r"takes one source, but .* rows of 1, 2; mark all of them 1 .* fit tr"
        ):
            model.fit(X, y, da.from_array(sources, chunks=50))
    with pytest.raises(ValueError, match=r"takes one target, .* -2, -1; mark all of them -1"):
        PerDomainScaler().fit(X, y, da.from_array(targets, chunks=50))
    one, apart = (
        CORAL().fit(X, y, da.from_array(marks, chunks=50)) for marks in (np.sign(targets), targets)
    )
    np.testing.assert_array_equal(one.transform(X, 1), apart.transform(X, 1))


def test_results_are_lazy_and_their_meta_needs_no_model(monkeypatch):
    model, Xt = fitted()
    with monkeypatch.context() as patch:
        for method in ("predict", "predict_proba", "decision_function"):
            patch.setattr(classifiers.TFDFV, method, None)
        labels, probabilities = model.predict(Xt), model.predict_proba(Xt)
        scores = model.decision_function(Xt.to_dask_array())
        assert labels.dtype == P.ys.dtype
        assert list(probabilities.columns) == [0, 1, 2]
        assert scores.shape[1] == 3
        assert np.isnan(scores.shape[0])
    local = model.to_local()
    assert labels.npartitions == Xt.npartitions
    np.testing.assert_array_equal(labels.compute(), local.predict(frame(P.Xt)))
    np.testing.assert_array_equal(labels.compute().index, Xt.compute().index)
    np.testing.assert_array_equal(probabilities.compute(), local.predict_proba(frame(P.Xt)))
    none = Xt[Xt["a"] > 1e9]
    assert len(model.predict_proba(none).compute()) == 0
    np.testing.assert_array_equal(model.transduction_.compute(), labels.compute())


def test_one_model_serves_all_partitions():
    model, _ = fitted()
    sizes = [
        len(cloudpickle.dumps(dict(model.predict(da.zeros((n, 4), chunks=(1, 4))).dask)))
        for n in (2, 42)
    ]
    own = len(cloudpickle.dumps(model.to_local()))
    assert sizes[1] - sizes[0] < 40 * own / 2


@pytest.mark.parametrize("kind", [TFDFV, TFDF, CORAL, PerDomainScaler])
def test_parameters_are_those_in_memory_and_a_client(kind):
    differ = {"client": None} | ({"graph": "anchors"} if hasattr(kind, "predict") else {})
    assert kind().get_params() == kind._local().get_params() | differ
    assert clone(kind()).get_params() == kind().get_params()


def test_the_local_model_is_the_ordinary_one(tmp_path):
    model, _ = fitted()
    local = model.to_local()
    assert type(local) is classifiers.TFDFV
    save(local, tmp_path / "model.tfm")
    rows = frame(P.Xt)
    np.testing.assert_array_equal(load(tmp_path / "model.tfm").predict(rows), local.predict(rows))
    np.testing.assert_array_equal(model.predict(rows), local.predict(rows))


def test_labels_may_be_text_and_rows_single(local):
    words = np.array(["ant", "bee", "cow"])
    Xs, Xt = (dd.from_pandas(frame(X.astype("float32")), npartitions=2) for X in (P.Xs, P.Xt))
    ys = dd.from_pandas(pd.Series(words[P.ys]), npartitions=2)
    model = TFDFV(**FEW).adapt(Xs, ys, Xt)
    assert model.classes_.tolist() == words.tolist()
    found = model.predict(Xt).compute()
    assert np.mean(found == words[local.predict(P.Xt)]) > 0.98


def test_what_to_do_about_too_many_deaths_is_told():
    class Dying:
        def persist(self, tasks):
            return tasks

        def scheduler_info(self, n_workers):
            return {"workers": {"tcp://1": {"memory_limit": 10**9}}}

        def compute(self, task, sync):
            raise KilledWorker("_read-1", SimpleNamespace(address="tcp://1"), 3)

    with pytest.raises(RuntimeError, match=r"distributed.scheduler.allowed-failures"):
        TFDFV(client=Dying()).fit(da.from_array(P.X), da.from_array(np.arange(150)))


def test_its_absence_is_told_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "transferable.dask")
    with pytest.raises(ImportError, match=r"needs distributed, .*'\.\[dask\]'"):
        importlib.import_module("transferable.dask")
