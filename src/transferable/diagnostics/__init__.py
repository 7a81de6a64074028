"""Comparisons of two domains, and of methods on them, without target labels."""

from transferable.diagnostics.assessment import Assessment, assess_trust
from transferable.diagnostics.comparison import (
    MethodOutcome,
    compare_methods,
    source_only_methods,
)
from transferable.diagnostics.diagnosis import (
    MEASURES,
    ColumnShift,
    Diagnosis,
    DomainGap,
    column_shifts,
    diagnose,
    domain_gap,
    shared_space,
    unit_variance,
)
from transferable.diagnostics.drift import Drift, drift, remembers_target
from transferable.trust import Audit, RowsToLabel, Trust

__all__ = [
    "MEASURES",
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
    "remembers_target",
    "shared_space",
    "source_only_methods",
    "unit_variance",
]
