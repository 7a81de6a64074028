"""mu: how much the classes' discrepancy counts against that of the domains as wholes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD

from transferable.domains import Domains
from transferable.linalg.reuse import remember
from transferable.linalg.rows import dense
from transferable.metrics.a_distance import proxy_a_distance

__all__ = ["Balance"]

_WIDEST = 256  # features beyond which distances are measured in the leading directions
_DIRECTIONS = 64
_ROWS = 2000  # rows of each side that are compared; their order is random already


class Balance:
    """The balance for given labels: a fixed number, or estimated from A-distances.

    With d_M the A-distance between the domains and d_c that between their rows of class c,
    "adaptive" is MEDA's mean(d_c) / (mean(d_c) + d_M), and "printed" is the paper's
    d_M / (d_M + sum(d_c)). A class with fewer than two rows on either side is left out.
    """

    def __init__(
        self, rule: str | float, Z: Any, domains: Domains, random_state: int | RandomState | None
    ) -> None:
        self.rule = rule
        self.n_source = domains.n_source
        self.n_classes = domains.n_classes
        if isinstance(rule, str) and domains.n_target > 0:
            self._distance = remember(_Distances, Z, domains.n_source, random_state)
            self.marginal = self._distance(np.arange(len(domains.order))) or 0.0

    def __call__(self, codes: NDArray[np.intp]) -> float:
        """Balance for class codes of all rows, source rows first."""
        if not isinstance(self.rule, str):
            return float(self.rule)
        if self.n_source == len(codes):
            return 0.5
        members = (np.flatnonzero(codes == code) for code in range(self.n_classes))
        distances = [d for rows in members if (d := self._distance(rows)) is not None]
        if self.rule == "printed":
            numerator, other = self.marginal, float(np.sum(distances))
        else:
            numerator, other = float(np.mean(distances)) if distances else 0.0, self.marginal
        return numerator / (numerator + other) if numerator + other > 0 else 0.5


class _Distances:
    """A-distances between groups of source and target rows, remembered."""

    def __init__(self, Z: Any, n_source: int, random_state: int | RandomState | None) -> None:
        self.Z = _leading(Z, random_state)
        self.n_source = n_source
        self._known: dict[bytes, float | None] = {}

    def __call__(self, rows: NDArray[np.intp]) -> float | None:
        """Distance between the source and target rows among those given, None if too few."""
        source, target = rows[rows < self.n_source][:_ROWS], rows[rows >= self.n_source][:_ROWS]
        key = source.tobytes() + target.tobytes()
        if key not in self._known:
            enough = min(len(source), len(target)) >= 2
            distance = proxy_a_distance(self.Z[source], self.Z[target]) if enough else None
            self._known[key] = distance
        return self._known[key]


def _leading(Z: Any, random_state: int | RandomState | None) -> NDArray[np.floating]:
    """Z itself, or its coordinates in the leading directions where it is wide."""
    if Z.shape[1] <= _WIDEST:
        return dense(Z)
    k = min(_DIRECTIONS, min(Z.shape) - 1)
    some = Z[:: max(1, Z.shape[0] // (2 * _ROWS))]
    return TruncatedSVD(k, random_state=random_state).fit(some).transform(Z)
