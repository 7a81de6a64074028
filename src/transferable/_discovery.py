"""Every public estimator of the library."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

__all__ = ["FAMILIES", "all_estimators"]

_HOMES = {"classifier": "transferable.classifiers", "transformer": "transferable.transformers"}


# What brings the domains together, and the estimators that do it so.
FAMILIES = {
    "objective": ("TFDF", "TFDFV", "MEDA", "ARTL", "DMM"),
    "components": ("TCA", "JDA", "BDA", "TJM", "SCA", "JGSA", "McDA", "LPJT", "LDML"),
    "subspace": ("GFK", "SubspaceAlignment"),
    "moments": ("CORAL", "PerDomainScaler"),
    "transport": ("OTMapping", "LinearOTMapping", "JDOTClassifier"),
    "weighting": ("ImportanceWeighted", "TrAdaBoost"),
    "pseudo-labels": ("CAPLS", "SPL", "EasyTL", "SelfTraining", "LabelPropagation", "DASVM"),
    "pool": ("AutoAdapter",),
    "parts": ("AdaptedClassifier", "LandmarkFeatures"),
}


def all_estimators(
    type_filter: Literal["classifier", "transformer"] | None = None,
) -> list[tuple[str, type[Any]]]:
    """List the library's estimators, as :func:`sklearn.utils.discovery.all_estimators` does.

    Parameters
    ----------
    type_filter : {"classifier", "transformer"} or None, default=None
        Which kind to list; None lists both.

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
    if type_filter is not None and type_filter not in _HOMES:
        raise ValueError(
            f"type_filter={type_filter!r} is unknown; choose 'classifier', 'transformer' or None."
        )
    homes = [_HOMES[type_filter]] if type_filter else list(_HOMES.values())
    modules = [import_module(home) for home in homes]
    return sorted((name, getattr(module, name)) for module in modules for name in module.__all__)
