"""Settings of the methods in the experiments, read from ``settings.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import SVC

from transferable import all_estimators
from transferable.classifiers import AdaptedClassifier
from transferable.transformers import PerDomainScaler

_KEYS = {
    "estimator",
    "published",
    "parameters",
    "augment",
    "unit_rows",
    "scale_domains",
    "classifier",
}


@cache
def _tables() -> dict[str, dict[str, dict[str, Any]]]:
    return tomllib.loads(Path(__file__).with_name("settings.toml").read_text(encoding="utf-8"))


def datasets() -> list[str]:
    """Return the names of the datasets, in the order of the file."""
    return list(_tables())


def methods(dataset: str) -> list[str]:
    """Return the names of the methods that have a setting for a dataset, in the order of the file.

    Parameters
    ----------
    dataset : str
        One of :func:`datasets`.

    Returns
    -------
    list of str
        Names such as "TCA".

    Examples
    --------
    >>> methods("surf")[:3]
    ['1NN', 'SVM', 'PCA']
    """
    return list(_choose(_tables(), dataset, "dataset"))


def build(dataset: str, method: str, *, defaults: bool = False) -> BaseEstimator:
    """Return the estimator of a method with its setting for a dataset, not fitted.

    Parameters
    ----------
    dataset : str
        One of :func:`datasets`.
    method : str
        One of ``methods(dataset)``.
    defaults : bool, default=False
        Whether the method keeps its class's parameters. The preparation of rows, and the labelling
        of adapted rows, are as documented either way.

    Returns
    -------
    estimator : object
        A classifier with ``fit``, ``adapt``, ``predict`` and ``transduction_``.

    Examples
    --------
    >>> build("surf", "GFK")
    AdaptedClassifier(estimator=KNeighborsClassifier(n_neighbors=1),
                      transformer=GFK(n_components=20))
    """
    setting = _choose(_choose(_tables(), dataset, "dataset"), method, f"method on {dataset}")
    return from_setting(f"{method} on {dataset}", setting, defaults=defaults)


def from_setting(name: str, setting: Mapping[str, Any], *, defaults: bool = False) -> BaseEstimator:
    """Return the estimator that one table of ``settings.toml`` describes; see :func:`build`."""
    unknown = set(setting) - _KEYS
    if unknown:
        raise ValueError(
            f"settings.toml gives {sorted(unknown)} for {name}; the keys are {sorted(_KEYS)}."
        )
    steps: list[Any] = [Normalizer()] if setting.get("unit_rows", False) else []
    if setting.get("scale_domains", False):
        steps.append(PerDomainScaler())
    if "estimator" in setting:
        estimator = _estimator(setting["estimator"], {} if defaults else setting)
        if hasattr(estimator, "predict"):
            return AdaptedClassifier(_chain(steps), estimator) if steps else estimator
        steps.append(estimator)
    return AdaptedClassifier(_chain(steps), _classifier(setting.get("classifier", "1NN")))


def _chain(steps: list[Any]) -> Any:
    """Return transformers one after the other; None if there are none."""
    return make_pipeline(*steps) if len(steps) > 1 else steps[0] if steps else None


def _choose(table: dict[str, Any], name: str, kind: str) -> Any:
    if name not in table:
        raise ValueError(f"{name!r} is no {kind}; choose from {', '.join(table)}.")
    return table[name]


def _estimator(name: str, setting: Mapping[str, Any]) -> Any:
    given = setting.get("parameters", {})
    parameters = {key: None if value == "none" else value for key, value in given.items()}
    if name == "PCA":
        return PCA(**parameters)
    methods = dict(all_estimators())
    if name not in methods:
        return _deep(name, parameters, augment=setting.get("augment", False))
    cls = methods[name]
    if name in ("ARTL", "MEDA", "TFDF", "TFDFV"):  # the paper's systems are of all rows
        parameters = {"n_landmarks": None, **parameters}
    return cls.as_published(**parameters) if setting.get("published", False) else cls(**parameters)


def _deep(name: str, parameters: Mapping[str, Any], *, augment: bool) -> Any:
    """Return a deep method, which needs torch."""
    from transferable import deep

    from .networks import NETWORKS

    more: dict[str, Any] = {"augment": deep.RandomAffine()} if augment else {}
    if parameters.get("network") in NETWORKS:
        more["network"] = NETWORKS[parameters["network"]]
    return _choose(vars(deep), name, "method")(**{**parameters, **more})


def _classifier(setting: str | dict[str, Any]) -> BaseEstimator:
    """Return 1-NN, or an SVM, whose C may be chosen by cross-validation on the source rows."""
    if setting == "1NN":
        return KNeighborsClassifier(1)
    if isinstance(setting, str):
        raise ValueError(f"classifier {setting!r} is unknown; give '1NN' or parameters of SVC.")
    if isinstance(setting["C"], list):
        fixed = {name: value for name, value in setting.items() if name not in ("C", "cv")}
        return GridSearchCV(SVC(**fixed), {"C": setting["C"]}, cv=setting["cv"])
    return SVC(**setting)
