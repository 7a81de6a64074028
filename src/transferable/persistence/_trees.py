"""Trees of scikit-learn, made again from plain arrays.

Compiled code follows the indices in them without a check, so a file's own are never followed
before they were looked at node by node: decision trees are checked, search trees built anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._forest import BaseForest
from sklearn.neighbors import BallTree, KDTree
from sklearn.neighbors._base import NeighborsBase
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from transferable.persistence._container import ModelFileError

__all__ = ["check_forest", "rebuild_decision_tree", "rebuild_search_tree"]

_LEAF = -1
_SEARCH_TREES = {"kd_tree": KDTree, "ball_tree": BallTree}


def rebuild_search_tree(estimator: NeighborsBase) -> None:
    """Build the search tree of nearest neighbours from the rows it was built of."""
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


def rebuild_decision_tree(estimator: BaseDecisionTree) -> None:
    """Make the tree that a file has as a tuple of arguments and state."""
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


def check_forest(forest: BaseForest) -> None:
    """Compare what a forest hands to its trees unchecked with what these take."""
    widths = {tree.n_features_in_ for tree in getattr(forest, "estimators_", ())}
    _require(widths <= {getattr(forest, "n_features_in_", None)}, "a forest's trees differ")


def _check_nodes(state: dict[str, Any], n_features: int, value_shape: tuple[int, int]) -> None:
    """Refuse nodes that are not one tree, reached from its root without a circle."""
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


def _within(indices: NDArray[Any], count: int) -> bool:
    return not indices.size or bool(indices.min() >= 0 and indices.max() < count)


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ModelFileError(problem)
