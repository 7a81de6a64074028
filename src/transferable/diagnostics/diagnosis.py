"""Diagnosis of the gap between two domains, without target labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from transferable._linalg.arrays import dense
from transferable.diagnostics.assessment import draw_rows
from transferable.diagnostics.gap import FEWEST_ROWS, DomainGap, domain_gap
from transferable.events import rounds, stage
from transferable.metrics import proxy_a_distance

# With 19 random splits, the largest of their distances is exceeded by chance in one case of 20.
_SPLITS = 19
_MOST_ROWS = 1500  # of each domain, enough for these estimates
_SLIGHT = 0.01
_FAR = 0.8  # standard deviations between the means of a column that has moved


@dataclass(frozen=True)
class Diagnosis:
    """Distance between two domains, and what the source can teach.

    Attributes
    ----------
    gap : DomainGap
        The gap between the domains, overall and per class. Without target labels, classes are those
        predicted by a model trained on the source alone.
    chance : float
        The largest A-distance of 19 random splits of all rows into parts of the same sizes.
    within, within_chance : float
        Mean A-distance between rows of the same predicted class, and the largest such mean of 19
        random splits of each class. NaN where no class has enough rows.
    home_accuracy : float
        Cross-validated accuracy of a linear model in the source; NaN if a class has one row.
    majority : float
        Share of the most frequent class of the source, the accuracy of a constant prediction.
    moved : float
        Share of columns whose means are more than 0.8 standard deviations apart.
    """

    gap: DomainGap
    chance: float
    within: float
    within_chance: float
    home_accuracy: float
    majority: float
    moved: float

    @property
    def differ(self) -> bool:
        """Whether the domains differ beyond chance, over all rows or within predicted classes."""
        return self.gap.overall["A-distance"] > self.chance or self.within > self.within_chance

    @property
    def lines(self) -> list[str]:
        """Whether the domains differ, and whether the source can be learnt, in words."""
        gaps = (
            f"A-distance {self.gap.overall['A-distance']:.1f} overall and {self.within:.1f} within "
            f"classes, by chance {self.chance:.1f} and {self.within_chance:.1f}"
        )
        first = f"The domains are as close as random parts of the same rows are ({gaps})"
        if self.differ:
            first = (
                f"The domains differ ({gaps}); the means of {self.moved:.0%} of the columns are "
                "more than 0.8 standard deviations apart"
            )
        learnt = self.home_accuracy > self.majority + _SLIGHT
        second = (
            f"In the source, a linear model labels {self.home_accuracy:.1%} of left-out rows "
            f"correctly; the most frequent class has {self.majority:.1%}"
        )
        return [first, second + ("" if learnt else ": these columns do not predict the label")]


def diagnose(
    Xs: Any, ys: ArrayLike, Xt: Any, yt: ArrayLike | None = None, *, random_state: int = 0
) -> Diagnosis:
    """Measure the gap between two domains, and how far the source can be learnt.

    Whether labels of the target can be used is the question of :func:`assess_trust`.

    Parameters
    ----------
    Xs, ys, Xt : array-like
        Source rows, their labels, and target rows, with columns of comparable scale. Beyond 1500
        rows in a domain, that many are drawn at random for all but the gap.
    yt : array-like of shape (n_target,), default=None
        True labels of the target, used only for the gap per class.
    random_state : int, default=0
        Seed of the random draws.

    Returns
    -------
    diagnosis : Diagnosis
        The measurements.

    Examples
    --------
    >>> from transferable.datasets import make_shifted
    >>> from transferable.diagnostics import diagnose
    >>> task = make_shifted(strength=2)
    >>> diagnose(task.Xs, task.ys, task.Xt).differ
    True
    """
    rng = np.random.default_rng(random_state)
    source, target, labels = np.asarray(dense(Xs)), np.asarray(dense(Xt)), np.asarray(ys)
    rows, others = (draw_rows(np.zeros(len(X)), rng, _MOST_ROWS) for X in (source, target))
    A, y, B = source[rows], labels[rows], target[others]
    stage("Learning the source at home")
    model = LogisticRegression(max_iter=1000).fit(A, y)
    found = model.predict(target)
    gap = domain_gap(source, target, labels, found if yt is None else yt)

    at_home = _left_out_labels(A, y)
    home = float("nan") if at_home is None else float(np.mean(at_home == y))
    codes = np.concatenate([y if at_home is None else at_home, found[others]])
    pooled, domain = np.concatenate([A, B]), np.repeat([True, False], [len(A), len(B)])
    _, chance = _beyond_chance(pooled, np.zeros(len(domain)), domain, rng)
    within, within_chance = _beyond_chance(pooled, codes, domain, rng)
    majority = float(np.unique(y, return_counts=True)[1].max() / len(y))
    spread = np.sqrt((source.var(axis=0) + target.var(axis=0)) / 2)
    moved = float(np.mean(np.abs(source.mean(axis=0) - target.mean(axis=0)) > _FAR * spread))
    return Diagnosis(gap, chance, within, within_chance, home, majority, moved)


def _left_out_labels(X: NDArray[Any], y: NDArray[Any]) -> NDArray[Any] | None:
    """Return labels of rows by models not trained on them; None if a class has one row."""
    folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
    if folds < 2:
        return None
    return cross_val_predict(LogisticRegression(max_iter=1000), X, y, cv=folds)


def _beyond_chance(
    X: NDArray[Any], codes: NDArray[Any], source: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[float, float]:
    """Return the mean A-distance within groups, and its largest value over random splits.

    The groups of source rows must be left-out predictions, as those of the target are.
    """
    # In random order: consecutive rows of a file may be near copies of each other.
    groups = [rng.permutation(np.flatnonzero(codes == code)) for code in np.unique(codes)]
    groups = [rows for rows in groups if _smaller_part(source[rows]) >= FEWEST_ROWS]
    if not groups:
        return float("nan"), float("nan")
    splits = []
    for _ in rounds(_SPLITS, "Measuring the gap"):
        split = source.copy()
        for rows in groups:
            split[rows] = source[rng.permutation(rows)]
        splits.append(_mean_distance(X, groups, split))
    return _mean_distance(X, groups, source), max(splits)


def _mean_distance(
    X: NDArray[Any], groups: list[NDArray[np.intp]], source: NDArray[np.bool_]
) -> float:
    """Return the mean A-distance of groups, weighted by the rows of their smaller part."""
    distances = [proxy_a_distance(X[g[source[g]]], X[g[~source[g]]]) for g in groups]
    return float(np.average(distances, weights=[_smaller_part(source[g]) for g in groups]))


def _smaller_part(source: NDArray[np.bool_]) -> int:
    n_source = int(np.count_nonzero(source))
    return min(n_source, len(source) - n_source)
