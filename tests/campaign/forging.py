"""Model files changed on purpose, with digests and sizes made to fit again."""

from __future__ import annotations

import hashlib
import io
import json
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

HEADER = "transferable.json"
ARRAYS = (".npy", ".npz")


def members(path):
    """Names and contents of an archive's members."""
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, parts, *, compression=ZIP_DEFLATED, again=()):
    """An archive of these members, as they are, and of those that are there once more."""
    with ZipFile(path, "w", compression=compression) as archive:
        for name, content in (*parts.items(), *again):
            archive.writestr(name, content)


def read(parts):
    """The members without those that the schema does not name."""
    schema = parts["schema.json"].decode()
    return {n: c for n, c in parts.items() if not n.endswith(ARRAYS) or json.dumps(n) in schema}


def resigned(path, parts):
    """An archive of these members with a header that accounts for them."""
    header = json.loads(parts[HEADER])
    rest = {name: content for name, content in parts.items() if name != HEADER}
    header["bytes"] = {name: len(content) for name, content in rest.items()}
    header["sha256"] = {n: hashlib.sha256(content).hexdigest() for n, content in rest.items()}
    write(path, rest | {HEADER: json.dumps(header)})


def with_array(path, which, change):
    """Change arrays of a file and sign it again; `which(field, array)` picks them.

    `field` is the dotted way from the model to the array.
    """
    parts = members(path)
    changed = 0
    for field, name in array_fields(json.loads(parts["schema.json"])):
        loaded = np.load(io.BytesIO(parts[name]))
        arrays = dict(loaded) if name.endswith(".npz") else {"": loaded}
        picked = [key for key, array in arrays.items() if which(f"{field}.{key}", array)]
        if not picked:
            continue
        arrays |= {key: change(arrays[key]) for key in picked}
        stream = io.BytesIO()
        if name.endswith(".npz"):
            np.savez_compressed(stream, **arrays)
        else:
            np.save(stream, arrays[""])
        parts[name] = stream.getvalue()
        changed += 1
    assert changed, "no array was changed"
    resigned(path, parts)


def array_fields(schema):
    """Where each array of a file is held, and the member it is in."""
    waiting = [("", schema)]
    while waiting:
        field, node = waiting.pop()
        if isinstance(node, list):
            waiting.extend((f"{field}.{i}", part) for i, part in enumerate(node))
        elif isinstance(node, dict):
            if node.get("__loader__") in ("NdArrayNode", "SparseMatrixNode") and "file" in node:
                yield field, node["file"]
            waiting.extend(
                (field if key == "content" else f"{field}.{key}", part)
                for key, part in node.items()
            )
