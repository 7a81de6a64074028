"""Saved models: exact, refusing what is foreign, clear about what is damaged."""

import copy
import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import transferable
from campaign import forging, zoo
from saved import METHODS, NAMES, NEW, PROBLEM, adapted
from transferable import persistence
from transferable.classifiers import TFDF, TFDFV, AdaptedClassifier
from transferable.persistence import ModelFileError, about
from transferable.regressors import AdaptedRegressor
from transferable.transformers import CORAL, PerDomainScaler

pytestmark = pytest.mark.filterwarnings("ignore")
FEW = [
    name
    for name in zoo.MAKERS
    if name.endswith(("_adapted", "_published", "_sparse", "_framed", "_single"))
    or "_" not in name
    or name.startswith(("deep", "kd_", "ball_"))
]


class Foreign(ClassifierMixin, BaseEstimator):
    """An estimator that this library knows nothing of."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def assert_alike(model, again, rows):
    for method in METHODS:
        assert hasattr(model, method) == hasattr(again, method), method
        if hasattr(model, method):
            expected, got = getattr(model, method)(rows), getattr(again, method)(rows)
            if isinstance(expected, pd.DataFrame):
                pd.testing.assert_frame_equal(got, expected, check_exact=True)
                continue
            if sp.issparse(expected):
                expected, got = expected.toarray(), got.toarray()
            assert (type(got), got.dtype, got.shape) == (
                type(expected),
                expected.dtype,
                expected.shape,
            )
            same = got.tobytes() == expected.tobytes()
            assert same or (got.dtype.kind == "O" and (got == expected).all()), method


@pytest.fixture
def file(tmp_path):
    """A saved model."""
    path = tmp_path / "model.tfm"
    transferable.save(adapted(TFDFV()), path)
    return path


@pytest.mark.parametrize("name", FEW)
def test_every_model_comes_back_to_the_bit(name, tmp_path):
    model = zoo.model(name)
    if model is None:
        pytest.skip("takes no such rows")
    transferable.save(model, tmp_path / "model.tfm")
    again = transferable.load(tmp_path / "model.tfm")
    assert type(again) is type(model)
    if name == "unfitted":
        assert again.get_params() == model.get_params()
    else:
        rows, pair = zoo.rows(name), (model, again)
        if name == "pictures":
            pair = [copy.copy(one).set_params(model=zoo.colours) for one in pair]
        assert_alike(*pair, rows)
        if isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype == np.float64:
            assert_alike(model, again, rows.astype(np.float32))
    transferable.save(again, tmp_path / "again.tfm")
    first, second = (forging.described(tmp_path / f"{n}.tfm") for n in ("model", "again"))
    assert first == second


@pytest.mark.parametrize("part", zoo.PARTS, ids=lambda part: type(part).__name__)
def test_an_adapted_estimator_holds_any_of_these_types(part, tmp_path):
    if hasattr(part, "transform"):
        model = AdaptedClassifier(clone(part))
    else:
        adapter = AdaptedClassifier if is_classifier(part) else AdaptedRegressor
        model = adapter(CORAL(), clone(part))
        if getattr(part, "class_weight", None):  # names classes, which are codes inside
            model.estimator.set_params(class_weight=None)
    y = zoo.LABELS if is_classifier(model) else zoo.PROBLEM.Xs[:, 0]
    model.adapt(zoo.PROBLEM.Xs, y, zoo.PROBLEM.Xt)
    transferable.save(model, tmp_path / "model.tfm")
    assert_alike(model, transferable.load(tmp_path / "model.tfm"), zoo.ROWS)


def test_a_file_is_json_and_arrays(file):
    parts = forging.members(file)
    assert {"transferable.json", "model.json"} < parts.keys()
    assert all(name.endswith((".json", ".npy")) for name in parts)
    described = json.loads(parts["model.json"])
    assert described["type"] == "transferable.classifiers.tfdf.TFDFV"
    assert described["parameters"]["alignment"] == TFDFV().alignment


@pytest.mark.parametrize("name", [name for name in zoo.MAKERS if name.partition("-")[2].isdigit()])
def test_attributes_that_a_release_of_scikit_learn_adds_change_nothing(name, tmp_path, monkeypatch):
    """Planted in the objects, their parts and their classes."""
    transferable.save(zoo.model(name), tmp_path / "before.tfm")
    model = copy.deepcopy(zoo.model(name))
    parts = [part for _, part in getattr(model, "steps", getattr(model, "transformer_list", []))]
    parts += [*np.ravel(getattr(model, "estimators_", []))]
    for part in (model, *parts):
        if not isinstance(part, str):
            part._of_the_next_release = object()
            monkeypatch.setattr(type(part), "of_the_next_release_", object(), raising=False)
    transferable.save(model, tmp_path / "after.tfm")
    before, after = (forging.described(tmp_path / f"{n}.tfm") for n in ("before", "after"))
    assert before == after
    assert_alike(zoo.model(name), transferable.load(tmp_path / "after.tfm"), zoo.rows(name))


def own_kernel(X, Y):
    return X @ Y.T


def with_classes(labels):
    codes = PROBLEM.ys % len(labels)
    model = TFDFV().adapt(PROBLEM.Xs, codes, PROBLEM.Xt)
    model.classes_ = labels
    return model


def with_nan(model):
    model._map = replace(model._map, means=model._map.means * np.nan)
    return model


@pytest.mark.parametrize("told", zoo.REFUSED)
def test_what_files_do_not_hold_is_refused_by_name_with_the_way_out(told, tmp_path):
    model = zoo.REFUSED[told]
    for holder, place in ((model, ""), (AdaptedClassifier(None, model), "AdaptedClassifier.estim")):
        with pytest.raises(TypeError, match=rf"^{place}.*{told}, which cannot.*Table.*joblib\.d"):
            transferable.save(holder, tmp_path / "model.tfm")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (lambda: adapted(AdaptedClassifier(CORAL(), Foreign())), "estimator is Foreign, .*joblib"),
        (lambda: adapted(TFDFV(kernel=own_kernel)), "TFDFV.kernel is own_kernel"),
        (
            lambda: with_nan(adapted(PerDomainScaler())),
            "means of Scales is of another",
        ),
        (lambda: TFDF(random_state=np.random.RandomState(0)), "random_state is RandomState"),
        (lambda: {"a": 1}, "must be an estimator, got dict"),
        (lambda: make_pipeline(*(PCA(k) for k in range(9, 0, -1))), "a chain of 9 steps.*most 8"),
        (lambda: with_classes(np.array([("a", 1), None, []], object)), "an array of (list|tuple)"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(model, told, tmp_path):
    with pytest.raises(TypeError, match=told):
        transferable.save(model(), tmp_path / "model.tfm")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_would_answer_otherwise_is_not_saved(tmp_path):
    model = adapted(AdaptedClassifier(CORAL(), LogisticRegression()))
    model.estimator_.predict = lambda X: np.zeros(len(X), dtype=int)
    with pytest.raises(TypeError, match="predict of AdaptedClassifier would change"):
        transferable.save(model, tmp_path / "model.tfm")


@pytest.mark.parametrize("labels", [[0, 1, 2], ["ant", None, 3.5], [False, True], [-3, 0, 7]])
@pytest.mark.parametrize("dtype", [object, None, np.int8, np.float32])
def test_labels_of_any_type_come_back(labels, dtype, tmp_path):
    try:
        labels = np.array(labels, dtype=dtype)
    except (TypeError, ValueError):
        pytest.skip("no such labels")
    model = with_classes(labels)
    transferable.save(model, tmp_path / "model.tfm")
    again = transferable.load(tmp_path / "model.tfm").classes_
    assert again.dtype == labels.dtype
    assert list(map(type, again)) == list(map(type, labels))
    assert again.tolist() == labels.tolist()


@pytest.mark.parametrize("load", [transferable.load, about])
@pytest.mark.parametrize("kept", [0, 1, 100, 0.5, -1])
def test_a_truncated_file_is_refused(file, load, kept):
    content = file.read_bytes()
    file.write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
    with pytest.raises(ModelFileError, match=r"not a saved model, or not all of one.*again"):
        load(file)


def test_changed_bytes_are_refused_or_change_nothing(file):
    content, model = file.read_bytes(), transferable.load(file)
    for place in range(0, len(content), max(1, len(content) // 150)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            again = transferable.load(file)
        except ModelFileError:
            continue
        assert_alike(model, again, NEW)


@pytest.mark.parametrize("load", [transferable.load, about])
@pytest.mark.parametrize("number", [5, persistence.FORMAT + 1])
def test_other_formats_say_what_to_do(file, load, number):
    parts = forging.members(file)
    header = json.loads(parts[forging.HEADER]) | {"format": number}
    header["versions"]["transferable"] = "9.9\x1b[2J"
    del header["bytes"]  # which not every format has
    forging.write(file, parts | {forging.HEADER: json.dumps(header)})
    told = (
        f"{file} has format {number}, written by transferable 9.9\\x1b[2J; this is transferable "
        f"{transferable.__version__}, which reads format {persistence.FORMAT}. Fit and save the "
        "model again with this version."
    )
    with pytest.raises(ModelFileError) as refused:
        load(file)
    assert str(refused.value) == told


@pytest.mark.parametrize("missing", ["versions", "sha256", "bytes", "format", "class"])
def test_a_header_that_lacks_a_field_says_which(file, missing):
    parts = forging.members(file)
    header = json.loads(parts[forging.HEADER])
    del header[missing]
    forging.write(file, parts | {forging.HEADER: json.dumps(header)})
    with pytest.raises(ModelFileError, match=f"header without '{missing}'"):
        transferable.load(file)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        transferable.load(tmp_path / "nothing.tfm")


def test_a_failure_leaves_the_old_file_and_no_other(file, monkeypatch):
    before = file.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        transferable.save(TFDF(), file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_about_tells_without_loading(file, monkeypatch):
    monkeypatch.setattr(persistence, "unarchived", None)
    header = about(file)
    assert header["class"] == "TFDFV"
    assert header["versions"]["transferable"] == transferable.__version__


def test_labels_and_rows_of_names_come_back(tmp_path):
    model = adapted(TFDFV())
    transferable.save(model, tmp_path / "model.tfm")
    again = transferable.load(tmp_path / "model.tfm")
    assert set(again.predict(NEW)) <= set(NAMES)
    np.testing.assert_array_equal(again.transduction_, model.transduction_)


def test_a_file_takes_few_calls(tmp_path):
    model, calls = zoo.model("AutoAdapter_adapted"), []
    transferable.save(model, tmp_path / "model.tfm")

    def watch(frame, event, _):
        if event == "call" and frame.f_globals.get("__name__", "").startswith("transferable"):
            calls.append(frame.f_code.co_qualname)

    sys.setprofile(watch)
    try:
        transferable.load(tmp_path / "model.tfm")
    finally:
        sys.setprofile(None)
    assert len(calls) < 10_000
