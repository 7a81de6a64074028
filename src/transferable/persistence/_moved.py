"""What has changed since files were written: classes that moved, parameters that came later.

A class that moves keeps its old name here for as long as its files are to be read.
"""

from __future__ import annotations

from inspect import Parameter, signature

from sklearn.base import BaseEstimator

__all__ = ["MOVED", "add_later_parameters"]

# What files call a class, and its name now.
MOVED = {
    "transferable.classifiers._embedding.ManifoldFeatures": (
        "transferable.engines.risk.features.ManifoldFeatures"
    ),
    "transferable.classifiers._nearest.NearestRow": "transferable.engines.nearest_row.NearestRow",
    "transferable.transformers._features.RowMap": "transferable.engines.spectral.features.RowMap",
}


def add_later_parameters(estimator: BaseEstimator) -> None:
    """Give an estimator the default of parameters that did not exist when it was saved."""
    for name, parameter in signature(type(estimator)).parameters.items():
        if not hasattr(estimator, name) and parameter.default is not Parameter.empty:
            setattr(estimator, name, parameter.default)
