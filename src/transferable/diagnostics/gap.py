"""Gap between two domains, overall, by class and by column, and the space of a fitted method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ks_2samp
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length

from transferable._linalg.arrays import dense
from transferable.base import DomainAdapter, DomainTransformer
from transferable.domains import row_hash
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
