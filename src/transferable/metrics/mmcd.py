"""Maximum mean and covariance discrepancy between two samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transferable.linalg.kernels import Kernel
from transferable.metrics._samples import Samples
from transferable.metrics.mmd import squared_mean_discrepancy
from transferable.terms.covariances import GroupCentring, class_groups

__all__ = ["mmcd_distance"]


def mmcd_distance(
    Xs: Any,
    Xt: Any,
    ys: ArrayLike | None = None,
    yt: ArrayLike | None = None,
    *,
    second_order: float = 1.0,
    balance: float = 0.5,
    kernel: Kernel = "linear",
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 1.0,
) -> float:
    """Distance between the means and covariances of two samples in the space of a kernel.

    With m the mean and C the covariance operator of a sample's features [1]_, it is the root of
    ||m_s - m_t||^2 + second_order ||C_s - C_t||^2. With labels, that square counts 1 - balance
    times, and balance times the sum of such squares over the classes that both samples have.

    Parameters
    ----------
    Xs, Xt : array-like of shape (n_rows, n_features)
        The two samples.
    ys, yt : array-like of shape (n_rows,), default=None
        Their labels: both, or neither.
    second_order : float, default=1.0
        Weight of the covariances (gamma of the reference, which the TFDF paper sets to 1).
    balance : float, default=0.5
        How much the classes count against the samples as wholes (mu); without labels it has no
        effect.
    kernel : {"linear", "poly", "rbf"} or callable, default="linear"
        Kernel between rows; linear compares the rows themselves.
    gamma, degree, coef0 : float, int, float
        Parameters of the kernel, as in :func:`sklearn.metrics.pairwise.pairwise_kernels`.

    Returns
    -------
    distance : float
        0 if all compared means and covariances are equal.

    References
    ----------
    .. [1] W. Zhang, X. Zhang, L. Lan, Z. Luo (2020). Maximum mean and covariance discrepancy for
       unsupervised domain adaptation. Neural Processing Letters 51.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.metrics import mmcd_distance
    >>> Xs = np.array([[-1.0], [1.0]])
    >>> mmcd_distance(Xs, Xs + 2)
    2.0
    >>> mmcd_distance(Xs, 2 * Xs)
    3.0
    """
    samples = Samples(Xs, Xt, ys, yt, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0)
    rows = np.arange(len(samples.X))
    whole = GroupCentring(rows[: samples.n_source], rows[samples.n_source :])
    covariances = _squared_covariance_discrepancy(samples, whole)
    if samples.n_classes:
        classes = class_groups(samples.groups)
        by_class = sum(_squared_covariance_discrepancy(samples, group) for group in classes)
        covariances = (1 - balance) * covariances + balance * by_class
    means = squared_mean_discrepancy(samples, balance)
    return float(np.sqrt(means + second_order * covariances))


def _squared_covariance_discrepancy(samples: Samples, group: GroupCentring) -> float:
    """||C_s - C_t||^2 = ||X'ZX||^2 = tr(K Z K Z) of a pair of groups, by the smaller matrix."""
    X = samples.X[group.rows]
    if samples.linear and X.shape[1] <= len(X):
        return float(np.sum((X.T @ group.apply(X)) ** 2))
    ZK = group.apply(samples.gram(group.rows))
    return float(np.sum(ZK * ZK.T))
