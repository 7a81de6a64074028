"""What a file says it is made of: which classes may be made of it, and what they are made from.

skops describes an object as nested nodes, each with the name of its class. Nodes are rewritten
before any object is made: compiled trees, which follow their own indices without a check, become
plain tuples that `_trees.py` makes trees of.
"""

from __future__ import annotations

import io
import json
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

__all__ = ["readable", "refused_types", "trusted_types"]

_SCHEMA = "schema.json"
_OWN = tuple(
    f"transferable.{package}"
    for package in ("classifiers", "engines", "transformers", "tables", "model_selection")
)
# Packages of extras, which are imported for models that hold parts of them only.
_EXTRAS = ("transferable.deep",)
# What fitted estimators hold besides.
_OTHERS = [
    "numpy.dtype",
    "sklearn.compose._column_transformer._RemainderColsList",
    *(
        f"scipy.sparse._{form}.{form}_{kind}"
        for form in ("csr", "csc")
        for kind in ("array", "matrix")
    ),
]
_DECISION_TREE = "sklearn.tree._tree.Tree"
_SEARCH_TREES = {
    f"sklearn.neighbors.{module}.{tree}{bits}"
    for module, tree in (("_kd_tree", "KDTree"), ("_ball_tree", "BallTree"))
    for bits in ("", "64", "32")
}
# Estimators that hand trees to compiled code in ways that are not checked here.
_UNCHECKED = {
    "sklearn.ensemble._gb.GradientBoostingClassifier",
    "sklearn.ensemble._gb.GradientBoostingRegressor",
    "sklearn.ensemble._iforest.IsolationForest",
    "sklearn.neighbors._kde.KernelDensity",
    "sklearn.preprocessing._polynomial.SplineTransformer",
}

Node = dict[str, Any]


def readable(content: bytes) -> bytes:
    """Return the archive with its schema rewritten, so that it makes no compiled tree."""
    stream = io.BytesIO(content)
    with ZipFile(stream) as archive:
        schema = json.loads(archive.read(_SCHEMA))
    if not _rewrite(schema):
        return content
    with warnings.catch_warnings(), ZipFile(stream, "a", compression=ZIP_DEFLATED) as archive:
        warnings.filterwarnings("ignore", "Duplicate name", UserWarning)
        archive.writestr(_SCHEMA, json.dumps(schema))  # readers take the last member of a name
    return stream.getvalue()


def refused_types(content: bytes) -> list[str]:
    """Classes and functions named in a file that are not trusted."""
    import skops.io

    unchecked = _names(content) & _UNCHECKED
    untrusted = set(skops.io.get_untrusted_types(data=content)) - set(trusted_types(content))
    return sorted(untrusted | unchecked)


def trusted_types(content: bytes) -> list[str]:
    """The classes that what a file holds may consist of, by name; never a function."""
    names = _names(content)
    extras = (extra for extra in _EXTRAS if any(name.startswith(f"{extra}.") for name in names))
    return _classes(*_OWN, *extras) + _OTHERS


@cache
def _classes(*packages: str) -> list[str]:
    """All classes that modules of these packages define."""
    for package in map(import_module, packages):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            import_module(module.name)
    return sorted(
        f"{value.__module__}.{value.__name__}"
        for name, module in sys.modules.items()
        if name.startswith(tuple(f"{package}." for package in packages))
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == name
    )


def _names(content: bytes) -> set[str]:
    """The classes that a file names."""
    with ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read(_SCHEMA))
    return {_name(node) for node in _nodes(schema)}


def _rewrite(schema: Node) -> bool:
    """Rewrite nodes in place; whether any was."""
    changed = False
    for node in list(_nodes(schema)):
        name = _name(node)
        if name in _SEARCH_TREES:
            _become(node, "JsonNode", "str", content="null", is_json=True)
        elif name == _DECISION_TREE:
            parts = [node["__reduce__"]["args"], node["content"]]
            _become(node, "TupleNode", "tuple", content=parts)
        else:
            continue
        changed = True
    return changed


def _become(node: Node, loader: str, kind: str, **fields: Any) -> None:
    number = node.get("__id__")
    node.clear()
    node.update(__class__=kind, __module__="builtins", __loader__=loader, __id__=number, **fields)


def _nodes(schema: Any) -> Iterator[Node]:
    """All nodes of a schema, the outer ones first."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "__class__" in part and "__module__" in part:
                yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _name(node: Node) -> str:
    return f"{node['__module__']}.{node['__class__']}"
