"""Imports of private parts of scikit-learn, and the ranges that parameters share.

Weights are bounded: products of larger ones overflow, and smaller ones are lost beside others.
"""

from collections.abc import Mapping
from numbers import Integral, Real

from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods as HasMethods
from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils._param_validation import (
    validate_parameter_constraints as validate_parameter_constraints,
)

safe_indexing = _safe_indexing

NUMBER = Interval(Real, -1e30, 1e30, closed="both")
WEIGHT = Interval(Real, 0, 1e30, closed="both")
POSITIVE = Interval(Real, 1e-30, 1e30, closed="both")
CLASS_SHARES = [StrOptions({"auto", "source"}), Mapping, "array-like"]
JOBS = [
    Interval(Integral, None, -1, closed="right"),
    Interval(Integral, 1, None, closed="left"),
    None,
]
