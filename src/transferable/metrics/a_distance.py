"""The proxy A-distance: how well a linear classifier tells two domains apart.

Ben-David, Blitzer, Crammer and Pereira, "Analysis of representations for domain adaptation",
NeurIPS 2006.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.linalg.rows import dense

__all__ = ["proxy_a_distance"]


def proxy_a_distance(Xs: Any, Xt: Any, *, shrinkage: float = 0.1) -> float:
    """Distance 2 (1 - 2 error) of two samples, by the held-out error of a linear discriminant.

    Rows at even positions train the discriminant that labels those at odd positions, and the
    other way round. Both samples count alike in training and in the error, whatever their sizes,
    so that a small sample beside a large one does not look distant by its size alone.

    Parameters
    ----------
    Xs, Xt : array-like or sparse matrix of shape (n_rows, n_features)
        The two samples, at least two rows each.
    shrinkage : float, default=0.1
        How much of the average variance is added to each direction's before the pooled
        covariance is inverted.

    Returns
    -------
    distance : float
        0 if the samples cannot be told apart, 2 if they are separated without error.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.metrics import proxy_a_distance
    >>> rng = np.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(200, 5)), rng.normal(size=(300, 5))
    >>> proxy_a_distance(Xs, Xt) < 0.3
    True
    >>> proxy_a_distance(Xs, Xt + 4)
    2.0
    """
    Xs, Xt = np.asarray(dense(Xs), dtype=np.float64), np.asarray(dense(Xt), dtype=np.float64)
    if min(len(Xs), len(Xt)) < 2:
        raise ValueError(
            f"The samples have {len(Xs)} and {len(Xt)} rows; each needs 2, one to train and one to "
            "be held out."
        )
    folds = [(slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))]
    errors = [_held_out_error(Xs[a], Xt[a], Xs[b], Xt[b], shrinkage) for a, b in folds]
    return 2.0 * max(0.0, 1.0 - 2.0 * float(np.mean(errors)))


def _held_out_error(
    Xs: NDArray, Xt: NDArray, Xs_new: NDArray, Xt_new: NDArray, shrinkage: float
) -> float:
    """Balanced error on new rows of the regularised linear discriminant of two samples."""
    mean_s, mean_t = Xs.mean(axis=0), Xt.mean(axis=0)
    centred = np.vstack([(Xs - mean_s) / np.sqrt(len(Xs)), (Xt - mean_t) / np.sqrt(len(Xt))])
    direction = _whitened(centred, mean_s - mean_t, shrinkage)
    threshold = direction @ (mean_s + mean_t) / 2
    wrong_s = np.mean(Xs_new @ direction <= threshold)
    wrong_t = np.mean(Xt_new @ direction > threshold)
    return float(wrong_s + wrong_t) / 2


def _whitened(centred: NDArray, difference: NDArray, shrinkage: float) -> NDArray:
    """(C'C + s I)^-1 difference through the smaller of C'C and C C'; s relative to the trace."""
    n, d = centred.shape
    ridge = shrinkage * float(np.sum(centred**2)) / d
    if ridge == 0.0:
        return difference
    if d <= n:
        inner = centred.T @ centred
        inner.flat[:: d + 1] += ridge
        return np.linalg.solve(inner, difference)
    inner = centred @ centred.T
    inner.flat[:: n + 1] += ridge
    return (difference - centred.T @ np.linalg.solve(inner, centred @ difference)) / ridge
