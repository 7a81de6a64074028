"""Model files: flipped bits, cuts, and crafted members with digests that fit again."""

from __future__ import annotations

import functools
import json
import tempfile
import time
import warnings
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_LZMA

import numpy as np
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import transferable
from campaign import Violation, forging
from problems import small_problem
from transferable.classifiers import CAPLS, TFDF, TFDFV, AdaptedClassifier
from transferable.experimental import DMM
from transferable.persistence import ModelFileError
from transferable.transformers import CORAL, JDA, PerDomainScaler

PROBLEM = small_problem(n_source=24, n_target=16, n_features=4)
MODELS = {
    "tfdf": TFDF(),
    "sparse": TFDFV(manifold_dim=None),
    "nearest": AdaptedClassifier(CORAL()),
    "kd_tree": AdaptedClassifier(CORAL(), KNeighborsClassifier(algorithm="kd_tree")),
    "machine": AdaptedClassifier(PerDomainScaler(), SVC()),
    "forest": AdaptedClassifier(CORAL(), RandomForestClassifier(3, random_state=0)),
    "jda": JDA(n_components=2, kernel="rbf"),
    "dmm": DMM(),
    "capls": CAPLS(),
}


@functools.cache
def saved(name):
    """A saved model's content and what it makes of the target."""
    p = PROBLEM
    X = (csr_array(p.Xs), csr_array(p.Xt)) if name == "sparse" else (p.Xs, p.Xt)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name].adapt(X[0], p.ys, X[1])
        path = Path(folder) / "model.tfm"
        transferable.save(model, path)
        return path.read_bytes(), outputs(model)


def outputs(model):
    """What a model makes of the target."""
    method = model.transform if hasattr(model, "transform") else model.predict
    return np.asarray(method(PROBLEM.Xt))


def trial(seed, folder):
    """Damage or forge one file and load it."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(list(MODELS)))
    content, expected = saved(name)
    path = folder / "model.tfm"
    damage = DAMAGES[rng.integers(len(DAMAGES))]
    path.write_bytes(content)
    harmless = damage(rng, path)
    told = f"{name}, {damage.__name__}"
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = outputs(transferable.load(path))
        except ModelFileError as error:
            if str(path) not in str(error):
                raise Violation(f"{told}: the error names no file: {error}") from error
            if time.process_time() - began > 1:
                raise Violation(f"{told}: refused after a second: {error}") from error
            return f"{told}: refused"
        except Exception as error:
            raise Violation(f"{told}: {type(error).__name__}: {error}") from error
    if got.shape != expected.shape or (got.dtype.kind == "f" and not np.isfinite(got).all()):
        raise Violation(f"{told}: loaded, and gives {got.shape} {got.dtype}")
    if harmless and got.tobytes() != expected.tobytes():
        raise Violation(f"{told}: loaded without a word, and predicts something else")
    return f"{told}: loaded"


def flipped(rng, path):
    """One to four bits."""
    content = bytearray(path.read_bytes())
    for position in rng.integers(len(content), size=rng.integers(1, 5)):
        content[position] ^= 1 << rng.integers(8)
    path.write_bytes(content)
    return True


def cut(rng, path):
    """The end, the beginning or a piece in between is gone, or there is more."""
    content = path.read_bytes()
    a, b = sorted(rng.integers(len(content), size=2))
    pieces = [content[:a], content[b:], content[:a] + content[b:], content + content[a:b]]
    path.write_bytes(pieces[rng.integers(len(pieces))])
    return True


def scrambled_member(rng, path):
    """A member's bytes, signed again."""
    parts = forging.members(path)
    name = str(rng.choice([n for n in parts if n != forging.HEADER]))
    content = bytearray(parts[name])
    for position in rng.integers(len(content), size=rng.integers(1, 4)):
        content[position] = rng.integers(256)
    forging.resigned(path, parts | {name: bytes(content)})


def missing_member(rng, path):
    """A member that is gone, or one more."""
    parts = forging.members(path)
    name = str(rng.choice([n for n in parts if n != forging.HEADER]))
    extra = {"extra.npy": bytes(100)} if rng.random() < 0.5 else {}
    kept = parts if extra else {n: c for n, c in parts.items() if n != name}
    if rng.random() < 0.5 and not extra and name != forging.HEADER:
        forging.write(path, kept)
    else:
        forging.resigned(path, kept | extra)


