"""Default preprocessing of tables, made of scikit-learn's parts.

Numeric columns get the median where a value is missing, and may be scaled; text columns become one
indicator for each category that both domains know. What this needs is learnt from both domains
together or, with ``scale="per-domain"``, from each by itself.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler

from transferable.tables._errors import TableError, listed
from transferable.tables.columns import as_text, is_running_number, kind_of

__all__ = ["SCALES", "Scale", "choose_columns", "choose_scale", "make_encoder", "shared_categories"]

Scale = Literal["auto", "per-domain", "joint", "none", "unit"]
SCALES: tuple[Scale, ...] = ("auto", "per-domain", "joint", "none", "unit")
_MANY_CATEGORIES = 50
_MANY_COLUMNS = 20  # fewer are seldom pixels or embeddings
_ALIKE = 10.0  # ranges that differ by less may be of one unit


def choose_columns(
    source: pd.DataFrame, target: pd.DataFrame, *, numbered: bool
) -> tuple[list[str], list[str], list[str]]:
    """Numeric and text columns that both domains have values in, and notes on the others.

    `numbered` keeps columns that only number the rows.
    """
    notes = []
    for name, table, other in (("source", source, target), ("target", target, source)):
        extra = [column for column in table.columns if column not in other.columns]
        if extra:
            notes.append(f"only the {name} has {_columns(extra)}; left out.")
    shared = [column for column in source.columns if column in target.columns]
    if not shared:
        raise TableError(
            "source and target have no feature in common: "
            f"{listed(source.columns) or 'none'} and {listed(target.columns) or 'none'}."
        )
    kinds = {column: (kind_of(source[column]), kind_of(target[column])) for column in shared}
    for column, (ours, theirs) in kinds.items():
        if {ours, theirs} == {"numeric", "categorical"}:
            raise TableError(
                f"column {column!r} holds {_words[ours]} in the source, but {_words[theirs]} in "
                f"the target; leave cells empty where a value is missing, or --drop {column}."
            )
    empty = [column for column, pair in kinds.items() if "empty" in pair]
    if empty:
        notes.append(f"{_columns(empty)} without any value in one of the domains; left out.")
    counters = [
        column
        for column in shared
        if not numbered and is_running_number(source[column]) and is_running_number(target[column])
    ]
    if counters:
        notes.append(f"{_columns(counters)} only numbering the rows; left out.")
    of = {
        kind: [c for c, pair in kinds.items() if pair == (kind, kind) and c not in counters]
        for kind in ("numeric", "categorical")
    }
    return of["numeric"], of["categorical"], notes


def shared_categories(
    source: pd.DataFrame, target: pd.DataFrame, columns: list[str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Categories that both domains know, for each column that has any, and notes on the rest."""
    shared, notes = {}, []
    for column in columns:
        ours, theirs = (set(as_text(table[column])) for table in (source, target))
        most = max(_MANY_CATEGORIES, (len(source) + len(target)) // 2)
        if len(ours | theirs) > most:
            raise TableError(
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


def choose_scale(source: pd.DataFrame, target: pd.DataFrame, numeric: list[str]) -> Scale:
    """What "auto" means for these columns: nothing is scaled if all seem to be of one unit.

    They seem so if there are at least 20, all numeric, and the widest ranges over at most ten
    times what the narrowest quarter does. Constant columns do not count.
    """
    if len(numeric) < max(_MANY_COLUMNS, source.shape[1]):
        return "per-domain"
    highest, lowest = np.fmax(source.max(), target.max()), np.fmin(source.min(), target.min())
    ranges = (highest - lowest).to_numpy()
    ranges = ranges[ranges > 0]
    alike = len(ranges) and ranges.max() <= _ALIKE * np.quantile(ranges, 0.25, method="lower")
    return "none" if alike else "per-domain"


def make_encoder(numeric: list[str], categories: dict[str, list[str]], scale: Scale) -> Any:
    """Return the unfitted encoder of the given columns."""
    number_steps: list[Any] = [SimpleImputer(strategy="median")]
    if scale in ("per-domain", "joint"):
        number_steps.append(StandardScaler())
    one_hot = OneHotEncoder(
        categories=list(categories.values()), handle_unknown="ignore", sparse_output=False
    )
    columns = ColumnTransformer(
        [
            ("numeric", make_pipeline(*number_steps), numeric),
            ("categorical", one_hot, list(categories)),
        ],
        verbose_feature_names_out=False,
    )
    steps = [("columns", columns)]
    if scale == "unit":
        steps.append(("unit", Normalizer()))
    return Pipeline(steps)


_words = {"numeric": "numbers", "categorical": "text"}


def _columns(names: list[str]) -> str:
    return f"column {listed(names)}" if len(names) == 1 else f"columns {listed(names)}"
