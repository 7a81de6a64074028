"""What an estimator takes besides labelled source rows and unlabelled target rows."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import isabstract
from typing import Any

__all__ = ["Takes", "methods_taking", "refusal"]


@dataclass(frozen=True)
class Takes:
    """What an estimator takes; every class states it as its attribute ``takes``.

    Attributes
    ----------
    several_sources : bool
        Several positive ids in ``sample_domain``: each source is treated by itself. A method that
        does not take them refuses them.
    several_targets : bool
        Several negative ids: each target is treated by itself. For all other methods they are one.
    sample_weight : bool
        Weights of rows in ``fit`` and ``adapt``.
    target_labels : bool
        Known labels of a few target rows, with the parameter ``target_labels="use"``.
    no_labels : bool
        No labels at all: ``adapt(Xs, None, Xt)``, for methods that never look at any.

    Examples
    --------
    >>> from transferable import TFDF
    >>> TFDF.takes.several_targets
    False
    """

    several_sources: bool = False
    several_targets: bool = False
    sample_weight: bool = False
    target_labels: bool = False
    no_labels: bool = False


def methods_taking(base: type, what: str) -> list[str]:
    """Names of the library's estimators of a base class that take something, if imported."""
    waiting, names = [base], set()
    while waiting:
        cls: Any = waiting.pop()
        waiting.extend(cls.__subclasses__())
        ours = cls.__module__.startswith("transferable.") and not isabstract(cls)
        if ours and isinstance(cls.takes, Takes) and getattr(cls.takes, what):
            names.add(cls.__name__)
    return sorted(names)


def refusal(base: type, estimator: object, what: str, remedy: str) -> str:
    """One line that says what an estimator does not take, which ones do, and what to do."""
    thing = "several sources" if what == "several_sources" else what
    others = ", ".join(methods_taking(base, what))
    return f"{type(estimator).__name__} takes no {thing}; {others} do. Or {remedy}."
