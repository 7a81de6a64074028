"""Choosing settings and judging models without target labels, and splitting rows by domain."""

from transferable.model_selection.accuracy import AccuracyEstimate, estimate_accuracy
from transferable.model_selection.agreement import AgreementScore
from transferable.model_selection.circular import CircularScore
from transferable.model_selection.confidence import (
    ConfusionScore,
    EntropyScore,
    InformationScore,
)
from transferable.model_selection.importance import (
    DevScore,
    ImportanceWeightedScore,
)
from transferable.model_selection.neighborhood import (
    DensityScore,
    NeighborsScore,
    SilhouetteScore,
)
from transferable.model_selection.ranking import SCORERS, RankSum
from transferable.model_selection.search import LabelFreeSearch
from transferable.model_selection.splitters import (
    LeaveOneDomainOut,
    StratifiedDomainKFold,
    as_source_and_target,
)

__all__ = [
    "SCORERS",
    "AccuracyEstimate",
    "AgreementScore",
    "CircularScore",
    "ConfusionScore",
    "DensityScore",
    "DevScore",
    "EntropyScore",
    "ImportanceWeightedScore",
    "InformationScore",
    "LabelFreeSearch",
    "LeaveOneDomainOut",
    "NeighborsScore",
    "RankSum",
    "SilhouetteScore",
    "StratifiedDomainKFold",
    "as_source_and_target",
    "estimate_accuracy",
]
