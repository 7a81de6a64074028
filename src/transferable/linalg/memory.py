"""What a fit will take: all rows or landmarks, features held or not, within a memory budget.

Estimates count what a fit allocates besides copies of the rows it is given: these are there when
rows have been checked, before a fit is planned or refused.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Protocol

from transferable.limits import LIMITS
from transferable.linalg.arrays import CPU, Arrays

__all__ = ["Plan", "Sizes", "memory_budget", "refuse_if_too_large", "refuse_if_too_wide"]

_FEWEST = 10
_SHARE = 0.5  # of the free memory that a fit takes unless told otherwise
_UNTOUCHED = "Nothing was allocated but copies of the rows."
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)


def memory_budget(max_memory: int | str | None, arrays: Arrays) -> int:
    """Bytes a fit may take: as told, or half of what is free where its tables live."""
    if max_memory is None:
        return int(_SHARE * arrays.free_bytes())
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
    """Refuse, before more than copies of rows is allocated, and say how many would fit.

    Parameters
    ----------
    who : str
        Whose fit it is.
    needed : int
        Bytes, which grow with the square of the rows.
    n_source, n_target : int
        Rows.
    max_memory : int, str or None
        Bytes, or a text such as "4GB"; None is half of the free memory.
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
    """Refuse so many square tables of features beyond half of the free memory."""
    budget = memory_budget(None, CPU)
    needed = 8 * n_tables * n_features**2
    if needed <= budget:
        return
    raise ValueError(
        f"{who} of {n_features} columns needs about {_size(needed)} of memory, more than the "
        f"{_size(budget)} that are half of what is free; "
        f"{int((budget / (8 * n_tables)) ** 0.5)} columns would fit. {remedy} {_UNTOUCHED}"
    )


class Sizes(Protocol):
    """What an engine knows of the memory that its fits take."""

    @property
    def n_rows(self) -> int:
        """Rows of both domains."""

    @property
    def growth(self) -> str:
        """How the time of the exact solve grows with the rows: "square" or "cube"."""

    @property
    def shared_bytes(self) -> int:
        """What is taken with landmarks or without."""

    @property
    def exact_bytes(self) -> int:
        """What the exact solve takes."""

    def landmark_bytes(self, m: int, *, held: bool, chunk: int) -> int:
        """What m landmarks take, features held or not, so many columns worked on at once."""


@dataclass(frozen=True)
class Plan:
    """How a fit goes about it.

    Attributes
    ----------
    n_landmarks : int or None
        None for the exact solve.
    held : bool
        Whether the features of all rows are kept.
    chunk : int
        Columns of features that are worked on at once.
    n_bytes : int
        The estimate.
    """

    n_landmarks: int | None
    held: bool
    chunk: int
    n_bytes: int

    @classmethod
    def make(cls, sizes: Sizes, n_landmarks: int | str | None, budget: int) -> Plan:
        """The plan for what was asked for; an error that says what would fit if it does not."""
        exact = cls(None, held=True, chunk=0, n_bytes=sizes.exact_bytes)
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
            _tell(sizes, plan, exact.n_bytes, budget)
            return plan
        m = min(int(n_landmarks), sizes.n_rows)
        plan = cls._of(sizes, m, budget)
        if plan.n_bytes > budget:
            raise MemoryError(_refusal(sizes, f"n_landmarks={m}", plan.n_bytes, budget))
        return plan

    @classmethod
    def _of(cls, sizes: Sizes, m: int, budget: int) -> Plan:
        """The fastest plan for m landmarks that fits, or the smallest if none does."""
        plans = [
            cls(m, held, chunk, sizes.landmark_bytes(m, held=held, chunk=chunk))
            for held in (True, False)
            for chunk in _chunks(m)
        ]
        return next((plan for plan in plans if plan.n_bytes <= budget), plans[-1])

    @classmethod
    def _largest(cls, sizes: Sizes, most: int, budget: int) -> Plan | None:
        """The plan with the most landmarks that fits."""
        m = most
        while m >= min(_FEWEST, most):
            plan = cls._of(sizes, m, budget)
            if plan.n_bytes <= budget:
                return plan
            m = int(0.9 * m)
        return None


def _chunks(m: int) -> list[int]:
    """Numbers of columns to work on at once; more than the first gain no time."""
    return [min(m, columns) for columns in (128, 32, 8)]


def _tell(sizes: Sizes, plan: Plan, exact: int, budget: int) -> None:
    """Say which landmarks were taken, and why."""
    why = (
        f"the exact solve of {sizes.n_rows} rows takes about {_size(exact)} of memory"
        if exact > budget
        else f"the exact solve grows with the {sizes.growth} of the rows, of which there are "
        f"{sizes.n_rows}"
    )
    warnings.warn(
        f'n_landmarks="auto" takes {plan.n_landmarks} landmarks: {why}. Set n_landmarks to a '
        "number to choose yourself, or to None for the exact solve.",
        UserWarning,
        stacklevel=2,
    )


def _refusal(sizes: Sizes, what: str, needed: int, budget: int) -> str:
    """Why a fit is not begun, and what to do instead."""
    fitting = Plan._largest(sizes, sizes.n_rows, budget)
    remedy = (
        f"n_landmarks={fitting.n_landmarks} would fit"
        if fitting is not None
        else f"no number of landmarks fits; the rows alone take {_size(sizes.shared_bytes)}"
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
