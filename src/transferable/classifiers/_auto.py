"""Choices made from the source's labels: how many directions, how much trust in the graph.

Source rows are left out in turn, which costs one inverse and no refit. Features are judged by the
error of the kernel classifier, the graph by the error of the nearest neighbour beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.classifiers._embedding import ManifoldFeatures
from transferable.domains import Domains
from transferable.linalg.kernels import KernelFunction
from transferable.linalg.reuse import canonical, remember
from transferable.linalg.search import nearest
from transferable.linalg.systems import Inverse, add_to_diagonal, effective_ridge
from transferable.terms.base import Matrix

__all__ = ["choose_features", "graph_weight"]

_ROWS = 1000  # source rows that judge; their order is random already
_MOST_TIMES = 4  # target rows for each source row that leave the graph its weight
_TOLERANCE = 0.01  # of accuracy, that fewer directions may cost


def choose_features(domains: Domains, kernel: KernelFunction, ridge: float) -> ManifoldFeatures:
    """The fewest directions that keep the left-out accuracy of the best within a point."""
    candidates = list(ManifoldFeatures.candidates(domains))
    if len(candidates) == 1:
        return candidates[0]
    y = canonical(domains.y[:_ROWS])
    rows = canonical(domains.X[: len(y)])
    errors = [
        remember(kernel_error, features.transform(rows), y, kernel, ridge)
        for features in candidates
    ]
    good = np.flatnonzero(np.array(errors) <= min(errors) + _TOLERANCE)
    return candidates[good[0]]


def graph_weight(Z: Any, domains: Domains, kernel: KernelFunction, ridge: float) -> float:
    """rho: 1, less a tenth for each point that the nearest neighbour is worse than the kernel.

    Neighbours that mislead among labelled source rows mislead among target rows too. The weight
    does not fall below 0.1 for that: on no kind of data did a graph of that weight harm. The
    Laplacian sums over all rows and the loss over the source's, though: where the target has more
    than a few times as many rows, the weight shrinks in proportion.
    """
    y = canonical(domains.y[:_ROWS])
    Z = canonical(Z[: len(y)])
    excess = neighbor_error(Z, y) - remember(kernel_error, Z, y, kernel, ridge)
    crowd = domains.n_target / (_MOST_TIMES * domains.n_source)
    return float(np.clip(1.0 - 10.0 * excess, 0.1, 1.0)) / max(1.0, crowd)


def kernel_error(Z: Any, y: NDArray[np.intp], kernel: KernelFunction, ridge: float) -> float:
    """Error of regularised least squares on rows left out in turn, from one inverse."""
    inverse = remember(_regularised_inverse, Z, kernel, ridge)
    Y = np.eye(y.max() + 1)[y]
    left_out = Y - (inverse @ Y) / np.diag(inverse)[:, None]
    return float(np.mean(left_out.argmax(axis=1) != y))


def neighbor_error(Z: Any, y: NDArray[np.intp]) -> float:
    """Error of the label of the nearest other row by cosine; Z has unit rows."""
    return float(np.mean(y[remember(nearest, Z).indices[:, 0]] != y))


def _regularised_inverse(Z: Any, kernel: KernelFunction, ridge: float) -> Matrix:
    Z = Z.astype(np.float64)
    K = kernel(Z, Z)
    return Inverse(add_to_diagonal(K, effective_ridge(ridge, K))).matrix
