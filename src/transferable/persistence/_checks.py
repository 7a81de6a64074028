"""Checks of a loaded model, before it is used.

A file may be forged and its digests with it. Arrays that compiled code follows without a check are
checked here: decision trees node by node, and search trees are rebuilt. Those of the library's own
estimators must be finite. When all parts have passed, every fitted estimator of the library is
tried on a row of zeros, which shows parts that do not fit together.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster._kmeans import _BaseKMeans
from sklearn.ensemble._forest import BaseForest
from sklearn.neighbors import BallTree, KDTree
from sklearn.neighbors._base import NeighborsBase
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from transferable.base import DomainAdapter, DomainClassifier
from transferable.persistence._archive import ModelFileError
from transferable.persistence._permitted import KERNELS, SET_ASIDE, SHAPES

_WIDEST = 10**7  # features of a row that is tried
_REPORTS = "transferable.model_selection."  # whose numbers may be missing
_LEAF = -1
_SEARCH_TREES = {"kd_tree": KDTree, "ball_tree": BallTree}


def check_parts(model: Any, loaded: bool = True) -> None:
    """Refuse a model that could crash, fail or return invalid numbers; complete a loaded one."""
    for checks in (_REBUILT, _CHECKS) if loaded else (_CHECKS,):
        for part in list(_parts(model)):
            for kind, check in checks:
                if isinstance(part, kind):
                    check(part)
    for part in _parts(model):  # all of which have passed
        if isinstance(part, DomainAdapter) and hasattr(part, "n_features_in_"):
            _try(part)


def _check_names(part: BaseEstimator) -> None:
    """Refuse attributes in place of methods and constants; forget what the machine decides."""
    for name in vars(part):
        value = getattr(type(part), name, None)
        default = isinstance(part, DomainAdapter) and not isinstance(value, FunctionType | property)
        _require(value is None or default, f"{type(part).__name__} has its own {name}")
    for name in SET_ASIDE & vars(part).keys():
        setattr(part, name, None if name != "_n_threads" else _openmp_effective_n_threads())


def _parts(model: Any) -> Iterator[Any]:
    """Yield every part of a model, each once."""
    waiting, seen = [model], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, str | bytes | int | float | type | None):
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, list | tuple | set):
            waiting.extend(part)
        elif isinstance(part, np.ndarray):
            waiting.extend(part.ravel().tolist() if part.dtype == object else ())
        else:
            waiting.extend(getattr(part, "__dict__", {}).values())


def _check_sparse(matrix: Any) -> None:
    known = matrix.format in ("csr", "csc")
    _require(known, f"a sparse matrix has the format {matrix.format}, not csr or csc")
    matrix.check_format(full_check=True)


def _check_shapes(part: Any, name: str, **sizes: int) -> None:
    """Compare arrays with the kinds and shapes of a schema; equal letters are equal lengths."""
    for field, (kinds, letters) in SHAPES[name].items():
        array = getattr(part, field)
        array = array if sp.issparse(array) else np.asarray(array)
        fits = array.dtype.kind in kinds and len(array.shape) == len(letters)
        for letter, length in zip(letters, array.shape, strict=False):
            fits = fits and sizes.setdefault(letter, length) == length
        _require(fits, f"{field} of {type(part).__name__} has another kind or shape")


def _check_machine(machine: BaseLibSVM) -> None:
    """Compare counts: libsvm reads as many coefficients as the counts of the classes."""
    if not hasattr(machine, "support_vectors_"):
        return
    classifies = isinstance(machine, ClassifierMixin)
    k = len(machine.classes_) if classifies else 2
    pairs, width = k * (k - 1) // 2, machine.n_features_in_
    platt = pairs * bool(getattr(machine, "_effective_probability", machine.probability))
    _check_shapes(machine, "BaseLibSVM", p=width, k=k, j=k - 1, m=pairs, a=platt)
    counts, rows, coefficients = machine._n_support, machine.support_vectors_, machine._dual_coef_
    n = rows.shape[0]
    holds = counts.min() >= 0 and counts.sum() == n * (1 if classifies else 2)
    holds = holds and machine.kernel in KERNELS and coefficients.size == (k - 1) * n  # all stored
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


def _check_centres(clusters: _BaseKMeans) -> None:
    if hasattr(clusters, "cluster_centers_"):
        _check_shapes(clusters, "_BaseKMeans", p=clusters.n_features_in_)


def _check_generator(generator: np.random.RandomState) -> None:
    position = generator.get_state(legacy=False)["state"].get("pos", 0)
    _require(0 <= position <= 624, f"a random state is at position {position} of 624")


def _check_sample(estimator: DomainAdapter) -> None:
    if estimator._target_sample is not None:
        _check_shapes(estimator, "DomainAdapter")


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


def _rebuild_search_tree(estimator: NeighborsBase) -> None:
    """Rebuild the search tree of nearest neighbours from its rows."""
    rows, method = getattr(estimator, "_fit_X", None), getattr(estimator, "_fit_method", None)
    if rows is None:
        return
    n, width = estimator.n_samples_fit_, estimator.n_features_in_
    _check_shapes(estimator, "NeighborsBase", n=n, p=width)
    if isinstance(estimator, ClassifierMixin):
        _check_shapes(estimator, "KNeighborsClassifier", n=n)
        known = not estimator.outputs_2d_ and _within(estimator._y, len(estimator.classes_))
        _require(known, "neighbours are of unknown classes")
    metric, settings = estimator.effective_metric_, estimator.effective_metric_params_ or {}
    values = [*settings.values(), *(estimator.metric_params or {}).values()]
    fits = {np.shape(value) for value in values} <= {(), (width,), (width, width)}
    _require(fits, "a metric is of other columns")
    if method in _SEARCH_TREES:
        tree = _SEARCH_TREES[method]
        estimator._tree = tree(rows, estimator.leaf_size, metric=metric, **settings)


def _rebuild_decision_tree(estimator: BaseDecisionTree) -> None:
    """Build the tree stored in a file as a tuple of arguments and state."""
    parts = getattr(estimator, "tree_", None)
    if parts is None:
        return
    _require(isinstance(parts, tuple) and len(parts) == 2, "a decision tree is no tree")
    (n_features, n_classes, n_outputs), state = parts
    _require(isinstance(n_outputs, int) and n_outputs >= 1, "a tree has no outputs")
    n_classes = np.asarray(n_classes)
    counted = n_classes.shape == (n_outputs,) and n_classes.dtype.kind == "i"
    _require(counted and n_classes.min() >= 1, "a tree counts no classes")
    _require(n_features == estimator.n_features_in_, "a tree has other features")
    _require(n_outputs == estimator.n_outputs_, "a tree has other outputs")
    if hasattr(estimator, "classes_"):
        classes = estimator.classes_ if n_outputs > 1 else [estimator.classes_]
        _require([len(c) for c in classes] == n_classes.tolist(), "a tree has other classes")
    _check_nodes(state, int(n_features), (int(n_outputs), int(n_classes.max())))
    tree = Tree(int(n_features), n_classes.astype(np.intp), int(n_outputs))
    tree.__setstate__(state)
    estimator.tree_ = tree


def _check_forest(forest: BaseForest) -> None:
    """Refuse trees of other features: a forest passes rows to its trees unchecked."""
    widths = {tree.n_features_in_ for tree in getattr(forest, "estimators_", ())}
    _require(widths <= {getattr(forest, "n_features_in_", None)}, "a forest's trees differ")


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


def _check_finite(part: Any) -> None:
    """Refuse arrays of the library's own classes with numbers that are not finite."""
    module = type(part).__module__
    if not module.startswith("transferable.") or module.startswith(_REPORTS):
        return
    for name, value in getattr(part, "__dict__", {}).items():
        for entry in value if isinstance(value, list | tuple) else [value]:
            array = entry.data if sp.issparse(entry) else entry
            if isinstance(array, np.ndarray) and array.dtype.kind == "f":
                finite = bool(np.isfinite(array).all())
                _require(finite, f"{name} of {type(part).__name__} is not finite")


def _try(estimator: DomainAdapter) -> None:
    """Use every method on a row of zeros and check the shape and values of the result."""
    width = estimator.n_features_in_
    if width > _WIDEST:
        return
    rows = np.zeros((1, *getattr(estimator, "row_shape_", (width,))))  # pictures have more axes
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


_REBUILT: Any = (
    (BaseEstimator, _check_names),
    (NeighborsBase, _rebuild_search_tree),
    (BaseDecisionTree, _rebuild_decision_tree),
)
_CHECKS: Any = (
    (DomainAdapter, _check_sample),
    (sp.sparray | sp.spmatrix, _check_sparse),
    (BaseLibSVM, _check_machine),
    (OneHotEncoder, _check_one_hot),
    (_BaseKMeans, _check_centres),
    (np.random.RandomState, _check_generator),
    (DomainClassifier, _check_codes),
    (BaseForest, _check_forest),
    (object, _check_finite),
)
