"""How far neighbouring rows have the same label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.linalg.neighbors import cosine_neighbors
from transferable.linalg.reuse import canonical, remember

__all__ = ["neighbor_consistency"]


def neighbor_consistency(X: Any, codes: NDArray[np.intp], n_neighbors: int = 5) -> float:
    """Share of a row's neighbours by cosine that have its label, beyond what chance gives.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Rows.
    codes : ndarray of shape (n,)
        Their class codes, counted from 0.
    n_neighbors : int, default=5
        Neighbours of each row, fewer if there are not so many rows.

    Returns
    -------
    consistency : float
        (a - e) / (1 - e) with a the share of edges of the neighbour graph whose ends have the same
        label, and e the share that labels of the same frequencies would reach anywhere: 1 if every
        neighbourhood agrees, 0 for constant or random labels.

    References
    ----------
    The correction for chance is that of J. Cohen, "A coefficient of agreement for nominal scales",
    Educational and Psychological Measurement, 1960.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.metrics import neighbor_consistency
    >>> X = np.array([[1, 0], [2, 0.1], [0, 1], [0.1, 2]])
    >>> neighbor_consistency(X, np.array([0, 0, 1, 1]), n_neighbors=1)
    1.0
    """
    if len(codes) < 2:
        return 0.0
    i, j = remember(_edges, canonical(X), min(n_neighbors, len(codes) - 1))
    expected = float(np.sum((np.bincount(codes) / len(codes)) ** 2))
    if expected == 1.0 or len(i) == 0:
        return 0.0
    return (float(np.mean(codes[i] == codes[j])) - expected) / (1.0 - expected)


def _edges(X: Any, n_neighbors: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Ends of the edges of the neighbour graph."""
    graph = cosine_neighbors(X, n_neighbors).tocoo()
    return graph.row, graph.col
