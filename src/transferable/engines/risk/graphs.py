"""Which graph a fit has: that of nearest neighbours, or one through anchors, and how many."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Literal

from transferable.terms.smoothness import Smoothness

__all__ = ["GraphKind", "with_graph"]

GraphKind = Literal["auto", "neighbors", "anchors"]

_ROWS_PER_ANCHOR = 5  # at least: below, anchors join rows of different classes, or none at all
_MOST_ANCHORS = 1000  # that "auto" takes
_MANY_ROWS = 10_000  # from which "auto" takes anchors, where it solves over landmarks


def with_graph(
    term: Smoothness,
    graph: GraphKind,
    n_anchors: int | Literal["auto"],
    n_rows: int,
    *,
    by_landmarks: bool,
) -> Smoothness:
    """The term with the graph that was asked for, or that suits so many rows."""
    if graph == "auto":
        graph = "anchors" if by_landmarks and n_rows >= _MANY_ROWS else "neighbors"
    if graph == "neighbors":
        return term
    most = n_rows // _ROWS_PER_ANCHOR
    if most <= term.n_ties:
        raise ValueError(
            f'graph="anchors" ties each row to {term.n_ties} of more anchors, with at least '
            f'{_ROWS_PER_ANCHOR} rows to each; {n_rows} rows are too few. Take graph="neighbors".'
        )
    wanted = _MOST_ANCHORS if n_anchors == "auto" else n_anchors
    if n_anchors != "auto" and wanted > most:
        warnings.warn(
            f"n_anchors={n_anchors} would leave fewer than {_ROWS_PER_ANCHOR} of {n_rows} rows to "
            f"each; it is reduced to {most}.",
            UserWarning,
            stacklevel=2,
        )
    return replace(term, n_anchors=max(min(wanted, most), term.n_ties + 1))
