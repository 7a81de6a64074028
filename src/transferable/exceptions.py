"""Warnings of the library, which can be filtered by class, and texts that messages share."""

from __future__ import annotations

import sys
import warnings
from typing import Any

__all__ = ["MarkedLabelsWarning", "NoTargetWarning"]

_INNER = ("transferable.", "sklearn.")


class NoTargetWarning(UserWarning):
    """Warning that no row is a target row, so that there is nothing to adapt to.

    Examples
    --------
    >>> import warnings
    >>> from transferable import TFDFV
    >>> from transferable.exceptions import NoTargetWarning
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NoTargetWarning)
    ...     model = TFDFV(n_neighbors=2).fit(X, y)
    """


class MarkedLabelsWarning(UserWarning):
    """Warning that labels of -1 mark target rows, which a later step may take for a class.

    Examples
    --------
    >>> from transferable.exceptions import MarkedLabelsWarning
    >>> issubclass(MarkedLabelsWarning, UserWarning)
    True
    """


def installing(extra: str) -> str:
    """Return how to install an extra of the library, which is on no package index."""
    return f"pip install '.[{extra}]' in a clone of the source"


def warn(message: str, kind: type[Warning] = UserWarning) -> None:
    """Warn of the line that called the library, past frames of its own and of scikit-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith(_INNER):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, kind, stacklevel=level)


def warn_of_fewer(wanted: int, found: int) -> None:
    """Warn that fewer components exist than were requested."""
    warn(f"n_components={wanted} is more than the rows allow; reduced to {found}.")


def warn_of_no_target(who: str, n_rows: int, instead: str) -> None:
    """Warn that an estimator has only source rows, and what it does instead."""
    warn(
        f"None of the {n_rows} rows is a target row: {who} {instead}. Mark target rows by a "
        "negative sample_domain or, in y, by -1, NaN or None; tools of scikit-learn that encode "
        "labels make a class of such marks.",
        NoTargetWarning,
    )


def warn_of_scale(*weights: Any) -> None:
    """Warn if the weights of a domain's rows are far from 1 on average."""
    means = [float(own.mean()) for own in weights if len(own)]
    far = [mean for mean in means if not 0.5 <= mean <= 2.0]
    if far:
        warn(
            "sample_weight counts rows; divide it by its mean if only ratios matter (the mean in a "
            f"domain is {far[0]:.3g})."
        )


def warn_of_marks(who: str, n_target: int) -> None:
    """Warn that labels that marked target rows for a transformer are not understood by others."""
    warn(
        f"{who} took the {n_target} rows labelled -1 for target rows; if a classifier of "
        "scikit-learn's follows it in a Pipeline, that learns -1 as a class. Put the two into an "
        "AdaptedClassifier; if none follows, pass sample_domain to silence this warning.",
        MarkedLabelsWarning,
    )
