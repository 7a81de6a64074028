"""What each of several sources counts: nearer ones more, or as the user says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from transferable._sklearn import StrOptions
from transferable.domains import Domains
from transferable.engines.risk.rows import COMPARED, leading
from transferable.linalg.rows import unit_rows
from transferable.metrics.a_distance import distance_of_halves

__all__ = ["SOURCE_WEIGHTS", "SourceWeights", "weigh_sources"]

SourceWeights = Literal["auto"] | Mapping[Any, float] | ArrayLike
SOURCE_WEIGHTS = [StrOptions({"auto"}), Mapping, "array-like"]


def weigh_sources(
    domains: Domains, weights: SourceWeights, random_state: int | RandomState | None
) -> Domains:
    """The same rows, where sources count by these weights or by their distance to the target."""
    if domains.n_sources == 1:
        _given(weights, domains)
        return domains
    if isinstance(weights, str):
        if domains.n_target == 0:
            return domains
        key = str(random_state)
        found = domains.share("source weights", key, _by_distance, domains, random_state)
    else:
        found = _given(weights, domains)
    # One on average over the rows, so that the loss weighs what it did.
    counts = np.bincount(
        domains.sources, None if domains.weights is None else domains.weights[domains.source]
    )
    return domains.with_source_weights(found * (counts.sum() / (counts @ found)))


def _by_distance(domains: Domains, random_state: int | RandomState | None) -> NDArray[np.float64]:
    """Weights that fall with the A-distance of the source to the target."""
    Z = leading(unit_rows(domains.X[:]), domains.n_source, random_state)
    groups = domains.groups(np.zeros(domains.n_target, dtype=np.intp))
    distances = []
    for k in range(groups.n_sources):
        source, target = (rows[:COMPARED] for rows in groups.whole(k))
        enough = min(len(source), len(target)) >= 2
        distances.append(distance_of_halves(Z[source], Z[target]) if enough else 2.0)
    import os

    form = os.environ.get("WFORM", "exp")
    d = np.array(distances)
    if os.environ.get("WSHOW"):
        print(d)
    return {
        "exp": np.exp(-d),
        "two": 2.1 - d,
        "inv": 1 / (d + 0.1),
        "one": np.ones_like(d),
        "exp3": np.exp(-3 * d),
    }[form]


def _given(weights: SourceWeights, domains: Domains) -> NDArray[np.float64]:
    """The weights a user gave, in the order of the ids."""
    ids = domains.source_ids.tolist()
    if isinstance(weights, str):
        return np.ones(len(ids))
    if isinstance(weights, Mapping):
        if sorted(weights) != ids:
            raise ValueError(
                f"source_weights names the ids {sorted(weights)}, but the sources are {ids}; give "
                "each of them one weight."
            )
        weights = [weights[source] for source in ids]
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != (len(ids),):
        raise ValueError(
            f"source_weights has the shape {given.shape}, but there are {len(ids)} sources, {ids}; "
            "give one weight for each."
        )
    if not np.isfinite(given).all() or (given <= 0).any():
        raise ValueError(
            f"source_weights must be positive numbers, got {given.tolist()}; to leave a source "
            "out, drop its rows."
        )
    return given
