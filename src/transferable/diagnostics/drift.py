"""Drift of new rows from the target that a model was fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import check_is_fitted

from transferable._linalg.arrays import dense
from transferable._sklearn import safe_indexing
from transferable.base import DomainAdapter
from transferable.diagnostics.diagnosis import ColumnShift, column_shifts

MOST_ROWS = 1000  # new rows that are compared
_PERMUTATIONS = 199
_FALSE_ALARMS = 0.05
_COLUMNS_TOLD = 3


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
            "the rows differ from the target that the model was fitted to "
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
    >>> from transferable import TFDFV
    >>> from transferable.datasets import make_shifted
    >>> from transferable.diagnostics import drift
    >>> task = make_shifted()
    >>> model = TFDFV().adapt(task.Xs, task.ys, task.Xt[::2])
    >>> drift(model, task.Xt[1::2]).likely, drift(model, task.Xt[1::2] + 2).likely
    (False, True)
    """
    check_is_fitted(model)
    rng = np.random.default_rng(random_state)
    estimator, names = _of_rows(model), getattr(model, "feature_names_in_", None)
    if not isinstance(estimator, DomainAdapter):
        raise TypeError(f"{type(estimator).__name__} is not an estimator of this library.")
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


def _energy_test(
    old: NDArray[np.float64], new: NDArray[np.float64], rng: np.random.Generator
) -> tuple[float, float]:
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
