"""Class prior of the target: given, estimated and checked, and the labels that follow from it.

Where the class priors of source and target differ, every term that compares the marginals pulls
rows into wrong classes. A given prior is met by the labels of every round. One that is not given is
estimated from two views of the target, the aligned solution and the one without alignment, as far
as both support a label shift.

The labels of rows with scores F and offsets v are the argmax of F + v. Offsets that give the
classes k_1 .. k_C of n rows solve a transport problem: v minimises sum_i max_c (F_ic + v_c) - k'v.
With a softmax for the maximum the problem is smooth and Newton's method solves it; a few rows then
move along shortest paths between classes until every class has its number.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.sparse.csgraph import floyd_warshall
from scipy.special import log_softmax, logsumexp, softmax

from transferable._linalg.arrays import device, namespace, to_numpy
from transferable.domains import Domains
from transferable.limits import LIMITS

ClassShares = Literal["auto", "estimated", "source"] | Mapping[Any, float] | ArrayLike
Shares = NDArray[np.float64]

N_LEFT_OUT = 512  # source rows left out in turn at most
_LEAST_GIVEN = 0.001  # share that a class keeps in the solve, relative to the source's
_LEAST_ESTIMATED = 0.01
_FEW, _ENOUGH = 30, 100  # target rows below which no shift is followed, and from which all are
_RAMP = 0.05, 0.15  # shift of the labels' shares at which following it begins and is complete
_INFORMED = 0.35, 0.42  # of the majority class's errors avoided: a view to ignore, and to trust
_RENEWALS = 3  # rounds whose labels correct the estimate
_CALIBRATION_RIDGE = 0.005  # of the offsets: a class that is never mistaken keeps a finite one
_LOG_FACTORS = (-3.0, 7.0)  # bounds of the logarithm of the factor of the scores
# Agreement with the first labels, beyond half of that without the shift: not followed, and fully.
SUPPORT = -0.05, 0.05
_SLACK = 0.01  # of all rows, by which left-out labels of a class may miss its share
Scores = NDArray[np.float64]
_STEPS = 30  # of Newton's method; it needs five to ten
_SAMPLE = 10_000  # rows that offsets are first sought for; their order is random already
_CORRECTIONS = 3  # corrections of the offsets by the counts of all rows
_WIDENINGS = (4.0, 16.0, 64.0)  # rows near a tie that are collected, for each row to be moved
_SOFTEST, _HARDEST = 0.3, 1e-4  # softness of the maximum, in spreads of the scores


def given_shares(value: Any, domains: Domains) -> Shares:
    """Return the given class prior, in the order of the classes."""
    classes = domains.classes.tolist()
    if isinstance(value, Mapping):
        unknown = [label for label in value if label not in classes]
        if unknown:
            raise ValueError(
                f"class_shares names {unknown!r}, of which the source has no row; its classes are "
                f"{classes!r}."
            )
        lacking = [label for label in classes if label not in value]
        if lacking:
            raise ValueError(
                f"class_shares names no share for {lacking!r}; give every class one, 0 if it is "
                "absent."
            )
        value = [value[label] for label in classes]
    shares = np.asarray(value, dtype=np.float64)
    if shares.shape != (len(classes),):
        raise ValueError(
            f"class_shares has the shape {shares.shape}, but the source has {len(classes)} "
            f"classes; give one share for each of {classes!r}."
        )
    if not np.isfinite(shares).all() or (shares < 0).any():
        raise ValueError(f"class_shares must be numbers from 0 to 1, got {shares.tolist()}.")
    if abs(shares.sum() - 1.0) > 1e-3:
        raise ValueError(
            f"class_shares must sum to 1, got {shares.tolist()}, which sum to {shares.sum():.4g}."
        )
    if np.count_nonzero(shares) == 1:
        label = classes[int(shares.argmax())]
        warnings.warn(
            f"class_shares leaves the target one class, {label!r}: every row gets it.",
            UserWarning,
            stacklevel=2,
        )
    return shares / shares.sum()


@dataclass
class LabelRule:
    """Rule that labels target rows by their highest score, offsets added."""

    # (n_classes,): additions to the scores of each class; minus infinity for a class that is
    # absent
    offsets: NDArray[np.float64]
    renewals: int = 0  # rounds left whose labels correct the class prior

    def codes(
        self, scores: Any, settled: bool = False, everybody: ScatteredScores | None = None
    ) -> NDArray[np.intp]:
        """Return class codes of target rows, in a round or, once `settled`, for good.

        Where other processes hold most of the rows, these are the first, and `everybody` has all.
        """
        xp = namespace(scores)
        found = scores + xp.asarray(self.offsets, device=device(scores))
        found = xp.astype(xp.argmax(found, axis=1), xp.int32)  # half the bytes to move
        return to_numpy(found).astype(np.intp)


class GivenShares(LabelRule):
    """Rule with offsets, so that the labels of every round have a given class prior.

    Known labels count: a class with more of them than its share of the rows gets no others.
    `softness` is that of the labels of a round, in units of the scores.
    """

    def __init__(self, shares: Shares, softness: float, domains: Domains) -> None:
        super().__init__(np.zeros(len(shares)))
        weights = domains.weights[domains.target]
        is_known = domains.known >= 0
        known = np.bincount(domains.known[is_known], weights[is_known], len(shares))
        left = np.maximum(shares * weights.sum() - known, 0.0)
        self.shares = left / left.sum() if left.any() and is_known.any() else shares
        self.prior = floored(shares, _LEAST_GIVEN, domains.prior)  # of the solve
        self._softness, self._weights = softness, weights[domains.unknown]
        self._equal = bool((domains.weights == 1.0).all())

    def codes(
        self, scores: Any, settled: bool = False, everybody: ScatteredScores | None = None
    ) -> NDArray[np.intp]:
        """Return labels with the shares: of the first rows on average or, settled, to a row."""
        F, first = to_numpy(scores), slice(LIMITS.pool_rows)
        if len(F) and not settled:
            weights = self._weights[first]
            self.offsets = soft_offsets(F[first], self.shares, self._softness, weights)
        elif everybody is not None:
            self.offsets = scattered_offsets(F, everybody, self.shares)
        elif self._equal:
            self.offsets = exact_offsets(F, self.shares)
        else:
            spread = _spread(F, self._weights)
            self.offsets = weighted_offsets(F, self.shares, self._weights, spread)
        return super().codes(scores)


@dataclass
class EstimatedShares(LabelRule):
    """Rule whose first rounds correct an estimated prior, as far as it is trusted."""

    renewals: int = _RENEWALS
    belief: float = 0.0
    prior: Any = None

    def renewed(self, shares: Shares, counts: NDArray[np.float64]) -> Shares:
        """Return the class prior after a round with these counts of each label."""
        self.renewals -= 1
        found = np.maximum(counts / max(counts.sum(), 1.0), 0.001 * self.prior)
        seen = between(self.prior, found, self.belief)
        return floored((shares + seen) / 2, _LEAST_ESTIMATED, self.prior)


def between(a: Shares, b: Shares, weight: float) -> Shares:
    """Return the shares at a point of the geometric path from a to b."""
    return softmax((1.0 - weight) * np.log(a) + weight * np.log(b))


def floored(shares: Shares, least: float, prior: Shares) -> Shares:
    """Return shares, none below this fraction of the prior's."""
    kept = np.maximum(shares / shares.sum(), least * prior)
    return kept / kept.sum()


