"""Probabilities from scores, by a temperature and an offset for each class.

Scores of least squares are lower for rare classes than their probabilities are. A temperature alone
cannot mend that, and shares that are estimated from such probabilities lose the rare classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

__all__ = ["ClassCalibration"]

_RIDGE = 0.005  # of the offsets, so that a class that is never mistaken keeps a finite one
_BOUNDS = (-3.0, 7.0)  # of the natural logarithm of what scores are multiplied with


class ClassCalibration:
    """log softmax(scores / temperature + offsets), most likely for rows whose classes are known.

    Parameters
    ----------
    scores : ndarray of shape (n, n_classes)
        Scores of rows that did not help to fit the classifier.
    codes : ndarray of shape (n,)
        Their classes.
    """

    def __init__(self, scores: NDArray[np.float64], codes: NDArray[np.intp]) -> None:
        rows, n_classes = np.arange(len(codes)), scores.shape[1]

        def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            factor, offsets = np.exp(parameters[0]), parameters[1:]
            logs = log_softmax(factor * scores + offsets, axis=1)
            slope = np.exp(logs)
            slope[rows, codes] -= 1.0
            by_class = slope.mean(axis=0) + 2.0 * _RIDGE * offsets
            by_factor = factor * np.mean(np.sum(slope * scores, axis=1))
            value = _RIDGE * (offsets @ offsets) - np.mean(logs[rows, codes])
            return float(value), np.concatenate([[by_factor], by_class])

        # Scores of unit spread are the same start in any unit.
        start = np.zeros(1 + n_classes)
        start[0] = np.clip(-np.log(max(float(scores.std()), 1e-300)), *_BOUNDS)
        bounds = [_BOUNDS] + [(None, None)] * n_classes
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        self.temperature, self.offsets = float(np.exp(-found[0])), found[1:]

    def log_probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of any rows that the same classifier has scored."""
        calibrated: NDArray[np.float64] = log_softmax(
            scores / self.temperature + self.offsets, axis=1
        )
        return calibrated
