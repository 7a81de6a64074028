"""Whether adapting may do harm: the accuracies of an adapted and of a source-only model, estimated.

No target label is looked at. The same estimate is made for both models, on the same rows, so that
part of its error is common to both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from transferable.classifiers import TFDF
from transferable.diagnostics.comparison import source_only_methods
from transferable.events import stage
from transferable.model_selection import AccuracyEstimate, estimate_accuracy
from transferable.workspace import sharing

__all__ = ["TransferEstimate", "estimate_transfer"]

_MOST_ROWS = 1000  # of each domain: about ten fits are made


@dataclass(frozen=True)
class TransferEstimate:
    """Target accuracies of two models, estimated without labels.

    Attributes
    ----------
    adapted : AccuracyEstimate
        Of TFDF with its defaults.
    source_only : AccuracyEstimate
        Of logistic regression on the source alone.
    """

    adapted: AccuracyEstimate
    source_only: AccuracyEstimate

    @property
    def gain(self) -> float:
        """How much more accurate the adapted model is, as far as the estimates tell."""
        return self.adapted.accuracy - self.source_only.accuracy

    @property
    def warning(self) -> str:
        """What to be wary of; empty if the adapted model seems the better one."""
        if self.gain > 0:
            return ""
        return (
            f"adapting may do harm: estimated without labels, TFDF gets {self.adapted} of the "
            f"target rows right, logistic regression on the source alone {self.source_only}; label "
            "a few target rows to decide between them."
        )


def estimate_transfer(
    Xs: Any, ys: ArrayLike, Xt: Any, *, random_state: int = 0
) -> TransferEstimate:
    """Estimate the target accuracies of TFDF and of a model of the source alone, without labels.

    On 59 tasks, 39 got no warning, of which 37 gained by adapting and none lost a point. Of the 20
    with a warning 6 lost, among them all 3 that lost more than a point, and 13 gained all the same:
    trust its absence more than the warning (docs/selection.md).

    Parameters
    ----------
    Xs, ys, Xt : array-like
        Source rows, their labels, and target rows. Of more than 1000 rows in a domain, so many are
        drawn at random, of each class alike in the source.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    estimate : TransferEstimate
        Both estimates, and a warning if the adapted model does not seem better.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.diagnostics import estimate_transfer
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(120) % 2
    >>> X = rng.normal(size=(120, 4)) + 3 * y[:, None]
    >>> found = estimate_transfer(X[:60], y[:60], X[60:] + 0.5)
    >>> found.adapted.low <= found.adapted.accuracy <= found.adapted.high
    True
    """
    rng = np.random.default_rng(random_state)
    labels = np.asarray(ys)
    rows, others = _draw(labels, rng), _draw(np.zeros(np.shape(Xt)[0]), rng)
    A, y, B = Xs[rows], labels[rows], Xt[others]
    n_neighbors = min(TFDF().n_neighbors, len(y) // 2 + len(others) - 1)
    models = (
        TFDF(record_history=False, n_neighbors=n_neighbors),
        clone(source_only_methods()["logistic regression"]),
    )
    stage("Estimating the accuracy of an adapted model")
    with sharing():
        adapted, plain = (estimate_accuracy(m.adapt(A, y, B), B, A, y) for m in models)
    return TransferEstimate(adapted, plain)


def _draw(groups: NDArray[Any], rng: np.random.Generator) -> NDArray[np.intp]:
    """Positions of all rows, or of as many as are needed, the same share of every group."""
    share = min(1.0, _MOST_ROWS / len(groups))
    if share == 1.0:
        return np.arange(len(groups))
    members = (np.flatnonzero(groups == group) for group in np.unique(groups))
    drawn = [rng.choice(m, max(1, round(share * len(m))), replace=False) for m in members]
    return np.sort(np.concatenate(drawn))
