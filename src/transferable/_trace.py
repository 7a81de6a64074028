"""Listening to a fit while it iterates, for studies of convergence and for progress bars.

Methods that iterate tell what each iteration came to with :func:`emit`, in the order of their
:class:`~transferable.domains.Domains`; :func:`restoring` brings it into the order of the input, at
every level of nesting. What takes long says what it is with :func:`stage`, and how far it has come
by going through :func:`rounds`. Nobody listens as a rule, and then it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Domains
from transferable.linalg.arrays import to_numpy

__all__ = [
    "Listener",
    "Watcher",
    "emit",
    "listen",
    "restoring",
    "rounds",
    "stage",
    "unheard",
    "watch",
]

# Receives the class code of every row, and its scores or embedding, after each iteration.
Listener = Callable[[NDArray[np.intp], NDArray[Any]], None]
# Receives what is going on, and the share of it that is done, None where it is not known.
Watcher = Callable[[str, float | None], None]

_current: ContextVar[Listener | None] = ContextVar("listener", default=None)
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def emit(codes: NDArray[np.intp], table: NDArray[Any]) -> None:
    """Tell whoever listens the codes of all rows and the table they were read off."""
    listener = _current.get()
    if listener is not None:
        listener(codes, to_numpy(table))


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Have the listener called after each iteration of any fit within."""
    token = _current.set(listener)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def unheard() -> Iterator[None]:
    """Within, nobody hears of the iterations: fits that only serve to compare settings."""
    tokens = _current.set(None), _watcher.set(None)
    try:
        yield
    finally:
        _current.reset(tokens[0])
        _watcher.reset(tokens[1])


def stage(what: str) -> None:
    """Tell whoever watches what begins now, and takes an unknown time."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(what, None)


def rounds(most: int, what: str = "Adapting") -> Iterator[int]:
    """Count at most so many rounds, telling whoever watches how many of them are done."""
    for i in range(most):
        watcher = _watcher.get()
        if watcher is not None:
            watcher(what, i / most)
        yield i


@contextmanager
def watch(watcher: Watcher) -> Iterator[None]:
    """Have the watcher called whenever a stage or a round begins within."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def restoring(domains: Domains) -> Iterator[None]:
    """Within, bring what is emitted from the order of the domains into that of the input."""
    outer = _current.get()
    if outer is None:
        yield
        return
    with listen(lambda codes, table: outer(domains.restore(codes), domains.restore(table))):
        yield
