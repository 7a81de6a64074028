"""Scores that read the predicted distributions of the target rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from transferable.model_selection._scorer import Evidence, LabelFreeScorer

__all__ = ["ConfusionScore", "EntropyScore", "InformationScore"]


@dataclass(frozen=True)
class EntropyScore(LabelFreeScorer):
    """Minus the mean entropy of the predicted distributions, in nats.

    Assumes that a model which suits the target is sure of its predictions. Fails where a model is
    sure and wrong: one that gives all rows to one class gets the best score of all, and scores of
    models whose confidence is calibrated differently do not compare.

    References
    ----------
    Y. Grandvalet and Y. Bengio, "Semi-supervised learning by entropy minimization", NeurIPS 2004;
    P. Morerio, J. Cavazza and V. Murino, "Minimal-entropy correlation alignment for unsupervised
    deep domain adaptation", ICLR 2018, for its use to choose parameters.

    Examples
    --------
    >>> from transferable import TFDFV
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.model_selection import EntropyScore
    >>> task = load_printed_to_handwritten()
    >>> rows = slice(None, None, 5)
    >>> model = TFDFV(max_iter=2).adapt(task.Xs[rows], task.ys[rows], task.Xt[rows])
    >>> import numpy as np
    >>> X = np.vstack([task.Xs[rows], task.Xt[rows]])
    >>> y = np.concatenate([task.ys[rows], np.full(len(task.Xt[rows]), -1)])
    >>> EntropyScore()(model, X, y) < 0
    True
    """

    def score(self, evidence: Evidence) -> float:
        """Minus the mean entropy."""
        return -float(_entropies(evidence.probabilities).mean())


@dataclass(frozen=True)
class InformationScore(LabelFreeScorer):
    """Entropy of the mean prediction minus the mean entropy: sure rows, diverse classes.

    Assumes, beyond what :class:`EntropyScore` does, that the classes of the target are about
    equally frequent. Fails where they are not, and where a model is sure and wrong while using
    all classes, as one that aligns the wrong groups with each other is.

    References
    ----------
    J. Bridle, A. Heading and D. MacKay, "Unsupervised classifiers, mutual information and phantom
    targets", NeurIPS 1991; Y. Shi and F. Sha, "Information-theoretical learning of discriminative
    clusters for unsupervised domain adaptation", ICML 2012.

    Examples
    --------
    >>> from transferable.model_selection import InformationScore
    >>> InformationScore()
    InformationScore()
    """

    def score(self, evidence: Evidence) -> float:
        """Mutual information between row and predicted class."""
        P = evidence.probabilities
        return float(entr(P.mean(axis=0)).sum() - _entropies(P).mean())


@dataclass(frozen=True)
class ConfusionScore(LabelFreeScorer):
    """Minus the mean confusion between pairs of classes in the predicted distributions.

    Predictions are softened by a temperature; rows count by how sure they are; the matrix of
    joint predictions is normalised row by row, and what lies off its diagonal is confusion.
    Assumes that classes which a good model confuses are few. Fails as :class:`EntropyScore` does,
    less so where classes differ in size.

    Parameters
    ----------
    temperature : float, default=2.5
        Exponent 1 / temperature softens the distributions; the value of the authors.

    References
    ----------
    Y. Jin, X. Wang, M. Long and J. Wang, "Minimum class confusion for versatile domain
    adaptation", ECCV 2020.

    Examples
    --------
    >>> from transferable.model_selection import ConfusionScore
    >>> ConfusionScore(temperature=1.0)
    ConfusionScore(temperature=1.0)
    """

    temperature: float = 2.5

    def score(self, evidence: Evidence) -> float:
        """Minus the mean of the rows' sums off the diagonal."""
        P = np.maximum(evidence.probabilities, 1e-12) ** (1.0 / self.temperature)
        P /= P.sum(axis=1, keepdims=True)
        weights = 1.0 + np.exp(-_entropies(P))
        joint = P.T @ (P * (weights / weights.mean())[:, None])
        joint /= joint.sum(axis=1, keepdims=True)
        return -float(1.0 - np.trace(joint) / len(joint))


def _entropies(P: NDArray[np.float64]) -> NDArray[np.float64]:
    return entr(P).sum(axis=1)
