"""What classifiers that score every class have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from transferable.base import DomainClassifier
from transferable.linalg.arrays import like

__all__ = ["ScoreClassifier", "class_scores"]


class ScoreClassifier(DomainClassifier):
    """A classifier that gives each row a score for each class; the highest one decides."""

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, those that were fitted or new ones.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            One score for each class; with two classes, the second's minus the first's.
        """
        scores = self._scores(self._validate_rows(X))
        return like(X, scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, those that were fitted or new ones.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            A distribution over ``classes_`` for each row.
        """
        return like(X, self._probabilities(self._scores(self._validate_rows(X))))

    def _predict_codes(self, rows: Any) -> NDArray[np.intp]:
        return self._scores(rows).argmax(axis=1)

    def _probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores as distributions over the classes."""
        return softmax(scores, axis=1)

    @abstractmethod
    def _scores(self, rows: Any) -> NDArray[np.float64]:
        """Scores of validated rows, one column for each class."""


def class_scores(classifier: Any, X: Any) -> NDArray[np.float64]:
    """Scores of a fitted scikit-learn classifier, a column for each class, even if they are two."""
    if not hasattr(classifier, "decision_function"):
        return np.asarray(classifier.predict_proba(X), dtype=np.float64)
    scores = np.asarray(classifier.decision_function(X), dtype=np.float64)
    return np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores
