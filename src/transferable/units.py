"""The unit of rows: where values are too large or too small to be squared, the largest of them.

Methods square and multiply rows, which overflows or vanishes long before the values do. Rows of
ordinary size are left as they are; others are divided by a power of two near their largest value,
which loses no digit, and so are rows that are predicted or transformed later.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from transferable.threads import in_threads, thread_blocks

__all__ = ["exponent_of", "in_unit"]

# Exponents of two that need no other unit. Products of eight values stay far from overflow, and
# in single precision those of three.
_ORDINARY = {"float64": 64, "float32": 30}
_MOST_DIGITS_LOST = -1000  # below 2**-1022, values of double precision lose digits
_LEAST = 2.0**-300  # of the unit: what is smaller is nothing beside the rest
_FARTHEST = 300  # powers of two by which new rows may exceed those that were fitted


def exponent_of(rows: Any) -> int:
    """Of the power of two that rows are divided by: 0, or near their largest value."""
    exponent = _largest_exponent(rows)
    if exponent is None or abs(exponent) <= _ORDINARY[rows.dtype.name]:
        return 0
    if exponent < _MOST_DIGITS_LOST:
        raise ValueError(
            f"The largest value of X is {_largest(rows):.3g}, and numbers as small as that have "
            "lost most of their digits; give X in a smaller unit."
        )
    return exponent


def in_unit(rows: Any, exponent: int) -> Any:
    """Rows divided by 2**exponent, where this is less than overflow away from those fitted."""
    largest = _largest_exponent(rows)
    if largest is not None and largest - exponent > _FARTHEST:
        raise ValueError(
            f"X holds {_largest(rows):.3g}, more than 2**{_FARTHEST} times the values that were "
            "fitted; correct these rows, or fit rows like them."
        )
    if exponent == 0:
        return rows
    if not sp.issparse(rows):
        return _scaled(rows, exponent)
    scaled = rows.copy()
    scaled.data = _scaled(rows.data, exponent)
    return scaled


def _scaled(values: NDArray[np.floating], exponent: int) -> NDArray[np.floating]:
    scaled = np.ldexp(values, -exponent)
    scaled[np.abs(scaled) < _LEAST] = 0.0
    return scaled


def _largest(rows: Any) -> float:
    values = rows.data if sp.issparse(rows) else rows

    def largest(part: slice) -> float:
        return float(max(values[part].max(), -values[part].min()))

    return max(in_threads(largest, thread_blocks(values))) if values.size else 0.0


def _largest_exponent(rows: Any) -> int | None:
    """Of the largest value, by its size; None where all are zero."""
    largest = _largest(rows)
    return int(np.frexp(largest)[1]) if largest > 0 else None
