"""What each of several sources counts: nearer ones more, or as the user says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transferable._sklearn import StrOptions
from transferable.domains import Domains
from transferable.linalg.rows import unit_rows
from transferable.linalg.search import nearest

__all__ = ["SOURCE_WEIGHTS", "SourceWeights", "weigh_sources"]

SourceWeights = Literal["auto"] | Mapping[Any, float] | ArrayLike
_COMPARED = 2000  # rows of each domain; their order is random already
_LEAST = 0.02  # share that the farthest source keeps
SOURCE_WEIGHTS = [StrOptions({"auto"}), Mapping, "array-like"]


def weigh_sources(domains: Domains, weights: SourceWeights) -> Domains:
    """The same rows, where sources count by these weights or by how near they are to the target."""
    if domains.sources is None:
        _given(weights, domains)
        return domains
    if isinstance(weights, str):
        if domains.n_target == 0:
            return domains
        found = domains.share("source weights", None, _by_nearness, domains)
    else:
        found = _given(weights, domains)
    # One on average over the rows, so that the loss weighs what it did.
    own = None if domains.weights is None else domains.weights[domains.source]
    counts = np.bincount(domains.sources, own)
    return domains.with_source_weights(found * (counts.sum() / (counts @ found)))


def _by_nearness(domains: Domains) -> NDArray[np.float64]:
    """The squared share of target rows whose nearest row, of as many of each source, is its own.

    A distance between means or a domain classifier would not do: where each domain is
    standardised, they see no difference.
    """
    groups = domains.groups(np.zeros(domains.n_target, dtype=np.intp))
    sources = [groups.whole(k)[0] for k in range(groups.n_sources)]
    target = groups.whole(0)[1][:_COMPARED]
    count = min(_COMPARED, *map(len, sources))
    compared = np.concatenate([rows[:count] for rows in sources])
    found = nearest(unit_rows(domains.X[target]), unit_rows(domains.X[compared])).indices
    shares = np.bincount(found.ravel() // count, minlength=len(sources)) / len(target)
    return np.maximum(shares, _LEAST) ** 2


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
