"""What kind of values a column holds, and its values in the form the encoders take."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_complex_dtype, is_numeric_dtype

from transferable.tables._errors import TableError

__all__ = ["MISSING", "Kind", "as_numbers", "as_text", "is_running_number", "kind_of"]

Kind = Literal["numeric", "categorical", "empty"]
MISSING = "(missing)"  # the category of cells without a value

_DATE = re.compile(
    r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))"
    r"([T ]\s*\d{1,2}:\d{2}.*)?\s*"
)
_DATES_LOOKED_AT = 200


def kind_of(column: pd.Series) -> Kind:
    """Tell the kind of a column, and refuse dates and whatever is no plain value."""
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
    if column.dtype.kind in "mM" or isinstance(values[0], datetime.date | datetime.time):
        raise _dates(column.name, values[0])
    if all(isinstance(value, bool | Real | Decimal) for value in values):
        return "numeric"
    if not all(isinstance(value, str) for value in values):
        raise TableError(
            f"column {column.name!r} holds values of type {type(values[0]).__name__}; a column "
            "must hold numbers, booleans or text. Leave it out with --drop."
        )
    if all(_DATE.fullmatch(value) for value in values[:_DATES_LOOKED_AT]):
        raise _dates(column.name, values[0])
    return "categorical"


def as_numbers(column: pd.Series) -> NDArray[np.float64]:
    """Numbers and booleans as floats, NaN where a value is missing."""
    if column.isna().all():
        return np.full(len(column), np.nan)
    if kind_of(column) != "numeric":
        values = column.dropna()
        example = next((value for value in values if not _is_number(value)), values.iloc[0])
        raise TableError(
            f"column {column.name!r} must hold numbers, but it holds {example!r}; leave cells "
            "empty where a value is missing."
        )
    if is_numeric_dtype(column.dtype):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        numbers = column.map(float, na_action="ignore").to_numpy(dtype=np.float64)
    if np.isinf(numbers).any():
        raise TableError(
            f"column {column.name!r} holds infinite numbers; leave cells empty where a value is "
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


def _dates(name: object, example: object) -> TableError:
    return TableError(
        f"column {name!r} holds dates ({str(example)!r}), which have no place in a distance; turn "
        f"them into numbers, such as an age in days or a month, or leave them out: --drop {name}."
    )


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
