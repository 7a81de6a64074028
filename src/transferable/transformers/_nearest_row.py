"""Nearest row of each class, as a classifier with probabilities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted

from transferable._linalg.systems import Matrix

SMALLEST = 1e-12  # probability: that of no class is 0 for sure
_JUDGED = 1000  # training rows of NearestRow that are left out in turn
_MIB = 64  # of distances that are held at a time
_LOG_TEMPERATURES = (-5.0, 5.0)
_NEAREST = 0.01  # lower bound of distances, as a share of the usual one: copies of a row

Codes = NDArray[np.intp]


class NearestRow(ClassifierMixin, BaseEstimator):
    """Nearest-neighbour classifier with probabilities from distances.

    With d_c the distance to the nearest row of class c, its probability is proportional to
    d_c^(-1/T): it depends on the relative distances of the classes, not on the unit. The
    temperature T is fitted to training rows left out in turn.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    temperature_ : float
        T, the most likely one for left-out rows if one more of them were mislabelled, which keeps
        it finite where none is.
    """

    _centre: Matrix | None = None

    def fit(self, X: Any, y: NDArray[Any], sample_weight: Matrix | None = None) -> Self:
        """Store the rows and fit the temperature; a row of weight 2 has a copy beside it."""
        self.fit_left_out(X, y, sample_weight)
        return self

    def fit_left_out(self, X: Any, y: NDArray[Any], sample_weight: Matrix | None = None) -> Matrix:
        """Fit, and return log-probabilities of the first rows, each left out in turn."""
        X = check_array(X, accept_sparse="csr")
        self._centre = None if sp.issparse(X) else X.mean(axis=0)
        X = self._centred(X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._neighbor = KNeighborsClassifier(1).fit(X, y)
        order = np.argsort(codes, kind="stable")
        self._rows = X[order]
        self._starts = np.searchsorted(codes[order], np.arange(len(self.classes_)))
        judged = min(_JUDGED, len(codes))
        own = np.argsort(order, kind="stable")[:judged]
        weights = np.asarray(np.ones(judged) if sample_weight is None else sample_weight)[:judged]
        # Copies of a left-out row are left out too.
        distances = self._distances(X[:judged], np.where(weights < 2.0, own, -1))
        farthest = distances[np.isfinite(distances)].max(initial=0.0)
        distances[np.isinf(distances)] = farthest  # of classes with no other row
        usual = np.average(distances.min(axis=1), weights=weights) or distances.mean() or 1.0
        self._floor = _NEAREST * usual
        scores = self._closeness(distances)
        self.temperature_ = _temperature(scores, codes[:judged], weights)
        return log_softmax(scores / self.temperature_, axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of the nearest row."""
        check_is_fitted(self)
        return self._neighbor.predict(self._centred(X))

    def predict_proba(self, X: Any) -> Matrix:
        """Return the probability of each class; none is above that of the predicted one."""
        codes = np.searchsorted(self.classes_, self.predict(X))
        scores = self._closeness(self._distances(self._centred(X)))
        # Among equally near classes, the label is that of whichever row was found first.
        rows, likeliest = np.arange(len(scores)), scores.argmax(axis=1)
        own, best = scores[rows, codes], scores[rows, likeliest]
        scores[rows, likeliest], scores[rows, codes] = own, best
        probabilities = softmax(scores / self.temperature_, axis=1)
        tied = np.flatnonzero(probabilities.argmax(axis=1) != codes)
        probabilities[tied, codes[tied]] = np.nextafter(probabilities[tied].max(axis=1), 2.0)
        return probabilities

    def _centred(self, X: Any) -> Any:
        """Return rows about the mean of those fitted, against cancellation in their squares."""
        X = check_array(X, accept_sparse="csr")
        return X if self._centre is None else X - self._centre

    def _distances(self, X: Any, own: Codes | None = None) -> Matrix:
        """Return the distance to the nearest row of each class, except X's `own` positions."""

        def nearest(block: Matrix, start: int) -> Matrix:
            if own is not None:
                at = own[start : start + len(block)]
                alone = np.flatnonzero(at >= 0)
                block[alone, at[alone]] = np.inf
            return np.minimum.reduceat(block, self._starts, axis=1)

        blocks = pairwise_distances_chunked(X, self._rows, reduce_func=nearest, working_memory=_MIB)
        return np.concatenate(list(blocks)).astype(np.float64)

    def _closeness(self, distances: Matrix) -> Matrix:
        return -np.log(np.maximum(distances, self._floor))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _temperature(scores: Matrix, codes: Codes, weights: Matrix) -> float:
    """Return the most likely temperature for these classes, had one row more been wrong."""
    n, n_classes = scores.shape
    wrong = 1.0 / (weights.sum() + 1)
    shares = np.full(scores.shape, wrong / max(n_classes - 1, 1))
    shares[np.arange(n), codes] = 1.0 - wrong

    def loss(log_temperature: float) -> float:
        likely = shares * log_softmax(scores / np.exp(log_temperature), axis=1)
        return -float(np.average(np.mean(likely, axis=1), weights=weights))

    return float(np.exp(minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded").x))
