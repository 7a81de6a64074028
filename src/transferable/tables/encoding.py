"""What becomes of the columns of two tables, decided from both, with notes on what was decided."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_integer_dtype

from transferable.tables._errors import Problems, TableError, listed, who
from transferable.tables.columns import as_text, is_running_number, kinds_of, names_rows

__all__ = ["SCALES", "Scale", "choose_columns", "choose_scale", "shared_categories"]

Scale = Literal["auto", "per-domain", "joint", "none", "unit"]
SCALES: tuple[Scale, ...] = ("auto", "per-domain", "joint", "none", "unit")
_MANY_CATEGORIES = 50
_MANY_COLUMNS = 20  # fewer are seldom pixels or embeddings
_ALIKE = 10.0  # ranges that differ by less may be of one unit


def choose_columns(
    source: pd.DataFrame, target: pd.DataFrame, *, numbered: bool, problems: Problems
) -> tuple[list[str], list[str], list[str]]:
    """Numeric and text columns that both domains have values in, and notes on the others.

    `numbered` keeps columns that only number the rows.
    """
    notes = _one_sided(source, target)
    shared = [column for column in source.columns if column in target.columns]
    if not shared:
        raise TableError(
            f"{who(source, 'source')} and {who(target, 'target')} have no feature in common: "
            f"{listed(source.columns) or 'none'} and {listed(target.columns) or 'none'}."
        )
    ours = kinds_of(source[shared], who(source, "source"), problems)
    theirs = kinds_of(target[shared], who(target, "target"), problems)
    kinds = {c: (ours[c], theirs[c]) for c in shared if c in ours and c in theirs}
    for column, (one, other) in kinds.items():
        if {one, other} == {"numeric", "categorical"}:
            problems.add(
                f"column {column!r} holds {_WORDS[one]} in {who(source, 'the source')}, but "
                f"{_WORDS[other]} in {who(target, 'the target')}; leave cells empty where a "
                f"value is missing, or --drop {column}."
            )
    empty = [column for column, pair in kinds.items() if "empty" in pair]
    if empty:
        notes.append(f"{_columns(empty)} without any value in one of the domains; left out.")
    whole = {} if numbered else _whole_numbers(source[list(kinds)], target[list(kinds)])
    counters = [c for c, pair in whole.items() if all(map(is_running_number, pair))]
    if counters:
        notes.append(f"{_columns(counters)} only numbering the rows; left out.")
    notes += [
        f"column {c!r} holds another long whole number in every row, as identifiers do, and is "
        f"used as a feature; if it names rows: --id {c}."
        for c, pair in whole.items()
        if c not in counters and all(map(names_rows, pair))
    ]
    of = {
        kind: [c for c, pair in kinds.items() if pair == (kind, kind) and c not in counters]
        for kind in ("numeric", "categorical")
    }
    return of["numeric"], of["categorical"], notes


def _whole_numbers(
    source: pd.DataFrame, target: pd.DataFrame
) -> dict[str, tuple[pd.Series, pd.Series]]:
    """The columns that hold whole numbers in both tables."""
    found = [
        name
        for name, *pair in zip(
            source.columns, source.dtypes.array, target.dtypes.array, strict=True
        )
        if all(map(is_integer_dtype, pair))
    ]
    return {name: (source[name], target[name]) for name in found}


def shared_categories(
    source: pd.DataFrame, target: pd.DataFrame, columns: list[str], problems: Problems
) -> tuple[dict[str, list[str]], list[str]]:
    """Categories that both domains know, for each column that has any, and notes on the rest."""
    shared, notes = {}, []
    for column in columns:
        ours, theirs = (set(as_text(table[column])) for table in (source, target))
        most = max(_MANY_CATEGORIES, (len(source) + len(target)) // 2)
        if len(ours | theirs) > most:
            problems.add(
                f"column {column!r} holds {len(ours | theirs):,} different texts, too many for "
                f"categories. If it names rows: --id {column}, else --drop {column}."
            )
        for name, only in (("source", ours - theirs), ("target", theirs - ours)):
            if only:
                notes.append(
                    f"column {column!r} has categories in the {name} only, which are encoded as "
                    f"none of the others: {listed(sorted(only))}."
                )
        if ours & theirs:
            shared[column] = sorted(ours & theirs)
    return shared, notes


def choose_scale(
    numbers: tuple[NDArray[np.float64], NDArray[np.float64]], *, all_numeric: bool
) -> Scale:
    """What "auto" means for these columns: nothing is scaled if all seem to be of one unit.

    They seem so if there are at least 20, all numeric, and the widest ranges over at most ten
    times what the narrowest quarter does. Constant columns do not count.
    """
    if not all_numeric or numbers[0].shape[1] < _MANY_COLUMNS:
        return "per-domain"
    highest = np.fmax(*(np.nanmax(table, axis=0) for table in numbers))
    lowest = np.fmin(*(np.nanmin(table, axis=0) for table in numbers))
    ranges = (highest - lowest)[highest > lowest]
    alike = len(ranges) and ranges.max() <= _ALIKE * np.quantile(ranges, 0.25, method="lower")
    return "none" if alike else "per-domain"


_WORDS = {"numeric": "numbers", "categorical": "text"}


def _one_sided(source: pd.DataFrame, target: pd.DataFrame) -> list[str]:
    notes = []
    for name, table, other in (("source", source, target), ("target", target, source)):
        extra = [column for column in table.columns if column not in other.columns]
        if extra:
            notes.append(f"only the {name} has {_columns(extra)}; left out.")
    return notes


def _columns(names: list[str]) -> str:
    return f"column {listed(names)}" if len(names) == 1 else f"columns {listed(names)}"
