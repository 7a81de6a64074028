"""Whether adapting may do harm: one judgement, which `diagnose`, `adapt` and the report repeat.

No target label is looked at. A pool of adapted and source-only models, AutoAdapter's, labels the
target rows; what it agrees on tells how many labels of an adapted model are likely to be right, and
how many of a model of the source alone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import NotFittedError, check_is_fitted

from transferable._sklearn import safe_indexing
from transferable.classifiers import TFDF, AutoAdapter
from transferable.classifiers._consensus import MARGIN, expected_accuracy
from transferable.diagnostics.comparison import source_only_methods
from transferable.events import stage
from transferable.model_selection import AccuracyEstimate
from transferable.workspace import sharing

__all__ = ["TransferEstimate", "Verdict", "estimate_transfer"]

Verdict = Literal["good", "fair", "doubtful"]

_MOST_ROWS = 1000  # of each domain: the pool is six fits
_GOOD = 0.75  # estimated accuracy from which labels are called good


@dataclass(frozen=True)
class TransferEstimate:
    """Target accuracies of two models, estimated without labels.

    Attributes
    ----------
    adapted : AccuracyEstimate
        Of the method that adapts.
    source_only : AccuracyEstimate
        Of logistic regression on the source alone.
    method : str
        The method that adapts.
    changed : float
        Share of target rows that the two label differently.
    """

    adapted: AccuracyEstimate
    source_only: AccuracyEstimate
    method: str = "TFDF"
    changed: float = 1.0

    @property
    def gain(self) -> float:
        """How much more accurate the adapted model is, as far as the estimates tell."""
        return self.adapted.accuracy - self.source_only.accuracy

    @property
    def verdict(self) -> Verdict:
        """Whether the labels may be relied upon; "doubtful" if the source's own seem as good."""
        if self.changed and self.gain <= 0:
            return "doubtful"
        return "good" if self.adapted.accuracy >= _GOOD else "fair"

    @property
    def warning(self) -> str:
        """What to be wary of; empty if the adapted model seems the better one."""
        if self.verdict != "doubtful":
            return ""
        return (
            f"adapting may do harm: estimated without labels, {self.method} gets {self.adapted} "
            "of the target rows right, logistic regression on the source alone "
            f"{self.source_only}; label a few target rows to decide between them."
        )


def estimate_transfer(
    Xs: Any,
    ys: ArrayLike,
    Xt: Any,
    *,
    estimator: Any = None,
    plain: tuple[Any, Any] | None = None,
    random_state: int = 0,
) -> TransferEstimate:
    """Estimate target accuracies of a method and of a model of the source alone, without labels.

    Both are held against the consensus of a pool of models, :class:`~transferable.AutoAdapter`'s,
    whose confidence is corrected by what it was worth on other data. How far that can be trusted
    is told in docs/safety.md.

    Parameters
    ----------
    Xs, ys, Xt : array-like
        Source rows, their labels, and target rows. Of more than 1000 rows in a domain, so many are
        drawn at random, of each class alike in the source.
    estimator : classifier or None, default=None
        The method that adapts; None is TFDF with its defaults. A fitted one is asked as it is,
        unless rows had to be drawn, to which a copy is fitted.
    plain : tuple of two array-likes or None, default=None
        Source and target rows for the pool and for the model of the source alone, where `Xs` and
        `Xt` were made with the help of target rows, as when each domain is scaled by itself.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    estimate : TransferEstimate
        Both estimates, a verdict, and a warning if the adapted model does not seem better.

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
    y, whole = labels[rows], len(rows) == len(labels) and len(others) == np.shape(Xt)[0]
    own, bare = (
        (safe_indexing(source, rows), safe_indexing(target, others))
        for source, target in ((Xs, Xt), plain or (Xs, Xt))
    )
    stage("Estimating the accuracy of an adapted model")
    with sharing(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits on parts of the rows
        if estimator is None:
            n_neighbors = min(TFDF().n_neighbors, len(y) + len(others) - 1)
            estimator = TFDF(record_history=False, n_neighbors=n_neighbors)
        model = estimator
        if not (whole and _is_fitted(estimator)):
            model = clone(estimator).adapt(own[0], y, own[1])
        alone = clone(source_only_methods()["logistic regression"]).adapt(bare[0], y, bare[1])
        if isinstance(model, AutoAdapter):
            consensus = model.predict_proba(own[1])
        else:
            consensus = AutoAdapter(random_state=random_state).adapt(bare[0], y, bare[1])
            consensus = consensus.predict_proba(bare[1])
    adapted, source_only = (
        np.searchsorted(np.unique(y), fitted.predict(target))
        for fitted, target in ((model, own[1]), (alone, bare[1]))
    )
    named = getattr(estimator, "transformer", None) or estimator
    return TransferEstimate(
        _estimate(adapted, consensus),
        _estimate(source_only, consensus),
        type(named).__name__,
        float(np.mean(adapted != source_only)),
    )


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _estimate(codes: NDArray[np.intp], consensus: NDArray[np.float64]) -> AccuracyEstimate:
    """The accuracy of labels that a consensus suggests."""
    accuracy = expected_accuracy(codes, consensus)
    low, high = max(0.0, accuracy - MARGIN), min(1.0, accuracy + MARGIN)
    agreed = float(np.mean(consensus.argmax(axis=1) == codes))
    return AccuracyEstimate(accuracy, low, high, {"agreement_with_consensus": agreed})


def _draw(groups: NDArray[Any], rng: np.random.Generator) -> NDArray[np.intp]:
    """Positions of all rows, or of as many as are needed, the same share of every group."""
    share = min(1.0, _MOST_ROWS / len(groups))
    if share == 1.0:
        return np.arange(len(groups))
    members = (np.flatnonzero(groups == group) for group in np.unique(groups))
    drawn = [rng.choice(m, max(1, round(share * len(m))), replace=False) for m in members]
    return np.sort(np.concatenate(drawn))
