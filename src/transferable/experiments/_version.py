"""Which code computed a record."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from transferable import __version__

__all__ = ["code_version"]

# What shows results, or keeps them, has no part in them.
_APART = ("cli", "diagnostics", "experiments", "plots", "report", "tables")


@cache
def code_version() -> str:
    """The library's version and a digest of the code that methods are made of.

    Records of other code are not taken for results of this one.

    Examples
    --------
    >>> from transferable.experiments._version import code_version
    >>> code_version()
    '0...+...'
    """
    digest = hashlib.sha256()
    for name, source in sorted(_sources(files("transferable"), "")):
        digest.update(name.encode() + b"\0" + source.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def _sources(folder: Traversable, before: str) -> Iterator[tuple[str, Traversable]]:
    """Every module that results may depend on, by its path in the package."""
    for item in folder.iterdir():
        name = before + item.name
        if item.is_dir() and name not in _APART:
            yield from _sources(item, f"{name}/")
        elif name.endswith(".py"):
            yield name, item