def class_log_probabilities(
    left_out: NDArray[np.float64],
    codes: NDArray[np.intp],
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return log-probabilities of rows by their scores, calibrated on left-out rows.

    A factor of the scores and an offset for each class maximise the likelihood of the codes of
    left-out rows. Least squares scores rare classes lower than their probabilities, which a
    temperature alone cannot correct.
    """
    rows, n_classes = np.arange(len(codes)), left_out.shape[1]

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        factor, offsets = np.exp(parameters[0]), parameters[1:]
        logs = log_softmax(factor * left_out + offsets, axis=1)
        slope = np.exp(logs)
        slope[rows, codes] -= 1.0
        by_class = np.average(slope, 0, weights) + 2.0 * _CALIBRATION_RIDGE * offsets
        by_factor = factor * np.average(np.sum(slope * left_out, axis=1), weights=weights)
        likelihood = np.average(logs[rows, codes], weights=weights)
        value = _CALIBRATION_RIDGE * (offsets @ offsets) - likelihood
        return float(value), np.concatenate([[by_factor], by_class])

    # Start from scores of unit spread, which do not depend on their unit.
    start = np.zeros(1 + n_classes)
    start[0] = np.clip(-np.log(_spread(left_out, weights)), *_LOG_FACTORS)
    bounds = [_LOG_FACTORS] + [(None, None)] * n_classes
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    logs: NDArray[np.float64] = log_softmax(np.exp(found[0]) * scores + found[1:], axis=1)
    return logs


def _spread(scores: Scores, weights: NDArray[np.float64]) -> float:
    """Return the standard deviation of all scores, rows counting by weights; above 0."""
    every = np.broadcast_to(weights[:, None], scores.shape)
    middle = np.average(scores, weights=every)
    return max(float(np.sqrt(np.average((scores - middle) ** 2, weights=every))), 1e-300)


@dataclass(frozen=True)
class Shift:
    """Label shift supported by the target."""

    # (n_classes,): class prior between the source's and the estimate, as far as the shift is
    # supported
    shares: Shares
    belief: float  # support for the shift, from 0 to 1
    # weight of the view without alignment in the first labels: 0 for a shift with little
    # support, so that labels and class prior hardly change
    weight: float


def estimate_shift(
    scores: NDArray[np.float64],
    left_out: NDArray[np.float64],
    aligned: Shares,
    domains: Domains,
) -> Shift:
    """Return the label shift shown by scores without alignment and by the aligned labels.

    A label shift shows in the view without alignment: its labels of target rows have another class
    prior than those of left-out source rows, by more than chance. The view is trusted as far as its
    confidence on the target matches its accuracy on the source. The class prior is the
    maximum-likelihood estimate under it and that of the aligned labels, weighted by that trust.

    `scores` are those of target rows, `left_out` of the first source rows, each of these left out,
    and `aligned` is the class prior of the labels with alignment.
    """
    prior, y, C = domains.prior, domains.y[: len(left_out)], domains.n_classes
    own, asked = domains.weights[: len(y)], domains.weights[domains.target][: len(scores)]
    n_rows = asked.sum()
    P = np.exp(class_log_probabilities(left_out, y, own, scores))
    labels = left_out.argmax(axis=1)
    accuracy, majority = float(np.average(labels == y, weights=own)), prior.max()
    none, enough = _INFORMED
    avoided = (accuracy - majority) / (1.0 - majority)
    informed = float(np.clip((avoided - none) / (enough - none), 0.0, 1.0))
    trust = min(1.0, np.average(P.max(axis=1), weights=asked) / max(accuracy, 1e-12)) ** 2
    usual = prior + (np.bincount(labels, own, C) - np.bincount(y, own, C)) / own.sum()
    found = np.bincount(scores.argmax(axis=1), asked, C) / n_rows
    moved = trust * float(np.abs(found - usual).sum() / 2)
    # Average difference of rows drawn without any shift.
    chance = float(np.sqrt(prior * (1.0 - prior) / (2.0 * np.pi * n_rows)).sum())
    begin, end = _RAMP
    shift = (moved - chance) / (1.0 - 1.0 / C)
    sure = float(np.clip((n_rows - _FEW) / (_ENOUGH - _FEW), 0.0, 1.0))
    belief = informed * (sure * float(np.clip((shift - begin) / (end - begin), 0.0, 1.0)))
    if belief == 0.0:
        return Shift(prior, 0.0, 0.0)
    shares = prior  # of most likelihood, given P under the prior (Saerens et al., 2002)
    for _ in range(200):
        joint = P * (shares / prior)
        renewed = np.average(joint / joint.sum(axis=1, keepdims=True), 0, asked)
        if np.abs(renewed - shares).sum() < 1e-5:
            break
        shares = renewed
    estimate = (1.0 - trust) * aligned + trust * shares
    followed = between(prior, np.maximum(estimate, 0.001), belief)
    return Shift(floored(followed, _LEAST_ESTIMATED, prior), belief, belief * trust)


def agreement(one: NDArray[np.intp], other: NDArray[np.intp], weights: Any = None) -> float:
    """Return Cohen's kappa of two labellings; 0 where both give all rows the same one label."""
    w = np.ones(len(one)) if weights is None else weights
    _, codes = np.unique(np.concatenate([one, other]), return_inverse=True)
    first, second = (np.bincount(half, w, codes.max() + 1) for half in np.split(codes, 2))
    by_chance = float(first @ second) / w.sum() ** 2
    if by_chance >= 1.0:
        return 0.0
    return (float(w @ (one == other)) / w.sum() - by_chance) / (1.0 - by_chance)


def small_class_offsets(
    left_out: NDArray[np.float64],
    codes: NDArray[np.intp],
    weights: NDArray[np.float64],
    ratio: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return offsets with which left-out source rows get as many labels of each class as it has.

    Least squares gives rare classes fewer labels than they have rows. Misses within the slack are
    left alone; from there to twice the slack the offsets grow, so that nothing depends on one row.
    """
    C, shifted = left_out.shape[1], weights * ratio[codes]
    own, found = (
        np.bincount(c, shifted, C) / shifted.sum() for c in (codes, left_out.argmax(axis=1))
    )
    # Ignore half a standard error of the shares of few rows.
    slack = np.maximum(_SLACK, 0.5 * np.sqrt(own * (1.0 - own) / weights.sum()))
    part = min(1.0, float(np.max(np.abs(found - own) / slack)) - 1.0)
    if part <= 0.0:
        return np.zeros(C)
    wanted = np.maximum(own + np.clip(found - own, -slack, slack), 1e-6)
    shares, rows = wanted / wanted.sum(), shifted / shifted.sum()
    return part * _hardened(left_out, shares, rows, _spread(left_out, weights))


# -- offsets -----------------------------------------------------------------------------------


def whole_counts(shares: NDArray[np.float64], n_rows: int) -> NDArray[np.intp]:
    """Return counts that sum to `n_rows` and differ from the shares by less than a row."""
    wanted = shares / shares.sum() * n_rows
    counts = np.floor(wanted + 1e-9).astype(np.intp)
    largest = np.argsort(counts - wanted, kind="stable")[: n_rows - counts.sum()]
    counts[largest] += 1
    return counts


def soft_offsets(
    F: Scores,
    shares: NDArray[np.float64],
    softness: float,
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return offsets v with which the mean of softmax((F + v) / softness) has these shares.

    Classes without a share get the offset -inf.
    """
    v = np.where(shares > 0, 0.0, -np.inf)
    present = np.flatnonzero(shares > 0)
    if len(present) > 1:
        wanted = shares[present] / shares.sum()
        own = weights / weights.sum()
        v[present] = _newton(F[:, present], wanted, own, np.zeros(len(present)), softness)
    return v


def weighted_offsets(
    F: Scores, shares: NDArray[np.float64], weights: NDArray[np.float64], spread: float
) -> NDArray[np.float64]:
    """Return offsets v with which argmax(F + v) has these shares, rows counting by weights.

    `spread` is that of the scores. A row at the border of two classes may miss by its weight.
    Classes without a share get -inf.
    """
    v = np.where(shares > 0, 0.0, -np.inf)
    present = np.flatnonzero(shares > 0)
    if len(present) > 1 and len(F):
        wanted = shares[present] / shares.sum()
        v[present] = _hardened(F[:, present], wanted, weights / weights.sum(), spread)
    return v


def exact_offsets(F: Scores, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return offsets v with which argmax(F + v) has these shares, to within a row for each class.

    Rows with equal scores may break this. Classes without a share get the offset -inf.
    """
    v = np.where(shares > 0, 0.0, -np.inf)
    present = np.flatnonzero(shares > 0)
    if len(present) > 1 and len(F):
        v[present] = _exact(F[:, present], whole_counts(shares[present], len(F)))
    return v


class ScatteredScores(Protocol):
    """Scores F of rows distributed over several holders."""

    def counts(self, v: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the number of rows of each label argmax(F + v)."""

    def near(self, v: NDArray[np.float64], margin: float) -> Scores:
        """Return the scores of rows whose two highest F + v differ by no more than a margin."""

    def costs(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the least cost of moving a row with one label to another."""


def scattered_offsets(
    F: Scores, everybody: ScatteredScores, shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return :func:`exact_offsets` for distributed rows, of which F are the first.

    The rows at hand give offsets, the counts of all rows correct them, and only rows near a tie are
    collected and moved.
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
    """Return an addition to offsets that leaves no class in excess; 0 if rows are too similar."""
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
    F: Scores, shares: NDArray[np.float64], weights: NDArray[np.float64], spread: float
) -> NDArray[np.float64]:
    """Return offsets for successively harder maxima, each started from the last."""
    v, softness = np.zeros(F.shape[1]), _SOFTEST * spread
    while softness > _HARDEST * spread:
        some = slice(None) if softness < 100 * _HARDEST * spread else slice(_SAMPLE)
        v = _newton(F[some], shares, weights[some] / weights[some].sum(), v, softness)
        softness /= 4
    return v


def _exact(F: Scores, counts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return offsets for exact counts of rows, which may be zero."""
    shares = np.maximum(counts, 0.5) / np.maximum(counts, 0.5).sum()
    v = _hardened(F, shares, np.full(len(F), 1.0 / len(F)), max(float(F.std()), 1e-300))
    labels = (F + v).argmax(axis=1)
    moved = _moved(F, labels, np.bincount(labels, minlength=len(v)) - counts)
    return _central_offsets(least_costs(F, labels if moved is None else moved), float(F.std()))


def _moved(
    F: Scores, labels: NDArray[np.intp], excess: NDArray[np.intp]
) -> NDArray[np.intp] | None:
    """Return labels without rows in excess; None if they cannot be moved.

    Rows move along the cheapest path, and rows of the classes on the path move along.
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
    """Return the least cost of moving a row from one class to another; inf from an empty class."""
    costs = np.full((F.shape[1], F.shape[1]), np.inf)
    for giver in np.unique(labels):
        rows = F[labels == giver]
        costs[giver] = (rows[:, [giver]] - rows).min(axis=0)
    np.fill_diagonal(costs, np.inf)
    return costs + 1e-12 * np.abs(F).max(initial=0.0)  # no way round may gain by rounding errors


def _cheapest_path(costs: NDArray[np.float64], excess: NDArray[np.intp]) -> list[int]:
    """Return the classes along the cheapest path from a class in excess to one in want, if any."""
    # Of an array without a mask, costs below 1e-8 are no edges: rows that are nearly ties.
    lengths, before = floyd_warshall(np.ma.masked_invalid(costs), return_predecessors=True)
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
    """Return offsets amid those that keep every label: v_b - v_a <= cost of a -> b."""
    empty = np.isinf(costs).all(axis=1)
    v: NDArray[np.float64] = floyd_warshall(np.ma.masked_invalid(costs))[~empty].mean(axis=0)
    v[empty] -= spread  # any offset below the bound leaves the class without rows
    return v
