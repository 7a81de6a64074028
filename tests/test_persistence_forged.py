"""Model files that somebody changed and signed again: refused, or right all the same."""

import copy
import json
import os
import re
import time
import tracemalloc
from zipfile import ZIP_LZMA

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_array, csr_matrix
from sklearn.cluster import KMeans
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import transferable
from campaign import forging, zoo
from saved import NAMES, NEW, PROBLEM, adapted, outputs
from transferable import persistence
from transferable.classifiers import TFDFV, AdaptedClassifier
from transferable.persistence import ModelFileError
from transferable.transformers import CORAL, GFK, JDA, SubspaceAlignment

pytestmark = pytest.mark.filterwarnings("ignore:.*reduced to:UserWarning")


def saved(model, path):
    transferable.save(model, path)
    return path


def forged(file, field, change):
    forging.with_array(file, lambda name, _: field in name, change)
    return file


def in_place(index, value):
    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


KNN = {"kd_tree": KNeighborsClassifier(algorithm="kd_tree"), "brute": KNeighborsClassifier()}


@pytest.mark.parametrize("change", [lambda a: a * 0 + 10**6, lambda a: a[:3]])
def test_search_trees_are_never_taken_from_a_file(change, tmp_path):
    model = adapted(AdaptedClassifier(CORAL(), KNN["kd_tree"]))
    file = forged(saved(model, tmp_path / "model.tfm"), "_tree.1", change)
    assert outputs(transferable.load(file), NEW)["predict"].tolist() == model.predict(NEW).tolist()


@pytest.mark.parametrize(
    ("estimator", "field", "change"),
    [
        (TFDFV(manifold_dim=None), "indices", lambda a: a * 0 + 10**8),
        (TFDFV(manifold_dim=None), "indptr", lambda a: a[::-1].copy()),
        (TFDFV(), "classes_", lambda a: a[:2]),
        (AdaptedClassifier(), "_fit_X", lambda a: a[:4]),
        (AdaptedClassifier(CORAL(), SVC()), "_n_support", in_place(0, 10**6)),
        (AdaptedClassifier(CORAL(), SVC()), "_n_support", lambda a: a + a * [10**6, -(10**6), 0]),
        (AdaptedClassifier(CORAL(), SVC()), "_dual_coef_", lambda a: a[:, :2]),
        (AdaptedClassifier(CORAL(), SVC()), "support_vectors_", lambda a: a[:, :2]),
        (AdaptedClassifier(CORAL(), LogisticRegression()), "coef_", lambda a: a[:, :2]),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(estimator, field, change, tmp_path):
    sparse = "ind" in field
    X = (csr_array(PROBLEM.Xs), csr_array(PROBLEM.Xt)) if sparse else (PROBLEM.Xs, PROBLEM.Xt)
    estimator.adapt(X[0], NAMES[PROBLEM.ys], X[1])
    file = forged(saved(estimator, tmp_path / "model.tfm"), field, change)
    with pytest.raises(ModelFileError, match=re.escape(str(file))):
        transferable.load(file)


def node(field, index, value):
    def change(nodes):
        nodes = nodes.copy()
        nodes[field][index] = value
        return nodes

    return change


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("nodes", node("left_child", 0, 10**9)),
        ("nodes", node("left_child", 0, 0)),
        ("nodes", node("right_child", 0, -7)),
        ("nodes", node("right_child", 0, 1)),
        ("nodes", node("left_child", 0, -1)),
        ("nodes", node("feature", 0, 12)),
        ("nodes", node("threshold", 0, np.nan)),
        ("nodes", lambda a: a[:-1]),
        ("nodes", lambda a: a["threshold"]),
        ("values", lambda a: a[:, :, :1]),
        ("values", lambda a: a * np.nan),
        ("args.1", lambda a: a + 1),
    ],
)
@pytest.mark.parametrize("model", [DecisionTreeClassifier(), RandomForestClassifier(3)])
def test_decision_trees_are_checked_node_by_node(model, field, change, tmp_path):
    fitted = adapted(AdaptedClassifier(CORAL(), model))
    file = forged(
        saved(fitted, tmp_path / "model.tfm"),
        f"tree_.{field}".replace("tree_.args", "args"),
        change,
    )
    with pytest.raises(ModelFileError, match=re.escape(str(file))):
        transferable.load(file)


