"""Imports of private parts of scikit-learn, and the ranges that parameters share.

Weights are bounded: products of larger ones overflow, and smaller ones are lost beside others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods as HasMethods
from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils._param_validation import (
    validate_parameter_constraints as validate_parameter_constraints,
)
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

safe_indexing = _safe_indexing

NUMBER = Interval(Real, -1e30, 1e30, closed="both")
WEIGHT = Interval(Real, 0, 1e30, closed="both")
POSITIVE = Interval(Real, 1e-30, 1e30, closed="both")
COUNT = Interval(Integral, 1, None, closed="left")
CLASS_SHARES = [StrOptions({"auto", "source"}), Mapping, "array-like"]
JOBS = [
    Interval(Integral, None, -1, closed="right"),
    Interval(Integral, 1, None, closed="left"),
    None,
]


def takes_marks(estimator: Any) -> bool:
    """Return whether ``fit`` takes ``sample_domain``, or passes it to a step that requests it."""
    return has_fit_parameter(estimator, "sample_domain") or _routes(estimator)


def call_with_marks(
    method: Callable[..., Any],
    X: Any,
    y: Any,
    sample_domain: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Call ``fit`` or ``fit_transform``, with marks and weights if the estimator takes any."""
    estimator = method.__self__  # type: ignore[attr-defined]
    more: dict[str, Any] = {}
    if sample_weight is not None and has_fit_parameter(estimator, "sample_weight"):
        more = {"sample_weight": sample_weight}
    if sample_domain is None or not takes_marks(estimator):
        return method(X, y, **more)
    if has_fit_parameter(estimator, "sample_domain"):
        return method(X, y, sample_domain=sample_domain, **more)
    with config_context(enable_metadata_routing=True):
        return method(X, y, sample_domain=sample_domain)


def _routes(estimator: Any) -> bool:
    try:
        routing = get_routing_for_object(estimator)
    except NotImplementedError:  # scikit-learn's tools without routing raise this
        return False
    return bool(routing.consumes("fit", ["sample_domain"]))
