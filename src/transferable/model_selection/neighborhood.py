"""Scores that hold predictions against how the target rows lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, softmax
from sklearn.metrics import silhouette_samples

from transferable.linalg.rows import dense, unit_rows
from transferable.metrics import consistency_along, neighbor_edges
from transferable.model_selection._scorer import Evidence, LabelFreeScorer

__all__ = ["DensityScore", "NeighborsScore", "SilhouetteScore"]

_MOST_ROWS = 3000  # target rows whose pairwise distances are looked at; their order is random


@dataclass(frozen=True)
class NeighborsScore(LabelFreeScorer):
    """Share of a target row's neighbours that get its label, beyond what chance gives.

    With a the share of edges of the cosine neighbour graph whose ends get the same label and e
    the share that labels of the same frequencies would reach anywhere, the score is
    (a - e) / (1 - e): 1 if every neighbourhood agrees, 0 for constant or random predictions.
    Assumes that classes form clusters in the space of the rows. Fails where they do not, and
    prefers models that smooth along the same graph, right or wrong.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours of each row, fewer if there are not so many rows.

    References
    ----------
    The assumption is that of X. Zhu, Z. Ghahramani and J. Lafferty, "Semi-supervised learning
    using Gaussian fields and harmonic functions", ICML 2003; the correction for chance is that of
    J. Cohen, "A coefficient of agreement for nominal scales", 1960.

    Examples
    --------
    >>> from transferable.model_selection import NeighborsScore
    >>> NeighborsScore(n_neighbors=10)
    NeighborsScore(n_neighbors=10)
    """

    labels_only: ClassVar[bool] = True
    n_neighbors: int = 5

    def score(self, evidence: Evidence) -> float:
        """Agreement along the edges, corrected for chance."""
        domains, k = evidence.domains, self.n_neighbors
        if domains.n_target < 2:
            return 0.0
        edges = domains.share("edges", k, lambda: neighbor_edges(domains.Xt, k))
        return consistency_along(edges, evidence.codes)


@dataclass(frozen=True)
class SilhouetteScore(LabelFreeScorer):
    """Mean silhouette of the target rows, by cosine distance, grouped by predicted class.

    Assumes that classes are compact and apart in the space of the rows. Fails where a class has
    several clusters or where directions that do not matter dominate the distances. Constant
    predictions have no silhouette and get -1, the worst.

    References
    ----------
    P. Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster
    analysis", Journal of Computational and Applied Mathematics, 1987.

    Examples
    --------
    >>> from transferable.model_selection import SilhouetteScore
    >>> SilhouetteScore()
    SilhouetteScore()
    """

    def score(self, evidence: Evidence) -> float:
        """Mean silhouette, -1 if fewer than two classes, or one for each row, are predicted."""
        codes = evidence.codes[:_MOST_ROWS]
        if not 2 <= len(np.unique(codes)) < len(codes):
            return -1.0
        domains = evidence.domains
        distances = domains.share(
            "cosine distances", None, lambda: _cosine_distances(domains.Xt, _MOST_ROWS)
        )
        return float(silhouette_samples(distances, codes, metric="precomputed").mean())


@dataclass(frozen=True)
class DensityScore(LabelFreeScorer):
    """Mean entropy of the similarities between the predictions of target rows.

    Rows' predicted distributions, at unit length, are compared by inner product; each row's
    similarities to all others are made a distribution by a softmax, whose entropy is high if many
    rows are predicted alike. Assumes that the features were trained to separate classes on the
    source. Fails badly elsewhere: it is highest where all rows are predicted alike, and on digits
    it picked settings 25 points below the best.

    Parameters
    ----------
    temperature : float, default=0.05
        Of the softmax; the value of the authors.

    References
    ----------
    K. Saito, D. Kim, P. Teterwak, S. Sclaroff, T. Darrell and K. Saenko, "Tune it the right way:
    unsupervised validation of domain adaptation via soft neighborhood density", ICCV 2021.

    Examples
    --------
    >>> from transferable.model_selection import DensityScore
    >>> DensityScore()
    DensityScore(temperature=0.05)
    """

    temperature: float = 0.05

    def score(self, evidence: Evidence) -> float:
        """Mean entropy of each row's softmax over the others; 0 for a single row."""
        P = unit_rows(evidence.probabilities[:_MOST_ROWS])
        if len(P) < 2:
            return 0.0
        similarity = P @ P.T / self.temperature
        np.fill_diagonal(similarity, -np.inf)
        return float(entr(softmax(similarity, axis=1)).sum(axis=1).mean())


def _cosine_distances(X: Any, most: int) -> NDArray[np.float64]:
    unit = unit_rows(X[:most])
    distances = np.clip(1.0 - dense(unit @ unit.T), 0.0, 2.0)
    np.fill_diagonal(distances, 0.0)
    return distances
