"""What a fit tells while it runs, for bars, studies of convergence and reports: one channel.

What takes long says what it is with :func:`stage`, and how far it has come by going through
:func:`rounds`; methods that iterate tell what each iteration came to with :func:`iterate`, in the
order of their rows, which :func:`restoring` brings into that of the input at every level of
nesting. What the user should know of the input is told with :func:`note`. Nobody listens as a
rule, and then it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.linalg.arrays import to_numpy

__all__ = [
    "Event",
    "Iterate",
    "Listener",
    "Note",
    "Progress",
    "iterate",
    "listen",
    "note",
    "restoring",
    "rounds",
    "silence",
    "stage",
]


Made = Any | Callable[[], Any]  # a table of numpy or of torch, or what makes it


@dataclass(frozen=True)
class Progress:
    """What is going on, and the share of it that is done, None where that is not known."""

    what: str
    share: float | None = None


class Iterate:
    """The class code of every row after an iteration, and its scores or embedding.

    Both are made when they are first asked for: most listeners want to know the time only, and of
    a million rows on a GPU the scores alone are 80 MB.
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
    """Something worth knowing about the input."""

    text: str


Event = Progress | Iterate | Note
Listener = Callable[[Event], None]

_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


def stage(what: str) -> None:
    """Tell whoever listens what begins now, and takes an unknown time."""
    for listener in _listeners.get():
        listener(Progress(what))


def note(text: str) -> None:
    """Tell whoever listens something worth knowing about the input."""
    for listener in _listeners.get():
        listener(Note(text))


def rounds(most: int, what: str = "Adapting") -> Iterator[int]:
    """Count at most so many rounds, telling whoever listens how many of them are done."""
    for i in range(most):
        for listener in _listeners.get():
            listener(Progress(what, i / most))
        yield i


def iterate(codes: Made, table: Made) -> None:
    """Tell whoever listens the codes of all rows and the table they were read off.

    What takes time to make may be given as a function that makes it.
    """
    for listener in _listeners.get():
        listener(Iterate(codes, table))


@contextmanager
def _heard_by(listeners: tuple[Listener, ...]) -> Iterator[None]:
    token = _listeners.set(listeners)
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Within, have the listener told every event, besides those who listen already."""
    with _heard_by((*_listeners.get(), listener)):
        yield


@contextmanager
def silence() -> Iterator[None]:
    """Within, nobody hears anything: fits that only serve to compare settings."""
    with _heard_by(()):
        yield


@contextmanager
def restoring(restore: Callable[[NDArray[Any]], NDArray[Any]]) -> Iterator[None]:
    """Within, bring the rows of iterates into the order of the input."""

    def outward(listener: Listener) -> Listener:
        def tell(event: Event) -> None:
            if isinstance(event, Iterate):
                given = event
                event = Iterate(lambda: restore(given.codes), lambda: restore(given.table))
            listener(event)

        return tell

    token = _listeners.set(tuple(map(outward, _listeners.get())))
    try:
        yield
    finally:
        _listeners.reset(token)
