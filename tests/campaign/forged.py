"""Forged model files: an attribute of a model in another type, shape, range, sharing or nesting.

Every model of the zoo in turn, and every attribute of it. The file is loaded, inspected and used in
a process of its own, which must neither die nor open a file nor start a process, nor take more than
twice the memory that the file takes that was forged (more in proportion if it is larger).
"""

from __future__ import annotations

import copy
import functools
import io
import json
import os
import resource
import signal
import sys
import tempfile
import tracemalloc
import warnings
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from scipy.sparse import csc_array, csc_matrix, csr_array, csr_matrix, save_npz

import transferable
from campaign import Violation, forging, models, zoo
from transferable.cli.predict import _described
from transferable.persistence import ModelFileError

SECONDS = 10  # of computing, for one file
CPU_SECONDS = 300  # the first trial fits all models
SPARE = 2**20  # bytes beside twice the memory of the model as saved
ROOM = 2**32  # bytes that the process may take, at most
METHODS = ("predict", "predict_proba", "decision_function", "transform")
STARTS = ("subprocess.Popen", "os.system", "os.fork", "os.exec", "os.posix_spawn", "socket.connect")
STARTS += ("sqlite3.connect", "os.remove", "os.rename", "os.mkdir", "socket.getaddrinfo")
KNOWN = tuple({str(Path(p).resolve()) for p in (sys.prefix, sys.base_prefix, *sys.path[1:]) if p})


@functools.cache
def names():
    """The models of the zoo that there are."""
    return [name for name in zoo.MAKERS if zoo.model(name) is not None]


def kin(seed):
    """Trials of one model, which a process saves once for all of them."""
    return seed % len(names())


@functools.cache
def saved(name):
    """The members of a model's file, and the memory that it takes to load and use it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tfm"
        transferable.save(zoo.model(name), path)
        used(path, name)  # imports are not part of it
        return path.read_bytes(), used(path, name)[1]


def unpacked(content):
    """The bytes of all members of a file."""
    with ZipFile(io.BytesIO(content)) as archive:
        return sum(member.file_size for member in archive.infolist())


def used(path, name):
    """Load, inspect and use a model; what happened, and the peak of its memory."""
    tracemalloc.start()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                model = transferable.load(path)
            except ModelFileError as error:
                if str(path) not in str(error) or "Unable to allocate" in str(error):
                    raise
                return "refused", tracemalloc.get_traced_memory()[1]
            json.dumps(_described(path), default=str)
            failed = []
            for method in METHODS:
                try:
                    if hasattr(model, method):
                        getattr(model, method)(zoo.rows(name))
                except MemoryError:  # elsewhere the memory may be had
                    raise
                except Exception as error:
                    failed.append(type(error).__name__)
        return " ".join(["loaded", *failed]), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def trial(seed, folder):
    """Forge one file and use it."""
    rng = np.random.default_rng(seed)
    known = names()
    name = known[kin(seed)]
    content, peak = saved(name)
    path = folder / "model.tfm"
    path.write_bytes(content)
    what = forge(rng, path, seed)
    told = f"{name}, {what}"
    zoo.rows(name)
    result, status, seconds = in_child(path, name)
    if result is None:
        raise Violation(f"{told}: the process ended with {status} after {seconds:.1f} s")
    outcome, taken, events = result
    if events:
        raise Violation(f"{told}: {outcome}, and {events[:3]}")
    if seconds > SECONDS:
        raise Violation(f"{told}: {outcome} after {seconds:.1f} s")
    larger = max(1.0, unpacked(path.read_bytes()) / unpacked(content))
    if taken > 2 * peak * larger + SPARE:
        raise Violation(f"{told}: {outcome} with {taken:,} bytes, {peak:,} as saved")
    if outcome.startswith("failed"):
        raise Violation(f"{told}: {outcome}")
    return f"{told}: {outcome}"


def in_child(path, name):
    """Use a file in a process of its own: the result, how it ended and its processor time."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _limited()
        events = _watched(path)
        try:
            outcome, taken = used(path, name)
        except BaseException as error:
            outcome, taken = f"failed with {type(error).__name__}: {error}"[:500], 0
        os.write(theirs, json.dumps([outcome, taken, list(events)]).encode()[:60_000])
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as stream:
        answer = stream.read()
    _, status, usage = os.wait4(child, 0)
    seconds = usage.ru_utime + usage.ru_stime
    return (json.loads(answer) if answer else None), status, seconds


