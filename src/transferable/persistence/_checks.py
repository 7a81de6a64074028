"""Checks of a loaded model, before it is used.

A file may be forged and its digests with it. Every object is compared with the schema of its class;
what a schema cannot say is checked here: cross-references between parts, and decision trees node by
node. Search trees are rebuilt. When all parts have passed, every fitted estimator of the library is
tried on a row of zeros, which shows parts that do not fit together.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble._forest import BaseForest
from sklearn.neighbors import BallTree, KDTree, KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from transferable._sklearn import validate_parameter_constraints
from transferable.base import DomainAdapter, DomainClassifier
from transferable.persistence import _schemas as schemas
from transferable.persistence._archive import ModelFileError

_WIDEST = 10**6  # features of a row that is tried
_LEAF = -1
_SEARCH_TREES = {"kd_tree": KDTree, "ball_tree": BallTree}
# Attributes that the machine decides: a file may give them these values, else they get the first.
_SET_ASIDE: dict[str, Any] = {"_n_threads": [_openmp_effective_n_threads()], "num_workers": [0]}
_SET_ASIDE |= {"n_jobs": [None], "memory": [None], "checkpoint": [None], "cache": ["auto", None]}
_SET_ASIDE |= {"device": ["auto", "cpu", "torch"]}


def check_parts(model: Any) -> None:
    """Refuse a model that could crash, fail or return invalid numbers; complete one that passes."""
    known = schemas.name_of(type(model)) in schemas.ATTRIBUTES
    _require(known, f"{type(model).__name__} is no estimator")
    parts = list(_parts(model))
    for part in parts:
        if not isinstance(part, np.random.RandomState):
            _check_attributes(part)
    for part in parts:  # the attributes of all have passed
        for kind, check in _CHECKS:
            if isinstance(part, kind):
                check(part)
    for part in parts:
        if isinstance(part, DomainAdapter) and hasattr(part, "n_features_in_"):
            _try(part)


def _parts(model: Any) -> Iterator[Any]:
    """Yield every object of a model that has a schema, and every random state, each once."""
    waiting, seen = [model], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, list | tuple | set):
            waiting.extend(part)
        elif schemas.name_of(type(part)) in schemas.ATTRIBUTES:
            yield part
            waiting.extend(getattr(part, "__dict__", {}).values())
        elif isinstance(part, np.random.RandomState):
            yield part


def _check_attributes(part: Any) -> None:
    """Compare an object with the schema of its class; forget what the machine decides."""
    name, schema, sizes = type(part).__name__, schemas.schema_of(type(part)), schemas.sizes_of(part)
    parameters: dict[str, Any] = {}
    if isinstance(part, BaseEstimator):
        constraints = getattr(part, "_parameter_constraints", {})
        for key in _SET_ASIDE.keys() & vars(part).keys():
            if getattr(part, key) not in _SET_ASIDE[key]:
                setattr(part, key, _SET_ASIDE[key][0])
        given, known = part.get_params(deep=False), schemas.ATTRIBUTES[schemas.name_of(type(part))]
        fitted, there = known.keys() - given.keys(), vars(part).keys()
        whole = name not in schemas.WHOLE or fitted <= there or not fitted & there
        _require(whole, f"{name} lacks attributes that fitted ones have")
        parameters = {key: value for key, value in given.items() if key in constraints}
        validate_parameter_constraints(constraints, parameters, name)
    for key, value in getattr(part, "__dict__", {}).items():
        kinds = schema.get(key, schemas.PARAMETER if key in parameters else None)
        _require(kinds is not None, f"{name} has no attribute {key}")
        same = schemas.fits(value, kinds or [], sizes)
        _require(same, f"{key} of {name} is of another kind or size")


def _check_machine(machine: BaseLibSVM) -> None:
    """Compare counts: libsvm reads as many coefficients as the counts of the classes."""
    if not hasattr(machine, "support_vectors_"):
        return
    counts, rows, coefficients = machine._n_support, machine.support_vectors_, machine._dual_coef_
    holds = counts.min() >= 0 and counts.sum() == rows.shape[0]
    holds = holds and coefficients.size == (len(counts) - 1) * rows.shape[0]  # all are stored
    for array in (rows, coefficients):
        holds &= array.format == "csr" if machine._sparse else isinstance(array, np.ndarray)
    _require(holds, "the parts of a support vector machine do not fit together")


def _check_one_hot(encoder: OneHotEncoder) -> None:
    """Compare counts: codes beyond the number of columns are written outside of the result."""
    if not hasattr(encoder, "categories_"):
        return
    counts, none = encoder._n_features_outs, [None] * len(encoder.categories_)
    drops = none if (given := encoder._drop_idx_after_grouping) is None else given
    groups = encoder._default_to_infrequent_mappings if encoder._infrequent_enabled else none
    for values, group, drop, count in zip(encoder.categories_, groups, drops, counts, strict=True):
        codes = np.arange(len(values)) if group is None else group
        size = int(codes.max(initial=-1)) + 1
        ordered = values.dtype.kind in "OUST" or np.array_equal(np.sort(values), values, True)
        holds = ordered and codes.shape == values.shape and codes.min(initial=0) >= 0
        holds = holds and (drop is None or 0 <= drop < size) and count == size - (drop is not None)
        _require(holds, "the codes of an encoder do not fit its columns")


def _check_generator(generator: np.random.RandomState) -> None:
    position = generator.get_state(legacy=False)["state"].get("pos", 0)
    _require(0 <= position <= 624, f"a random state is at position {position} of 624")


def _check_codes(classifier: DomainClassifier) -> None:
    """Refuse inner classifiers that predict anything but positions in the classes."""
    if not hasattr(classifier, "classes_"):
        return
    known = set(range(len(classifier.classes_)))
    for part in _parts(list(vars(classifier).values())):
        inner = getattr(part, "classes_", None) if isinstance(part, ClassifierMixin) else None
        if inner is None or isinstance(part, DomainClassifier):
            continue
        holds = set(np.asarray(inner).tolist()) <= known
        _require(holds, f"{type(part).__name__} predicts classes that there are not")


def _rebuild_search_tree(estimator: KNeighborsClassifier) -> None:
    """Rebuild the search tree of nearest neighbours from its rows."""
    tree = _SEARCH_TREES.get(getattr(estimator, "_fit_method", ""))
    if tree is not None:
        metric, settings = estimator.effective_metric_, estimator.effective_metric_params_
        estimator._tree = tree(estimator._fit_X, estimator.leaf_size, metric=metric, **settings)


def _rebuild_decision_tree(estimator: BaseDecisionTree) -> None:
    """Build the tree stored in a file as a tuple of arguments and state."""
    if not hasattr(estimator, "tree_"):
        return
    (n_features, (n_classes,), n_outputs), state = estimator.tree_
    told = (n_features, n_classes, n_outputs)
    known = (estimator.n_features_in_, len(estimator.classes_), 1)
    _require(told == known, f"a tree has {told} features, classes and outputs, not {known}")
    _check_nodes(state, n_features, (1, n_classes))
    estimator.tree_ = Tree(n_features, np.array([n_classes], dtype=np.intp), 1)
    estimator.tree_.__setstate__(state)


def _check_forest(forest: BaseForest) -> None:
    """Refuse trees of other features: a forest passes rows to its trees unchecked."""
    for tree in getattr(forest, "estimators_", ()):
        same = isinstance(tree, BaseDecisionTree) and tree.n_features_in_ == forest.n_features_in_
        _require(same, "a forest's trees differ")


def _check_nodes(state: dict[str, Any], n_features: int, value_shape: tuple[int, int]) -> None:
    """Refuse nodes that are not one tree, reached from its root without a cycle."""
    nodes, values, count = state["nodes"], state["values"], state["node_count"]
    full = isinstance(nodes, np.ndarray) and nodes.shape == (count,) and count >= 1
    _require(full, "a tree is empty")
    _require(values.shape == (count, *value_shape), "a tree's values have another shape")
    _require(bool(np.isfinite(values).all()), "a tree's values are not finite")
    left, right = nodes["left_child"], nodes["right_child"]
    leaf = left == _LEAF
    _require(bool((leaf == (right == _LEAF)).all()), "a node of a tree has one child")
    inner = np.flatnonzero(~leaf)
    _require(_within(nodes["feature"][inner], n_features), "a tree asks for unknown features")
    _require(not np.isnan(nodes["threshold"][inner]).any(), "a tree's thresholds are missing")
    level, reached, depth = np.zeros(1, dtype=np.intp), 1, 0
    while (parents := level[~leaf[level]]).size:
        children = np.concatenate([left[parents], right[parents]])
        _require(_within(children, count), "a tree has children beyond its nodes")
        level, reached, depth = children, reached + len(children), depth + 1
        _require(reached <= count, "a tree's nodes form a circle")
    _require(reached == count, "a tree has nodes that nothing leads to")
    _require(state["max_depth"] == depth, "a tree tells another depth than it has")


def _try(estimator: DomainAdapter) -> None:
    """Use every method on a row of zeros and check the shape and values of the result."""
    shape_of_row = getattr(estimator, "row_shape_", (estimator.n_features_in_,))  # of pictures
    if np.prod(shape_of_row, dtype=float) > _WIDEST:
        return
    rows = np.zeros((1, *shape_of_row))
    columns = len(getattr(estimator, "classes_", ()))
    expected = {
        "predict": (1,),
        "predict_proba": (1, columns),
        "decision_function": (1,) if columns == 2 else (1, columns),
        "transform": (1, getattr(estimator, "_n_features_out", None)),
    }
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, shape in expected.items():
            if not hasattr(estimator, name):
                continue
            called, values = f"{type(estimator).__name__}.{name}", getattr(estimator, name)(rows)
            fits = values.shape == shape
            _require(fits, f"{called} gives shape {values.shape} for one row, not {shape}")
            numbers = values.dtype.kind != "f" or bool(np.isfinite(values).all())
            _require(numbers, f"{called} gives numbers that are not finite")


def _within(indices: NDArray[Any], count: int) -> bool:
    return not indices.size or bool(indices.min() >= 0 and indices.max() < count)


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ModelFileError(problem)


_CHECKS: Any = (
    (KNeighborsClassifier, _rebuild_search_tree),
    (BaseDecisionTree, _rebuild_decision_tree),
    (BaseForest, _check_forest),
    (BaseLibSVM, _check_machine),
    (OneHotEncoder, _check_one_hot),
    (np.random.RandomState, _check_generator),
    (DomainClassifier, _check_codes),
)
