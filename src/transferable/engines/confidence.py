"""Pseudo-labels worth trusting: the surest rows of each class, so that none crowds others out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def most_confident(scores: NDArray[np.float64], share: float) -> NDArray[np.intp]:
    """Return codes of the surest rows, this share of each predicted class; -1 for all other rows.

    Parameters
    ----------
    scores : ndarray of shape (n, n_classes)
        A row's class is the one it scores highest for, and that score is its confidence.
    share : float
        Between 0 and 1; a class keeps the largest whole number of rows that is not above it.
    """
    codes = scores.argmax(axis=1)
    trusted = np.full(len(codes), -1)
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        order = np.argsort(-scores[rows, code], kind="stable")
        # 0.3 * 10 is just below 3: rounding must not lose a row.
        chosen = rows[order[: int(share * len(rows) + 1e-9)]]
        trusted[chosen] = code
    return trusted
