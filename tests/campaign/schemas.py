"""Write what fitted models hold as `attributes.toml`, the schema of model files.

PYTHONPATH=tests python -m campaign.schemas
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from campaign import zoo
from transferable.persistence import _schemas

PATH = files("transferable.persistence") / "attributes.toml"
HEAD = """\
# Attributes that `save` writes for each class, with their kinds: every other is refused. What kinds
# mean is in `_schemas.py`. Parameters are here only if their kinds are not those of all parameters,
# in `permitted.toml`. Written by `python -m campaign.schemas`, from the models of its zoo.
"""
CONTAINERS = (list, tuple, dict, set)
LEAVES = ("sklearn.tree._tree", "sklearn.neighbors._kd_tree", "sklearn.neighbors._ball_tree")
REPORTS = "transferable.model_selection."  # whose numbers may be missing


def written() -> str:
    """Return the file for the models of the zoo."""
    found: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for name in zoo.MAKERS:
        for part in parts(zoo.model(name)):
            cls = type(part)
            attributes = found[_schemas.name_of(cls)]
            state = part.__getstate__() if hasattr(part, "__getstate__") else vars(part)
            for attribute, value in (state or {}).items():
                kinds = [observed(value, cls)]
                if attribute in constrained(part):
                    kinds = functions(value)
                if kinds and attribute != "_sklearn_version":
                    attributes[attribute] = merged([*attributes[attribute], *kinds])
            for attribute in constrained(part):
                if attribute in attributes and "parameter" not in attributes[attribute]:
                    attributes[attribute].append("parameter")
    return HEAD + "".join(_table(name, found[name]) for name in sorted(found))


def parts(value: Any) -> Iterator[Any]:
    """Yield the objects of a model that have attributes, each once."""
    waiting, seen = [value], set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, CONTAINERS):
            waiting.extend(value.values() if isinstance(value, dict) else value)
        elif type(value).__module__.startswith(("sklearn.", "transferable.")):
            if id(value) in seen or type(value).__module__ in LEAVES:
                continue
            seen.add(id(value))
            yield value
            waiting.extend(v for k, v in vars(value).items() if k != "network_")


def constrained(part: Any) -> set[str]:
    """Return the parameters whose ranges the class of an estimator declares."""
    if not isinstance(part, BaseEstimator):
        return set()
    return set(part.get_params(deep=False)) & set(getattr(part, "_parameter_constraints", ()))


def functions(value: Any) -> list[Any]:
    """Return the kinds in a parameter that not every parameter may have."""
    if isinstance(value, CONTAINERS):
        inner = value.values() if isinstance(value, dict) else value
        special = merged([kind for entry in inner for kind in functions(entry)])
        return [{type(value).__name__: [*special, "parameter"]}] if special else []
    plain = isinstance(value, BaseEstimator | np.ndarray | np.random.RandomState | slice | np.dtype)
    plain = plain or sp.issparse(value) or isinstance(value, type)
    kind = _schemas.kind_of(value)
    return [] if plain or kind in ("none", "number", "text") else [kind]


def observed(value: Any, cls: type) -> Any:
    """Return the kind of one value of an attribute."""
    own = cls.__module__.startswith("transferable.")
    if isinstance(value, CONTAINERS):
        inner = value.values() if isinstance(value, dict) else value
        return {type(value).__name__: merged([observed(entry, cls) for entry in inner])}
    if sp.issparse(value):
        return "sparse[*,*]"
    if isinstance(value, np.ndarray):
        numbers = value.dtype.kind in "biuf"
        finite = own and not cls.__module__.startswith(REPORTS)
        content = ("finite" if finite else "number") if numbers else "any"
        return f"{content}[{','.join('*' * value.ndim)}]"
    if isinstance(value, BaseEstimator):
        return "estimator"
    return _schemas.kind_of(value)


def merged(kinds: list[Any]) -> list[Any]:
    """Return the kinds, each once and in order; containers of one type are one."""
    inner: dict[str, list[Any]] = defaultdict(list)
    for kind in kinds:
        if isinstance(kind, dict):
            for name, more in kind.items():
                inner[name] += more
    plain = {kind for kind in kinds if isinstance(kind, str)}
    if plain & {"none", "number", "text"} or not kinds:
        plain = plain - {"none", "number", "text"} | {"plain"}
    for labels in [kind for kind in plain if kind.startswith("any[")]:
        plain -= {labels.replace("any", content) for content in ("number", "finite")}
    return sorted(plain) + [{name: merged(inner[name])} for name in sorted(inner)]


def _table(name: str, attributes: dict[str, list[Any]]) -> str:
    lines = [f"{key} = {_toml(kinds)}\n" for key, kinds in sorted(attributes.items())]
    return f'\n["{name}"]\n' + "".join(lines)


def _toml(kind: Any) -> str:
    if isinstance(kind, list):
        return f"[{', '.join(map(_toml, kind))}]"
    if isinstance(kind, dict):
        return "{ " + ", ".join(f"{name} = {_toml(inner)}" for name, inner in kind.items()) + " }"
    return json.dumps(kind)


if __name__ == "__main__":
    PATH.write_text(written(), encoding="utf-8")
