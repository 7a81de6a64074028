"""Nystrom features: rows seen through their kernel with a few landmark rows.

With landmarks L, C = K(X, L) and B the inverse root of K(L, L), the features Phi = C B have
Phi Phi' = C K(L, L)^-1 C', the best approximation of K(X, X) within the span of the landmarks, and
equal to it if every row is a landmark.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from transferable.linalg.arrays import Arrays, namespace
from transferable.linalg.kernels import KernelFunction, squared_lengths
from transferable.linalg.rows import dense

__all__ = ["Nystrom", "draw_landmarks"]

_SAMPLE = 5  # rows that are looked at for each landmark
_MANY_STEPS = 256


def draw_landmarks(
    X: Any, n_source: int, count: int, rng: np.random.RandomState
) -> NDArray[np.intp]:
    """Positions of landmarks, half of them from each domain as far as it has rows, in order.

    Each domain's are drawn by k-means++ from its first rows: rows far from those that were drawn
    before are likelier, so that no region of the rows is left without a landmark.
    """
    n = X.shape[0]
    n_target = n - n_source
    from_target = min(n_target, max(count // 2, count - n_source))
    from_source = min(n_source, count - from_target)
    source = _spread_rows(X, 0, n_source, from_source, rng)
    return np.concatenate([source, _spread_rows(X, n_source, n, from_target, rng)])


def _spread_rows(
    X: Any, start: int, stop: int, count: int, rng: np.random.RandomState
) -> NDArray[np.intp]:
    """Positions of rows of a stretch, far from each other."""
    if count == 0 or count == stop - start:
        return np.arange(start, start + count)
    sample = X[start : min(stop, start + _SAMPLE * count)]  # the order of rows is random already
    return start + np.unique(_far_apart(sample, count, rng))  # equal rows may be drawn twice


def _far_apart(X: Any, count: int, rng: np.random.RandomState) -> list[int]:
    """Rows drawn one by one, in proportion to the squared distance to those drawn before."""
    squares = squared_lengths(X)
    drawn = [int(rng.randint(len(squares)))]
    distances = np.full(len(squares), np.inf)
    # Threads would wait for each other in every one of many small products.
    with nullcontext() if count < _MANY_STEPS else threadpool_limits(1):
        while len(drawn) < count:
            row = dense(X[drawn[-1] : drawn[-1] + 1])[0]
            to_last = squares + row @ row - 2.0 * (X @ row)
            distances = np.minimum(distances, np.maximum(to_last, 0.0))
            shares = np.cumsum(distances, dtype=np.float64)
            pick = np.searchsorted(shares, rng.random_sample() * shares[-1])
            drawn.append(min(int(pick), len(squares) - 1))
    return drawn


class Nystrom:
    """The map from rows to features, fitted to landmarks.

    Parameters
    ----------
    landmarks : array or sparse matrix of shape (m, d)
        The landmark rows.
    kernel : KernelFunction
        The kernel.
    arrays : Arrays
        Where features are computed.

    Attributes
    ----------
    whitening : array of shape (m, r)
        B in float64; directions that are rounding errors in the rows' precision are left out.
    gram : array of shape (m, m)
        K(L, L) in float64.
    """

    def __init__(self, landmarks: Any, kernel: KernelFunction, arrays: Arrays) -> None:
        self._kernel, self._arrays = kernel, arrays
        self.landmarks = arrays.table(landmarks)
        double = arrays.table(landmarks, "float64")
        self.gram = arrays.table(kernel(double, double))
        xp = namespace(self.gram)
        values, vectors = xp.linalg.eigh(self.gram)
        self.dtype = str(np.dtype(landmarks.dtype))
        kept = values > float(np.finfo(self.dtype).eps) * values[-1]
        self.whitening = vectors[:, kept] / xp.sqrt(values[kept])
        self._rounded = arrays.table(self.whitening, self.dtype)

    @property
    def rank(self) -> int:
        """Number of features."""
        return int(self.whitening.shape[1])

    def __call__(self, rows: Any) -> Any:
        """Phi of rows, in their precision."""
        return self.kernel(rows) @ self._rounded

    def kernel(self, rows: Any, buffer: Any = None) -> Any:
        """C = K(rows, L), in the rows' precision, in the memory of the buffer if there is one."""
        values = self._kernel(self._arrays.table(rows), self.landmarks, buffer)
        return self._arrays.table(values, self.dtype)
