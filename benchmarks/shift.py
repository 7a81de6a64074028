"""A synthetic shift of any size: Gaussian classes, turned and moved in the target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Shift", "shift_parts", "synthetic_shift"]


@dataclass(frozen=True)
class Shift:
    """Rows of both domains, stacked, half of them of the source."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]

    @property
    def n_source(self) -> int:
        """Rows of the source, which come first."""
        return len(self.X) // 2

    @property
    def parts(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Xs, ys, Xt, yt."""
        n = self.n_source
        return self.X[:n], self.y[:n], self.X[n:], self.y[n:]


def synthetic_shift(n: int, d: int = 64, n_classes: int = 10, seed: int = 0) -> Shift:
    """n rows in float32, of which the first half are the source.

    The variance of the noise falls off from direction to direction, as that of real features
    does. The target is turned by a random rotation near the identity and moved.
    """
    rng = np.random.default_rng(seed)
    spread = (1.0 + np.arange(d)) ** -0.5
    means = 0.65 * rng.normal(size=(n_classes, d)) * spread
    y = rng.integers(n_classes, size=n)
    X = (means[y] + rng.normal(size=(n, d)) * spread).astype(np.float32)
    turn = _turn(rng, d)
    move = 0.6 * rng.normal(size=d) * spread
    X[n // 2 :] = X[n // 2 :] @ turn.astype(np.float32) + move.astype(np.float32)
    return Shift(X, y)


def shift_parts(
    n_parts: int, rows: int, d: int = 64, n_classes: int = 10, seed: int = 0
) -> Iterator[tuple[str, NDArray[np.float32], NDArray[np.int64]]]:
    """The same shift in parts of so many rows, as many of the source as of the target."""
    rng = np.random.default_rng(seed)
    spread = (1.0 + np.arange(d)) ** -0.5
    means = 0.65 * rng.normal(size=(n_classes, d)) * spread
    turn, move = _turn(rng, d), 0.6 * rng.normal(size=d) * spread
    for domain in ("source", "target"):
        for _ in range(n_parts // 2):
            y = rng.integers(n_classes, size=rows)
            X = means[y] + rng.normal(size=(rows, d)) * spread
            if domain == "target":
                X = X @ turn + move
            yield domain, X.astype(np.float32), y


def _turn(rng: np.random.Generator, d: int) -> NDArray[np.float64]:
    """A random rotation near the identity."""
    skew = rng.normal(size=(d, d)) * 0.35 / np.sqrt(d)
    turn = np.linalg.qr(np.eye(d) + skew - skew.T)[0]
    return turn * np.sign(np.diag(turn))
