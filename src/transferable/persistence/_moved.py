"""What has changed since files were written: classes that moved, parameters that came later.

A class that moves keeps its old name here for as long as its files are to be read.
"""

from __future__ import annotations

from inspect import Parameter, signature

from sklearn.base import BaseEstimator

__all__ = ["MOVED", "add_later_parameters"]

# Modules that scorers were in, and their first names there.
_SCORERS = {
    "agreement": {"Agreement": "AgreementScore"},
    "circular": {"CircularValidation": "CircularScore"},
    "confidence": {
        "ClassConfusionScore": "ConfusionScore",
        "EntropyScore": "EntropyScore",
        "InformationMaximization": "InformationScore",
    },
    "importance": {
        "DeepEmbeddedValidation": "DevScore",
        "ImportanceWeightedValidation": "ImportanceWeightedScore",
    },
    "neighborhood": {
        "NeighborConsistency": "NeighborsScore",
        "SilhouetteScore": "SilhouetteScore",
        "SoftNeighborhoodDensity": "DensityScore",
    },
    "ranking": {"RankSum": "RankSum"},
}
# What files call a class, and its name now, both behind "transferable.".
_MOVED = {
    "classifiers._embedding.ManifoldFeatures": "engines.risk.features.ManifoldFeatures",
    "classifiers.tfdf.TFDFV": "classifiers.tfdfv.TFDFV",
    "classifiers._nearest.NearestRow": "engines.nearest_row.NearestRow",
    "transformers._features.RowMap": "engines.spectral.features.RowMap",
    **{
        f"model_selection.{module}.{name}": f"model_selection.scorers.{new}"
        for module, names in _SCORERS.items()
        for old, new in names.items()
        for name in (old, new)
    },
}
MOVED = {f"transferable.{old}": f"transferable.{new}" for old, new in _MOVED.items()}


def add_later_parameters(estimator: BaseEstimator) -> None:
    """Give an estimator the default of parameters that did not exist when it was saved."""
    for name, parameter in signature(type(estimator)).parameters.items():
        if not hasattr(estimator, name) and parameter.default is not Parameter.empty:
            setattr(estimator, name, parameter.default)
