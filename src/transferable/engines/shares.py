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
from transferable.engines.class_calibration import ClassCalibration
from transferable.engines.offsets import (
    ScatteredScores,
    exact_offsets,
    scattered_offsets,
    soft_offsets,
    weighted_offsets,
)
from transferable.limits import LIMITS
from transferable.linalg.arrays import device, namespace, to_numpy

__all__ = [
    "ClassShares",
    "EstimatedShares",
    "KnownShares",
    "Labelling",
    "Shift",
    "View",
    "between",
    "find_shift",
    "wanted_shares",
]

ClassShares = Literal["auto", "estimated", "source"] | Mapping[Any, float] | ArrayLike
Shares = NDArray[np.float64]

_LEAST_KNOWN = 0.001  # share that a class keeps in the solve, relative to the source's
_LEAST_ESTIMATED = 0.01
_FEW, _ENOUGH = 30, 100  # target rows that no bet is made on, and that all are made on
_RAMP = 0.05, 0.15  # shift of the labels' shares at which following it begins and is complete
_INFORMED = 0.35, 0.42  # of the majority class's errors avoided: a view that tells nothing, enough
_RENEWALS = 3  # rounds whose labels correct the estimate


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


class Labelling:
    """How target rows get their labels from scores: by the highest one, offsets added.

    Attributes
    ----------
    offsets : ndarray of shape (n_classes,) or None
        What is added to the scores of each class; None for nothing.
    """

    def __init__(self, offsets: NDArray[np.float64] | None = None) -> None:
        self.offsets = offsets

    def choose_offsets(
        self, scores: Any, *, settled: bool, everybody: ScatteredScores | None = None
    ) -> None:
        """Set the offsets for these scores of target rows, for a round or for good.

        Where others hold most of the rows, those scores are the first, and `everybody` has all.
        """

    def codes(
        self, scores: Any, *, settled: bool = False, everybody: ScatteredScores | None = None
    ) -> NDArray[np.intp]:
        """Classes of target rows."""
        self.choose_offsets(scores, settled=settled, everybody=everybody)
        xp = namespace(scores)
        if self.offsets is not None:
            scores = scores + xp.asarray(self.offsets, device=device(scores))
        return to_numpy(xp.argmax(scores, axis=1))

    def renewed(self, counts: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The class shares that a round with so many rows of each label leads to; None if kept."""
        return None


class KnownShares(Labelling):
    """Labels of every round with the shares that were given.

    Parameters
    ----------
    shares : ndarray of shape (n_classes,)
        The shares.
    softness : float
        Of the labels of a round, in units of the scores.
    weights : ndarray of shape (n_target,) or None
        Weights of the target rows that are labelled; None if all count alike.
    """

    def __init__(
        self, shares: Shares, softness: float, weights: NDArray[np.float64] | None = None
    ) -> None:
        super().__init__()
        self.shares, self._softness, self._weights = shares, softness, weights

    def among(self, domains: Domains) -> KnownShares:
        """The labelling of target rows without a known label, with which all have the shares.

        A class that has more known labels than rows by its share gets no further ones.
        """
        weights = None if domains.weights is None else domains.weights[domains.target]
        if domains.known is None:
            return KnownShares(self.shares, self._softness, weights)
        own = np.ones(domains.n_target) if weights is None else weights
        is_known = domains.known >= 0
        known = np.bincount(domains.known[is_known], own[is_known], domains.n_classes)
        left = np.maximum(self.shares * own.sum() - known, 0.0)
        shares = left / left.sum() if left.any() else self.shares
        return KnownShares(shares, self._softness, None if weights is None else weights[~is_known])

    def in_solve(self, source: Shares) -> Shares:
        """The shares as the solve takes them: no class of the source counts for nothing."""
        return _floored(self.shares, _LEAST_KNOWN, source)

    def choose_offsets(
        self, scores: Any, *, settled: bool, everybody: ScatteredScores | None = None
    ) -> None:
        """Let probabilities have the shares on average or, at the end, labels to within a row.

        The average is that of the first rows.
        """
        F, weights = to_numpy(scores), self._weights
        if not settled:
            first = slice(LIMITS.pool_rows)
            weights = None if weights is None else weights[first]
            self.offsets = soft_offsets(F[first], self.shares, self._softness, weights)
        elif everybody is not None:
            self.offsets = scattered_offsets(F, everybody, self.shares)
        elif weights is None:
            self.offsets = exact_offsets(F, self.shares)
        else:
            self.offsets = weighted_offsets(F, self.shares, weights)


class EstimatedShares(Labelling):
    """Shares that the labels of the first rounds correct, as far as a shift is believed in."""

    def __init__(self, shift: Shift, source: Shares) -> None:
        super().__init__()
        self.shares, self.source, self.belief = shift.shares, source, shift.belief
        self._renewals = 0

    def renewed(self, counts: NDArray[np.float64]) -> Shares | None:
        """The shares after one more round with so many rows of each label; None if they stay."""
        if self._renewals == _RENEWALS:
            return None
        self._renewals += 1
        found = np.maximum(counts / max(counts.sum(), 1.0), 0.001 * self.source)
        seen = between(self.source, found, self.belief)
        self.shares = _floored((self.shares + seen) / 2, _LEAST_ESTIMATED, self.source)
        return self.shares


@dataclass(frozen=True)
class View:
    """One classifier's view of the target, and what left-out source rows tell of it.

    Attributes
    ----------
    log_probabilities : ndarray of shape (n_rows, n_classes)
        Of target rows, as many as shares are estimated from, calibrated on the source.
    label_shares : ndarray of shape (n_classes,)
        Of the labels of these rows.
    usual_shares : ndarray of shape (n_classes,)
        Shares of the labels that all source rows would get, left out.
    accuracy : float
        On left-out source rows.
    informed : float
        From 0, right no more often than the majority class, to 1.
    """

    log_probabilities: NDArray[np.float64]
    label_shares: Shares
    usual_shares: Shares
    accuracy: float
    informed: float

    @classmethod
    def of(cls, scores: NDArray[Any], left_out: NDArray[Any], domains: Domains) -> View:
        """From scores of target rows and of the first source rows, each of these left out."""
        y, n_classes = domains.y[: len(left_out)], domains.n_classes
        labels, own = left_out.argmax(axis=1), _frequencies(y, n_classes)
        accuracy, majority = float(np.mean(labels == y)), domains.source_shares.max()
        none, enough = _INFORMED
        avoided = (accuracy - majority) / (1.0 - majority)
        return cls(
            log_probabilities=ClassCalibration(left_out, y).log_probabilities(scores),
            label_shares=_frequencies(scores.argmax(axis=1), n_classes),
            usual_shares=domains.source_shares + _frequencies(labels, n_classes) - own,
            accuracy=accuracy,
            informed=float(np.clip((avoided - none) / (enough - none), 0.0, 1.0)),
        )


@dataclass(frozen=True)
class Shift:
    """Shares that the target speaks for, and how far they are believed.

    Attributes
    ----------
    shares : ndarray of shape (n_classes,)
        Between those of the source and those found, as far as the shift is believed in.
    belief : float
        From 0, not at all, to 1.
    weight : float
        Of the view without alignment in the labels to begin with: 0 for a shift that is hardly
        believed in, so that labels and shares are then nearly what they were.
    """

    shares: Shares
    belief: float
    weight: float


def find_shift(alone: View, aligned: Shares, domains: Domains) -> Shift | None:
    """What the view without alignment and the shares of aligned labels tell; None for no shift.

    A shift shows in the view without alignment: its labels of target rows have other shares than
    its labels of left-out source rows, by more than chance. It is trusted as far as it is as sure
    on the target as it is right on the source. The shares themselves are those of most likelihood
    under it and those of the aligned labels, weighted by that trust.
    """
    source, probabilities = domains.source_shares, np.exp(alone.log_probabilities)
    trust = min(1.0, probabilities.max(axis=1).mean() / max(alone.accuracy, 1e-12)) ** 2
    moved = trust * _distance(alone.label_shares, alone.usual_shares)
    belief = alone.informed * _belief(moved, source, len(probabilities))
    if belief == 0.0:
        return None
    estimate = (1.0 - trust) * aligned + trust * _em_shares(probabilities, source)
    shares = between(source, np.maximum(estimate, 0.001), belief)
    return Shift(_floored(shares, _LEAST_ESTIMATED, source), belief, belief * trust)


def _belief(moved: float, source: Shares, rows: int) -> float:
    """How far a shift of the labels' shares is followed: from 0, not at all, to 1, all the way."""
    if rows < _FEW:
        return 0.0
    # What rows drawn without any shift would differ by on average.
    chance = float(np.sqrt(source * (1.0 - source) / (2.0 * np.pi * rows)).sum())
    begin, end = _RAMP
    shift = (moved - chance) / (1.0 - 1.0 / len(source))
    sure = min(1.0, (rows - _FEW) / (_ENOUGH - _FEW))
    return sure * float(np.clip((shift - begin) / (end - begin), 0.0, 1.0))


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
    """Share of each class among labels."""
    return np.bincount(codes, minlength=n_classes) / max(len(codes), 1)


def _distance(a: Shares, b: Shares) -> float:
    """Total variation: what share of the rows would have to change their class."""
    return float(np.abs(a - b).sum() / 2)


def between(a: Shares, b: Shares, weight: float) -> Shares:
    """Shares on the geometric way from a to b."""
    return softmax((1.0 - weight) * np.log(a) + weight * np.log(b))


def _floored(shares: Shares, least: float, source: Shares) -> Shares:
    """No share below this part of the source's."""
    kept = np.maximum(shares / shares.sum(), least * source)
    return kept / kept.sum()
