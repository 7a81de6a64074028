"""The one place that imports private parts of scikit-learn."""

from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "safe_indexing",
    "validate_parameter_constraints",
]
