"""Gap between two domains, in whole and by column, and drift of new rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from transferable._linalg.arrays import dense
from transferable._sklearn import safe_indexing
from transferable.base import DomainAdapter, DomainTransformer
from transferable.domains import row_hash
from transferable.metrics import mmcd_distance, mmd_distance, proxy_a_distance
from transferable.wrapping import unwrap

Table = NDArray[np.float64]

MEASURES: dict[str, Callable[[Any, Any], float]] = {
    "A-distance": proxy_a_distance,
    "MMD": mmd_distance,
    "MMCD": mmcd_distance,
}
# Below, an A-distance is noise: half of the rows train the discriminant, half are held out.
FEWEST_ROWS = 4
MOST_ROWS = 1000  # new rows that are compared
_PERMUTATIONS = 199
_FALSE_ALARMS = 0.05
_COLUMNS_TOLD = 3

# Meaning of the entries of ``history_``.
TERM_TITLES = {
    "objective": "objective (sum of terms)",
    "source": "squared error on the source",
    "ridge": "norm of the classifier",
    "manifold": "roughness along the graph",
    "variance": "variance of the scores",
    "means": "discrepancy of means",
    "covariances": "discrepancy of covariances",
    "confusion": "class confusion",
    "balance": "balance",
    "changed": "share of labels changed",
}


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
    >>> import numpy as np
    >>> from transferable.diagnostics import domain_gap
    >>> rng = np.random.default_rng(0)
    >>> Xs, ys = rng.normal(size=(80, 3)), np.repeat(["cat", "dog"], 40)
    >>> gap = domain_gap(Xs, Xs + 5 * (ys == "dog")[:, None], ys, ys)
    >>> gap.by_class["cat"]["MMD"] < 1e-9, gap.by_class["dog"]["A-distance"]
    (True, 2.0)
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
    >>> import numpy as np
    >>> from transferable.diagnostics import column_shifts
    >>> Xs = np.random.default_rng(0).normal(size=(50, 2))
    >>> [shift.name for shift in column_shifts(Xs, Xs + [0, 9], ["age", "size"])]
    ['size', 'age']
    """
    source, target = np.asarray(dense(Xs), dtype=float), np.asarray(dense(Xt), dtype=float)
    _check_widths(source, target)
    called = range(source.shape[1]) if names is None else names
    shifts = [
        ColumnShift(str(name), _ks_statistic(a, b), float(a.mean()), float(b.mean()))
        for name, a, b in zip(called, source.T, target.T, strict=True)
    ]
    return sorted(shifts, key=lambda shift: -shift.distance)


def _ks_statistic(a: Table, b: Table) -> float:
    values = np.concatenate([a, b])
    below_a = np.searchsorted(np.sort(a), values, side="right") / len(a)
    below_b = np.searchsorted(np.sort(b), values, side="right") / len(b)
    return float(np.abs(below_a - below_b).max())


@dataclass(frozen=True)
class Drift:
    """Comparison of new rows with the target that a model was fitted to.

    Attributes
    ----------
    p_value : float
        Probability of a distance at least as large without drift.
    distance : float
        Energy distance between the stored target rows and the new ones, columns scaled to spread 1;
        around 0 without drift.
    n_remembered, n_new : int
        Numbers of rows compared.
    columns : list of ColumnShift
        The columns, largest shift first; `source_mean` is that of the fitted target.
    """

    p_value: float
    distance: float
    n_remembered: int
    n_new: int
    columns: list[ColumnShift]

    @property
    def likely(self) -> bool:
        """Whether the rows have drifted; one alarm in twenty is false."""
        return self.p_value <= _FALSE_ALARMS

    @property
    def reason(self) -> str:
        """Finding in a sentence."""
        compared = (
            f"{self.n_new:,} new rows beside {self.n_remembered:,} of the fitted target, energy "
            f"test, p = {self.p_value:.3f}"
        )
        if not self.likely:
            return f"nothing shows that the rows changed since the model was fitted ({compared})."
        moved = ", ".join(shift.name for shift in self.columns[:_COLUMNS_TOLD])
        return (
            "the rows no longer look like the target that the model was fitted to "
            f"({compared}; the columns that moved most: {moved}); fit it again to rows like these."
        )


