"""Which columns differ most between two domains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transferable.linalg.rows import dense

__all__ = ["ColumnShift", "column_shifts"]


class ColumnShift(NamedTuple):
    """How a column's values differ between two domains.

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
    """Rank the columns by how much their values differ between two domains, the most first.

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
    if source.shape[1] != target.shape[1]:
        raise ValueError(
            f"Xt has {target.shape[1]} features, but Xs has {source.shape[1]}; both domains must "
            "be described by the same features."
        )
    called = range(source.shape[1]) if names is None else names
    shifts = [
        ColumnShift(str(name), _ks_statistic(a, b), float(a.mean()), float(b.mean()))
        for name, a, b in zip(called, source.T, target.T, strict=True)
    ]
    return sorted(shifts, key=lambda shift: -shift.distance)


def _ks_statistic(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    values = np.concatenate([a, b])
    below_a = np.searchsorted(np.sort(a), values, side="right") / len(a)
    below_b = np.searchsorted(np.sort(b), values, side="right") / len(b)
    return float(np.abs(below_a - below_b).max())
