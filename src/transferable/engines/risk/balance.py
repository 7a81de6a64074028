"""mu: how much the classes' discrepancy counts against that of the domains as wholes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD

from transferable.domains import Domains, Groups
from transferable.linalg.rows import dense
from transferable.metrics.a_distance import proxy_a_distance

__all__ = ["Balance", "leading"]

_WIDEST = 256  # features beyond which distances are measured in the leading directions
_DIRECTIONS = 64
_ROWS = 2000  # rows of each side that are compared; their order is random already


class Balance:
    """The balance for given groups, estimated from A-distances between source and target rows.

    With d_M the A-distance between the domains and d_c that between their rows of class c,
    "adaptive" is MEDA's mean(d_c) / (mean(d_c) + d_M), and "printed" is the paper's
    d_M / (d_M + sum(d_c)). A class with fewer than two rows on either side is left out.
    """

    def __init__(self, Z: Any, domains: Domains, random_state: int | RandomState | None) -> None:
        self.Z = leading(Z, random_state)
        self._known: dict[bytes, float | None] = {}
        rows = np.arange(len(domains.order))
        self.marginal = self._distance(rows[: domains.n_source], rows[domains.n_source :]) or 0.0

    def __call__(self, rule: str, groups: Groups) -> float:
        """Balance of these groups."""
        if groups.n_source == len(groups.codes):
            return 0.5
        pairs = map(groups.members, range(groups.n_classes))
        distances = [d for pair in pairs if (d := self._distance(*pair)) is not None]
        if rule == "printed":
            numerator, other = self.marginal, float(np.sum(distances))
        else:
            numerator, other = float(np.mean(distances)) if distances else 0.0, self.marginal
        return numerator / (numerator + other) if numerator + other > 0 else 0.5

    def _distance(self, source: NDArray[np.intp], target: NDArray[np.intp]) -> float | None:
        """Distance between these source and target rows, remembered; None if they are too few."""
        source, target = source[:_ROWS], target[:_ROWS]
        key = source.tobytes() + target.tobytes()
        if key not in self._known:
            enough = min(len(source), len(target)) >= 2
            distance = proxy_a_distance(self.Z[source], self.Z[target]) if enough else None
            self._known[key] = distance
        return self._known[key]


def leading(Z: Any, random_state: int | RandomState | None) -> NDArray[np.floating]:
    """Z itself, or its coordinates in the leading directions where it is wide."""
    if Z.shape[1] <= _WIDEST:
        return dense(Z)
    k = min(_DIRECTIONS, min(Z.shape) - 1)
    some = Z[:: max(1, Z.shape[0] // (2 * _ROWS))]
    return TruncatedSVD(k, random_state=random_state).fit(some).transform(Z)
