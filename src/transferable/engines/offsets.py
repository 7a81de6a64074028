"""Offsets of the scores with which the labels of given rows have given shares.

The labels of rows with scores F and offsets v are the argmax of F + v. Which offsets give the
classes k_1 .. k_C of n rows is a transport problem: v minimises sum_i max_c (F_ic + v_c) - k'v.
With a softmax in place of the maximum the problem is smooth, and Newton's method solves it; a few
rows are then moved along shortest paths between classes until every class has its number.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import floyd_warshall
from scipy.special import logsumexp, softmax

__all__ = [
    "ScatteredScores",
    "exact_offsets",
    "least_costs",
    "scattered_offsets",
    "soft_offsets",
    "weighted_offsets",
    "whole_counts",
]

Scores = NDArray[np.float64]
_STEPS = 30  # of Newton's method; it needs five to ten
_SAMPLE = 10_000  # rows that offsets are first sought for; their order is random already
_CORRECTIONS = 3  # of what the rows at hand tell of all
_WIDENINGS = (4.0, 16.0, 64.0)  # rows near a tie that are looked at, for each that is to be moved
_SOFTEST, _HARDEST = 0.3, 1e-4  # softness of the maximum, in spreads of the scores


def whole_counts(shares: NDArray[np.float64], n_rows: int) -> NDArray[np.intp]:
    """Numbers of rows that sum up to `n_rows` and differ from the shares by less than a row."""
    wanted = shares / shares.sum() * n_rows
    counts = np.floor(wanted + 1e-9).astype(np.intp)
    largest = np.argsort(counts - wanted, kind="stable")[: n_rows - counts.sum()]
    counts[largest] += 1
    return counts


def soft_offsets(
    F: Scores,
    shares: NDArray[np.float64],
    softness: float,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Offsets v with which the mean of softmax((F + v) / softness) has these shares.

    Classes without a share get the offset -inf.
    """
    v = np.where(shares > 0, 0.0, -np.inf)
    present = np.flatnonzero(shares > 0)
    if len(present) > 1:
        wanted = shares[present] / shares.sum()
        own = np.full(len(F), 1.0 / len(F)) if weights is None else weights / weights.sum()
        v[present] = _newton(F[:, present], wanted, own, np.zeros(len(present)), softness)
    return v


