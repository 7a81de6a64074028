"""Comparisons of two domains, and of methods on them, without target labels."""

from transferable.diagnostics.advice import Diagnosis, diagnose
from transferable.diagnostics.assessment import Assessment, assess_trust
from transferable.diagnostics.comparison import (
    MethodOutcome,
    compare_methods,
    source_only_methods,
    vote,
)
from transferable.diagnostics.gap import (
    MEASURES,
    TERM_TITLES,
    ColumnShift,
    DomainGap,
    Drift,
    column_shifts,
    domain_gap,
    drift,
    history_of,
    remembers_target,
    shared_space,
    unit_variance,
)
from transferable.trust import Audit, RowsToLabel, Trust

__all__ = [
    "MEASURES",
    "TERM_TITLES",
    "Assessment",
    "Audit",
    "ColumnShift",
    "Diagnosis",
    "DomainGap",
    "Drift",
    "MethodOutcome",
    "RowsToLabel",
    "Trust",
    "assess_trust",
    "column_shifts",
    "compare_methods",
    "diagnose",
    "domain_gap",
    "drift",
    "history_of",
    "remembers_target",
    "shared_space",
    "source_only_methods",
    "unit_variance",
    "vote",
]
