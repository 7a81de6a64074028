"""Distances between two samples, and the agreement of neighbours' labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length

from transferable._kernel.choose import a_distance
from transferable._linalg.arrays import dense
from transferable._linalg.kernels import Kernel, KernelFunction
from transferable._linalg.search import cosine_neighbors

__all__ = ["mmcd_distance", "mmd_distance", "neighbor_consistency", "proxy_a_distance"]

Matrix = NDArray[np.float64]


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
    """Return the distance between the means of two samples in the space of a kernel.

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
        Weight of the classes against the marginals (mu); without labels it has no effect.
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
    more = {"balance": balance, "kernel": kernel, "gamma": gamma, "degree": degree, "coef0": coef0}
    return mmcd_distance(Xs, Xt, ys, yt, second_order=0.0, **more)  # type: ignore[arg-type]


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
    """Return the distance of means and covariances of two samples in the space of a kernel.

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
        Weight of the classes against the marginals (mu); without labels it has no effect.
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
    Xs, Xt = check_array(Xs, dtype=np.float64), check_array(Xt, dtype=np.float64)
    if Xs.shape[1] != Xt.shape[1]:
        raise ValueError(
            f"Xt has {Xt.shape[1]} features, but Xs has {Xs.shape[1]}; both samples must be "
            "described by the same features."
        )
    if (ys is None) != (yt is None):
        raise ValueError("Give the labels of both samples, ys and yt, or of neither.")
    pairs = [(1.0, Xs, Xt)]
    if ys is not None and yt is not None:
        check_consistent_length(Xs, ys)
        check_consistent_length(Xt, yt)
        ys, yt = column_or_1d(ys), column_or_1d(yt)
        shared = np.intersect1d(ys, yt)
        pairs = [(1.0 - balance, Xs, Xt), *((balance, Xs[ys == c], Xt[yt == c]) for c in shared)]
    function = KernelFunction(kernel, gamma, degree, coef0)
    squares = [w * _squared(S, T, function, second_order) for w, S, T in pairs if w]
    return float(np.sqrt(max(0.0, sum(squares))))


def _squared(Xs: Matrix, Xt: Matrix, kernel: KernelFunction, second_order: float) -> float:
    """Return ||m_s - m_t||^2 + second_order ||C_s - C_t||^2, the latter by the smaller matrix."""
    X, n, m = np.concatenate([Xs, Xt]), len(Xs), len(Xt)
    signs = np.repeat([1.0 / n, -1.0 / m], [n, m])
    linear = kernel.kernel == "linear"
    small = linear and X.shape[1] <= len(X)
    F = X if small or (linear and not second_order) else kernel(X, X)
    squared = float(np.sum((signs @ X) ** 2)) if linear else float(signs @ (F @ signs))
    if second_order:
        centred = np.concatenate([F[:n] - F[:n].mean(axis=0), F[n:] - F[n:].mean(axis=0)])
        ZF = signs[:, None] * centred
        # With K = X X', ||X'ZX||^2 = tr(K Z K Z).
        squared += second_order * float(np.sum((X.T @ ZF) ** 2) if small else np.sum(ZF * ZF.T))
    return squared


def proxy_a_distance(Xs: Any, Xt: Any, *, shrinkage: float = 0.1) -> float:
    """Return 2 (1 - 2 error) of two samples, by the held-out error of a linear discriminant.

    Rows at even positions train the discriminant that labels those at odd positions, and the other
    way round. Both samples have equal weight in training and in the error, so that a small sample
    beside a large one does not seem distant by its size alone.

    Parameters
    ----------
    Xs, Xt : array-like or sparse matrix of shape (n_rows, n_features)
        The two samples, at least two rows each.
    shrinkage : float, default=0.1
        Share of the average variance added to each direction before the covariance is inverted.

    Returns
    -------
    distance : float
        0 if the samples are indistinguishable, 2 if they are separated without error.

    References
    ----------
    S. Ben-David, J. Blitzer, K. Crammer and F. Pereira, "Analysis of representations for domain
    adaptation", NeurIPS 2006.

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
    return a_distance((Xs[::2], Xs[1::2]), (Xt[::2], Xt[1::2]), shrinkage)


def neighbor_consistency(X: Any, codes: NDArray[np.intp], n_neighbors: int = 5) -> float:
    """Return the share of neighbours by cosine with the same label, corrected for chance.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Rows.
    codes : ndarray of shape (n,)
        Their class codes, counted from 0.
    n_neighbors : int, default=5
        Neighbours of each row, fewer if there are fewer rows.

    Returns
    -------
    consistency : float
        (a - e) / (1 - e) with a the share of edges of the neighbour graph whose ends have the same
        label, and e the share that labels of the same frequencies would reach anywhere: 1 if every
        neighbourhood agrees, 0 for constant or random labels.

    References
    ----------
    The correction for chance is that of J. Cohen, "A coefficient of agreement for nominal scales",
    Educational and Psychological Measurement, 1960.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.metrics import neighbor_consistency
    >>> X = np.array([[1, 0], [2, 0.1], [0, 1], [0.1, 2]])
    >>> neighbor_consistency(X, np.array([0, 0, 1, 1]), n_neighbors=1)
    1.0
    """
    if len(codes) < 2:
        return 0.0
    return consistency_along(neighbor_edges(X, n_neighbors), codes)


def consistency_along(
    edges: tuple[NDArray[np.intp], NDArray[np.intp]], codes: NDArray[np.intp]
) -> float:
    """Return the neighbour consistency along known edges."""
    i, j = edges
    expected = float(np.sum((np.bincount(codes) / len(codes)) ** 2))
    if expected == 1.0 or len(i) == 0:
        return 0.0
    return (float(np.mean(codes[i] == codes[j])) - expected) / (1.0 - expected)


def neighbor_edges(X: Any, n_neighbors: int = 5) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the ends of the edges of the neighbour graph of two rows or more."""
    graph = cosine_neighbors(X, min(n_neighbors, X.shape[0] - 1)).tocoo()
    return graph.row, graph.col