def test_trees_for_other_features_than_their_forest_are_refused(tmp_path):
    fitted = adapted(AdaptedClassifier(CORAL(), RandomForestClassifier(3)))
    other = DecisionTreeClassifier().fit(np.c_[PROBLEM.Xs, PROBLEM.Xs], PROBLEM.ys)
    fitted.estimator_.estimators_[2] = other
    with pytest.raises(TypeError, match="cannot be saved"):
        transferable.save(fitted, tmp_path / "model.tfm")


def unchecked(model, path, monkeypatch):
    """Save a model that `save` would refuse."""
    with monkeypatch.context() as patch:
        patch.setattr(persistence, "readable", lambda content: (content, []))
        patch.setattr(persistence, "_restored", lambda content: None)
        return saved(model, path)


@pytest.mark.parametrize("model", [GFK(), JDA(), SubspaceAlignment()])
def test_a_number_of_columns_that_a_model_has_not_takes_no_memory(model, tmp_path, monkeypatch):
    model = adapted(model)
    model._n_features_out = 2**28
    file = unchecked(model, tmp_path / "model.tfm", monkeypatch)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="gives shape"):
            transferable.load(file)
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()


def neighbours(**changes):
    model = KNeighborsClassifier(3, algorithm="brute").fit(PROBLEM.Xs, PROBLEM.ys)
    vars(model).update(changes)
    return model


def machine(sparse=False, **changes):
    model = SVC().fit(csr_matrix(PROBLEM.Xs) if sparse else PROBLEM.Xs, PROBLEM.ys)
    vars(model).update(changes)
    return model


def one_hot(X=((1.0,), (2.0,), (3.0,)), **changes):
    model = OneHotEncoder(sparse_output=False, max_categories=3).fit(X)
    vars(model).update(changes)
    return model


def changed(model, **changes):
    model.fit(PROBLEM.Xs, PROBLEM.ys)
    vars(model).update(changes)
    return model


class VersionOfAStranger(StandardScaler):
    """Scaler that says it is of a version whose name clears the screen."""

    __module__ = StandardScaler.__module__

    def __getstate__(self):
        return super().__getstate__() | {"_sklearn_version": "1.0\x1b[2J"}


