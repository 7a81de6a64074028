"""One nearest neighbour that knows how sure it is.

The label is that of the nearest row. With d_c the distance to the nearest row of class c, its
probability is proportional to d_c^(-1/T): it depends on how much farther away the other classes
are, not on the unit. The temperature T is fitted to training rows that are left out in turn.
"""

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

_ROWS = 1000  # training rows that are left out in turn
_MIB = 64  # of distances that are held at a time
_BOUNDS = (-5.0, 5.0)  # of the temperature's natural logarithm
_SMALLEST = 0.01  # distances below this share of the usual one count as that: copies of a row


class NearestRow(ClassifierMixin, BaseEstimator):
    """Label rows as the nearest training row, with probabilities from distances.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    temperature_ : float
        T, the most likely one for left-out rows if one more row than these were mislabelled, so
        that it stays finite where none is.
    """

    _centre: NDArray[np.float64] | None = None

    def fit(
        self, X: Any, y: NDArray[Any], sample_weight: NDArray[np.float64] | None = None
    ) -> Self:
        """Keep the rows and fit the temperature; a row of weight 2 has a copy beside it."""
        self.fit_left_out(X, y, sample_weight)
        return self

    def fit_left_out(
        self, X: Any, y: NDArray[Any], sample_weight: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Fit, and return log-probabilities of the first rows, each left out in turn."""
        X = check_array(X, accept_sparse="csr")
        self._centre = None if sp.issparse(X) else X.mean(axis=0)
        X = self._centred(X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._neighbor = KNeighborsClassifier(1).fit(X, y)
        order = np.argsort(codes, kind="stable")
        self._rows = X[order]
        self._starts = np.searchsorted(codes[order], np.arange(len(self.classes_)))
        judged = min(_ROWS, len(codes))
        own = np.argsort(order, kind="stable")[:judged]
        weights = None if sample_weight is None else np.asarray(sample_weight)[:judged]
        if weights is not None:  # the copies of a row are left where it is left out
            own = np.where(weights < 2.0, own, -1)
        distances = self._distances(X[:judged], own)
        farthest = distances[np.isfinite(distances)].max(initial=0.0)
        distances[np.isinf(distances)] = farthest  # of classes with no other row
        usual = np.average(distances.min(axis=1), weights=weights) or distances.mean() or 1.0
        self._floor = _SMALLEST * usual
        scores = self._closeness(distances)
        self.temperature_ = _temperature(scores, codes[:judged], weights)
        return log_softmax(scores / self.temperature_, axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of the nearest row."""
        check_is_fitted(self)
        return self._neighbor.predict(self._centred(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class; none is above that of the predicted one."""
        codes = np.searchsorted(self.classes_, self.predict(X))
        scores = self._closeness(self._distances(self._centred(X)))
        # Of classes that are equally near, the label is that of whichever row was found first.
        rows, likeliest = np.arange(len(scores)), scores.argmax(axis=1)
        own, best = scores[rows, codes], scores[rows, likeliest]
        scores[rows, likeliest], scores[rows, codes] = own, best
        probabilities = softmax(scores / self.temperature_, axis=1)
        tied = np.flatnonzero(probabilities.argmax(axis=1) != codes)
        probabilities[tied, codes[tied]] = np.nextafter(probabilities[tied].max(axis=1), 2.0)
        return probabilities

    def _centred(self, X: Any) -> Any:
        """Return rows about the mean of those fitted: a common offset's squares drown the rest."""
        X = check_array(X, accept_sparse="csr")
        return X if self._centre is None else X - self._centre

    def _distances(self, X: Any, own: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Return the distance to the nearest row of each class, past X's `own` positions."""

        def nearest(block: NDArray[np.float64], start: int) -> NDArray[np.float64]:
            if own is not None:
                at = own[start : start + len(block)]
                alone = np.flatnonzero(at >= 0)
                block[alone, at[alone]] = np.inf
            return np.minimum.reduceat(block, self._starts, axis=1)

        blocks = pairwise_distances_chunked(X, self._rows, reduce_func=nearest, working_memory=_MIB)
        return np.concatenate(list(blocks)).astype(np.float64)

    def _closeness(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        return -np.log(np.maximum(distances, self._floor))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _temperature(
    scores: NDArray[np.float64],
    codes: NDArray[np.intp],
    weights: NDArray[np.float64] | None = None,
) -> float:
    """Return the divisor of scores that makes these classes likeliest, were one row more wrong."""
    n, n_classes = scores.shape
    wrong = 1.0 / ((n if weights is None else weights.sum()) + 1)
    shares = np.full(scores.shape, wrong / max(n_classes - 1, 1))
    shares[np.arange(n), codes] = 1.0 - wrong

    def loss(log_temperature: float) -> float:
        likely = shares * log_softmax(scores / np.exp(log_temperature), axis=1)
        return -float(np.average(np.mean(likely, axis=1), weights=weights))

    return float(np.exp(minimize_scalar(loss, bounds=_BOUNDS, method="bounded").x))
