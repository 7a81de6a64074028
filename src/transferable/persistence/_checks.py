"""Checks of a loaded model, before it is used.

A file may be forged and its digests with it. Arrays that compiled code follows without a check are
checked here: decision trees node by node, and search trees are rebuilt. Those of the library's own
estimators must be finite, and every fitted estimator of the library is tried on a row of zeros,
which shows parts that do not fit together.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.cluster._kmeans import _BaseKMeans
from sklearn.ensemble._forest import BaseForest
from sklearn.neighbors import BallTree, KDTree
from sklearn.neighbors._base import NeighborsBase
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from transferable.base import DomainAdapter, DomainClassifier
from transferable.persistence._archive import ModelFileError

_WIDEST = 10**7  # features of a row that is tried
_REPORTS = "transferable.model_selection."  # whose numbers may be missing
_LEAF = -1
_SEARCH_TREES = {"kd_tree": KDTree, "ball_tree": BallTree}


def check_parts(model: Any) -> None:
    """Refuse a model that could crash, fail or return invalid numbers; complete its parts."""
    parts = list(_parts(model))
    for part in parts:
        for kind, check in _CHECKS:
            if isinstance(part, kind):
                check(part)
    for part in parts:
        if isinstance(part, BaseForest):  # passes rows to its trees unchecked
            widths = {tree.n_features_in_ for tree in getattr(part, "estimators_", ())}
            _require(widths <= {getattr(part, "n_features_in_", None)}, "a forest's trees differ")
    check_usable(model)


def check_usable(model: Any) -> None:
    """Refuse a model with invalid numbers, or that fails on a row of zeros."""
    for part in _parts(model):
        _check_finite(part)
        if isinstance(part, DomainAdapter) and hasattr(part, "n_features_in_"):
            _try(part)


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
    try:
        matrix.check_format(full_check=True)
    except Exception as error:
        raise ModelFileError(f"a sparse matrix is malformed: {error}") from error


def _check_machine(machine: BaseLibSVM) -> None:
    """Compare counts: libsvm reads as many coefficients as the counts of the classes."""
    if not hasattr(machine, "support_vectors_"):
        return
    counts, rows = np.asarray(machine._n_support), machine.support_vectors_
    classes = getattr(machine, "classes_", ())
    coefficients, pairs = machine._dual_coef_, len(classes) * (len(classes) - 1) // 2
    holds = (
        counts.min() >= 0
        and counts.sum() == rows.shape[0] == len(machine.support_)
        and rows.shape[1] == machine.n_features_in_
        and coefficients.shape[1] == rows.shape[0]
        and (not pairs or len(counts) == len(classes) == coefficients.shape[0] + 1)
        and len(machine._intercept_) == (pairs or 1)
        and {len(machine._probA), len(machine._probB)} <= {0, pairs or 1}
    )
    _require(holds, "the parts of a support vector machine do not fit together")


def _check_centres(clusters: _BaseKMeans) -> None:
    centres = getattr(clusters, "cluster_centers_", None)
    fits = centres is None or centres.shape[1] == clusters.n_features_in_
    _require(fits, "the centres of clusters have other columns than the rows")


def _check_generator(generator: np.random.RandomState) -> None:
    position = generator.get_state(legacy=False)["state"].get("pos", 0)
    _require(0 <= position <= 624, f"a random state is at position {position} of 624")


def _check_sample(estimator: DomainAdapter) -> None:
    """Refuse stored target rows that are no table of numbers."""
    sample = estimator._target_sample
    if sample is None:
        return
    values = sample.data if sp.issparse(sample) else np.asarray(sample)
    table = np.ndim(values) <= 2 and len(np.shape(sample)) == 2 and values.dtype.kind in "fiub"
    _require(table, f"the target sample of {type(estimator).__name__} is no table of rows")


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
    n = rows.shape[0]
    codes = np.asarray(getattr(estimator, "_y", np.zeros(n)))
    _require(n == estimator.n_samples_fit_ == len(codes), "rows and labels of neighbours differ")
    _require(rows.shape[1] == estimator.n_features_in_, "neighbours have other columns")
    if isinstance(getattr(estimator, "classes_", None), np.ndarray):
        _require(_within(codes, len(estimator.classes_)), "neighbours are of unknown classes")
    if method in _SEARCH_TREES:
        estimator._tree = _SEARCH_TREES[method](
            rows,
            estimator.leaf_size,
            metric=estimator.effective_metric_,
            **estimator.effective_metric_params_,
        )


def _rebuild_decision_tree(estimator: BaseDecisionTree) -> None:
    """Build the tree stored in a file as a tuple of arguments and state."""
    parts = getattr(estimator, "tree_", None)
    if parts is None:
        return
    _require(isinstance(parts, tuple) and len(parts) == 2, "a decision tree is no tree")
    (n_features, n_classes, n_outputs), state = parts
    _require(isinstance(n_outputs, int) and n_outputs >= 1, "a tree has no outputs")
    n_classes = np.asarray(n_classes)
    _require(
        n_classes.shape == (n_outputs,) and n_classes.dtype.kind == "i" and n_classes.min() >= 1,
        "a tree counts no classes",
    )
    _require(n_features == estimator.n_features_in_, "a tree has other features")
    _require(n_outputs == estimator.n_outputs_, "a tree has other outputs")
    if hasattr(estimator, "classes_"):
        classes = estimator.classes_ if n_outputs > 1 else [estimator.classes_]
        _require([len(c) for c in classes] == n_classes.tolist(), "a tree has other classes")
    _check_nodes(state, int(n_features), (int(n_outputs), int(n_classes.max())))
    tree = Tree(int(n_features), n_classes.astype(np.intp), int(n_outputs))
    tree.__setstate__(state)
    estimator.tree_ = tree


def _check_nodes(state: dict[str, Any], n_features: int, value_shape: tuple[int, int]) -> None:
    """Refuse nodes that are not one tree, reached from its root without a cycle."""
    nodes, values, count = state["nodes"], state["values"], state["node_count"]
    _require(
        isinstance(nodes, np.ndarray) and nodes.shape == (count,) and count >= 1, "a tree is empty"
    )
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
    rows = np.zeros((1, width))
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
    (DomainAdapter, _check_sample),
    (sp.sparray | sp.spmatrix, _check_sparse),
    (BaseLibSVM, _check_machine),
    (_BaseKMeans, _check_centres),
    (np.random.RandomState, _check_generator),
    (DomainClassifier, _check_codes),
    (NeighborsBase, _rebuild_search_tree),
    (BaseDecisionTree, _rebuild_decision_tree),
)
