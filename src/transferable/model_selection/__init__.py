"""Model selection without target labels, and splits of rows by domain."""

from transferable.model_selection.scorers import (
    SCORERS,
    AgreementScore,
    CircularScore,
    ConfusionScore,
    DensityScore,
    DevScore,
    EntropyScore,
    ImportanceWeightedScore,
    InformationScore,
    NeighborsScore,
    RankSum,
    SilhouetteScore,
)
from transferable.model_selection.search import LabelFreeSearch
from transferable.model_selection.splitters import (
    LeaveOneDomainOut,
    StratifiedDomainKFold,
    as_source_and_target,
)

__all__ = [
    "SCORERS",
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
]
