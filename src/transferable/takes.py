"""What an estimator takes besides labelled source rows and unlabelled target rows."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Takes"]


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
