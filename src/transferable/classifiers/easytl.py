"""EasyTL: class means of the source and a linear program over the target rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog
from sklearn.metrics.pairwise import euclidean_distances

from transferable.base import DomainClassifier
from transferable.domains import Domains

Matrix = NDArray[np.float64]


class EasyTL(DomainClassifier, example=""):
    """Easy transfer learning: the nearest class mean, with no class left without a row.

    Memberships M of the target rows x_j in the classes with means h_c solve

        min sum_cj M_cj ||x_j - h_c||   subject to   sum_c M_cj = 1,  sum_j M_cj >= 1,  M >= 0.

    There is no parameter to set.

    Attributes
    ----------
    prices_ : ndarray of shape (n_classes,)
        Reductions of the distance to each class's mean that leave no class without a target row:
        zeros wherever the nearest means leave none.

    Notes
    -----
    The program's solution is the nearest mean but for one row of each class that would have none,
    so it is found as an assignment of one row to each class, in time linear in the rows. Its dual
    prices label new rows, and fitted ones, alike. With fewer target rows than classes the
    constraint cannot hold and is left out.

    This is the published classifier, EasyTL(c). The published whole brings the source's covariance
    to the target's first: ``AdaptedClassifier(CORAL(), EasyTL())``.

    References
    ----------
    .. [1] J. Wang, Y. Chen, H. Yu, M. Huang, Q. Yang (2019). Easy transfer learning by exploiting
       intra-domain structures. ICME.
    """

    family = "pseudo-labels"
    _accept_sparse = True

    def _fit_domains(self, domains: Domains) -> None:
        members = domains.one_hot()[: domains.n_source]
        self._means = (domains.Xs.T @ members).T / members.sum(axis=0)[:, None]
        self.prices_ = np.zeros(domains.n_classes)
        if domains.n_target >= domains.n_classes:
            self.prices_ = _prices(euclidean_distances(domains.Xt, self._means).astype(np.float64))

    def _scores(self, rows: Any) -> Matrix:
        return self.prices_ - euclidean_distances(rows, self._means).astype(np.float64)


def _prices(distances: Matrix) -> Matrix:
    """Return the least prices, off the distances, for which each class is nearest to a row."""
    n_classes = distances.shape[1]
    codes = distances.argmin(axis=1)
    if len(np.unique(codes)) == n_classes:
        return np.zeros(n_classes)
    # One row of each class, of least loss against the nearest means; the others keep those.
    regret = distances - distances.min(axis=1, keepdims=True)
    rows, classes = linear_sum_assignment(regret)
    codes[rows] = classes
    # Row j stays with its class c if p_d - p_c <= distance to d - distance to c, for all d.
    slack = np.array(
        [
            (distances[codes == c] - distances[codes == c, c][:, None]).min(axis=0)
            for c in range(n_classes)
        ]
    )
    c, d = np.nonzero(~np.eye(n_classes, dtype=bool))
    apart = np.zeros((len(c), n_classes + 1))
    apart[np.arange(len(c)), d], apart[np.arange(len(c)), c] = 1.0, -1.0
    # A little room keeps rows on the border on the side of the class that needs them.
    apart[:, -1] = 1.0
    room = 1e-6 * float(distances.mean())
    solved = linprog(
        np.r_[np.ones(n_classes), -1e3 * n_classes],
        A_ub=apart,
        b_ub=slack[c, d],
        bounds=[(0, None)] * n_classes + [(None, room)],
    )
    return np.asarray(solved.x[:-1], dtype=np.float64)
