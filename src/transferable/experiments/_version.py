"""Which code computed a record."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from transferable import __version__

__all__ = ["code_version"]

# What results depend on: methods and data, not how records are kept or shown.
_FILES = ("base.py", "domains.py")
_FOLDERS = (
    *("classifiers", "datasets", "linalg", "metrics", "model_selection", "terms"),
    "transformers",
)


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
    package = files("transferable")
    sources = {name: package / name for name in _FILES}
    for folder in _FOLDERS:
        found = (file for file in (package / folder).iterdir() if file.name.endswith(".py"))
        sources |= {f"{folder}/{file.name}": file for file in found}
    digest = hashlib.sha256()
    for name, source in sorted(sources.items()):
        digest.update(name.encode() + b"\0" + source.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
