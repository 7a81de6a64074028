"""The gap between two domains by three measures, as wholes and class by class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length

from transferable.domains import row_hash
from transferable.linalg.rows import dense
from transferable.metrics import mmcd_distance, mmd_distance, proxy_a_distance

__all__ = ["FEWEST_ROWS", "MEASURES", "DomainGap", "domain_gap", "unit_variance"]

MEASURES: dict[str, Callable[[Any, Any], float]] = {
    "A-distance": proxy_a_distance,
    "MMD": mmd_distance,
    "MMCD": mmcd_distance,
}
# Below, an A-distance is luck: half of the rows train the discriminant, half are held out.
FEWEST_ROWS = 4


@dataclass(frozen=True)
class DomainGap:
    """How far apart two domains are.

    Attributes
    ----------
    overall : dict of str to float
        The value of each of :data:`MEASURES` between the domains as wholes.
    by_class : dict of label to dict of str to float
        The same between the rows of each class. NaN where a domain has too few rows of it.
    """

    overall: dict[str, float]
    by_class: dict[Any, dict[str, float]]


def domain_gap(
    Xs: Any, Xt: Any, ys: ArrayLike | None = None, yt: ArrayLike | None = None
) -> DomainGap:
    """Measure the gap between two domains, as wholes and, with labels, class by class.

    Both domains together are first scaled to total variance 1. MMD is then a share of the rows'
    spread, whatever the unit or the number of columns, and gaps in different spaces can be
    compared. Rows are taken in an order that depends on their values only, since the A-distance
    would be misled by a file in which near copies follow each other.

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
    if source.shape[1] != target.shape[1]:
        raise ValueError(
            f"Xt has {target.shape[1]} features, but Xs has {source.shape[1]}; both domains must "
            "be described by the same features."
        )
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


def unit_variance(table: NDArray[Any]) -> NDArray[np.float64]:
    """Rows centred and scaled to total variance 1; rows that are all the same become zero."""
    centred = table - table.mean(axis=0)
    deviation = np.sqrt(np.mean(np.sum(centred**2, axis=1)))
    return centred / deviation if deviation > 0 else centred


def _measured(Xs: NDArray[np.float64], Xt: NDArray[np.float64]) -> dict[str, float]:
    enough = min(len(Xs), len(Xt)) >= FEWEST_ROWS
    return {name: measure(Xs, Xt) if enough else nan for name, measure in MEASURES.items()}
