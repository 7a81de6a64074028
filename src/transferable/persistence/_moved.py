"""What has changed since files were written: classes that moved, parameters that came later.

A class that moves keeps its old name here for as long as its files are to be read.
"""

from __future__ import annotations

from inspect import Parameter, signature

from sklearn.base import BaseEstimator

__all__ = ["MOVED", "add_later_parameters"]

# What files call a class, and its name now, both behind "transferable.".
_MOVED = {
    "classifiers._embedding.ManifoldFeatures": "engines.risk.features.ManifoldFeatures",
    "classifiers.tfdf.TFDFV": "classifiers.tfdfv.TFDFV",
    "classifiers._nearest.NearestRow": "engines.nearest_row.NearestRow",
    "engines.spectral.features.RowMap": "transformers._features.RowMap",
    "model_selection.agreement.Agreement": "model_selection.agreement.AgreementScore",
    "model_selection.circular.CircularValidation": "model_selection.circular.CircularScore",
    "model_selection.confidence.ClassConfusionScore": "model_selection.confidence.ConfusionScore",
    "model_selection.confidence.InformationMaximization": (
        "model_selection.confidence.InformationScore"
    ),
    "model_selection.importance.ImportanceWeightedValidation": (
        "model_selection.importance.ImportanceWeightedScore"
    ),
    "model_selection.importance.DeepEmbeddedValidation": "model_selection.importance.DevScore",
    "model_selection.neighborhood.NeighborConsistency": (
        "model_selection.neighborhood.NeighborsScore"
    ),
    "model_selection.neighborhood.SoftNeighborhoodDensity": (
        "model_selection.neighborhood.DensityScore"
    ),
}
MOVED = {f"transferable.{old}": f"transferable.{new}" for old, new in _MOVED.items()}


def add_later_parameters(estimator: BaseEstimator) -> None:
    """Give an estimator the default of parameters that did not exist when it was saved."""
    for name, parameter in signature(type(estimator)).parameters.items():
        if not hasattr(estimator, name) and parameter.default is not Parameter.empty:
            setattr(estimator, name, parameter.default)
