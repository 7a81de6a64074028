"""The published preprocessing of the datasets, applied to each domain by itself."""

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize, scale


def unit_rows(X: NDArray[np.floating]) -> NDArray[np.floating]:
    """Divide each row by its Euclidean length."""
    return normalize(X)


def standardized_shares(X: NDArray[np.floating]) -> NDArray[np.floating]:
    """Divide each row by its sum, then standardise each column.

    The features are non-negative, so that the sum of a row is its l1 length. The standard
    deviation is that of the population; constant columns become zero.
    """
    return scale(normalize(X, norm="l1"))