def drift(model: Any, X: Any, *, random_state: int = 0) -> Drift:
    """Test whether new rows have drifted from the target that a model was fitted to.

    A fitted estimator keeps up to 200 rows of its target, in a saved file too. They are compared
    with the new rows by the energy distance [1]_ in a permutation test. Without drift, one call in
    twenty raises a false alarm, whatever the distribution (benchmarks/records/drift). No
    label is used, and labels can go wrong where rows look the same.

    Parameters
    ----------
    model : estimator
        Fitted, with a target: one of the library, or a
        :class:`~transferable.tables.TableClassifier`.
    X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        New rows, as ``predict`` takes them. Beyond 1000, that many are drawn at random.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    drift : Drift
        The p-value, whether that is an alarm, and the columns with the largest shifts.

    References
    ----------
    .. [1] G. J. Szekely, M. L. Rizzo (2013). Energy statistics: a class of statistics based on
       distances. Journal of Statistical Planning and Inference 143(8).

    Examples
    --------
    >>> import numpy as np
    >>> from transferable import TFDFV
    >>> from transferable.diagnostics import drift
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat([0, 1], 30)
    >>> Xs = rng.normal(size=(60, 4)) + 3 * ys[:, None]
    >>> model = TFDFV().adapt(Xs, ys, Xs + 0.5)
    >>> drift(model, Xs[::2] + 0.5).likely, drift(model, Xs[::2] + 2).likely
    (False, True)
    """
    check_is_fitted(model)
    rng = np.random.default_rng(random_state)
    estimator, names = _of_rows(model), getattr(model, "feature_names_in_", None)
    if not isinstance(estimator, DomainAdapter):
        raise TypeError(f"{type(estimator).__name__} is no estimator of this library.")
    if not remembers_target(model):
        raise ValueError(
            f"this {type(model).__name__} keeps no sample of its target: it was fitted without "
            "target rows, or by an earlier version; fit it again."
        )
    n_rows = np.shape(X)[0] if np.ndim(X) else 0
    rows = X
    if n_rows > MOST_ROWS:
        rows = safe_indexing(X, np.sort(rng.choice(n_rows, MOST_ROWS, replace=False)))
    if hasattr(model, "encoder_"):
        names, rows = model.encoder_.get_feature_names_out(), model.encoder_.transform(rows)
    rows = estimator._validate_rows(rows)
    old, new = (np.asarray(dense(X), np.float64) for X in (estimator._target_sample, rows))
    p_value, distance = _energy_test(old, new, rng)
    shifts = column_shifts(old, new, None if names is None else list(map(str, names)))
    return Drift(p_value, distance, len(old), len(new), shifts)


def remembers_target(model: Any) -> bool:
    """Return whether a fitted model keeps rows of its target, as drift needs."""
    return getattr(_of_rows(model), "_target_sample", None) is not None


def _of_rows(model: Any) -> Any:
    """Return the model, or the one behind a table's encoder."""
    return model.estimator_ if hasattr(model, "encoder_") else model


def _energy_test(old: Table, new: Table, rng: np.random.Generator) -> tuple[float, float]:
    """Return the p-value by random exchanges of rows, and the energy distance beyond chance."""
    rows = np.concatenate([old, new])
    spread = rows.std(axis=0)
    distances = pairwise_distances(rows / np.where(spread > 0, spread, 1.0))
    signs = np.repeat([1 / len(old), -1 / len(new)], [len(old), len(new)])
    exchanged = [rng.permutation(signs) for _ in range(_PERMUTATIONS)]
    weights = np.stack([signs, *exchanged])
    energies = -np.einsum("ij,ij->i", weights @ distances, weights)
    as_far = int(np.sum(energies[1:] >= energies[0] * (1 - 1e-12)))
    p_value = (1 + as_far) / (1 + _PERMUTATIONS)
    return p_value, float(energies[0] - energies[1:].mean())


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
    >>> from transferable.diagnostics import shared_space
    >>> rng = np.random.default_rng(0)
    >>> ys = np.arange(30) % 3
    >>> Xs = rng.normal(size=(30, 5)) + 3 * np.eye(3, 5)[ys]
    >>> model = TFDFV(manifold_dim=None).adapt(Xs, ys, Xs + 0.5)
    >>> shared_space(model, Xs, np.ones(30)).shape
    (30, 3)
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


def history_of(estimator: Any) -> list[dict[str, float]] | None:
    """Return the ``history_`` of a fitted estimator or of the one it wraps; None without any.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator.

    Returns
    -------
    history : list of dict or None
        For each round the objective, its terms and other records of the method.

    Examples
    --------
    >>> from transferable.diagnostics import history_of
    >>> from transferable.classifiers import CAPLS
    >>> history_of(CAPLS()) is None
    True
    """
    return list(getattr(unwrap(estimator), "history_", None) or []) or None
