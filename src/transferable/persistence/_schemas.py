"""Schemas of what a model file may hold: data, compared with values here.

`attributes.toml` has, for every class, the attributes that `save` writes and the kinds of each. It
is written by ``python -m campaign.schemas`` from fitted models. `permitted.toml` is written by
hand: the nodes of a file, and kinds that take the place of others where compiled code follows an
array, with sizes and ranges. A value fits an attribute if it is of one of its kinds:

========================  ==========================================================================
"none", "number", "text"  a value of Python, or a number of numpy; "plain" is any of the three
"estimator"               an estimator with a schema
"RowMap"                  an object of the class of this name
"=n"                      an integer that is the size n
"finite[n,p]"             an array of finite numbers with sizes n and p; ``*`` is any size; other
                          contents are "number", "int", "float", "any" (labels too), and "sparse"
"int[n]<k"                an array of integers from 0 up to, but without, the size k
{text = [...]}            one of these strings
{list = [...]}            a list (or tuple, dict, set) of values of these kinds
========================  ==========================================================================

Sizes are the same wherever their name appears in one object. Those of `sizes_of` have their value
from the object; others from where they appear first.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))


Kinds = list[Any]
ATTRIBUTES: dict[str, dict[str, Kinds]] = _read("attributes.toml")
_BY_HAND = _read("permitted.toml")
NODES: dict[str, Iterable[str]] = _BY_HAND["nodes"] | {
    "ObjectNode": ATTRIBUTES.keys(),
    "FunctionNode": {
        f"numpy.{name}" for name in dir(np) if isinstance(getattr(np, name), np.ufunc)
    },
}
TRUSTED = [name for names in NODES.values() for name in names]
PARAMETER: Kinds = _BY_HAND["parameter"]
PROTOCOL: int = _BY_HAND["protocol"]
WHOLE: list[str] = _BY_HAND["whole"]
_PROVEN: dict[str, dict[str, Kinds]] = _BY_HAND["proven"]

_CONTENTS = {"number": "biuf", "finite": "biuf", "int": "iu", "float": "f", "any": "biufUSOTM"} | {
    "record": "V"
}
_ARRAY = re.compile(r"(\w+)\[(.*)\](?:<(.+))?")
_WIDEST = 2**16  # values in one direction of a picture
_PLAIN = (str, int, float, np.number, np.bool_, type(None))


def name_of(cls: type) -> str:
    """Return the name that a class has in files."""
    return f"{cls.__module__}.{cls.__name__}"


def schema_of(cls: type) -> dict[str, Kinds]:
    """Return the attributes of a class with their kinds, those written by hand before others."""
    schema = dict(ATTRIBUTES[name_of(cls)])
    for base in reversed(cls.__mro__):
        schema |= _PROVEN.get(base.__name__, {})
    return schema


def sizes_of(part: Any) -> dict[str, int]:
    """Return the sizes that an object states: features p, values of a row w, classes k."""
    k = len(getattr(part, "classes_", ()))
    sizes = {"0": 0, "1": 1, "k": k, "k-1": k - 1, "k(k-1)/2": k * (k - 1) // 2}
    sizes["k(k-1)/2 if probability"] = sizes["k(k-1)/2"] * bool(
        getattr(part, "_effective_probability", getattr(part, "probability", False))
    )
    if not hasattr(part, "n_features_in_"):
        return sizes
    shape = getattr(part, "row_shape_", (part.n_features_in_,))  # of pictures
    whole = all(isinstance(n, int) and 0 < n <= _WIDEST for n in shape)
    return sizes | {"p": part.n_features_in_, "w": math.prod(shape) if whole else 0}


def fits(value: Any, kinds: Kinds, sizes: dict[str, int]) -> bool:
    """Return whether a value is of one of these kinds; sizes without a value get one."""
    return any(_is(value, kind, sizes) for kind in kinds)


def _is(value: Any, kind: Any, sizes: dict[str, int]) -> bool:
    if isinstance(kind, dict):
        ((name, inner),) = kind.items()
        if name == "text":
            return isinstance(value, str) and value in inner
        entries = value.values() if isinstance(value, dict) else value
        return type(value).__name__ == name and all(fits(entry, inner, sizes) for entry in entries)
    if kind == "parameter":
        return fits(value, PARAMETER, sizes)
    if kind.startswith("="):
        number = isinstance(value, int | np.integer)
        return number and value >= 0 and sizes.setdefault(kind[1:], int(value)) == value
    if array := _ARRAY.fullmatch(kind):
        return _is_array(value, sizes, *array.groups())
    return kind == kind_of(value) or (kind == "plain" and isinstance(value, _PLAIN))


def _is_array(value: Any, sizes: dict[str, int], content: str, shape: str, below: str) -> bool:
    if sp.issparse(value) != (content == "sparse"):
        return False
    if content == "sparse":
        if value.format != "csr":
            return False  # others may have any number of rows in a few bytes
        value.check_format(full_check=True)
    elif type(value) is not np.ndarray or value.dtype.kind not in _CONTENTS[content]:
        return False
    names = shape.split(",")
    same = len(names) == value.ndim and all(
        name == "*" or sizes.setdefault(name, length) == length
        for name, length in zip(names, value.shape, strict=True)
    )
    numbers = value.data if content == "sparse" else value
    if content in ("sparse", "finite"):
        same = same and bool(np.isfinite(numbers).all())
    if numbers.dtype.kind == "O":
        same = same and all(isinstance(entry, _PLAIN) for entry in numbers.flat)
    if below:
        same = (same and numbers.size == 0) or 0 <= numbers.min() <= numbers.max() < sizes[below]
    return same


def kind_of(value: Any) -> str:
    """Return the kind of a value that is no array and no container."""
    if value is None:
        return "none"
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, np.dtype | type):
        return "dtype" if isinstance(value, np.dtype) else "type"
    known = isinstance(value, BaseEstimator) and name_of(type(value)) in ATTRIBUTES
    return "estimator" if known else type(value).__name__
