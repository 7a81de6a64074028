"""What kind of values a column holds, and its values in the form the encoder takes."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_complex_dtype, is_integer_dtype, is_numeric_dtype

from transferable.tables._errors import Problems, TableError

__all__ = [
    "MISSING",
    "Kind",
    "as_text",
    "is_running_number",
    "kinds_of",
    "names_rows",
    "numbers_of",
    "plain_numbers",
]

Kind = Literal["numeric", "categorical", "empty"]
MISSING = "(missing)"  # the category of cells without a value

_DATE = re.compile(
    r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))"
    r"([T ]\s*\d{1,2}:\d{2}.*)?\s*"
)
_LOOKED_AT = 200  # values that tell dates and written numbers
# Numbers as people write them, and the remedy for each; the first that fits any value counts.
_WRITTEN = {
    r"[-+]?\d+([.,]\d+)?\s?%": "per cents ({}); write plain numbers",
    r"[-+]?(\d+|\d{1,3}([.\s'’]\d{3})+),(\d{1,2}|\d{4,})": "numbers with a decimal comma ({}); "
    "say so: --decimal ,",
    r"[-+]?\d{1,3}([,\s'’]\d{3})+(\.\d+)?": "numbers with thousands separators ({}); remove them",
    r"[-+]?(\d+|\d{1,3}([.\s'’]\d{3})+),\d+": "numbers with a decimal comma ({}); say so: "
    "--decimal ,",
}
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_MANY_DIGITS = 100_000  # whole numbers below are seldom names of rows
_SEVERAL = 20


def plain_numbers(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Which columns hold numbers of numpy's: of tables with many, all are then read at once."""
    return np.array([getattr(dtype, "kind", "O") in "iuf" for dtype in table.dtypes.array], bool)


def kinds_of(table: pd.DataFrame, where: str, problems: Problems) -> dict[str, Kind]:
    """The kind of each column; what is none is told to `problems` and left out."""
    plain = plain_numbers(table)
    numbers = table.loc[:, plain]
    found: dict[str, Kind] = {
        str(name): "empty" if empty else "numeric"
        for name, empty in zip(numbers.columns, numbers.isna().to_numpy().all(axis=0), strict=True)
    }
    for name in table.columns[~plain]:
        with problems.catching():
            found[name] = kind_of(table[name], where)
    return found


def numbers_of(table: pd.DataFrame, names: Sequence[str], where: str) -> NDArray[np.float64]:
    """Columns of numbers and booleans side by side as floats, NaN where a value is missing."""
    columns = table[list(names)]
    if plain_numbers(columns).all():
        numbers = columns.to_numpy(dtype=np.float64)
        if not np.isinf(numbers).any():
            return numbers
    each = [as_numbers(columns[name], where) for name in names]
    return np.stack(each, axis=1).astype(np.float64, copy=False)


def kind_of(column: pd.Series, where: str = "") -> Kind:
    """Tell the kind of a column; refuse dates, written numbers and whatever is no plain value."""
    if column.isna().all():
        return "empty"
    if is_numeric_dtype(column.dtype) and not is_complex_dtype(column.dtype):
        return "numeric"
    name = _named(column, where)
    if isinstance(column.dtype, pd.CategoricalDtype):
        values: Any = column.cat.categories.tolist()
        if all(isinstance(value, Real) for value in values):
            return "categorical"
    else:
        values = column.dropna().tolist()
    if column.dtype.kind in "mM" or isinstance(values[0], datetime.date | datetime.time):
        raise _dates(name, column.name, values[0])
    if all(isinstance(value, bool | Real | Decimal) for value in values):
        return "numeric"
    if not all(isinstance(value, str) for value in values):
        raise TableError(
            f"{name} holds values of type {type(values[0]).__name__}; a column must hold numbers, "
            f"booleans or text. Leave it out: --drop {column.name}."
        )
    if all(_DATE.fullmatch(value) for value in values[:_LOOKED_AT]):
        raise _dates(name, column.name, values[0])
    written = _written(values[:_LOOKED_AT])
    if written:
        raise TableError(f"{name} holds {written}.")
    return "categorical"


def as_numbers(column: pd.Series, where: str = "") -> NDArray[np.floating]:
    """Numbers and booleans as floats, NaN where a value is missing."""
    if column.isna().all():
        return np.full(len(column), np.nan)
    if kind_of(column, where) != "numeric":
        values = column.dropna()
        example = next((value for value in values if not _is_number(value)), values.iloc[0])
        raise TableError(
            f"{_named(column, where)} must hold numbers, but it holds {example!r}; leave cells "
            "empty where a value is missing."
        )
    if column.dtype == np.float32:
        numbers: NDArray[np.floating] = column.to_numpy()
    elif is_numeric_dtype(column.dtype):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        numbers = column.map(float, na_action="ignore").to_numpy(dtype=np.float64)
    if np.isinf(numbers).any():
        raise TableError(
            f"{_named(column, where)} holds infinite numbers; leave cells empty where a value is "
            "missing."
        )
    return numbers


def as_text(column: pd.Series) -> NDArray[np.object_]:
    """Text, with a word of its own where a value is missing."""
    values = column.astype(object)
    return values.map(str, na_action="ignore").where(values.notna(), MISSING).to_numpy(dtype=object)


def is_running_number(column: pd.Series) -> bool:
    """Whether a column numbers its rows, as exported indices do."""
    if column.dtype.kind not in "iu" or len(column) < 10:
        return False
    return bool((np.diff(column.to_numpy()) == 1).all())


def names_rows(column: pd.Series) -> bool:
    """Whether a column holds another long whole number in every row, as identifiers do."""
    if not is_integer_dtype(column.dtype) or is_bool_dtype(column.dtype) or len(column) < _SEVERAL:
        return False
    return bool(column.is_unique and column.abs().max() >= _MANY_DIGITS)


def _written(values: Sequence[str]) -> str | None:
    """What kind of written numbers these are, with an example; None if they are not all numbers."""
    odd = [value for value in map(str.strip, values) if not _PLAIN.fullmatch(value)]
    if not odd or not all(any(re.fullmatch(form, value) for form in _WRITTEN) for value in odd):
        return None
    for form, told in _WRITTEN.items():
        example = next((value for value in odd if re.fullmatch(form, value)), None)
        if example is not None:
            return told.format(repr(example))
    return None


def _named(column: pd.Series, where: str) -> str:
    return f"{where}: column {column.name!r}" if where else f"column {column.name!r}"


def _dates(called: str, name: object, example: object) -> TableError:
    return TableError(
        f"{called} holds dates ({str(example)!r}), which have no place in a distance; turn them "
        f"into numbers, such as an age in days or a month, or leave them out: --drop {name}."
    )


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
