"""What can be said about two domains and about methods without a label of the target."""

from transferable.diagnostics.advice import Diagnosis, diagnose
from transferable.diagnostics.columns import ColumnShift, column_shifts
from transferable.diagnostics.comparison import (
    MethodOutcome,
    compare_methods,
    source_only_methods,
    vote,
)
from transferable.diagnostics.drift import Drift, drift, remembers_target
from transferable.diagnostics.gap import MEASURES, DomainGap, domain_gap, unit_variance
from transferable.diagnostics.space import TERM_TITLES, history_of, shared_space
from transferable.diagnostics.transfer import TransferEstimate, estimate_transfer
from transferable.diagnostics.trust import Change, Trust, assess_trust

__all__ = [
    "MEASURES",
    "TERM_TITLES",
    "Change",
    "ColumnShift",
    "Diagnosis",
    "DomainGap",
    "Drift",
    "MethodOutcome",
    "TransferEstimate",
    "Trust",
    "assess_trust",
    "column_shifts",
    "compare_methods",
    "diagnose",
    "domain_gap",
    "drift",
    "estimate_transfer",
    "history_of",
    "remembers_target",
    "shared_space",
    "source_only_methods",
    "unit_variance",
    "vote",
]
