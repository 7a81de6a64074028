"""Weights that bring two means together in the space of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from transferable.linalg.simplex import descend, largest_eigenvalue, project_on_simplices
from transferable.ratios._samples import (
    Vector,
    mean_one,
    order_free,
    rbf,
    usual_gamma,
)

__all__ = ["kernel_mean_matching"]


@order_free(fewest_target=1)
def kernel_mean_matching(
    Xs: Any, Xt: Any, *, gamma: float | None = None, bound: float = 1000.0
) -> Vector:
    """Weights for which the source's mean in an RBF kernel's space is the target's (KMM).

    Parameters
    ----------
    Xs, Xt : array-like or sparse matrix of shapes (n_source, n_features), (n_target, n_features)
        The rows to weight, and those to resemble.
    gamma : float or None, default=None
        Coefficient of the kernel; None is one over the median squared distance.
    bound : float, default=1000.0
        Largest weight, as published.

    Returns
    -------
    weights : ndarray of shape (n_source,)
        One on average.

    Notes
    -----
    Takes the kernel matrix of the source. The mean may deviate from 1 by 1 - 1 / sqrt(n_source), as
    published, while weights are sought.

    References
    ----------
    J. Huang, A. Smola, A. Gretton, K. Borgwardt, B. Schoelkopf, "Correcting sample selection bias
    by unlabeled data", NIPS 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.ratios import kernel_mean_matching
    >>> Xs = np.linspace(0, 1, 50)[:, None]
    >>> weights = kernel_mean_matching(Xs, Xs[25:])
    >>> bool(weights[25:].mean() > 3 * weights[:25].mean())
    True
    """
    gamma = usual_gamma(Xs, Xt) if gamma is None else gamma
    n = len(Xs)
    K = rbf(Xs, Xs, gamma)
    attraction = n * rbf(Xs, Xt, gamma).mean(axis=1)
    slack = (1.0 - 1.0 / np.sqrt(n)) * n
    one_group = np.zeros(n, dtype=np.intp)

    def project(w: Vector) -> Vector:
        clipped = np.clip(w, 0.0, bound)
        total = np.clip(clipped.sum(), n - slack, n + slack)
        if total == clipped.sum():
            return clipped
        return bound * project_on_simplices(w / bound, one_group, np.array([total / bound]))

    step = 1.0 / largest_eigenvalue(lambda w: K @ w, n)
    weights = descend(
        lambda w: K @ w - attraction, project, np.ones(n), step, max_iter=300, tolerance=1e-3
    )
    return mean_one(weights)
