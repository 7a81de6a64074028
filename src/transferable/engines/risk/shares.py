"""Class shares in the rounds of the risk classifiers: shifts followed, small classes kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from transferable.engines.offsets import weighted_offsets
from transferable.engines.risk.calibration import left_out_scores, temperature
from transferable.engines.risk.rounds import Rounds
from transferable.engines.shares import EstimatedShares, Labelling, View, find_shift
from transferable.limits import LIMITS
from transferable.linalg.arrays import to_numpy

__all__ = ["SOFTNESS", "follow_target", "keep_small_classes"]

SOFTNESS = 0.2  # of labels that are to have known shares, in units of the scores
_ROWS = 512  # source rows left out in turn
_SLACK = 0.01  # of all rows, by which left-out labels of a class may miss its share


def follow_target(rounds: Rounds) -> bool:
    """Let finished rounds begin again with shares estimated from the target; False if none move."""
    solver, source = rounds.solver, rounds.solver.domains.source_shares
    if solver.domains.n_target == 0:
        return False
    unaligned = solver.unaligned(rounds.labelled)
    alone, aligned = solver.solve(unaligned), rounds.coefficients
    shift = find_shift(
        _view(rounds, alone, unaligned),
        lambda: _view(rounds, aligned, rounds.labelled),
        solver.domains,
    )
    if shift is None:
        return False
    # Both views' log-odds, weighted: linear in the scores, hence in the coefficients.
    ours, theirs = shift.weights
    labels = solver.relabel(
        ours * alone + theirs * aligned, Labelling(np.log(shift.shares / source))
    )
    rounds.restart(shift.shares, labels, EstimatedShares(shift, source))
    return True


def _view(rounds: Rounds, coefficients: Any, labelled: Any) -> View:
    """A solution's view of the first target rows, calibrated on left-out source rows."""
    solver, domains = rounds.solver, rounds.solver.domains
    scores = solver.scores(coefficients)
    left_out = left_out_scores(solver, labelled, scores, _ROWS)
    target = to_numpy(scores[domains.target][: LIMITS.pool_rows])
    return View.of(target, left_out, domains, temperature(left_out, domains.y[: len(left_out)]))


def keep_small_classes(rounds: Rounds) -> None:
    """Offsets with which left-out source rows get as many labels of each class as it has rows.

    Least squares gives rare classes fewer labels than they have rows. Where a shift of the shares
    was followed, rows count as they do in the loss. What is within the slack is left alone, and
    from there to twice the slack the offsets grow with what is missed: nothing hangs on one row.
    """
    domains = rounds.solver.domains
    left_out = left_out_scores(rounds.solver, rounds.labelled, rounds.scores, _ROWS)
    y = domains.y[: len(left_out)]
    weights = (domains.ratios * np.ones(domains.n_classes))[y]
    own, found = (
        np.bincount(codes, weights, domains.n_classes) / weights.sum()
        for codes in (y, left_out.argmax(axis=1))
    )
    # A few rows tell little: half a standard error of their shares is left as it is.
    slack = np.maximum(_SLACK, 0.5 * np.sqrt(own * (1.0 - own) / len(y)))
    part = min(1.0, float(np.max(np.abs(found - own) / slack)) - 1.0)
    if part > 0.0:
        wanted = np.maximum(own + np.clip(found - own, -slack, slack), 1e-6)
        rounds.relabel(part * weighted_offsets(left_out, wanted, weights))
