"""What fits that belong together share: kernels, graphs, factorisations, each computed once.

Fits of one estimator with many settings come to the same kernels, graphs and factorisations again
and again. A :class:`Workspace` keeps them in named slots, under keys made of content and
parameters. A fit picks one up at its door, with :func:`workspace`: that of the search it is part
of, within :func:`sharing`, or a small one of its own. From there it is passed along by
:class:`~transferable.domains.Domains`; the mathematics knows nothing of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import scipy.sparse as sp

__all__ = ["SHARED_BYTES", "Same", "Workspace", "shared", "sharing", "workspace"]

Value = TypeVar("Value")

SHARED_BYTES = 2**31
_OWN_BYTES = 2**26  # of a fit by itself: it holds what is large as long as it needs it


class Workspace:
    """Values by slot and key; beyond the bytes, those not asked for the longest go first.

    Parameters
    ----------
    most_bytes : int
        About how much is kept.
    labels_only : bool
        Whether nobody asks these fits for probabilities, so that none need be calibrated.

    Notes
    -----
    Values are shared and must not be changed in place.
    """

    def __init__(self, most_bytes: int = _OWN_BYTES, *, labels_only: bool = False) -> None:
        self.labels_only = labels_only
        self._kept = _Kept(most_bytes)

    def get(self, slot: str, key: Hashable, make: Callable[..., Value], *arguments: Any) -> Value:
        """The value of a slot under a key, made of the arguments now if it is not there."""
        values = self._kept.values
        if (slot, key) not in values:
            value = make(*arguments)
            self._kept.add((slot, key), value)
            return value
        values.move_to_end((slot, key))
        return values[slot, key][0]

    def serving(self, *, labels_only: bool) -> Workspace:
        """The same values for fits that are asked for labels only, or for everything."""
        other = Workspace(labels_only=labels_only)
        other._kept = self._kept
        return other


class _Kept:
    """What is kept, and how much that is."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes, self.total = most_bytes, 0
        self.values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def add(self, place: Hashable, value: Any) -> None:
        size = _n_bytes(value)
        if size > self.most_bytes:  # it would only drive out all others, and itself
            return
        self.values[place] = value, size
        self.total += size
        while self.total > self.most_bytes:
            self.total -= self.values.popitem(last=False)[1][1]


class Same:
    """A key that stands for these very objects, whatever they are equal to, and keeps them."""

    def __init__(self, *objects: Any) -> None:
        self.objects = objects

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Same) or len(self.objects) != len(other.objects):
            return False
        return all(a is b for a, b in zip(self.objects, other.objects, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.objects)))


_shared: ContextVar[Workspace | None] = ContextVar("workspace", default=None)


@contextmanager
def sharing(*, labels_only: bool = False, most_bytes: int = SHARED_BYTES) -> Iterator[Workspace]:
    """Within, all fits share one workspace; inside another such context, that one's values."""
    outer = _shared.get()
    inner = (outer or Workspace(most_bytes)).serving(labels_only=labels_only)
    token = _shared.set(inner)
    try:
        yield inner
    finally:
        _shared.reset(token)


def shared() -> Workspace | None:
    """The workspace that is shared here, if one is."""
    return _shared.get()


def workspace() -> Workspace:
    """The workspace that is shared here, or a new one."""
    return _shared.get() or Workspace()


def _n_bytes(value: Any) -> int:
    """Size of the arrays a value is made of."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if sp.issparse(value):
        return int(value.data.nbytes)
    parts = value if isinstance(value, tuple | list) else getattr(value, "__dict__", {}).values()
    total = 0
    for part in parts:
        if not isinstance(part, int | float | str | bytes | None):
            total += _n_bytes(part)
    return total
