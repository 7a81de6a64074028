"""Model files changed on purpose, with digests and sizes made to fit again."""

from __future__ import annotations

import hashlib
import io
import json
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

HEADER, MODEL = "transferable.json", "model.json"


def members(path):
    """Names and contents of an archive's members."""
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, parts, *, compression=ZIP_DEFLATED, again=()):
    """An archive of these members, as they are, and of those that are there once more."""
    with ZipFile(path, "w", compression=compression) as archive:
        for name, content in (*parts.items(), *again):
            archive.writestr(name, content)


def resigned(path, parts, model=None):
    """An archive of these members with a header that accounts for them."""
    if model is not None:
        parts = parts | {MODEL: json.dumps(model).encode()}
    header = json.loads(parts[HEADER])
    rest = {name: content for name, content in parts.items() if name != HEADER}
    header["bytes"] = {name: len(content) for name, content in rest.items()}
    header["sha256"] = {n: hashlib.sha256(content).hexdigest() for n, content in rest.items()}
    write(path, rest | {HEADER: json.dumps(header).encode()})


def described(path):
    """The description of a model."""
    return json.loads(members(path)[MODEL])


def changed(path, change):
    """Change the description of a model, and sign the file again."""
    model = described(path)
    resigned(path, members(path), change(model) or model)
    return path


def packed(array, **layout):
    """The content of a member, with other fields in its layout."""
    stream = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array) | layout
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + array.tobytes("F" if array.flags.fnc else "C")


def arrays(path):
    """The arrays of a file, by where they are: the keys that lead to them, joined by dots."""
    parts = members(path)
    return {
        where: np.load(io.BytesIO(parts[name]), allow_pickle=False)
        for where, name in places(json.loads(parts[MODEL]))
    }


def with_array(path, field, change):
    """Change the arrays whose place contains `field`, and sign the file again."""
    parts, found = members(path), 0
    for where, name in places(json.loads(parts[MODEL])):
        if field in where:
            array = np.load(io.BytesIO(parts[name]), allow_pickle=False)
            parts[name] = packed(np.asarray(change(array)))
            found += 1
    assert found, "no array was changed"
    resigned(path, parts)
    return path


def places(node, where=""):
    """Where each array is named, and its member."""
    if isinstance(node, dict):
        if isinstance(node.get("array"), str):
            yield where, node["array"]
        for key, part in node.items():
            yield from places(part, f"{where}.{key}")
    elif isinstance(node, list):
        for number, part in enumerate(node):
            yield from places(part, f"{where}.{number}")


def nodes(node):
    """Every part of a description that can be replaced: what holds it, and its key."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, part in list(items):
        yield node, key
        if isinstance(part, dict | list):
            yield from nodes(part)
