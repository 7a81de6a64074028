"""Scores on held-out source rows, weighted by how much like target rows they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from transferable._sklearn import safe_indexing
from transferable.linalg.rows import dense
from transferable.model_selection._scorer import Evidence, LabelFreeScorer

__all__ = ["DevScore", "ImportanceWeightedScore"]

_DIRECTIONS = 50
_FOLDS = 2


@dataclass(frozen=True)
class ImportanceWeightedScore(LabelFreeScorer):
    """Accuracy on held-out source rows, each weighted by the ratio of the domains' densities.

    A copy is fitted without a fifth of the source rows, which are then predicted. The ratio of
    densities is that of a logistic regression which tells the domains apart, in at most 50 leading
    directions of the rows, out of fold. Assumes that the label depends on the row alike in both
    domains and that the source covers the target. Fails where it does not: then a few rows carry
    all weight, and where domains are told apart without error the score is noise.

    References
    ----------
    M. Sugiyama, M. Krauledat and K.-R. Mueller, "Covariate shift adaptation by importance weighted
    cross validation", JMLR 2007.

    Examples
    --------
    >>> from transferable.model_selection import ImportanceWeightedScore
    >>> ImportanceWeightedScore()
    ImportanceWeightedScore()
    """

    def score(self, evidence: Evidence) -> float:
        """The weighted mean of hits, weights adding up to one."""
        hits, weights = _weighted_hits(evidence)
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

    References
    ----------
    K. You, X. Wang, M. Long and M. Jordan, "Towards accurate model selection in deep unsupervised
    domain adaptation", ICML 2019.

    Examples
    --------
    >>> from transferable.model_selection import DevScore
    >>> DevScore()
    DevScore()
    """

    def score(self, evidence: Evidence) -> float:
        """One minus the estimated risk."""
        hits, weights = _weighted_hits(evidence)
        losses = weights * (1.0 - hits)
        spread = float(np.var(weights))
        slope = float(np.mean((losses - losses.mean()) * (weights - weights.mean())))
        slope = slope / spread if spread > 0 else 0.0
        return 1.0 - float(losses.mean() - slope * (weights.mean() - 1.0))


def _weighted_hits(evidence: Evidence) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Whether each held-out source row is predicted right, and its weight, one on average.

    NaN if no class has a row to spare.
    """
    domains = evidence.domains
    model, rows = evidence.held_out
    if len(rows) == 0:
        return np.array([np.nan]), np.ones(1)
    hits = np.asarray(model.predict(safe_indexing(evidence.Xs, rows))) == evidence.ys[rows]
    weights = domains.share(
        "density ratio", None, lambda: _density_ratio(domains.X, domains.n_source)
    )
    return hits.astype(np.float64), weights[rows] / max(weights.mean(), 1e-12)


def _density_ratio(X: Any, n_source: int) -> NDArray[np.float64]:
    """p(target | x) / p(source | x) of the source rows, up to a factor, out of fold."""
    k = min(_DIRECTIONS, min(X.shape) - 1)
    Z = TruncatedSVD(k, random_state=0).fit_transform(X) if k >= 1 else dense(X)
    Z = StandardScaler().fit_transform(Z)
    is_target = np.arange(len(Z)) >= n_source
    odds = np.ones(len(Z))
    folds = np.arange(len(Z)) % _FOLDS
    for fold in range(_FOLDS):
        kept = folds != fold
        if len(np.unique(is_target[kept])) == 2:
            model = LogisticRegression(C=0.1, max_iter=500).fit(Z[kept], is_target[kept])
            odds[~kept] = np.exp(np.clip(model.decision_function(Z[~kept]), -20.0, 20.0))
    return odds[:n_source]
