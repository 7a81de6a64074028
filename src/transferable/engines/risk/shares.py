"""Which shares of its rows the target's classes are taken to have, and the labels that follow.

A target whose classes are as frequent as the source's needs none of this. Where they are not, every
term that compares the domains as wholes pulls rows into classes they do not belong to. Shares that
are known are met by the labels of every round. Shares that are not are estimated from two views of
the target, the aligned solution and the one without alignment, as far as both speak for a shift.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from transferable.domains import Domains
from transferable.engines.risk.calibration import left_out_scores, temperature
from transferable.engines.risk.offsets import exact_offsets, soft_offsets, weighted_offsets
from transferable.engines.risk.rounds import Rounds
from transferable.engines.risk.solver import Labelling
from transferable.limits import LIMITS
from transferable.linalg.arrays import to_numpy

__all__ = ["ClassShares", "KnownShares", "follow_target", "keep_small_classes", "wanted_shares"]

ClassShares = Literal["auto", "source"] | Mapping[Any, float] | ArrayLike
Shares = NDArray[np.float64]

_SOFTNESS = 0.2  # of the labels of a round, in units of the scores
_LEAST_KNOWN = 0.001  # share that a class keeps in the solve, relative to the source's
_LEAST_ESTIMATED = 0.01
_FEW, _ENOUGH = 30, 100  # target rows that no bet is made on, and that all are made on
_RAMP = 0.05, 0.15  # shift of the labels' shares at which following it begins and is complete
_INFORMED = 0.35, 0.42  # of the majority class's errors avoided: a view that tells nothing, enough
_RENEWALS = 3  # rounds whose labels correct the estimate
_ROWS = 512  # source rows left out in turn
_SLACK = 0.01  # of all rows, by which left-out labels of a class may miss its share


def wanted_shares(value: Any, domains: Domains) -> Shares | None:
    """The shares a user gave, in the order of the classes; None for "auto" and "source"."""
    if isinstance(value, str):
        return None
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


class KnownShares(Labelling):
    """Labels of every round with the shares that were given."""

    def __init__(self, shares: Shares) -> None:
        super().__init__()
        self.shares = shares

    def in_solve(self, source: Shares) -> Shares:
        """The shares as the solve takes them: no class of the source counts for nothing."""
        return _floored(self.shares, _LEAST_KNOWN, source)

    def choose_offsets(self, scores: Any, *, settled: bool) -> None:
        """Let probabilities have the shares on average or, at the end, labels to within a row."""
        F = to_numpy(scores)
        self.offsets = (
            exact_offsets(F, self.shares) if settled else soft_offsets(F, self.shares, _SOFTNESS)
        )


class EstimatedShares(Labelling):
    """Shares that the labels of the first rounds correct, as far as a shift is believed in."""

    def __init__(self, shares: Shares, source: Shares, belief: float) -> None:
        super().__init__()
        self.shares, self.source, self.belief = shares, source, belief
        self._renewals = 0

    def renewed(self, counts: NDArray[np.float64]) -> Shares | None:
        """The shares after one more round with so many rows of each label; None if they stay."""
        if self._renewals == _RENEWALS:
            return None
        self._renewals += 1
        found = np.maximum(counts / max(counts.sum(), 1.0), 0.001 * self.source)
        seen = _between(self.source, found, self.belief)
        self.shares = _floored((self.shares + seen) / 2, _LEAST_ESTIMATED, self.source)
        return self.shares


@dataclass(frozen=True)
class _View:
    """One classifier's scores of the first target rows, and what left-out source rows tell of it.

    It is informed if it is right more often than the majority class, from 0 to 1. The shares of its
    labels that are usual are those that all source rows would get, left out.
    """

    coefficients: Any
    scores: NDArray[np.float64]
    temperature: float
    accuracy: float
    informed: float
    usual_shares: Shares

    @classmethod
    def of(cls, rounds: Rounds, coefficients: Any, labelled: Any) -> _View:
        solver = rounds.solver
        F = solver.scores(coefficients)
        left_out = left_out_scores(solver, labelled, F, _ROWS)
        y = solver.domains.y[: len(left_out)]
        labels, n_classes = left_out.argmax(axis=1), solver.domains.n_classes
        accuracy, majority = float(np.mean(labels == y)), solver.domains.source_shares.max()
        none, enough = _INFORMED
        avoided = (accuracy - majority) / (1.0 - majority)
        gained = _frequencies(labels, n_classes) - _frequencies(y, n_classes)
        return cls(
            coefficients=coefficients,
            scores=to_numpy(F[solver.domains.target][: LIMITS.pool_rows]),
            temperature=temperature(left_out, y),
            accuracy=accuracy,
            informed=float(np.clip((avoided - none) / (enough - none), 0.0, 1.0)),
            usual_shares=solver.domains.source_shares + gained,
        )

    def probabilities(self) -> NDArray[np.float64]:
        return softmax(self.scores / self.temperature, axis=1)

    def label_shares(self) -> Shares:
        return _frequencies(self.scores.argmax(axis=1), self.scores.shape[1])


def follow_target(rounds: Rounds) -> bool:
    """Let finished rounds begin again with shares estimated from the target; False if none move.

    A shift shows in the solution without alignment: its labels of target rows have other shares
    than its labels of left-out source rows, by more than chance. It is trusted as far as it is as
    sure on the target as it is right on the source. The shares themselves are those of most
    likelihood under it and those of the aligned labels, weighted by that trust.
    """
    solver, domains = rounds.solver, rounds.solver.domains
    source = domains.source_shares
    if domains.n_target < _FEW:
        return False
    unaligned = solver.unaligned(rounds.labelled)
    alone = _View.of(rounds, solver.solve(unaligned), unaligned)
    probabilities = alone.probabilities()
    trust = min(1.0, probabilities.max(axis=1).mean() / max(alone.accuracy, 1e-12)) ** 2
    belief = alone.informed * _belief(
        trust * _distance(alone.label_shares(), alone.usual_shares), domains
    )
    if belief == 0.0:
        return False
    aligned = _View.of(rounds, rounds.coefficients, rounds.labelled)
    estimate = (1.0 - trust) * aligned.label_shares() + trust * _em_shares(probabilities, source)
    shares = _between(source, np.maximum(estimate, 0.001), belief)
    shares = _floored(shares, _LEAST_ESTIMATED, source)
    # Both views' log-odds, weighted: linear in the scores, hence in the coefficients.
    mixed = ((1.0 - trust) / aligned.temperature) * aligned.coefficients
    mixed = mixed + (trust / alone.temperature) * alone.coefficients
    labels = solver.relabel(mixed, Labelling(np.log(shares / source)))
    rounds.restart(shares, labels, EstimatedShares(shares, source, belief))
    return True


def _belief(moved: float, domains: Domains) -> float:
    """How far a shift of the labels' shares is followed: from 0, not at all, to 1, all the way."""
    source, rows = domains.source_shares, min(domains.n_target, LIMITS.pool_rows)
    # What rows drawn without any shift would differ by on average.
    chance = float(np.sqrt(source * (1.0 - source) / (2.0 * np.pi * rows)).sum())
    begin, end = _RAMP
    shift = (moved - chance) / (1.0 - 1.0 / len(source))
    sure = min(1.0, (rows - _FEW) / (_ENOUGH - _FEW))
    return sure * float(np.clip((shift - begin) / (end - begin), 0.0, 1.0))


