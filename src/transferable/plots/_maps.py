"""Maps of tables onto the plane, and the rows to put on them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

__all__ = ["MapMethod", "planar_map", "spread_rows"]

MapMethod = Literal["pca", "tsne"]


def spread_rows(
    source: NDArray[np.bool_], labels: NDArray[Any] | None, most: int
) -> NDArray[np.intp]:
    """Positions of at most so many rows, with each domain's and class's share of them kept."""
    n = len(source)
    if n <= most:
        return np.arange(n)
    codes = np.zeros(n, dtype=int) if labels is None else np.unique(labels, return_inverse=True)[1]
    order = np.lexsort((codes, source))
    return np.sort(order[np.linspace(0, n - 1, most).astype(np.intp)])


def planar_map(table: NDArray[Any], method: MapMethod, seed: int) -> NDArray[np.float64]:
    """Rows in the plane.

    A table with a single column needs no map: it becomes the first axis, and rows are spread along
    the second at random so that they do not hide each other.
    """
    if table.shape[1] == 1:
        spread = np.random.default_rng(seed).uniform(-1, 1, size=len(table))
        return np.column_stack([table[:, 0], spread])
    if np.ptp(table, axis=0).max() == 0:
        return np.zeros((len(table), 2))
    if method == "pca":
        return np.asarray(PCA(2, random_state=seed).fit_transform(table), dtype=np.float64)
    perplexity = min(30.0, (len(table) - 1) / 3)
    map_ = TSNE(perplexity=perplexity, init="pca", random_state=seed)
    return np.asarray(map_.fit_transform(table), dtype=np.float64)