def forged_array(rng, path):
    """An array of other values, shape or type, signed again."""
    places = list(forging.places(forging.described(path)))
    where, _ = places[rng.integers(len(places))]
    draw = CHANGES[rng.integers(len(CHANGES))]
    forging.with_array(path, where, lambda array: draw(rng, array) if array.ndim else array)


def forged_description(rng, path):
    """A name or number of the description replaced, signed again."""

    def change(model):
        nodes = list(forging.nodes(model))
        holder, key = nodes[rng.integers(len(nodes))]
        values = [*WORDS, holder[key]]
        holder[key] = values[rng.integers(len(values))]

    forging.changed(path, change)


def forged_header(rng, path):
    """Something else in the header."""
    parts = forging.members(path)
    header = json.loads(parts[forging.HEADER])
    key = str(rng.choice(list(header)))
    values = [None, [], {}, "x", -1, 10**30, {"model.json": 5}]
    if rng.random() < 0.3:
        del header[key]
    else:
        header[key] = values[rng.integers(len(values))]
    forging.write(path, parts | {forging.HEADER: json.dumps(header).encode()})


def repacked(rng, path):
    """Members packed otherwise, twice there, of odd names, or that unpack to very much."""
    parts = forging.members(path)
    bomb = parts[forging.MODEL][:-1] + b',"x":[' + b"[]," * 10**7 + b"1]}"
    header = parts[forging.HEADER][:-1] + b',"x":[' + b"[]," * 10**7 + b"1]}"
    name, content = list(parts.items())[rng.integers(len(parts))]
    kinds = [
        lambda: forging.write(path, parts, compression=int(rng.choice([ZIP_LZMA, ZIP_BZIP2, 0]))),
        lambda: forging.resigned(path, parts | {"/etc/passwd": b"", "../x": b"", "a/": b""}),
        lambda: forging.write(path, parts, again=[(name, content)]),
        lambda: forging.write(path, parts, again=[(f"{name}\0", content)]),
        lambda: forging.resigned(path, parts | {forging.MODEL: bomb}),
        lambda: forging.write(path, parts | {forging.HEADER: header}),
    ]
    kinds[rng.integers(len(kinds))]()


def nested(rng, path):
    """A description of absurd depth."""
    count = int(rng.integers(100, 30_000))
    deep = b'{"tuple":[' * count + b"]}" * count
    forging.resigned(path, forging.members(path) | {forging.MODEL: deep})


def _with_value(rng, array):
    values = {"f": [np.nan, np.inf, -1e308, 0.0], "i": [-1, 10**6, 2**31 - 1, -(2**31)]}
    if array.size and array.dtype.kind in values:
        array = array.copy()
        value = rng.choice(values[array.dtype.kind])
        with np.errstate(all="ignore"):
            array.flat[rng.integers(array.size)] = value.astype(array.dtype)
    return array


CHANGES = [
    _with_value,
    _with_value,
    lambda rng, a: a[:-1],
    lambda rng, a: a[..., :1],
    lambda rng, a: np.concatenate([a, a]),
    lambda rng, a: a.T.copy(),
    lambda rng, a: a[None],
    lambda rng, a: a.ravel(),
    lambda rng, a: np.zeros(0),
    lambda rng, a: a.astype(str),
    lambda rng, a: np.zeros(a.shape, dtype=np.complex128),
    lambda rng, a: np.full(a.shape, 10**9),
]
WORDS = [None, True, 0, -1, 10**9, 2**70, 1.5, "", "null", "[]", "os", "system", "builtins", "eval"]
WORDS += ["numpy", "0.npy", {"array": "1.npy"}, {"objects": [1], "at": {"array": "0.npy"}}]
WORDS += ["sklearn.tree._tree", "trees, classes", "chain", "transferable.cli", "model.json"]
WORDS += [{}, [], {"tuple": []}, {"number": ["float64", "nan"]}, {"dict": [["a", 1]]}]
DAMAGES = [flipped, cut, scrambled_member, missing_member, forged_array, forged_array]
DAMAGES += [forged_array, forged_description, forged_description, forged_header, nested, repacked]