def weighted_offsets(
    F: Scores, shares: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Offsets v with which argmax(F + v) has these shares, rows counting by weights.

    A row at the border of two classes may miss by what it counts. Classes without a share get the
    offset -inf.
    """
    v = np.where(shares > 0, 0.0, -np.inf)
    present = np.flatnonzero(shares > 0)
    if len(present) > 1 and len(F):
        wanted = shares[present] / shares.sum()
        v[present] = _hardened(F[:, present], wanted, weights / weights.sum())
    return v


def exact_offsets(F: Scores, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Offsets v with which argmax(F + v) has these shares, to within a row for each class.

    Rows with equal scores cannot be told apart and may break this. Classes without a share get the
    offset -inf.
    """
    v = np.where(shares > 0, 0.0, -np.inf)
    present = np.flatnonzero(shares > 0)
    if len(present) > 1 and len(F):
        v[present] = _exact(F[:, present], whole_counts(shares[present], len(F)))
    return v


class ScatteredScores(Protocol):
    """Scores F of rows that nobody holds together."""

    def counts(self, v: NDArray[np.float64]) -> NDArray[np.intp]:
        """Rows of each label argmax(F + v)."""

    def near(self, v: NDArray[np.float64], margin: float) -> Scores:
        """The scores of rows whose two highest of F + v differ by no more."""

    def costs(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """What it costs at least to move a row with one label to another."""


def scattered_offsets(
    F: Scores, everybody: ScatteredScores, shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The offsets of :func:`exact_offsets` for rows that nobody holds together; F are the first.

    The rows at hand give offsets, the counts of all tell by how much those miss, and rows near a
    tie, all that have to be brought here, are moved as if they were held with the others.
    """
    v, asked = exact_offsets(F, shares), shares
    present = np.flatnonzero(shares > 0)
    if len(present) < 2:
        return v
    found = everybody.counts(v)
    n_rows, wanted = int(found.sum()), np.zeros(len(shares), dtype=np.intp)
    wanted[present] = whole_counts(shares[present], n_rows)
    for _ in range(_CORRECTIONS):
        if (found == wanted).all():
            break
        asked = np.where(shares > 0, np.maximum(asked + (wanted - found) / n_rows, 1e-12), 0.0)
        v = exact_offsets(F, asked / asked.sum())
        found = everybody.counts(v)
    v[present] += _move_near(F, everybody, v, (found - wanted)[present], n_rows)
    v[present] = _central_offsets(everybody.costs(v)[np.ix_(present, present)], float(F.std()))
    return v


def _move_near(
    F: Scores,
    everybody: ScatteredScores,
    v: NDArray[np.float64],
    excess: NDArray[np.intp],
    n_rows: int,
) -> NDArray[np.float64]:
    """What to add to offsets so that no class has rows in excess; 0 if rows are too much alike."""
    present = np.flatnonzero(np.isfinite(v))
    second, first = np.partition((F + v)[:, present], -2, axis=1)[:, -2:].T
    share = np.abs(excess).sum() / max(n_rows, 1)
    for widening in _WIDENINGS if excess.any() else ():
        some = min(1.0, widening * max(share, 1.0 / len(F)))
        margin = float(np.quantile(first - second, some))
        near = (everybody.near(v, margin) + v)[:, present]
        labels = _moved(near, near.argmax(axis=1), excess)
        if labels is not None:
            more = _central_offsets(least_costs(near, labels), 0.0)
            if np.ptp(more) < margin:  # no other row changes its label
                return more
    return np.zeros(len(present))


def _newton(
    F: Scores,
    shares: NDArray[np.float64],
    weights: NDArray[np.float64],
    v: NDArray[np.float64],
    softness: float,
) -> NDArray[np.float64]:
    """Minimise sum_i weight_i softness logsumexp((F_i + v) / softness) - shares'v from given v."""

    def value(v: NDArray[np.float64]) -> float:
        return float(softness * (weights @ logsumexp((F + v) / softness, axis=1)) - shares @ v)

    present = value(v)
    for _ in range(_STEPS):
        P = softmax((F + v) / softness, axis=1)
        slope = weights @ P - shares
        if np.abs(slope).max() < 1e-6:
            break
        weighted = weights[:, None] * P
        curvature = (np.diag(weighted.sum(axis=0)) - P.T @ weighted) / softness
        # Adding a number to all offsets changes nothing; where no row is near a tie, little does.
        ridge = 1e-6 / softness
        step = np.linalg.solve(curvature + ridge * np.eye(len(v)), slope)
        step *= min(1.0, 5.0 * softness / max(np.abs(step).max(), 1e-300))
        while (lower := value(v - step)) > present and np.abs(step).max() > 1e-12:
            step = step / 2
        v, present = v - step, lower
    return v - v.mean()


def _hardened(
    F: Scores, shares: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Offsets for ever harder maxima, each from the last."""
    spread = max(float(F.std()), 1e-300)
    v, softness = np.zeros(F.shape[1]), _SOFTEST * spread
    while softness > _HARDEST * spread:
        some = slice(None) if softness < 100 * _HARDEST * spread else slice(_SAMPLE)
        v = _newton(F[some], shares, weights[some] / weights[some].sum(), v, softness)
        softness /= 4
    return v


def _exact(F: Scores, counts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Offsets for exact numbers of rows, all positive or not."""
    shares = np.maximum(counts, 0.5) / np.maximum(counts, 0.5).sum()
    v = _hardened(F, shares, np.full(len(F), 1.0 / len(F)))
    labels = (F + v).argmax(axis=1)
    moved = _moved(F, labels, np.bincount(labels, minlength=len(v)) - counts)
    return _central_offsets(least_costs(F, labels if moved is None else moved), float(F.std()))


def _moved(
    F: Scores, labels: NDArray[np.intp], excess: NDArray[np.intp]
) -> NDArray[np.intp] | None:
    """Labels without the rows that classes have in excess; None if there is no way to move them.

    They go where it costs least; what they pass on the way moves along.
    """
    labels, excess = labels.copy(), excess.copy()
    while excess.any():
        path = _cheapest_path(least_costs(F, labels), excess)
        if not path:
            return None
        for giver, taker in pairwise(path):
            rows = np.flatnonzero(labels == giver)
            row = rows[np.argmin(F[rows, giver] - F[rows, taker])]
            labels[row] = taker
        excess[path[0]] -= 1
        excess[path[-1]] += 1
    return labels


def least_costs(F: Scores, labels: NDArray[np.intp]) -> NDArray[np.float64]:
    """What it costs at least to move a row from one class to another; inf from an empty class."""
    costs = np.full((F.shape[1], F.shape[1]), np.inf)
    for giver in np.unique(labels):
        rows = F[labels == giver]
        costs[giver] = (rows[:, [giver]] - rows).min(axis=0)
    np.fill_diagonal(costs, np.inf)
    return costs + 1e-12 * np.abs(F).max(initial=0.0)  # no way round may gain by rounding errors


def _cheapest_path(costs: NDArray[np.float64], excess: NDArray[np.intp]) -> list[int]:
    """Classes along the cheapest way from one with too many rows to one with too few, if any."""
    lengths, before = floyd_warshall(costs, return_predecessors=True)
    givers, takers = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
    between = lengths[np.ix_(givers, takers)]
    giver, taker = np.unravel_index(np.argmin(between), between.shape)
    if np.isinf(between[giver, taker]):
        return []
    path = [int(takers[taker])]
    while path[0] != givers[giver]:
        path.insert(0, int(before[givers[giver], path[0]]))
    return path


def _central_offsets(costs: NDArray[np.float64], spread: float) -> NDArray[np.float64]:
    """Offsets amid those with which every row keeps its label: v_b - v_a <= cost of a -> b."""
    empty = np.isinf(costs).all(axis=1)
    v: NDArray[np.float64] = floyd_warshall(costs)[~empty].mean(axis=0)
    v[empty] -= spread  # any offset below the bound leaves the class without rows
    return v
