"""Optimal transport between Gaussian domains: one linear map of the source."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable._linalg.memory import refuse_if_too_wide
from transferable._linalg.transport import load_pot
from transferable._sklearn import POSITIVE
from transferable.base import DomainTransformer, Takes
from transferable.domains import Domains

_ROUNDING = 1e-6  # share of the usual variance that covariances need to have roots
_TABLES = 13  # of columns by columns, at most at once


class LinearOTMapping(DomainTransformer):
    """Optimal transport between the Gaussians of both domains: a linear map of the source.

    With means m and covariances C, source rows become m_t + (x - m_s) A where

        A = C_s^-1/2 (C_s^1/2 C_t C_s^1/2)^1/2 C_s^-1/2,

    the map of least squared movement to the target's mean and covariance. Target rows stay.

    Parameters
    ----------
    regularization : float, default=0.1
        Variance added to every direction of both domains, relative to the mean variance of a
        feature. Directions in which the source hardly varies are stretched less with more of it.

    Attributes
    ----------
    linear_ : ndarray of shape (n_features, n_features)
        A.

    Notes
    -----
    Needs POT, the extra ``ot``, and memory for 13 tables of columns by columns: what would take
    more than half of the free memory is refused with the width that fits. :class:`CORAL` gives the
    source the same covariance by another map, which turns rows as well. Published without a
    data-dependent default for the regularization; POT's is the absolute 1e-6, with which rows of
    fewer samples than features are stretched without bound.

    References
    ----------
    .. [1] M. Knott, C. S. Smith (1984). On the optimal mapping of distributions. Journal of
       Optimization Theory and Applications 43.
    .. [2] R. Flamary, K. Lounici, A. Ferrari (2019). Concentration bounds for linear Monge mapping
       estimation and optimal transport domain adaptation. arXiv:1905.10155.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.datasets import make_shifted
    >>> from transferable.transformers import LinearOTMapping
    >>> task = make_shifted()
    >>> model = LinearOTMapping().adapt(task.Xs, task.ys, task.Xt)
    >>> moved = model.transform(task.Xs, np.ones(200))
    >>> bool(np.allclose(moved.mean(axis=0), task.Xt.mean(axis=0)))
    True
    """

    family = "transport"
    takes = Takes(no_labels=True)
    _parameter_constraints = {"regularization": [POSITIVE]}  # noqa: RUF012

    regularization: float = 0.1

    def _fit_domains(self, domains: Domains) -> None:
        d = domains.X.shape[1]
        refuse_if_too_wide(
            type(self).__name__, d, _TABLES, "CORAL takes rows of any width, or reduce them first."
        )
        self._n_features_out = d
        self._means = np.zeros((2, d))  # of source and target
        self.linear_ = np.eye(d)
        if domains.n_target == 0:
            return
        ot = load_pot(type(self).__name__)
        sides = [np.asarray(side, dtype=np.float64) for side in (domains.Xs, domains.Xt)]
        self._means = np.stack([side.mean(axis=0) for side in sides])
        covariances = [np.cov(side.T, bias=True).reshape(d, d) for side in sides]
        usual = float(np.mean([np.trace(C) for C in covariances])) / d or 1.0
        floor = max(self.regularization, _ROUNDING) * usual * np.eye(d)
        A, _ = ot.gaussian.bures_wasserstein_mapping(
            *self._means, *(C + floor for C in covariances)
        )
        self.linear_ = np.asarray(A)

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        Z = np.array(rows, dtype=np.float64)
        Z[ids > 0] = (Z[ids > 0] - self._means[0]) @ self.linear_ + self._means[1]
        return Z
