"""Choosing settings and judging models without target labels."""

from transferable.model_selection.accuracy import AccuracyEstimate, estimate_accuracy
from transferable.model_selection.agreement import Agreement
from transferable.model_selection.circular import CircularValidation
from transferable.model_selection.confidence import (
    ClassConfusionScore,
    EntropyScore,
    InformationMaximization,
)
from transferable.model_selection.importance import (
    DeepEmbeddedValidation,
    ImportanceWeightedValidation,
)
from transferable.model_selection.neighborhood import (
    NeighborConsistency,
    SilhouetteScore,
    SoftNeighborhoodDensity,
)
from transferable.model_selection.ranking import SCORERS, RankSum
from transferable.model_selection.search import LabelFreeSearch

__all__ = [
    "SCORERS",
    "AccuracyEstimate",
    "Agreement",
    "CircularValidation",
    "ClassConfusionScore",
    "DeepEmbeddedValidation",
    "EntropyScore",
    "ImportanceWeightedValidation",
    "InformationMaximization",
    "LabelFreeSearch",
    "NeighborConsistency",
    "RankSum",
    "SilhouetteScore",
    "SoftNeighborhoodDensity",
    "estimate_accuracy",
]
