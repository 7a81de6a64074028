"""Agreement of a pool of models, and label-free conclusions from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Probabilities = NDArray[np.float64]

_LEAST_AGREEMENT = 0.01
# Slope of the logit of accuracy over that of mean confidence, and half the width of an interval
# that held nine of ten development cases of docs/safety.md.
_INTERCEPT, _SLOPE = 0.01, 1.25
MARGIN = 0.21


def agreement(one: NDArray[np.intp], other: NDArray[np.intp]) -> float:
    """Return Cohen's kappa of two labellings; 1 where both give all rows the same one label."""
    classes = np.union1d(one, other)
    by_chance = float(sum(np.mean(one == c) * np.mean(other == c) for c in classes))
    if by_chance >= 1.0:
        return 1.0
    return (float(np.mean(one == other)) - by_chance) / (1.0 - by_chance)


def consensus_weights(
    tables: list[Probabilities], prior: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the candidates' weights, and the agreement of each with all others together.

    `tables` are the candidates' probabilities of the same rows, `prior` their prior weights.
    Weights sum to 1: the prior times the square of the agreement.
    """
    kappas = np.ones(len(tables))
    if len(tables) > 1 and len(tables[0]):
        for k, table in enumerate(tables):
            others = np.delete(prior, k)
            others = others if others.any() else np.ones_like(others)
            rest = np.tensordot(others, np.delete(tables, k, axis=0), axes=1)
            kappas[k] = agreement(table.argmax(axis=1), rest.argmax(axis=1))
    weights = prior * np.maximum(kappas, _LEAST_AGREEMENT) ** 2
    return weights / weights.sum(), kappas


def expected_accuracy(codes: NDArray[np.intp], consensus: Probabilities) -> float:
    """Return the expected accuracy if confidence relates to it as on other data."""
    share = float(np.mean(consensus[np.arange(len(codes)), codes]))
    return float(expit(_INTERCEPT + _SLOPE * logit(np.clip(share, 1e-6, 1 - 1e-6))))


def not_compared(reason: str) -> dict[str, Any]:
    """Return `harm_` where adapted and source-only models cannot be compared."""
    return {"likely": None, "rows": 0, "share": 0.0, "reason": reason}


def compared(
    adapted: NDArray[np.intp], alone: NDArray[np.intp], consensus: NDArray[np.intp]
) -> dict[str, Any]:
    """Return `harm_`: which of two labellings is nearer to the consensus, and why."""
    differ = adapted != alone
    rows, n = int(differ.sum()), len(differ)
    if rows == 0:
        reason = "adapted and source-only models give every row the same label"
        return {"likely": False, "rows": 0, "share": 0.0, "reason": reason}
    with_adapted, with_alone = (
        int(np.sum(consensus[differ] == labels[differ])) for labels in (adapted, alone)
    )
    reason = (
        f"of the {rows} rows of {n} that adapted and source-only models label differently, the "
        f"consensus sides with the adapted ones on {with_adapted} and with the others on "
        f"{with_alone}"
    )
    likely = with_adapted <= with_alone
    return {"likely": likely, "rows": rows, "share": rows / n, "reason": reason}
