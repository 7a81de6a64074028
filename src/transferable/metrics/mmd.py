"""Maximum mean discrepancy between two samples, as wholes and class by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transferable.linalg.kernels import Kernel
from transferable.metrics._samples import Samples
from transferable.terms.means import MeanDiscrepancy

__all__ = ["mmd_distance", "squared_mean_discrepancy"]


def mmd_distance(
    Xs: Any,
    Xt: Any,
    ys: ArrayLike | None = None,
    yt: ArrayLike | None = None,
    *,
    balance: float = 0.5,
    kernel: Kernel = "linear",
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 1.0,
) -> float:
    """Distance between the means of two samples in the space of a kernel.

    With phi the features of the kernel and m_s, m_t the samples' means of phi [1]_, it is
    ||m_s - m_t||. With labels it is the root of

        (1 - balance) ||m_s - m_t||^2 + balance sum_c ||m_s,c - m_t,c||^2

    over the classes c that both samples have.

    Parameters
    ----------
    Xs, Xt : array-like of shape (n_rows, n_features)
        The two samples.
    ys, yt : array-like of shape (n_rows,), default=None
        Their labels: both, or neither.
    balance : float, default=0.5
        How much the classes count against the samples as wholes (mu); without labels it has no
        effect.
    kernel : {"linear", "poly", "rbf"} or callable, default="linear"
        Kernel between rows; linear compares the means of the rows themselves.
    gamma, degree, coef0 : float, int, float
        Parameters of the kernel, as in :func:`sklearn.metrics.pairwise.pairwise_kernels`.

    Returns
    -------
    distance : float
        0 if all compared means are equal.

    References
    ----------
    .. [1] A. Gretton, K. M. Borgwardt, M. J. Rasch, B. Schölkopf, A. Smola (2012). A kernel
       two-sample test. JMLR 13.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.metrics import mmd_distance
    >>> Xs = np.array([[0.0, 0.0], [2.0, 0.0]])
    >>> mmd_distance(Xs, Xs + [3.0, 4.0])
    5.0
    >>> mmd_distance(Xs, Xs[::-1], [0, 1], [0, 1])
    2.0
    """
    samples = Samples(Xs, Xt, ys, yt, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0)
    return float(np.sqrt(squared_mean_discrepancy(samples, balance)))


def squared_mean_discrepancy(samples: Samples, balance: float) -> float:
    """tr(K M) with M of the samples as wholes and of their classes."""
    term = MeanDiscrepancy(
        samples.groups,
        weight=1.0,
        balance=balance if samples.n_classes else 0.0,
        normalised=False,
    )
    E = term.columns
    if samples.linear:
        return float(np.sum((E.T @ samples.X) ** 2))
    return max(0.0, float(np.vdot(E, samples.gram(slice(None)) @ E)))
