"""Gap between two domains, overall, by class and by column, and a diagnosis of a problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ks_2samp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length

from transferable._linalg.arrays import dense
from transferable.base import DomainAdapter, DomainTransformer
from transferable.diagnostics.assessment import draw_rows
from transferable.domains import row_hash
from transferable.events import rounds, stage
from transferable.metrics import mmcd_distance, mmd_distance, proxy_a_distance

Table = NDArray[np.float64]

MEASURES: dict[str, Callable[[Any, Any], float]] = {
    "A-distance": proxy_a_distance,
    "MMD": mmd_distance,
    "MMCD": mmcd_distance,
}
# Below, an A-distance is noise: half of the rows train the discriminant, half are held out.
FEWEST_ROWS = 4


@dataclass(frozen=True)
class DomainGap:
    """Distances between two domains.

    Attributes
    ----------
    overall : dict of str to float
        The value of each of :data:`MEASURES` between the marginals.
    by_class : dict of label to dict of str to float
        These values between the rows of each class. NaN where a domain has too few rows of it.
    """

    overall: dict[str, float]
    by_class: dict[Any, dict[str, float]]


def domain_gap(
    Xs: Any, Xt: Any, ys: ArrayLike | None = None, yt: ArrayLike | None = None
) -> DomainGap:
    """Measure the gap between two domains, overall and, with labels, class by class.

    Both domains together are first scaled to total variance 1. MMD is then a share of the rows'
    spread, whatever the unit or the number of columns, and gaps in different spaces can be
    compared. Rows are sorted by content, since consecutive near copies in a file would bias the
    A-distance.

    Parameters
    ----------
    Xs, Xt : array-like or sparse matrix of shape (n_rows, n_features)
        Rows of the two domains.
    ys, yt : array-like of shape (n_rows,), default=None
        Their labels, true or predicted: both, or neither.

    Returns
    -------
    gap : DomainGap
        A-distance (0 indistinguishable, 2 separated without error), MMD and MMCD.

    Examples
    --------
    >>> from transferable.datasets import make_shifted
    >>> from transferable.diagnostics import domain_gap
    >>> task = make_shifted()
    >>> gap = domain_gap(task.Xs, task.Xt, task.ys, task.yt)
    >>> list(gap.overall), list(gap.by_class)
    (['A-distance', 'MMD', 'MMCD'], [0, 1])
    """
    if (ys is None) != (yt is None):
        raise ValueError("Give the labels of both domains, ys and yt, or of neither.")
    source, target = (check_array(dense(X), dtype=np.float64) for X in (Xs, Xt))
    _check_widths(source, target)
    orders = np.argsort(row_hash(source)), np.argsort(row_hash(target))
    Z = unit_variance(np.concatenate([source[orders[0]], target[orders[1]]]))
    source, target = Z[: len(source)], Z[len(source) :]
    by_class = {}
    if ys is not None and yt is not None:
        check_consistent_length(source, ys)
        check_consistent_length(target, yt)
        ys, yt = column_or_1d(ys)[orders[0]], column_or_1d(yt)[orders[1]]
        by_class = {c: _measured(source[ys == c], target[yt == c]) for c in np.unique(ys).tolist()}
    return DomainGap(_measured(source, target), by_class)


def unit_variance(table: NDArray[Any]) -> Table:
    """Centre rows and scale them to total variance 1; rows that are all equal become zero."""
    centred = table - table.mean(axis=0)
    deviation = np.sqrt(np.mean(np.sum(centred**2, axis=1)))
    return centred / deviation if deviation > 0 else centred


def _check_widths(source: Table, target: Table) -> None:
    if source.shape[1] != target.shape[1]:
        raise ValueError(
            f"Xt has {target.shape[1]} features, but Xs has {source.shape[1]}; both domains must "
            "be described by the same features."
        )


def _measured(Xs: Table, Xt: Table) -> dict[str, float]:
    enough = min(len(Xs), len(Xt)) >= FEWEST_ROWS
    return {name: measure(Xs, Xt) if enough else nan for name, measure in MEASURES.items()}


class ColumnShift(NamedTuple):
    """Difference of a column's values between two domains.

    Attributes
    ----------
    name : str
        The column.
    distance : float
        Kolmogorov and Smirnov's statistic, the largest difference of the shares of rows below any
        value: 0 if both domains have the same values, 1 if they have none in common.
    source_mean, target_mean : float
        Means in the two domains.
    """

    name: str
    distance: float
    source_mean: float
    target_mean: float


def column_shifts(Xs: Any, Xt: Any, names: Sequence[str] | None = None) -> list[ColumnShift]:
    """Rank the columns by the difference of their values between two domains, largest first.

    Parameters
    ----------
    Xs, Xt : array-like or sparse matrix of shape (n_rows, n_features)
        Rows of the two domains.
    names : sequence of str, default=None
        Names of the columns; None numbers them from 0.

    Returns
    -------
    shifts : list of ColumnShift
        One for each column.

    Examples
    --------
    >>> from transferable.datasets import make_shifted
    >>> from transferable.diagnostics import column_shifts
    >>> Xs = make_shifted().Xs
    >>> [shift.name for shift in column_shifts(Xs, Xs + [0, 9], ["age", "size"])]
    ['size', 'age']
    """
    source, target = np.asarray(dense(Xs), dtype=float), np.asarray(dense(Xt), dtype=float)
    _check_widths(source, target)
    called = range(source.shape[1]) if names is None else names
    distances = ks_2samp(source, target, method="asymp").statistic
    shifts = [
        ColumnShift(str(name), float(distance), float(a.mean()), float(b.mean()))
        for name, distance, a, b in zip(called, distances, source.T, target.T, strict=True)
    ]
    return sorted(shifts, key=lambda shift: -shift.distance)


def shared_space(estimator: Any, X: Any, sample_domain: ArrayLike) -> Table:
    """Return rows in the space in which the fitted estimator decides.

    That is the embedding of a transformer, also of one inside an
    :class:`~transferable.classifiers.AdaptedClassifier`, and the scores of a classifier that
    learns no embedding.

    Parameters
    ----------
    estimator : estimator
        Fitted: one of this library, or a pipeline of transformers.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows of both domains.
    sample_domain : array-like of shape (n_samples,)
        Positive for source rows, negative for target rows.

    Returns
    -------
    table : ndarray of shape (n_samples, n_columns)
        One row for each row of `X`.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable import TFDFV
    >>> from transferable.datasets import make_shifted
    >>> from transferable.diagnostics import shared_space
    >>> task = make_shifted(n_classes=3)
    >>> model = TFDFV().adapt(task.Xs, task.ys, task.Xt)
    >>> shared_space(model, task.Xs, np.ones(200)).shape
    (200, 3)
    """
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps:
            X = X if step in (None, "passthrough") else shared_space(step, X, sample_domain)
        return np.asarray(dense(X), dtype=np.float64)
    if hasattr(estimator, "transformer_") and hasattr(estimator, "estimator_"):
        adapted = shared_space(estimator.transformer_, X, sample_domain)
        if not isinstance(estimator.estimator_, DomainAdapter):
            return adapted
        return shared_space(estimator.estimator_, adapted, sample_domain)
    if isinstance(estimator, DomainTransformer):
        table = estimator.transform(X, sample_domain=sample_domain)
    else:
        outputs = ("transform", "decision_function", "predict_proba")
        name = next((name for name in outputs if hasattr(estimator, name)), None)
        if name is None:
            raise ValueError(
                f"{type(estimator).__name__} has no embedding, scores or probabilities to show; "
                "wrap a classifier that has one of them."
            )
        table = getattr(estimator, name)(X)
    rows = np.asarray(dense(table), dtype=np.float64)
    return rows.reshape(len(rows), -1)


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
