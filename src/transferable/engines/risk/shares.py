"""Class shares in the rounds of the risk classifiers: shifts followed, small classes kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transferable.engines.offsets import weighted_offsets
from transferable.engines.risk.calibration import left_out_scores, temperature
from transferable.engines.risk.rounds import Rounds
from transferable.engines.risk.solver import Labelled, Labels
from transferable.engines.shares import EstimatedShares, Labelling, View, between, find_shift
from transferable.limits import LIMITS
from transferable.linalg.arrays import to_numpy
from transferable.linalg.search import nearest
from transferable.terms.base import Matrix

__all__ = ["SOFTNESS", "doubt_shift", "follow_target", "keep_small_classes"]

SOFTNESS = 0.2  # of labels that are to have known shares, in units of the scores
_ROWS = 512  # source rows left out in turn
# How many more neighbours must agree, of all and of those that did not, for a shift to begin to
# count, and to count in full.
_GAIN, _SETTLED = (0.02, 0.025), (0.3, 0.4)
_NEIGHBORS, _ASKED = 5, 4000  # neighbours of a target row, and target rows that are asked
_SLACK = 0.01  # of all rows, by which left-out labels of a class may miss its share


def follow_target(rounds: Rounds) -> bool:
    """Let finished rounds begin again with shares estimated from the target; False if none move."""
    solver, domains = rounds.solver, rounds.solver.domains
    if domains.n_target == 0:
        return False
    unaligned = solver.unaligned(rounds.labelled)
    alone, aligned = solver.solve(unaligned), rounds.coefficients
    scores = to_numpy(solver.scores(alone)[domains.target][: LIMITS.pool_rows])
    left_out = _left_out(rounds, alone, unaligned)
    counts = solver.groups(rounds.target).counts[1]
    shift = find_shift(View.of(scores, left_out, domains), counts / counts.sum(), domains)
    if shift is None:
        return False
    y, ours = domains.y[: len(left_out)], _left_out(rounds, aligned, rounds.labelled)
    # Both views' log-odds, weighted: linear in the scores, hence in the coefficients.
    mixed = (shift.weight / temperature(left_out, y)) * alone
    mixed = mixed + ((1.0 - shift.weight) / temperature(ours, y)) * aligned
    labels = solver.relabel(mixed, Labelling(np.log(shift.shares / domains.source_shares)))
    rounds.restart(shift.shares, labels, EstimatedShares(shift, domains.source_shares))
    return True


def doubt_shift(rounds: Rounds, coefficients: Matrix, target: Labels) -> bool:
    """Let rounds that followed a shift begin again nearer to those before it; False if none need.

    Where classes are gone, alignment had scattered their labels among rows of other classes, and
    neighbouring target rows agree more often once the shift is followed. A class that was taken for
    gone, because the source's view mistakes it for another, leaves its neighbours as they were.
    """
    solver, domains = rounds.solver, rounds.solver.domains
    rows = solver.rows.Z[domains.target][:_ASKED]
    neighbors = to_numpy(nearest(rows, k=min(_NEIGHBORS, rows.shape[0] - 1)).indices)
    before, after = (
        float(np.mean(codes[neighbors] == codes[: len(neighbors), None]))
        for codes in (solver.codes(target), solver.codes(rounds.target))
    )
    gains = after - before, (after - before) / max(1.0 - before, 1e-12)
    part = max(
        float(np.interp(gain, ramp, (0.0, 1.0)))
        for gain, ramp in zip(gains, (_GAIN, _SETTLED), strict=True)
    )
    if part == 1.0:
        return False
    mixed = part * rounds.coefficients + (1.0 - part) * coefficients
    shares = between(domains.source_shares, domains.target_shares, part) if part > 0.0 else None
    rounds.restart(shares, solver.relabel(mixed, Labelling()), Labelling())
    return True


def _left_out(rounds: Rounds, coefficients: Matrix, labelled: Labelled) -> NDArray[np.float64]:
    """Scores of source rows, each left out of this solution."""
    solver = rounds.solver
    return left_out_scores(solver, labelled, solver.scores(coefficients), _ROWS)


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
    if domains.weights is not None:
        weights = weights * domains.weights[: len(y)]
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
