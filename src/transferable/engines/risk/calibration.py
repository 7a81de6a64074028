"""The temperature that turns scores into probabilities.

Scores of fitted source rows are too good to learn from: each row helped to fit its own. The
linear system tells how much. With h_i the weight of row i's own label in its score, the score the
row would have had if it had been left out is (F_i - h_i Y_i) / (1 - h_i), exactly.

Left-out source rows tell nothing of the target, though, and may be separated without error. How
far the target's scores can be trusted shows in how many of its first labels they overturned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from transferable.engines.risk.rounds import Rounds
from transferable.engines.risk.solver import Labelled, Solver
from transferable.limits import LIMITS
from transferable.linalg.arrays import to_numpy
from transferable.terms.base import Matrix

__all__ = ["left_out_scores", "temperature", "temperatures"]

_ROWS = 256  # source rows that are left out in turn
_BOUNDS = (-7.0, 3.0)  # of the temperature's natural logarithm


def temperatures(rounds: Rounds) -> tuple[float, float]:
    """That of left-out source rows, and the higher of it and of first-labelled target rows."""
    domains = rounds.solver.domains
    left_out = left_out_scores(rounds.solver, rounds.labelled, rounds.scores, _ROWS)
    count, weights = len(left_out), domains.weights
    own = None if weights is None else weights[:count]
    source = temperature(left_out, domains.y[:count], own)
    if domains.n_target == 0:
        return source, source
    scores = to_numpy(rounds.scores[domains.target][: LIMITS.pool_rows])
    if rounds.labelling.offsets is not None:
        scores = scores + rounds.labelling.offsets
    first = rounds.solver.codes(rounds.first)[: len(scores)]
    own = None if weights is None else weights[domains.target][: len(scores)]
    return source, max(source, temperature(scores, first, own))


def left_out_scores(
    solver: Solver, labelled: Labelled, scores: Matrix, most: int
) -> NDArray[np.float64]:
    """Scores of the first source rows, each left out of the fit, pseudo-labels unchanged.

    Their order is random already.
    """
    count = min(most, solver.domains.n_source)
    own = to_numpy(solver.own_weights(labelled, count))
    own = np.clip(own, 0.0, 1.0 - 1e-6)[:, None]
    return (to_numpy(scores[:count]) - own * to_numpy(solver.first_labels(count))) / (1.0 - own)


def temperature(
    scores: Matrix, codes: NDArray[np.intp], weights: NDArray[np.float64] | None = None
) -> float:
    """The divisor of the scores that makes the given classes most likely under a softmax."""

    def loss(log_temperature: float) -> float:
        log_probabilities = log_softmax(scores / np.exp(log_temperature), axis=1)
        return -float(np.average(log_probabilities[np.arange(len(codes)), codes], weights=weights))

    return float(np.exp(minimize_scalar(loss, bounds=_BOUNDS, method="bounded").x))
