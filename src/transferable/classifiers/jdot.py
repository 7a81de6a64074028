"""Joint distribution optimal transport: a classifier learnt on labels carried to the target."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from transferable._linalg.memory import refuse_if_too_large
from transferable._linalg.simplex import exact_coupling, load_pot, mean_scaled_cost
from transferable._sklearn import WEIGHT
from transferable.base import DomainClassifier
from transferable.domains import Domains
from transferable.events import iterate, rounds

_PAIR_BYTES = 64  # the costs of rows and labels, the plan and what POT works on


class JDOTClassifier(DomainClassifier, example=""):
    """Joint distribution optimal transport: plan and classifier in turn.

    Rows and labels are carried to target rows and predictions f(x_j) by the plan G that minimises

        sum_ij G_ij (distance_weight ||x_i - x_j||^2 / mean + ||y_i - f(x_j)||^2),

    y one-hot; then f is fitted to the labels that arrive, n_t sum_i G_ij y_i at row j, and so on.

    Parameters
    ----------
    estimator : regressor or None, default=None
        f, fitted to one column for each class; None is kernel ridge regression with an RBF kernel
        of coefficient 1 / (n_features * variance) and penalty 0.1, of centred rows.
    distance_weight : float, default=1.0
        alpha: weight of rows against labels.
    max_iter : int, default=10
        Most rounds of planning and fitting; fewer if the labels that arrive stay the same.

    Attributes
    ----------
    estimator_ : regressor
        f as of the last round.
    n_iter_ : int
        Rounds run; 1 without a target, where f is that of the source.

    Notes
    -----
    Needs POT, the extra ``ot``. Published: alpha = 1 over the largest distance, and a hinge loss
    one against the rest, or squares as here; distances over their mean are ours, which one row far
    away does not change much. f starts from the source.

    References
    ----------
    .. [1] N. Courty, R. Flamary, A. Habrard, A. Rakotomamonjy (2017). Joint distribution optimal
       transportation for domain adaptation. NIPS.
    """

    family = "transport"
    estimator: RegressorMixin | None = field(default=None, kw_only=False)
    distance_weight: float = 1.0
    max_iter: int = 10
    max_memory: int | str | None = None

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "distance_weight": [WEIGHT],
    }

    def _fit_domains(self, domains: Domains) -> None:
        X = np.asarray(domains.X, dtype=np.float64)
        Xs, Xt = np.split(X, [domains.n_source])
        Y = domains.one_hot()[: domains.n_source]
        regressor: Any = self.estimator
        if regressor is None:
            gamma = 1.0 / (X.shape[1] * (float(X.var()) or 1.0))
            # Distances of rows far from the origin would lose their digits, and labels depend on
            # which rows are predicted together.
            centring = StandardScaler(with_std=False)
            regressor = make_pipeline(centring, KernelRidge(alpha=0.1, kernel="rbf", gamma=gamma))
        self.estimator_ = clone(regressor).fit(Xs, Y)
        self.n_iter_ = 1
        if domains.n_target:
            needed = _PAIR_BYTES * len(Xs) * len(Xt) + 24 * max(len(Xs), len(Xt)) ** 2
            refuse_if_too_large(type(self).__name__, needed, len(Xs), len(Xt), self.max_memory)
            ot = load_pot(type(self).__name__)
            apart = self.distance_weight * mean_scaled_cost(Xs, Xt)[0]
        last = np.zeros((len(Xt), Y.shape[1]))
        for t in rounds(self.max_iter if domains.n_target else 0):
            scores = self.estimator_.predict(Xt)
            iterate(domains.with_target(scores.argmax(axis=1)), np.vstack([Y, scores]))
            # ||y - f||^2 without a third axis: y is one-hot.
            loss = np.sum(scores**2, axis=1) + 1.0 - 2.0 * Y @ scores.T
            carried = len(Xt) * exact_coupling(ot, apart + loss).T @ Y
            self.n_iter_ = t + 1
            if np.array_equal(carried, last):
                break
            self.estimator_, last = clone(regressor).fit(Xt, carried), carried

    def _scores(self, rows: Any) -> NDArray[np.float64]:
        return np.asarray(self.estimator_.predict(np.asarray(rows, dtype=np.float64)))
