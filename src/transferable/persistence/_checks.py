"""What a loaded model holds, checked before anybody uses it.

A file may be forged and its digests with it. Arrays that compiled code follows without a check are
checked here, those of the library's own estimators must be finite, and every fitted estimator of
the library is tried on a row of zeros: parts that do not fit together show there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.cluster._kmeans import _BaseKMeans
from sklearn.ensemble._forest import BaseForest
from sklearn.neighbors._base import NeighborsBase
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree

from transferable.base import DomainAdapter, DomainClassifier
from transferable.persistence._container import ModelFileError
from transferable.persistence._trees import (
    check_forest,
    rebuild_decision_tree,
    rebuild_search_tree,
)

__all__ = ["check_parts", "check_usable"]

_WIDEST = 10**7  # features of a row that is tried
_REPORTS = "transferable.model_selection."  # whose numbers may be missing


def check_parts(model: Any) -> None:
    """Refuse a model that could crash, fail or give numbers that are none; complete its parts."""
    parts = list(_parts(model))
    for part in parts:
        for kind, check in _CHECKS:
            if isinstance(part, kind):
                check(part)
    for part in parts:
        if isinstance(part, BaseForest):
            check_forest(part)
    check_usable(model)


def check_usable(model: Any) -> None:
    """Refuse a model whose numbers are none, or that fails on a row of zeros."""
    for part in _parts(model):
        _check_finite(part)
        if isinstance(part, DomainAdapter) and hasattr(part, "n_features_in_"):
            _try(part)


def _parts(model: Any) -> Iterator[Any]:
    """Every object that a model consists of, each once."""
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
    if matrix.format not in ("csr", "csc"):
        raise ModelFileError(f"a sparse matrix has the format {matrix.format}, not csr or csc")
    try:
        matrix.check_format(full_check=True)
    except Exception as error:
        raise ModelFileError(f"a sparse matrix is malformed: {error}") from error


def _check_machine(machine: BaseLibSVM) -> None:
    """libsvm reads as many coefficients as the classes' counts say."""
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
    if not holds:
        raise ModelFileError("the parts of a support vector machine do not fit together")


def _check_centres(clusters: _BaseKMeans) -> None:
    centres = getattr(clusters, "cluster_centers_", None)
    if centres is not None and centres.shape[1] != clusters.n_features_in_:
        raise ModelFileError("the centres of clusters have other columns than the rows")


def _check_generator(generator: np.random.RandomState) -> None:
    position = generator.get_state(legacy=False)["state"].get("pos", 0)
    if not 0 <= position <= 624:
        raise ModelFileError(f"a random state is at position {position} of 624")


def _check_sample(estimator: DomainAdapter) -> None:
    """The remembered target rows are a table of numbers."""
    sample = estimator._target_sample
    if sample is None:
        return
    values = sample.data if sp.issparse(sample) else np.asarray(sample)
    if np.ndim(values) > 2 or len(np.shape(sample)) != 2 or values.dtype.kind not in "fiub":
        raise ModelFileError(f"the target sample of {type(estimator).__name__} is no table of rows")


def _check_codes(classifier: DomainClassifier) -> None:
    """Classifiers inside one of the library's predict positions in its classes."""
    if not hasattr(classifier, "classes_"):
        return
    known = set(range(len(classifier.classes_)))
    for part in _parts(list(vars(classifier).values())):
        inner = getattr(part, "classes_", None) if isinstance(part, ClassifierMixin) else None
        if inner is None or isinstance(part, DomainClassifier):
            continue
        if not set(np.asarray(inner).tolist()) <= known:
            raise ModelFileError(f"{type(part).__name__} predicts classes that there are not")


def _check_finite(part: Any) -> None:
    """Arrays of the library's own classes hold numbers."""
    module = type(part).__module__
    if not module.startswith("transferable.") or module.startswith(_REPORTS):
        return
    for name, value in getattr(part, "__dict__", {}).items():
        for entry in value if isinstance(value, list | tuple) else [value]:
            array = entry.data if sp.issparse(entry) else entry
            if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
                continue
            if not np.isfinite(array).all():
                raise ModelFileError(f"{name} of {type(part).__name__} is not finite")


def _try(estimator: DomainAdapter) -> None:
    """Use every method on a row of zeros and look at the shape and values that come back."""
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
            if hasattr(estimator, name):
                _check_output(estimator, name, getattr(estimator, name)(rows), shape)


def _check_output(estimator: Any, name: str, values: Any, shape: tuple[Any, ...]) -> None:
    if values.shape != shape:
        raise ModelFileError(
            f"{type(estimator).__name__}.{name} gives shape {values.shape} for one row, not {shape}"
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ModelFileError(f"{type(estimator).__name__}.{name} gives numbers that are not finite")


_CHECKS: tuple[tuple[Any, Callable[[Any], None]], ...] = (
    (DomainAdapter, _check_sample),
    (sp.sparray | sp.spmatrix, _check_sparse),
    (BaseLibSVM, _check_machine),
    (_BaseKMeans, _check_centres),
    (np.random.RandomState, _check_generator),
    (DomainClassifier, _check_codes),
    (NeighborsBase, rebuild_search_tree),
    (BaseDecisionTree, rebuild_decision_tree),
)
