"""Schemas of model files: what `save` writes, and nothing else."""

import io
import json
import tomllib

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array

import transferable
from campaign import forging, schemas, zoo
from transferable.classifiers import TFDFV
from transferable.persistence import ModelFileError, _schemas

NEWEST = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)


def test_the_schemas_are_those_of_the_models_that_are_saved():
    """If the attributes of an estimator have changed: ``python -m campaign.schemas``."""
    written = schemas.written()
    if NEWEST:
        assert written == schemas.PATH.read_text(encoding="utf-8")
    missing = [
        f"{name}.{attribute}"
        for name, attributes in tomllib.loads(written).items()
        for attribute in attributes
        if attribute not in _schemas.ATTRIBUTES.get(name, ())
        and not any(attribute in proven for proven in _schemas._PROVEN.values())
    ]
    assert not missing


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.tfm"
    transferable.save(zoo.model("TFDFV_adapted"), path)
    return path


@pytest.mark.parametrize(
    ("kind", "value", "fit"),
    [
        ("int[n]<k", np.array([0, 2]), True),
        ("int[n]<k", np.array([0, 3]), False),
        ("int[n]<k", np.array([-1, 0]), False),
        ("int[n]<k", np.array([], dtype=int), True),
        ("int[n]<k", np.array([0.0]), False),
        ("float[n,n]", np.eye(2), True),
        ("float[n,n]", np.ones((2, 3)), False),
        ("finite[*]", np.array([np.nan]), False),
        ("any[*]", np.array(["a", None], dtype=object), True),
        ("any[*]", np.array([[1], {}], dtype=object), False),
        ("sparse[*,p]", csr_array(np.ones((2, 4))), True),
        ("sparse[*,p]", csr_array(np.ones((2, 3))), False),
        ("sparse[*,p]", csr_array(np.ones((2, 4))).tocoo(), False),
        ("=p", 4, True),
        ("=p", 4.0, False),
        ("=0", False, True),
        ("plain", np.float64(1), True),
        ("plain", [], False),
        ({"list": ["plain"]}, [1, "a", None], True),
        ({"list": ["plain"]}, (1,), False),
        ({"dict": ["plain"]}, {"a": [1]}, False),
        ({"text": ["rbf"]}, "rbf", True),
        ({"text": ["rbf"]}, "precomputed", False),
        ("estimator", TFDFV(), True),
        ("estimator", TFDFV, False),
        ("parameter", [("a", TFDFV())], True),
        ("parameter", np.exp, False),
        ("parameter", print, False),
    ],
)
def test_kinds(kind, value, fit):
    assert _schemas.fits(value, [kind], {"k": 3, "p": 4, "0": 0}) is fit


def test_attributes_that_save_does_not_write_are_refused(file):
    parts = forging.members(file)
    nodes = json.loads(parts["schema.json"])
    attributes = nodes["content"]["content"]
    attributes["predict"] = attributes["alignment"]
    nodes["content"]["key_types"]["content"].append(nodes["content"]["key_types"]["content"][0])
    forging.resigned(file, parts | {"schema.json": json.dumps(nodes).encode()})
    with pytest.raises(ModelFileError, match="TFDFV has no attribute predict"):
        transferable.load(file)


def test_parameters_out_of_their_range_are_refused(file):
    parts = forging.members(file)
    nodes = json.loads(parts["schema.json"])
    nodes["content"]["content"]["ridge"]["content"] = "-1.0"
    forging.resigned(file, parts | {"schema.json": json.dumps(nodes).encode()})
    with pytest.raises(ModelFileError, match="'ridge' parameter of TFDFV"):
        transferable.load(file)


def packed(array, header):
    """An array's file with another header."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + array.tobytes()


@pytest.mark.parametrize(
    "header",
    [
        {"descr": "<U0", "fortran_order": False, "shape": (10**12,)},
        {"descr": "<f8", "fortran_order": False, "shape": (10**9,)},
        {"descr": "<f8", "fortran_order": False, "shape": (1,)},
    ],
)
def test_arrays_of_another_size_than_their_bytes_are_refused_unread(file, header, monkeypatch):
    parts = forging.members(file)
    name = next(name for name in parts if name.endswith(".npy"))
    content = np.zeros(2 if "U" not in header["descr"] else 0)
    forging.resigned(file, parts | {name: packed(content, header)})
    monkeypatch.setattr("skops.io.loads", lambda *_, **__: pytest.fail("was read"))
    with pytest.raises(ModelFileError, match=rf"{name} has \d+ bytes for"):
        transferable.load(file)


def test_what_sparse_rows_unpack_to_counts(tmp_path, monkeypatch):
    file = tmp_path / "model.tfm"
    model = zoo.model("TFDFV_sparse")
    transferable.save(model, file)
    forging.with_array(file, lambda name, _: name.endswith("data"), lambda a: np.zeros(2**22))
    assert file.stat().st_size < 2**20
    free = type("Free", (), {"available": 2**24})
    monkeypatch.setattr("psutil.virtual_memory", lambda: free)
    with pytest.raises(ModelFileError, match=r"unpacks to [\d,]{10,} bytes"):
        transferable.load(file)