def keep_small_classes(rounds: Rounds) -> None:
    """Offsets with which left-out source rows get as many labels of each class as it has rows.

    Least squares gives rare classes fewer labels than they have rows. Where a shift of the shares
    was followed, rows count as they do in the loss.
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
    if (np.abs(found - own) > slack).any():
        wanted = np.maximum(own + np.clip(found - own, -slack, slack), 1e-6)
        rounds.relabel(weighted_offsets(left_out, wanted, weights))


def _em_shares(probabilities: NDArray[np.float64], source: Shares) -> Shares:
    """Shares of most likelihood, given probabilities under the source's (Saerens et al., 2002)."""
    shares = source
    for _ in range(200):
        joint = probabilities * (shares / source)
        renewed = np.mean(joint / joint.sum(axis=1, keepdims=True), axis=0)
        if np.abs(renewed - shares).sum() < 1e-5:
            break
        shares = renewed
    return shares


def _frequencies(codes: NDArray[np.intp], n_classes: int) -> Shares:
    return np.bincount(codes, minlength=n_classes) / max(len(codes), 1)


def _distance(a: Shares, b: Shares) -> float:
    """Total variation: what share of the rows would have to change their class."""
    return float(np.abs(a - b).sum() / 2)


def _between(a: Shares, b: Shares, weight: float) -> Shares:
    """Shares on the geometric way from a to b."""
    return softmax((1.0 - weight) * np.log(a) + weight * np.log(b))


def _floored(shares: Shares, least: float, source: Shares) -> Shares:
    """No share below this part of the source's."""
    kept = np.maximum(shares / shares.sum(), least * source)
    return kept / kept.sum()
