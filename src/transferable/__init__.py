"""Unsupervised domain adaptation under the scikit-learn contract: TFDF and its peers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from transferable._discovery import all_estimators

if TYPE_CHECKING:
    from transferable.classifiers import ARTL, MEDA, TFDF, TFDFV, AutoAdapter
    from transferable.persistence import load, save

__version__ = "0.1.0"

__all__ = [
    "ARTL",
    "MEDA",
    "TFDF",
    "TFDFV",
    "AutoAdapter",
    "__version__",
    "all_estimators",
    "load",
    "save",
]

_HOMES = {"load": "transferable.persistence", "save": "transferable.persistence"}


def __getattr__(name: str) -> Any:
    """Load the estimators when first asked for: ``transferable --help`` needs no scikit-learn."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "transferable.classifiers")), name)


def __dir__() -> list[str]:
    return __all__
