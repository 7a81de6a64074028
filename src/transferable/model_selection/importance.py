"""Scores on held-out source rows, weighted by how much like target rows they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transferable._sklearn import safe_indexing
from transferable.model_selection._scorer import Evidence, LabelFreeScorer
from transferable.ratios import RATIOS

__all__ = ["DevScore", "ImportanceWeightedScore"]


@dataclass(frozen=True)
class ImportanceWeightedScore(LabelFreeScorer):
    """Accuracy on held-out source rows, each weighted by the ratio of the domains' densities.

    A copy is fitted without a fifth of the source rows, which are then predicted. Assumes that the
    label depends on the row alike in both domains and that the source covers the target. Fails
    where it does not: then a few rows carry all weight, and where domains are told apart without
    error the score is noise.

    Parameters
    ----------
    ratio : {"kliep", "kmm", "logistic", "nearest", "rulsif", "ulsif"}, default="logistic"
        How the ratio is found: which function of :mod:`transferable.ratios`. "logistic" is a
        regression that tells the domains apart, in at most 50 leading directions, out of fold.

    References
    ----------
    M. Sugiyama, M. Krauledat and K.-R. Mueller, "Covariate shift adaptation by importance weighted
    cross validation", JMLR 2007.

    Examples
    --------
    >>> from transferable.model_selection import ImportanceWeightedScore
    >>> ImportanceWeightedScore()
    ImportanceWeightedScore(ratio='logistic')
    """

    ratio: str = "logistic"

    def score(self, evidence: Evidence) -> float:
        """The weighted mean of hits, weights adding up to one."""
        hits, weights = _weighted_hits(evidence, self.ratio)
        return float(np.average(hits, weights=weights))


@dataclass(frozen=True)
class DevScore(LabelFreeScorer):
    """Importance-weighted accuracy with a control variate that lowers its variance (DEV).

    The mean of weight times error is corrected by the weights' own deviation from one, times the
    regression coefficient of the former on the latter. Assumes what
    :class:`ImportanceWeightedScore` does and fails where that fails, with less variance; on
    few held-out rows the estimate can lie outside [0, 1]. The authors measure densities in the
    features that the model has learnt, which estimators here do not expose: rows themselves are
    used.

    Parameters
    ----------
    ratio : {"kliep", "kmm", "logistic", "nearest", "rulsif", "ulsif"}, default="logistic"
        How the ratio is found: which function of :mod:`transferable.ratios`.

    References
    ----------
    K. You, X. Wang, M. Long and M. Jordan, "Towards accurate model selection in deep unsupervised
    domain adaptation", ICML 2019.

    Examples
    --------
    >>> from transferable.model_selection import DevScore
    >>> DevScore()
    DevScore(ratio='logistic')
    """

    ratio: str = "logistic"

    def score(self, evidence: Evidence) -> float:
        """One minus the estimated risk."""
        hits, weights = _weighted_hits(evidence, self.ratio)
        losses = weights * (1.0 - hits)
        spread = float(np.var(weights))
        slope = float(np.mean((losses - losses.mean()) * (weights - weights.mean())))
        slope = slope / spread if spread > 0 else 0.0
        return 1.0 - float(losses.mean() - slope * (weights.mean() - 1.0))


def _weighted_hits(
    evidence: Evidence, ratio: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Whether each held-out source row is predicted right, and its weight, one on average.

    NaN if no class has a row to spare.
    """
    domains = evidence.domains
    model, rows = evidence.held_out
    if len(rows) == 0:
        return np.array([np.nan]), np.ones(1)
    hits = np.asarray(model.predict(safe_indexing(evidence.Xs, rows))) == evidence.ys[rows]
    if ratio not in RATIOS:
        raise ValueError(f"ratio={ratio!r} is unknown; choose from {', '.join(RATIOS)}.")
    weights = domains.share("density ratio", ratio, lambda: RATIOS[ratio](domains.Xs, domains.Xt))
    return hits.astype(np.float64), weights[rows]
