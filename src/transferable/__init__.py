"""Unsupervised domain adaptation under the scikit-learn contract: TFDF and its peers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from transferable.classifiers import ARTL, MEDA, TFDF, TFDFV, AutoAdapter
    from transferable.persistence import load, save
    from transferable.regressors import AutoRegressor

__version__ = "0.1.0"

__all__ = [
    "ARTL",
    "MEDA",
    "TFDF",
    "TFDFV",
    "AutoAdapter",
    "AutoRegressor",
    "__version__",
    "all_estimators",
    "load",
    "save",
]

_MODULES = ("transferable.classifiers", "transferable.transformers", "transferable.experimental")
_ABILITIES = {
    "classifier": "predict",
    "transformer": "transform",
    "regressor": "predict",
    None: "fit",
}
_HOMES = {"load": "transferable.persistence", "save": "transferable.persistence"}
_HOMES |= {"AutoRegressor": "transferable.regressors"}


def all_estimators(
    type_filter: Literal["classifier", "regressor", "transformer"] | None = None,
) -> list[tuple[str, type[Any]]]:
    """List the library's estimators, as :func:`sklearn.utils.discovery.all_estimators` does.

    Parameters
    ----------
    type_filter : {"classifier", "regressor", "transformer"} or None, default=None
        Kind of estimators to list; None lists classifiers and transformers, which are for classes.

    Returns
    -------
    estimators : list of (str, type)
        Names and classes, sorted by name. Every class can be made without arguments.

    Examples
    --------
    >>> from transferable import all_estimators
    >>> "CAPLS" in dict(all_estimators("classifier"))
    True
    """
    if type_filter not in _ABILITIES:
        raise ValueError(
            f"type_filter={type_filter!r} is unknown; choose 'classifier', 'regressor', "
            "'transformer' or None."
        )
    names = ("transferable.regressors",) if type_filter == "regressor" else _MODULES
    modules = [import_module(name) for name in names]
    found = sorted((name, getattr(module, name)) for module in modules for name in module.__all__)
    return [pair for pair in found if hasattr(pair[1], _ABILITIES[type_filter])]


def __getattr__(name: str) -> Any:
    """Load the estimators on first access: ``transferable --help`` needs no scikit-learn."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(_HOMES.get(name, "transferable.classifiers")), name)
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