def _limited():
    signal.alarm(120)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 5, SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))
    sys.stderr = sys.stdout = io.StringIO()


def _watched(path):
    """A list that fills with files opened and processes started, but for libraries and `path`."""
    events = []

    def hear(event, arguments):
        if event == "open":
            opened = str(arguments[0])
            libraries = (*KNOWN, "/proc/", "/sys/", "/dev/null", str(path))
            if not isinstance(arguments[0], int) and not opened.startswith(libraries):
                events.append(f"opened {opened}"[:200])
        elif event.startswith(STARTS):
            events.append(event)

    sys.addaudithook(hear)
    return events


def forge(rng, path, seed):
    """Change one attribute of a file; what was changed and how."""
    parts = forging.members(path)
    schema = json.loads(parts["schema.json"])
    attributes = list(_attributes(schema))
    holder, key, owner = attributes[(seed // len(names()) + 18 * seed) % len(attributes)]
    change = CHANGES[rng.integers(len(CHANGES))]
    inner = [(holder, key), *_inner(holder[key])]
    holder, key = inner[rng.integers(len(inner))] if rng.random() < 0.4 else (holder, key)
    told = f"{owner}, {change.__name__}"
    parts |= change(rng, holder, key, schema, parts) or {}
    forging.resigned(path, forging.read(parts | {"schema.json": json.dumps(schema).encode()}))
    return told


def _attributes(node):
    """Every attribute of every object: the mapping that holds it, its name, and what to call it."""
    if isinstance(node, list):
        for part in node:
            yield from _attributes(part)
    elif isinstance(node, dict):
        if node.get("__loader__") == "ObjectNode" and "content" in node:
            content = node["content"].get("content")
            for key in content if isinstance(content, dict) else ():
                yield content, key, f"{node['__class__']}.{key}"
        for part in node.values():
            yield from _attributes(part)


def _inner(node):
    """Nodes within a node, with what holds them."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(items):
        if isinstance(value, dict | list):
            if isinstance(value, dict) and "__loader__" in value:
                yield node, key
            yield from _inner(value)


def _plain(value):
    return _node("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True)


def _node(loader, module, name, **more):
    number = int.from_bytes(os.urandom(5), "big") + 1
    return {"__class__": name, "__module__": module, "__loader__": loader, "__id__": number} | more


def _array_of(node, array):
    """A node and member for an array."""
    made = _node("NdArrayNode", "numpy", "ndarray", type="numpy")
    made["file"] = f"{made['__id__']}.npy"
    stream = io.BytesIO()
    np.save(stream, array)
    return made, {made["file"]: stream.getvalue()}


VALUES = [None, True, False, 0, 1, -1, 2, 7, 2**31, 2**40, -(2**63), 1.5, 1e308, 1e-320]
VALUES += [float("nan"), float("inf"), "", "x", "x" * 10_000, "/etc/passwd", "precomputed"]
VALUES += ["kd_tree", "ball_tree", "brute", "cosine", "haversine", "linear", "poly", "rbf"]
VALUES += ["timm:local-dir:/etc", "timm:hf-hub:somebody/network", "cuda:7", "auto", 2**28]
VALUES += ["mahalanobis", "seuclidean", "wminkowski", "pyfunc", "infrequent_if_exist", "filename"]
VALUES += [[], {}, [1, 2, 3], {"VI": 1}, ["a"], [[[]]], {"a": {"b": [None]}}, "drop", "passthrough"]
ARRAYS = [
    np.zeros(0),
    np.arange(5),
    np.full(31, 2**40),
    np.full(31, -1),
    np.eye(5),
    np.full((31, 5), np.nan),
    np.array(["a", "b"]),
    np.zeros((2, 0, 3)),
    np.array(1.5),
    np.array([True, False]),
    np.zeros(3, dtype=[("a", int)]),
    np.array([1 + 1j]),
    np.arange(3).astype("M8[s]"),
    np.zeros((1,) * 20),
]
ODD = [
    _node("TypeNode", "builtins", "str"),
    _node("TypeNode", "builtins", "float"),
    _node("FunctionNode", "numpy", "exp"),
    _node("FunctionNode", "numpy", "divide"),
    _node("SliceNode", "builtins", "slice", content={"start": 0, "stop": 10**9, "step": -1}),
    _node("SliceNode", "builtins", "slice", content={"start": [], "stop": "a", "step": 0}),
    _node("SetNode", "builtins", "set", content=[]),
    _node("RandomStateNode", "numpy.random.mtrand", "RandomState", content=_plain({"state": 1})),
    _node("ObjectNode", "sklearn.svm._classes", "SVC"),
    _node("ObjectNode", "transferable.classifiers.tfdf", "TFDF"),
    _node("CachedNode", "builtins", "list"),
    _node("FunctionNode", "os", "system"),
    _node("ObjectNode", "subprocess", "Popen"),
    _node("OperatorFuncNode", "operator", "methodcaller"),
    {},
    {"__id__": 1},
]


def another_value(rng, holder, key, schema, parts):
    """A plain value of another type or size."""
    holder[key] = _plain(VALUES[rng.integers(len(VALUES))])


def another_array(rng, holder, key, schema, parts):
    """An array of another type or shape, in place of anything."""
    holder[key], more = _array_of(holder[key], ARRAYS[rng.integers(len(ARRAYS))])
    return more


def odd_node(rng, holder, key, schema, parts):
    """A function, a type, a slice, an empty object, something that no file may have."""
    holder[key] = copy.deepcopy(ODD[rng.integers(len(ODD))])


def removed(rng, holder, key, schema, parts):
    """No such attribute."""
    del holder[key]


def shared(rng, holder, key, schema, parts):
    """Another attribute of the model, the same object or a copy of it."""
    attributes = list(_attributes(schema))
    other, name, _ = attributes[rng.integers(len(attributes))]
    node = copy.deepcopy(other[name])
    if rng.random() < 0.3 and isinstance(node, dict) and "file" not in node:
        node["__id__"] = int(rng.integers(1, 2**40))
    elif rng.random() < 0.2 and isinstance(node, dict):
        node = {"__id__": node.get("__id__", 1)}
    holder[key] = node


def nested(rng, holder, key, schema, parts):
    """The value within lists, tuples or dictionaries, a few or very many."""
    node = holder[key]
    for _ in range(int(rng.choice([1, 2, 30, 300]))):
        kind = rng.integers(3)
        if kind == 2:
            keys = _node(
                "ListNode", "builtins", "list", content=[_node("TypeNode", "builtins", "str")]
            )
            node = _node("DictNode", "builtins", "dict", content={"a": node}, key_types=keys)
        else:
            loader, name = (("ListNode", "list"), ("TupleNode", "tuple"))[kind]
            node = _node(loader, "builtins", name, content=[node])
    holder[key] = node


def one_size(rng, holder, key, schema, parts):
    """Another number in all places that have this one, so that they agree."""
    numbers = [(h, k, h[k]["content"]) for h, k in _inner(schema) if h[k].get("is_json")]
    numbers = [(h, k, content) for h, k, content in numbers if content.isdigit()]
    chosen = numbers[rng.integers(len(numbers))][2] if numbers else None
    instead = str(rng.choice([0, 1, 2**28, 2**33]))
    for h, k, content in numbers:
        if content == chosen:
            h[k]["content"] = instead


def tall(rng, holder, key, schema, parts):
    """A sparse matrix of more rows or columns than its bytes could have."""
    matrix = [csc_array, csr_array, csc_matrix, csr_matrix][rng.integers(4)]
    few = int(rng.choice([5, 31, 64]))
    matrix = matrix((2**33, few) if "csc" in matrix.__name__ else (few, 2**33))
    made = _node("SparseMatrixNode", f"scipy.sparse._{matrix.format}", type(matrix).__name__)
    holder[key] = made | {"type": "scipy", "file": f"{made['__id__']}.npz"}
    stream = io.BytesIO()
    save_npz(stream, matrix)
    return {holder[key]["file"]: stream.getvalue()}


def itself(rng, holder, key, schema, parts):
    """The whole model within itself."""
    holder[key] = copy.deepcopy({k: v for k, v in schema.items() if not k.startswith("protocol")})


def another_class(rng, holder, key, schema, parts):
    """An object, or the nearest there is, of another class that may be saved."""
    objects = list(_objects(schema))
    node = objects[rng.integers(len(objects))]
    classes = sorted(transferable.persistence._schemas.ATTRIBUTES)
    module, _, name = classes[rng.integers(len(classes))].rpartition(".")
    node |= {"__module__": module, "__class__": name}


def _objects(node):
    if isinstance(node, dict) and node.get("__loader__") == "ObjectNode":
        yield node
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _objects(part)


def changed_member(rng, holder, key, schema, parts):
    """Another value, shape or type in an array of the file."""
    node = holder[key]
    files = [n["file"] for h, k in [(holder, key), *_inner(node)] if "file" in (n := h[k])]
    if not files:
        files = [name for name in parts if name.endswith((".npy", ".npz"))]
    if not files:
        return another_value(rng, holder, key, schema, parts)
    name = files[rng.integers(len(files))]
    loaded = np.load(io.BytesIO(parts[name]))
    arrays = dict(loaded) if name.endswith(".npz") else {"": loaded}
    field = list(arrays)[rng.integers(len(arrays))]
    array, draw = arrays[field], MEMBERS[rng.integers(len(MEMBERS))]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays[field] = array if array.ndim == 0 else draw(rng, array)
    stream = io.BytesIO()
    if name.endswith(".npz"):
        np.savez_compressed(stream, **arrays)
    else:
        np.save(stream, arrays[""])
    return {name: stream.getvalue()}


def claimed(rng, holder, key, schema, parts):
    """A member whose header states more than it has."""
    files = [name for name in parts if name.endswith(".npy")]
    if not files:
        return another_value(rng, holder, key, schema, parts)
    stream, kinds = io.BytesIO(), ["<f8", "<U0", "|S0", "|V0", "<i8", "|O", "<U1000000"]
    shape = [(10**9,), (2**62, 2**62), (-1,), (10**12, 0), (3,)][rng.integers(5)]
    header = {"descr": kinds[rng.integers(7)], "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return {files[rng.integers(len(files))]: stream.getvalue() + bytes(24)}


def _extreme(rng, array):
    """Every entry, or one, at the end of what its type holds."""
    if array.dtype.kind not in "iuf" or not array.size:
        return array[::-1].copy()
    info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else np.finfo(array.dtype)
    one = tuple(rng.integers(size) for size in array.shape)
    array = array.copy()
    array[... if rng.random() < 0.5 else one] = rng.choice([info.min, info.max])
    return array


MEMBERS = [*models.CHANGES, _extreme, _extreme, lambda rng, a: a.ravel().view(np.uint8)]
MEMBERS += [lambda rng, a: a[:, :-1] if a.ndim > 1 else a[:-1], lambda rng, a: rng.permutation(a)]
CHANGES = [another_value, another_value, another_array, odd_node, removed, shared, nested, itself]
CHANGES += [another_class, changed_member, changed_member, changed_member, claimed]
CHANGES += [one_size, tall]
