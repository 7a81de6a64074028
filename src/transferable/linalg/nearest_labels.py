"""Labels by the nearest row, by Euclidean distance, of few rows and of many."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier

from transferable.limits import LIMITS
from transferable.linalg.arrays import to_numpy
from transferable.linalg.rows import unit_rows
from transferable.linalg.search import nearest

__all__ = ["nearest_labels"]

Rows = NDArray[np.floating]


def nearest_labels(base: Any, labels: NDArray[Any], queries: Any) -> NDArray[Any]:
    """The label of the row of `base` that is nearest to each query.

    Parameters
    ----------
    base, queries : arrays of shapes (n_base, d), (n_queries, d)
        Rows.
    labels : ndarray of shape (n_base,)
        Labels of the rows of `base`.

    Returns
    -------
    ndarray of shape (n_queries,)
        Exact where the numbers of rows multiply to at most 2^30. Beyond, a few in a hundred are of
        a row that is near but not the nearest.
    """
    if len(base) * len(queries) <= LIMITS.labelled_pairs:
        return np.asarray(KNeighborsClassifier(1).fit(base, labels).predict(queries))
    base, queries = _on_sphere(base, queries)
    return labels[to_numpy(nearest(queries, base, 1).indices).ravel()]


def _on_sphere(base: Rows, queries: Rows) -> tuple[Rows, Rows]:
    """Rows of unit length, of which those with the largest inner product are those nearest.

    |q - b|^2 is least where q'b - |b|^2 / 2 is largest: the inner product of (q, 1, 0) and
    (b, -|b|^2 / 2, c), in which c gives all rows of the base the same length.
    """
    mean = base.mean(axis=0, dtype=np.float64)
    scale = float(np.sqrt(np.mean(np.sum((base[:10_000] - mean) ** 2, axis=1)))) or 1.0
    lifted = _widened((base - mean) / scale)
    lifted[:, -2] = -0.5 * np.sum(lifted[:, :-2] ** 2, axis=1)
    squares = np.sum(lifted**2, axis=1)
    lifted[:, -1] = np.sqrt(squares.max() - squares)
    asked = _widened((queries - mean) / scale)
    asked[:, -2] = 1.0
    return unit_rows(lifted), unit_rows(asked)


def _widened(rows: Rows) -> Rows:
    """Rows in single precision, with two more columns of zeros."""
    return np.pad(rows.astype(np.float32), ((0, 0), (0, 2)))
