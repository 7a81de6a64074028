"""File of a saved model: a zip archive with a header, and a schema of its parts.

The header has the name, size and digest of every other member. Nothing is unpacked before it is
verified: names and sizes are compared first, and digests are taken piece by piece.

skops describes an object in the schema as nested nodes, each with the name of its class. Nodes are
rewritten before any object is made: compiled trees, which follow their own indices without a check,
become plain tuples, from which `_checks.py` makes trees.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import warnings
from collections.abc import Iterator
from math import prod
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import numpy as np
import psutil

from transferable import __version__
from transferable.exceptions import visible
from transferable.persistence._schemas import NODES, PROTOCOL

FORMAT = 5  # raise it when the parts of fitted estimators change
_HEADER = "transferable.json"
_SCHEMA = "schema.json"
_GROWTH = 20  # objects that a schema makes, in bytes of it
_DENSEST = 64  # bytes of a schema for each of its file; `save` writes up to 20
_VERSION = re.compile(r'"[\w.+-]{1,40}"')
_DECISION_TREE = "sklearn.tree._tree.Tree"
_SEARCH_TREES = {
    f"sklearn.neighbors.{module}.{tree}{bits}"
    for module, tree in (("_kd_tree", "KDTree"), ("_ball_tree", "BallTree"))
    for bits in ("", "64", "32")
}


class ModelFileError(ValueError):
    """File without a model this version can load; the message gives the reason and the remedy."""

    def __init__(self, problem: str) -> None:
        super().__init__(visible(problem))


def with_header(content: bytes, header: dict[str, Any]) -> io.BytesIO:
    """Return the archive with a header that lists all members."""
    stream = io.BytesIO(content)
    with ZipFile(stream, "a", compression=ZIP_DEFLATED) as archive:
        members = archive.infolist()
        sizes = {member.filename: member.file_size for member in members}
        digests = {member.filename: _digest(archive, member) for member in members}
        header = {"format": FORMAT, **header, "bytes": sizes, "sha256": digests}
        archive.writestr(_HEADER, json.dumps(header, indent=2))
    return stream


def checked_header(content: bytes, path: str) -> dict[str, Any]:
    """Return the header of an archive that is complete, unchanged and of the current format."""
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            header = _header(archive, path)
            members = [member for member in archive.infolist() if member.filename != _HEADER]
            _check_names_and_sizes(members, header, path)
            _check_room(sum(m.file_size for m in members), path)
            if archive.getinfo(_SCHEMA).file_size > _DENSEST * len(content):
                raise ModelFileError(f"{path} has a schema of more than {_DENSEST} times its size.")
            digests = header["sha256"]
            changed = [m.filename for m in members if _digest(archive, m) != digests[m.filename]]
            if not changed:
                _check_room(sum(_unpacked(archive, member) for member in members), path)
    except ModelFileError:
        raise
    except BadZipFile as error:
        raise ModelFileError(
            f"{path} is not a saved model, or not all of one ({error}); copy or save it again."
        ) from error
    except Exception as error:  # any error that a damaged archive raises in its readers
        raise ModelFileError(
            f"{path} is damaged ({type(error).__name__}: {error}); copy or save it again."
        ) from error
    if changed:
        raise _changed(path, changed)
    return header


def _header(archive: ZipFile, path: str) -> dict[str, Any]:
    if archive.namelist().count(_HEADER) != 1:
        raise ModelFileError(f"{path} was not written by transferable.save.")
    longest = 2**12 + 2**8 * len(archive.namelist())
    if archive.getinfo(_HEADER).file_size > longest:
        raise ModelFileError(f"{path} has a header of more than {longest} bytes.")
    header = json.loads(archive.read(_HEADER))
    _check_fields(header, {"format": int, "versions": dict}, path)
    if header["format"] != FORMAT:
        raise ModelFileError(
            f"{path} has format {header['format']}, written by transferable "
            f"{header['versions'].get('transferable', '?')}; this is transferable {__version__}, "
            f"which reads format {FORMAT}. Fit and save the model again with this version."
        )
    _check_fields(header, {"class": str, "bytes": dict, "sha256": dict}, path)
    return header


def _check_fields(header: Any, expected: dict[str, type], path: str) -> None:
    for name, kind in expected.items():
        if not isinstance(header, dict) or not isinstance(header.get(name), kind):
            raise ModelFileError(
                f"{path} has a header without {name!r}; it was damaged or not written by "
                "transferable.save. Copy or save it again."
            )


def _check_names_and_sizes(members: list[ZipInfo], header: dict[str, Any], path: str) -> None:
    """Refuse, before anything is unpacked, members that the header does not list."""
    names = [member.filename for member in members]
    told = header["bytes"]
    unknown = set(names) ^ header["sha256"].keys() | set(names) ^ told.keys()
    if unknown or len(set(names)) < len(names):
        raise _changed(path, sorted(unknown) or names)
    resized = [m.filename for m in members if told[m.filename] != m.file_size]
    if resized:
        raise _changed(path, resized)


def _check_room(size: int, path: str) -> None:
    free = psutil.virtual_memory().available
    if size > free:
        raise ModelFileError(
            f"{path} unpacks to {size:,} bytes, but {free:,} are free; load it on a machine with "
            "more memory."
        )


def _unpacked(archive: ZipFile, member: ZipInfo) -> int:
    """Return the bytes that a member takes in memory; refuse arrays that state another size."""
    if member.compress_type != ZIP_DEFLATED:
        raise BadZipFile(f"{member.filename} is not packed as transferable.save does")
    if member.filename.endswith(".npz"):
        with ZipFile(io.BytesIO(archive.read(member))) as inner:
            return member.file_size + sum(_unpacked(inner, part) for part in inner.infolist())
    if member.filename.endswith(".npy"):
        with archive.open(member) as stream:
            number = 1 if np.lib.format.read_magic(stream) == (1, 0) else 2
            shape, _, dtype = getattr(np.lib.format, f"read_array_header_{number}_0")(stream)
            rest = member.file_size - stream.tell()
        if dtype.itemsize == 0 or prod(shape) * dtype.itemsize != rest:
            raise ValueError(f"{member.filename} has {rest} bytes for {shape} of {dtype}")
    return member.file_size * (_GROWTH if member.filename == _SCHEMA else 1)


def _changed(path: str, members: list[str]) -> ModelFileError:
    listed = ", ".join(members[:3]) + (", ..." if len(members) > 3 else "")
    return ModelFileError(
        f"{path} was changed after it was saved ({listed}); copy or save it again."
    )


def _digest(archive: ZipFile, member: ZipInfo) -> str:
    with archive.open(member) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def readable(content: bytes) -> tuple[bytes, list[str]]:
    """Return the archive without compiled trees in its schema, and names that it may not have."""
    with ZipFile(io.BytesIO(content)) as archive:
        schema, changed = json.loads(archive.read(_SCHEMA)), False
        unread = set(archive.namelist()) - {_SCHEMA, _HEADER}
    unread -= {node.get("file") for node in _nodes(schema)}
    if unread or schema["protocol"] < PROTOCOL:
        raise ModelFileError(f"the schema is of an old skops, or leaves {[*unread][:3]} unread")
    _check_numbers(schema, {})
    for node in list(_nodes(schema)):
        number, name, held = node.get("__id__"), _name(node), node.get("content")
        version = held.get("_sklearn_version") if isinstance(held, dict) else None
        if version is not None and not _VERSION.fullmatch(version["content"]):  # it is printed
            raise ModelFileError("the schema names a version of scikit-learn that is none")
        if name in _SEARCH_TREES:
            loader, plain = "JsonNode", {"__class__": "str", "content": "null", "is_json": True}
        elif name == _DECISION_TREE:
            parts = [node["__reduce__"]["args"], node["content"]]
            loader, plain = "TupleNode", {"__class__": "tuple", "content": parts}
        else:
            continue
        node.clear()
        node.update(__module__="builtins", __loader__=loader, __id__=number, **plain)
        changed = True
    refused = sorted({_name(node) for node in _nodes(schema) if not _is_listed(node)})
    if not changed:
        return content, refused
    stream = io.BytesIO(content)
    with warnings.catch_warnings(), ZipFile(stream, "a", compression=ZIP_DEFLATED) as archive:
        warnings.filterwarnings("ignore", "Duplicate name", UserWarning)
        archive.writestr(_SCHEMA, json.dumps(schema))  # readers take the last member of a name
    return stream.getvalue(), refused


def _check_numbers(part: Any, kinds: dict[Any, Any]) -> int:
    """Return how many dictionaries a part of a schema has; refuse two objects of one number."""
    if not isinstance(part, dict | list):
        return 0
    inner = part if isinstance(part, list) else part.values()
    size = isinstance(part, dict) + sum(_check_numbers(value, kinds) for value in inner)
    if isinstance(part, dict) and ("__id__" in part or "__loader__" in part):
        number, file = part.get("__id__"), part.get("file")  # skops makes one object of a number
        values = (part.get(k) for k in ("__loader__", "__module__", "__class__", "content"))
        kind = (size, *(value if isinstance(value, str) else None for value in values))
        if not isinstance(number, int) or number < 1 or kinds.setdefault(number, kind) != kind:
            raise ModelFileError(f"the schema uses the number {number} for two objects")
        if file is not None and file not in (f"{number}.npy", f"{number}.npz"):
            raise ModelFileError(f"the object of number {number} is read from {file}")
    return size


def _is_listed(node: dict[str, Any]) -> bool:
    """Return whether a file may have such a node; keys of dictionaries are plain values."""
    keys = node.get("key_types", {"content": []})["content"]
    listed = _name(node) in NODES.get(node["__loader__"], ())
    return listed and all(key["__loader__"] == "TypeNode" for key in keys)


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all nodes of a schema, the outer ones first."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "__loader__" in part:
                yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _name(node: dict[str, Any]) -> str:
    return f"{node['__module__']}.{node['__class__']}"
