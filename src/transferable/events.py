"""Events of a running fit, for progress bars, convergence studies and reports.

A long step reports its name with :func:`stage` and its progress by :func:`rounds`; iterative
methods report each iteration with :func:`iterate`, in the order of their rows, which
:class:`Restored` brings into that of the input at every level of nesting. Remarks on the input are
reported with :func:`note`. Without a listener all this costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable._linalg.arrays import to_numpy

__all__ = ["Iterate", "Note", "Progress", "iterate", "listen", "note", "rounds", "silence", "stage"]

Made = Any | Callable[[], Any]  # a table of numpy or of torch, or a function that makes it


@dataclass(frozen=True)
class Progress:
    """Stage of the fit, the share of it that is done, None where unknown, and the present step."""

    what: str
    share: float | None = None
    detail: str = ""


class Iterate:
    """Class code of every row after an iteration, and its scores or embedding.

    Both are made on first access: most listeners need the time only, and of a million rows on a GPU
    the scores alone are 80 MB.
    """

    def __init__(self, codes: Made, table: Made) -> None:
        self._codes, self._table = codes, table

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """Class codes of all rows."""
        return to_numpy(self._codes() if callable(self._codes) else self._codes)

    @cached_property
    def table(self) -> NDArray[Any]:
        """Scores or embedding of all rows."""
        return to_numpy(self._table() if callable(self._table) else self._table)


@dataclass(frozen=True)
class Note:
    """Remark on the input."""

    text: str


Event = Progress | Iterate | Note
Listener = Callable[[Event], None]

LISTENERS: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


@dataclass(frozen=True)
class Restored:
    """Listener to a fit within a fit: the rows of its iterates get the order of the outer input."""

    listener: Listener
    restore: Callable[[NDArray[Any]], NDArray[Any]]

    def __call__(self, event: Event) -> None:
        """Pass the event on."""
        if isinstance(event, Iterate):
            given = event
            event = Iterate(lambda: self.restore(given.codes), lambda: self.restore(given.table))
        self.listener(event)


def stage(what: str, share: float | None = None, detail: str = "") -> None:
    """Report the stage that begins or continues, the share that is done, and the step, if known."""
    for listener in LISTENERS.get():
        listener(Progress(what, share, detail))


def note(text: str) -> None:
    """Report a remark on the input to the listeners."""
    for listener in LISTENERS.get():
        listener(Note(text))


def rounds(most: int, what: str = "Adapting") -> Iterator[int]:
    """Count at most `most` rounds, and report how many are done to the listeners."""
    for i in range(most):
        if LISTENERS.get():
            stage(what, i / most)
        yield i


def iterate(codes: Made, table: Made) -> None:
    """Report the codes of all rows and their table of scores or embedding to the listeners.

    Costly values may be given as a function that makes them.
    """
    for listener in LISTENERS.get():
        listener(Iterate(codes, table))


@contextmanager
def silence(*listeners: Listener) -> Iterator[None]:
    """Pass events within to these listeners only, for fits that only serve to compare settings."""
    token = LISTENERS.set(listeners)
    try:
        yield
    finally:
        LISTENERS.reset(token)


def listen(listener: Listener) -> AbstractContextManager[None]:
    """Pass every event within to the listener, in addition to those already listening."""
    return silence(*LISTENERS.get(), listener)
