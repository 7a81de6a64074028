"""A cell: one method with one setting on one task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sklearn.base import BaseEstimator

from transferable.experiments._version import code_version
from transferable.experiments.records import record_key

__all__ = ["SEED", "Cell"]

SEED = 0


@dataclass(frozen=True, eq=False)
class Cell:
    """One method with one setting on one task.

    Attributes
    ----------
    dataset, source, target, method, protocol : str
        What it is about; `method` is the name in tables.
    estimator : estimator
        Unfitted, with its setting.
    changes : dict
        How the setting differs from the documented one.
    """

    dataset: str
    source: str
    target: str
    method: str
    protocol: str
    estimator: BaseEstimator
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """Name of the task, such as ``"C->A"``."""
        return f"{self.source}->{self.target}"

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Every parameter of the estimator, as JSON can hold it."""
        values = self.estimator.get_params(deep=True)
        return {name: _plain(value) for name, value in sorted(values.items())}

    @cached_property
    def key(self) -> str:
        """Key of the record that answers this cell."""
        identity = (self.dataset, self.task, self.method, self.protocol)
        return record_key(*identity, self.parameters, SEED, code_version())


def _plain(value: Any) -> Any:
    """A value as JSON holds it: estimators by their class, as their parameters follow anyway."""
    if hasattr(value, "get_params"):
        return type(value).__name__
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return getattr(value, "__name__", None) or repr(value)
