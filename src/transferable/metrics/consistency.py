"""How far neighbouring rows have the same label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.linalg.neighbors import cosine_neighbors

__all__ = ["consistency_along", "neighbor_consistency", "neighbor_edges"]

Edges = tuple[NDArray[np.intp], NDArray[np.intp]]


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
    return consistency_along(neighbor_edges(X, n_neighbors), codes)


def consistency_along(edges: Edges, codes: NDArray[np.intp]) -> float:
    """The same for edges that are known."""
    i, j = edges
    expected = float(np.sum((np.bincount(codes) / len(codes)) ** 2))
    if expected == 1.0 or len(i) == 0:
        return 0.0
    return (float(np.mean(codes[i] == codes[j])) - expected) / (1.0 - expected)


def neighbor_edges(X: Any, n_neighbors: int = 5) -> Edges:
    """Ends of the edges of the neighbour graph of two rows or more."""
    graph = cosine_neighbors(X, min(n_neighbors, X.shape[0] - 1)).tocoo()
    return graph.row, graph.col
