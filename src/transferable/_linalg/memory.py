"""Plans of a fit within a memory budget: all rows or landmarks, features held or not.

Estimates count the allocations of a fit except for copies of its rows, which are made before.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

import psutil

from transferable._linalg.arrays import CPU, Arrays
from transferable.limits import LIMITS

_FEWEST = 10
_COLUMNS = (128, 32, 8)  # of features worked on at once; more than the first gain no time
_SHARE = 0.5  # of the free memory that a fit takes by default
_UNTOUCHED = "Nothing was allocated but copies of the rows."
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)


def memory_budget(max_memory: int | str | None, arrays: Arrays) -> int:
    """Return the bytes a fit may take: as given, or half of the free memory of its device."""
    if max_memory is None and arrays.device in (None, "cpu"):
        return int(_SHARE * psutil.virtual_memory().available)
    if max_memory is None:
        import torch

        return int(_SHARE * torch.cuda.mem_get_info(arrays.device)[0])
    if isinstance(max_memory, int):
        return max_memory
    match = _SIZE.fullmatch(max_memory)
    if match is None:
        raise ValueError(
            f'max_memory="{max_memory}" is not a size; give bytes as a number, or text such as '
            '"800MB" or "4GB".'
        )
    return int(float(match[1]) * _UNITS[match[2].upper()])


def refuse_if_too_large(
    who: str, needed: int, n_source: int, n_target: int, max_memory: int | str | None
) -> None:
    """Refuse a fit before it allocates more than copies of rows, and report how many would fit.

    The bytes that it needs grow with the square of the rows.
    """
    budget = memory_budget(max_memory, CPU)
    if needed <= budget:
        return
    share = (budget / needed) ** 0.5
    raise MemoryError(
        f"{who} of {n_source} source and {n_target} target rows needs about {_size(needed)} of "
        f"memory, more than the {_size(budget)} that max_memory allows; "
        f"{int(share * n_source)} source and {int(share * n_target)} target rows would fit. "
        + _UNTOUCHED
    )


def refuse_if_too_wide(who: str, n_features: int, n_tables: int, remedy: str) -> None:
    """Refuse square tables of features that need more than half of the free memory."""
    budget = memory_budget(None, CPU)
    needed = 8 * n_tables * n_features**2
    if needed <= budget:
        return
    raise ValueError(
        f"{who} of {n_features} columns needs about {_size(needed)} of memory, more than the "
        f"{_size(budget)} that are half of what is free; "
        f"{int((budget / (8 * n_tables)) ** 0.5)} columns would fit. {remedy} {_UNTOUCHED}"
    )


@dataclass(frozen=True)
class Plan:
    """Plan of a fit."""

    n_landmarks: int | None  # None for the exact solve
    held: bool  # whether the features of all rows are kept
    chunk: int  # columns of features that are worked on at once
    n_bytes: int  # estimated bytes

    @classmethod
    def make(cls, sizes: Any, n_landmarks: int | str | None, budget: int) -> Plan:
        """Return the plan for the request; raise an error that reports what would fit.

        `sizes` has `n_rows` of both domains; `row_bytes`, the memory for each row; `matrices`, the
        square tables of all rows in the exact solve; `growth` of its time with the rows, "square"
        or "cube"; and `landmark_bytes(m, held=, chunk=)`.
        """
        needed = 8 * sizes.matrices * sizes.n_rows**2 + sizes.n_rows * sizes.row_bytes
        exact = cls(None, held=True, chunk=0, n_bytes=needed)
        if n_landmarks is None:
            if exact.n_bytes > budget:
                raise MemoryError(_refusal(sizes, "The exact solve", exact.n_bytes, budget))
            return exact
        if n_landmarks == "auto":
            if sizes.n_rows <= LIMITS.exact_rows and exact.n_bytes <= budget:
                return exact
            plan = cls._largest(sizes, min(LIMITS.landmarks, sizes.n_rows), budget)
            if plan is None:
                raise MemoryError(_refusal(sizes, "A fit", exact.n_bytes, budget))
            return plan
        m = min(int(n_landmarks), sizes.n_rows)
        plan = cls.of(sizes, m, budget)
        if plan.n_bytes > budget:
            raise MemoryError(_refusal(sizes, f"n_landmarks={m}", plan.n_bytes, budget))
        return plan

    @classmethod
    def of(cls, sizes: Any, m: int, budget: int) -> Plan:
        """Return the fastest plan for m landmarks that fits, or the smallest if none does."""
        plans = [
            cls(m, held, chunk, sizes.landmark_bytes(m, held=held, chunk=chunk))
            for held in (True, False)
            for chunk in (min(m, columns) for columns in _COLUMNS)
        ]
        return next((plan for plan in plans if plan.n_bytes <= budget), plans[-1])

    @classmethod
    def _largest(cls, sizes: Any, most: int, budget: int) -> Plan | None:
        """Return the plan with the most landmarks that fits."""
        m = most
        while m >= min(_FEWEST, most):
            plan = cls.of(sizes, m, budget)
            if plan.n_bytes <= budget:
                return plan
            m = int(0.9 * m)
        return None


def warn_of_landmarks(sizes: Any, m: int, budget: int, left: float | None = None) -> None:
    """Warn of the number of landmarks, with the reason and what they leave of the kernel."""
    why = (
        f"the exact solve of {sizes.n_rows} rows takes more than the {_size(budget)} of memory "
        "that max_memory allows"
        if sizes.n_rows <= LIMITS.exact_rows
        else f"the exact solve grows with the {sizes.growth} of the rows, of which there are "
        f"{sizes.n_rows}"
    )
    less = "" if left is None else f", which leave {left:.0%} of the kernel"
    warnings.warn(
        f'n_landmarks="auto" takes {m} landmarks{less}: {why}. Set n_landmarks to a number to '
        "choose yourself, or to None for the exact solve.",
        UserWarning,
        stacklevel=2,
    )


def _refusal(sizes: Any, what: str, needed: int, budget: int) -> str:
    """Return why a fit is refused, and what to do instead."""
    fitting = Plan._largest(sizes, sizes.n_rows, budget)
    remedy = (
        f"n_landmarks={fitting.n_landmarks} would fit"
        if fitting is not None
        else "no number of landmarks fits; the rows alone take "
        f"{_size(sizes.n_rows * sizes.row_bytes)}"
    )
    return (
        f"{what} of {sizes.n_rows} rows needs about {_size(needed)} of memory, more than the "
        f"{_size(budget)} that max_memory allows; {remedy}. {_UNTOUCHED}"
    )


def _size(n_bytes: int) -> str:
    size = float(n_bytes)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TB"