VersionOfAStranger.__name__ = VersionOfAStranger.__qualname__ = "StandardScaler"
Y = np.arange(45) % 3
FAR = np.full(45, 2**40)
N_SUPPORT = len(machine().support_)
VECTORS = machine(sparse=True).support_vectors_
BEYOND = {
    "labels beyond a list of classes": lambda: neighbours(_y=FAR, classes_=[0, 1, 2]),
    "labels beyond the classes": lambda: neighbours(_y=FAR),
    "labels below zero": lambda: neighbours(_y=Y - 1, classes_=[0, 1, 2]),
    "labels of floats": lambda: neighbours(_y=Y * 1.0),
    "no labels": lambda: neighbours(_y=None),
    "several outputs": lambda: neighbours(_y=np.c_[Y, FAR], classes_=[[0, 1, 2]], outputs_2d_=True),
    "a metric of other columns": lambda: neighbours(
        metric="mahalanobis", effective_metric_="mahalanobis", metric_params={"VI": np.eye(2)}
    ),
    "a precomputed kernel": lambda: machine(
        kernel="precomputed", support_=np.full(N_SUPPORT, 2**30, np.int32), shape_fit_=(12, 12)
    ),
    "a kernel of a function": lambda: machine(kernel=np.add),
    "few stored coefficients": lambda: machine(True, _dual_coef_=csr_matrix((2, N_SUPPORT))),
    "vectors by columns": lambda: machine(True, support_vectors_=VECTORS.tocsc()),
    "sparse vectors of a dense machine": lambda: machine(support_vectors_=VECTORS),
    "no probabilities": lambda: machine(_effective_probability=True, probability=True),
    "no intercept": lambda: machine(_intercept_=None),
    "another solver": lambda: machine(_impl="epsilon_svr"),
    "a ufunc for a method": lambda: machine(predict=np.exp),
    "few columns": lambda: one_hot(_n_features_outs=[1]),
    "codes beyond the columns": lambda: one_hot(
        _infrequent_enabled=True, _default_to_infrequent_mappings=[np.array([0, 9**9, 1])]
    ),
    "a dropped column beyond": lambda: one_hot(
        _drop_idx_after_grouping=np.array([7], dtype=object), _n_features_outs=[2]
    ),
    "unsorted categories": lambda: one_hot(categories_=[np.array([3.0, 1.0, 2.0])]),
    "no centres": lambda: changed(KMeans(3), cluster_centers_=np.zeros((0, PROBLEM.Xs.shape[1]))),
    "results that are not filled in": lambda: changed(
        FunctionTransformer(np.exp), kw_args={"where": False}
    ),
    "more columns than classes": lambda: changed(
        BaggingClassifier(n_estimators=2), n_classes_=2**28
    ),
    "rows that take no bytes": lambda: neighbours(_fit_X=csc_matrix((2**33, 12))),
    "a version with control characters": lambda: changed(
        VersionOfAStranger(), mean_=np.zeros(PROBLEM.Xs.shape[1])
    ),
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_compiled_code_would_follow_out_of_bounds_is_refused(name, tmp_path, monkeypatch):
    file = unchecked(BEYOND[name](), tmp_path / "model.tfm", monkeypatch)
    with pytest.raises(ModelFileError, match=re.escape(str(file))):
        transferable.load(file)


def test_nothing_that_reads_files_is_loaded_or_tried(tmp_path, monkeypatch):
    model = adapted(AdaptedClassifier(CORAL(), KNN["brute"]))
    file = tmp_path / "model.tfm"
    words = HashingVectorizer(input="filename")
    model.estimator_ = make_pipeline(SimpleImputer(fill_value=str(file)), words, KNN["brute"])
    with pytest.raises(TypeError, match="HashingVectorizer"):
        transferable.save(model, file)
    unchecked(model, file, monkeypatch)
    with pytest.raises(ModelFileError, match=r"not trusted.*HashingVectorizer"):
        transferable.load(file)


@pytest.mark.parametrize(
    ("name", "given", "loaded"),
    [
        ("pictures", {"cache": "notes.txt", "device": "cuda"}, ["auto", "auto"]),
        ("pictures", {"cache": None, "device": "cpu"}, [None, "cpu"]),
        ("deep-SourceOnly", {"checkpoint": "notes.txt", "num_workers": 99}, [None, 0]),
        ("deep-SourceOnly", {"device": "cuda"}, ["auto"]),
        ("TFDF_adapted", {"device": "cuda"}, ["auto"]),
    ],
)
def test_places_processes_and_devices_are_set_aside(name, given, loaded, tmp_path):
    if name not in zoo.MAKERS:
        pytest.skip("torch or pillow is not installed")
    model = copy.deepcopy(zoo.model(name)).set_params(**given)
    again = transferable.load(saved(model, tmp_path / "model.tfm"))
    assert [getattr(again, key) for key in given] == loaded


@pytest.mark.parametrize(
    ("part", "lost"), [("", "classes_"), ("", "_notes_on_labels"), ("encoder_", "means_")]
)
def test_a_table_classifier_is_fitted_as_a_whole(part, lost, tmp_path, monkeypatch):
    model = copy.deepcopy(zoo.model("table-unit"))
    delattr(model.encoder_ if part else model, lost)
    file = unchecked(model, tmp_path / "model.tfm", monkeypatch)
    with pytest.raises(ModelFileError, match="lacks attributes that fitted ones have"):
        transferable.load(file)


def test_networks_of_repositories_and_folders_are_refused(tmp_path):
    pytest.importorskip("torch")
    file = saved(zoo.model("deep-SourceOnly"), tmp_path / "model.tfm")
    for name in ("timm:hf-hub:somebody/network", "timm:local-dir:/etc"):
        node = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
        node |= {"content": json.dumps(name), "is_json": True, "__id__": 1}
        with_schema(file, lambda attributes, node=node: attributes.update(network=node))
        with pytest.raises(ModelFileError, match="names no network"):
            transferable.load(file)


def test_processes_threads_and_folders_are_set_aside(tmp_path):
    neighbours = KNeighborsClassifier(3, n_jobs=10**4).fit(PROBLEM.Xs[:, :3], PROBLEM.ys)
    clusters = KMeans(3, random_state=0).fit(PROBLEM.Xs)
    clusters._n_threads = 10**6
    model = FeatureUnion([("a", clusters)]).fit(PROBLEM.Xs).set_params(n_jobs=10**4)
    steps = [("features", model), ("classifier", neighbours)]
    again = transferable.load(saved(Pipeline(steps, memory="folder"), tmp_path / "model.tfm"))
    assert again.memory is again["features"].n_jobs is again["classifier"].n_jobs is None
    assert again["features"].transformer_list[0][1]._n_threads <= os.cpu_count()
    assert list(tmp_path.iterdir()) == [tmp_path / "model.tfm"]


def test_no_model_is_tried_before_all_parts_are_checked(tmp_path, monkeypatch):
    model = adapted(AdaptedClassifier(CORAL(), SVC()))
    model.estimator_ = machine(kernel="precomputed")
    file = unchecked(model, tmp_path / "model.tfm", monkeypatch)
    monkeypatch.setattr(AdaptedClassifier, "predict", lambda *_: pytest.fail("was tried"))
    with pytest.raises(ModelFileError, match="kernel of SVC is of another kind"):
        transferable.load(file)


def with_schema(file, change):
    parts = forging.members(file)
    schema = json.loads(parts["schema.json"])
    change(schema["content"]["content"])
    forging.resigned(file, parts | {"schema.json": json.dumps(schema).encode()})
    return file


def a_list(number, content):
    node = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    return node | {"__id__": number, "content": content}


@pytest.mark.parametrize("again", [lambda i: {"__id__": i}, lambda i: a_list(i, [])])
def test_lists_of_lists_that_share_a_number_take_no_time(again, tmp_path):
    nested = a_list(1, [])
    for number in range(2, 60):
        nested = a_list(number, [nested, again(number - 1)])
    file = saved(TFDFV(), tmp_path / "model.tfm")
    with_schema(file, lambda attributes: attributes.update(device=nested))
    with pytest.raises(ModelFileError, match="for two objects"):
        transferable.load(file)


def test_a_member_is_read_by_one_object_only(tmp_path):
    file = saved(adapted(TFDFV()), tmp_path / "model.tfm")

    def change(attributes):
        copies = [attributes["class_shares_"] | {"__id__": number} for number in range(1, 11)]
        attributes["device"] = a_list(11, copies)

    with pytest.raises(ModelFileError, match=r"the object of number \d+ is read from"):
        transferable.load(with_schema(file, change))


@pytest.mark.parametrize(
    ("loader", "name"), [("CachedNode", "list"), ("PartialNode", "list"), ("ListNode", "set")]
)
def test_nodes_that_save_does_not_write_are_refused(loader, name, tmp_path):
    file = saved(TFDFV(), tmp_path / "model.tfm")
    node = a_list(1, []) | {"__loader__": loader, "__class__": name}
    with_schema(file, lambda attributes: attributes.update(device=node))
    with pytest.raises(ModelFileError, match=f"not trusted.*{name}"):
        transferable.load(file)


def test_a_size_below_zero_does_not_make_room_for_others(tmp_path):
    file = saved(TFDFV(), tmp_path / "model.tfm")
    parts = forging.members(file)
    header = json.loads(parts[forging.HEADER])
    header["bytes"]["nothing.npy"] = -(2**60)
    forging.write(file, parts | {forging.HEADER: json.dumps(header)})
    with pytest.raises(ModelFileError, match=r"was changed.*nothing\.npy"):
        transferable.load(file)


def bombed(parts, name):
    return parts | {name: parts[name][:-1] + b',"x":[' + b"[]," * 10**7 + b"1]}"}


ARCHIVES = {
    "another packing": lambda file, parts: forging.write(file, parts, compression=ZIP_LZMA),
    "two headers": lambda file, parts: forging.write(
        file, parts, again=[(forging.HEADER, parts[forging.HEADER])]
    ),
    "a member that nothing reads": lambda file, parts: forging.resigned(
        file, parts | {"/etc/passwd": b""}
    ),
    "an old protocol": lambda file, parts: forging.resigned(
        file,
        parts | {"schema.json": parts["schema.json"].replace(b'"protocol": 2', b'"protocol": 0')},
    ),
    "a schema that unpacks to very much": lambda file, parts: forging.resigned(
        file, bombed(parts, "schema.json")
    ),
    "a header that unpacks to very much": lambda file, parts: forging.write(
        file, bombed(parts, forging.HEADER)
    ),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_that_save_does_not_write_are_refused_at_once(name, tmp_path):
    file = saved(adapted(TFDFV()), tmp_path / "model.tfm")
    ARCHIVES[name](file, forging.members(file))
    began = time.process_time()
    with pytest.raises(ModelFileError, match=re.escape(str(file))):
        transferable.load(file)
    assert time.process_time() - began < 1


def test_errors_escape_what_a_header_says(tmp_path):
    file = saved(TFDFV(), tmp_path / "model.tfm")
    parts = forging.members(file)
    header = json.loads(parts[forging.HEADER]) | {"format": 1}
    header["versions"]["transferable"] = "1\x1b[2J"
    forging.write(file, parts | {forging.HEADER: json.dumps(header)})
    with pytest.raises(ModelFileError, match=r"transferable 1\\x1b\[2J"):
        transferable.load(file)
