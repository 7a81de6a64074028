"""Listening to a fit while it iterates, for studies of convergence.

Methods that iterate tell what each iteration came to with :func:`emit`, in the order of their
:class:`~transferable.domains.Domains`; :func:`restoring` brings it into the order of the input, at
every level of nesting. Nobody listens as a rule, and then it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Domains

__all__ = ["Listener", "emit", "listen", "restoring", "unheard"]

# Receives the class code of every row, and its scores or embedding, after each iteration.
Listener = Callable[[NDArray[np.intp], NDArray[Any]], None]

_current: ContextVar[Listener | None] = ContextVar("listener", default=None)


def emit(codes: NDArray[np.intp], table: NDArray[Any]) -> None:
    """Tell whoever listens the codes of all rows and the table they were read off."""
    listener = _current.get()
    if listener is not None:
        listener(codes, table)


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
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def restoring(domains: Domains) -> Iterator[None]:
    """Within, bring what is emitted from the order of the domains into that of the input."""
    outer = _current.get()
    if outer is None:
        yield
        return
    with listen(lambda codes, table: outer(domains.restore(codes), domains.restore(table))):
        yield
