"""Columns of tables: their kinds and treatment, determined from both domains."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_complex_dtype, is_integer_dtype, is_numeric_dtype

from transferable.tables.reading import Problems, TableError, brief, listed, plain_numbers, who
from transferable.tables.text import Words, are_sentences

Kind = Literal["numeric", "categorical", "empty"]
Scale = Literal["auto", "per-domain", "joint", "none", "unit"]
SCALES: tuple[Scale, ...] = get_args(Scale)
_MISSING = "(missing)"  # the category of cells without a value
_DATE = re.compile(
    r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))"
    r"([T ]\s*\d{1,2}:\d{2}.*)?\s*"
)
_LOOKED_AT = 200  # values that determine dates and written numbers
_COMMA = "numbers with a decimal comma ({}); read the file with decimal=','"
# Numbers as people write them, and the remedy for each; the first that fits any value counts.
_WRITTEN = {
    r"[-+]?\d+([.,]\d+)?\s?%": "per cents ({}); write plain numbers",
    r"[-+]?(\d+|\d{1,3}([.\s'’]\d{3})+),(\d{1,2}|\d{4,})": _COMMA,
    r"[-+]?\d{1,3}([,\s'’]\d{3})+(\.\d+)?": "numbers with thousands separators ({}); remove them",
    r"[-+]?(\d+|\d{1,3}([.\s'’]\d{3})+),\d+": _COMMA,
}
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_MANY_DIGITS = 100_000  # smaller whole numbers are seldom identifiers of rows
_SEVERAL = 20
_MANY_CATEGORIES = 50
_MANY_COLUMNS = 20  # fewer are seldom pixels or embeddings
_ALIKE = 10.0  # ranges that differ by less may be of one unit
_WORDS = {"numeric": "numbers", "categorical": "text"}


def kinds_of(table: pd.DataFrame, where: str, problems: Problems) -> dict[str, Kind]:
    """Return the kind of each column; columns of none are reported to `problems` and left out."""
    plain = plain_numbers(table)
    numbers = table.loc[:, plain]
    found: dict[str, Kind] = {
        str(name): "empty" if empty else "numeric"
        for name, empty in zip(numbers.columns, numbers.isna().to_numpy().all(axis=0), strict=True)
    }
    for name in table.columns[~plain]:
        with problems.catching():
            found[name] = _kind_of(table[name], where)
    return found


def numbers_of(table: pd.DataFrame, names: Sequence[str], where: str) -> NDArray[np.float64]:
    """Return numbers and booleans side by side as floats, NaN where a value is missing."""
    columns = table[list(names)]
    if plain_numbers(columns).all():
        numbers = columns.to_numpy(dtype=np.float64)
        if not np.isinf(numbers).any():
            return numbers
    return np.stack([_as_numbers(columns[name], where) for name in names], axis=1)


def _kind_of(column: pd.Series, where: str) -> Kind:
    """Return the kind of a column; refuse dates, written numbers and values that are not plain."""
    if column.isna().all():
        return "empty"
    if is_numeric_dtype(column.dtype) and not is_complex_dtype(column.dtype):
        return "numeric"
    if isinstance(column.dtype, pd.CategoricalDtype):
        values: Any = column.cat.categories.tolist()
        if all(isinstance(value, Real) for value in values):
            return "categorical"
    else:
        values = column.dropna().tolist()
    name, some = f"{where}: column {column.name!r}", values[:_LOOKED_AT]
    texts = all(isinstance(value, str) for value in values)
    dates = texts and all(_DATE.fullmatch(value) for value in some)
    dates = dates or isinstance(values[0], datetime.date | datetime.time)
    if dates or column.dtype.kind in "mM":
        raise TableError(
            f"{name} holds dates ({str(values[0])!r}), which have no place in a distance; turn "
            "them into numbers, such as an age in days or a month, or leave them out: "
            f"drop={[column.name]!r}."
        )
    if texts:
        if written := _written(some):
            raise TableError(f"{name} holds {written}.")
        return "categorical"
    if all(isinstance(value, Real | Decimal) for value in values):
        return "numeric"
    raise TableError(
        f"{name} holds values of type {type(values[0]).__name__}; a column must hold numbers, "
        f"booleans or text. Leave it out: drop={[column.name]!r}."
    )


def _as_numbers(column: pd.Series, where: str) -> NDArray[np.float64]:
    if column.isna().all():
        return np.full(len(column), np.nan)
    name = f"{where}: column {column.name!r}"
    if _kind_of(column, where) != "numeric":
        values = column.dropna()
        example = next((value for value in values if not _is_number(value)), values.iloc[0])
        raise TableError(
            f"{name} must hold numbers, but it holds {brief(example)!r}; leave cells empty where a "
            "value is missing."
        )
    if not is_numeric_dtype(column.dtype):
        column = column.map(float, na_action="ignore")
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(numbers).any():
        raise TableError(
            f"{name} holds infinite numbers; leave cells empty where a value is missing."
        )
    return numbers


def as_text(column: pd.Series) -> NDArray[np.object_]:
    """Return text, with a placeholder where a value is missing."""
    values = column.astype(object)
    return (
        values.map(str, na_action="ignore").where(values.notna(), _MISSING).to_numpy(dtype=object)
    )


def _written(values: Sequence[str]) -> str | None:
    """Return the kind of written numbers with an example; None if they are not all numbers."""
    odd = [value for value in map(str.strip, values) if not _PLAIN.fullmatch(value)]
    if not odd or not all(any(re.fullmatch(form, value) for form in _WRITTEN) for value in odd):
        return None
    found = ((told, v) for form, told in _WRITTEN.items() for v in odd if re.fullmatch(form, v))
    told, example = next(found)
    return told.format(repr(example))


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def joined(tables: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame, NDArray[np.intp], list[str]]:
    """Return the rows of all sources in their shared columns, their marks 1, 2, ..., and notes."""
    shared = [c for c in tables[0].columns if all(c in table.columns for table in tables)]
    names = [who(table, f"source {k}") for k, table in enumerate(tables, 1)]
    if not shared:
        columns = " and ".join(listed(table.columns) for table in tables)
        raise TableError(f"{' and '.join(names)} have no column in common: {columns}.")
    notes = []
    for name, table in zip(names, tables, strict=True):
        own = [column for column in table.columns if column not in shared]
        if own:
            notes.append(f"{name}: column {listed(own)} is not in every source and is left out.")
    table = pd.concat([table[shared] for table in tables], ignore_index=True)
    table.attrs = {"file": " and ".join(names)} if "file" in tables[0].attrs else {}
    sizes: Any = [len(table) for table in tables]
    return table, np.repeat(np.arange(1, len(tables) + 1), sizes), notes


def choose_columns(
    source: pd.DataFrame,
    target: pd.DataFrame,
    *,
    text: Collection[str],
    numbered: bool,
    problems: Problems,
) -> tuple[list[str], list[str], list[str]]:
    """Return numeric and text columns that both domains have values in, and notes on the others.

    Columns named in `text` are text, whatever they hold. `numbered` keeps columns that only number
    the rows.
    """
    notes = []
    for name, table, other in (("source", source, target), ("target", target, source)):
        extra = [column for column in table.columns if column not in other.columns]
        if extra:
            notes.append(f"only the {name} has {_columns(extra)}; left out.")
    shared = [column for column in source.columns if column in target.columns]
    if not shared:
        raise TableError(
            f"{who(source, 'source')} and {who(target, 'target')} have no feature in common: "
            f"{listed(source.columns) or 'none'} and {listed(target.columns) or 'none'}."
        )
    ours, theirs = (
        kinds_of(table[[c for c in shared if c not in text]], who(table, name), problems)
        | {c: "empty" if table[c].isna().all() else "categorical" for c in shared if c in text}
        for name, table in (("source", source), ("target", target))
    )
    kinds = {c: (ours[c], theirs[c]) for c in shared if c in ours and c in theirs}
    for column, (one, other) in kinds.items():
        if {one, other} == {"numeric", "categorical"}:
            problems.add(
                f"column {column!r} holds {_WORDS[one]} in {who(source, 'the source')}, but "
                f"{_WORDS[other]} in {who(target, 'the target')}; leave cells empty where a "
                f"value is missing, or leave it out: drop={[column]!r}."
            )
    empty = [column for column, pair in kinds.items() if "empty" in pair]
    if empty:
        notes.append(f"{_columns(empty)} without any value in one of the domains; left out.")
    dtypes = [dict(zip(t.columns, t.dtypes.array, strict=True)) for t in (source, target)]
    whole = {
        c: (source[c], target[c])
        for c in kinds
        if not numbered and all(is_integer_dtype(of[c]) for of in dtypes)
    }
    counters = [c for c, pair in whole.items() if all(map(_is_row_index, pair))]
    if counters:
        notes.append(f"{_columns(counters)} only numbering the rows; left out.")
    notes += [
        f"column {c!r} holds another long whole number in every row, as identifiers do, and is "
        f"used as a feature; if it names rows: ids={[c]!r}."
        for c, pair in whole.items()
        if c not in counters and all(map(_is_row_id, pair))
    ]
    numeric, others = (
        [c for c, pair in kinds.items() if pair == (kind, kind) and c not in counters]
        for kind in ("numeric", "categorical")
    )
    return numeric, others, notes


def shared_categories(
    source: pd.DataFrame,
    target: pd.DataFrame,
    columns: list[str],
    text: Collection[str],
    problems: Problems,
) -> tuple[dict[str, list[str]], dict[str, Words], list[str]]:
    """Return the categories of some columns, the words of the others, and notes.

    Categories are those that both domains know. Columns of words are those named in `text`, and
    sentences that differ in more than half of the rows.
    """
    shared, words, notes = {}, {}, []
    for column in columns:
        ours, theirs = (set(as_text(table[column])) for table in (source, target))
        several = sorted(ours | theirs)
        many = len(several) > (len(source) + len(target)) // 2
        if column in text or (many and are_sentences(several)):
            words[column] = Words.of(pd.concat([source[column], target[column]]))
            notes.append(
                f"column {column!r} is read as words, of which {len(words[column].terms):,} "
                f"stand in at least two texts; to leave it out: drop={[column]!r}."
            )
            continue
        if many and len(several) > _MANY_CATEGORIES:
            problems.add(
                f"column {column!r} holds {len(several):,} different names or codes, too many for "
                f"categories. If it names rows: ids={[column]!r}; if its words mean something: "
                f"text={[column]!r}; else drop={[column]!r}."
            )
            continue
        for name, only in (("source", ours - theirs), ("target", theirs - ours)):
            if only:
                notes.append(
                    f"column {column!r} has categories in the {name} only, which are encoded as "
                    f"none of the others: {listed(sorted(only))}."
                )
        if ours & theirs:
            shared[column] = sorted(ours & theirs)
    return shared, words, notes


def choose_scale(
    numbers: tuple[NDArray[np.float64], NDArray[np.float64]], *, all_numeric: bool
) -> Scale:
    """Return the meaning of "auto" for these columns: "none" if all seem to be of one unit.

    They seem so if there are at least 20, all numeric, and the widest range is at most ten times
    that of the narrowest quarter. Constant columns do not count.
    """
    if not all_numeric or numbers[0].shape[1] < _MANY_COLUMNS:
        return "per-domain"
    highest = np.fmax(*(np.nanmax(table, axis=0) for table in numbers))
    lowest = np.fmin(*(np.nanmin(table, axis=0) for table in numbers))
    ranges = (highest - lowest)[highest > lowest]
    alike = len(ranges) and ranges.max() <= _ALIKE * np.quantile(ranges, 0.25, method="lower")
    return "none" if alike else "per-domain"


def _is_row_index(column: pd.Series) -> bool:
    """Return whether a column numbers its rows, as exported indices do."""
    if column.dtype.kind not in "iu" or len(column) < 10:
        return False
    return bool((np.diff(column.to_numpy()) == 1).all())


def _is_row_id(column: pd.Series) -> bool:
    """Return whether a column has a different long whole number in every row, as identifiers do."""
    many = len(column) >= _SEVERAL and column.is_unique
    return bool(many and column.abs().max() >= _MANY_DIGITS)


def _columns(names: list[str]) -> str:
    return f"column {listed(names)}" if len(names) == 1 else f"columns {listed(names)}"
