"""Any regressor on aligned or weighted source rows, for those who know their shift."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.base import DomainAdapter, DomainRegressor
from transferable.classifiers.adapted import Adapted
from transferable.classifiers.importance_weighted import Weighting
from transferable.domains import Domains
from transferable.regressors._stack import LeftOutRidge


class AdaptedRegressor(Adapted, DomainRegressor):
    """Scikit-learn regressor trained on source rows that a transformer has adapted.

    For those who know their shift. On 28 pairs of tables no transformer made ridge, kernel ridge or
    a forest better than :class:`~transferable.AutoRegressor`, and most made them worse, because
    what aligning moves is what a regression learns from; ``docs/numbers.md`` has the measurements.

    Parameters
    ----------
    transformer : transformer or None, default=None
        One of :mod:`transferable.transformers` that needs no classes (``takes.no_labels``), a plain
        scikit-learn transformer, which is fitted on the rows of both domains, or a pipeline of
        such. None leaves rows unchanged.
    estimator : regressor or None, default=None
        Trained on the adapted source rows; None is ridge, with the penalty of the least exact
        leave-one-out error.

    Attributes
    ----------
    transformer_ : transformer
        The fitted copy of `transformer`.
    estimator_ : regressor
        The fitted copy of `estimator`.
    transduction_ : ndarray of shape (n_samples,)
        The number of every fitted row, in input order: source rows have their given one.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.regressors import AdaptedRegressor
    >>> from transferable.transformers import PerDomainScaler
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = AdaptedRegressor(PerDomainScaler()).adapt(X, X[:, 0], 2 * X + 1)
    >>> bool(np.abs(model.predict(2 * X + 1) - X[:, 0]).max() < 0.01)
    True
    """

    @staticmethod
    def _default() -> Any:
        return LeftOutRidge()

    def _fit_domains(self, domains: Domains) -> None:
        steps = getattr(self.transformer, "steps", [("", self.transformer)])
        for _, step in steps:
            if isinstance(step, DomainAdapter) and not step.takes.no_labels:
                raise ValueError(
                    f"{type(step).__name__} needs classes, and labels are numbers here; take a "
                    "transformer that needs none, such as CORAL or TCA."
                )
        self.transduction_ = domains.restore(
            np.asarray(self._fit_steps(domains, domains.numbers, labels=False), dtype=np.float64)
        )

    def _predict_numbers(self, rows: Any) -> NDArray[np.float64]:
        return np.asarray(self.estimator_.predict(self.transformer_.transform(rows)), np.float64)


class ImportanceWeightedRegressor(Weighting, DomainRegressor):
    """Any scikit-learn regressor, trained on source rows weighted towards the target.

    For those who know that only the rows' frequency differs (covariate shift). On 28 pairs of
    tables, weights left a forest about as it was; ``docs/numbers.md`` has the measurements.

    Parameters
    ----------
    estimator : regressor or None, default=None
        Takes ``sample_weight`` in ``fit``; None is ridge, with the
        penalty of the least exact leave-one-out error.
    ratio : {"kliep", "kmm", "logistic", "nearest", "rulsif", "ulsif"} or callable, \
default="logistic"
        As for :class:`~transferable.classifiers.ImportanceWeighted`.
    clip : float or None, default=10.0
        Largest weight, where the mean is 1 before clipping; None clips nothing.

    Attributes
    ----------
    estimator_ : regressor
        The fitted regressor.
    sample_weight_ : ndarray of shape (n_samples,)
        Weights of the fitted rows in input order, 1 on average over the source, 0 for the target.
    effective_sample_size_ : float
        Number of equally weighted rows with as much information. Below 5 % of all, a warning.
    transduction_ : ndarray of shape (n_samples,)
        The number of every fitted row, in input order: source rows have their given one.

    References
    ----------
    .. [1] H. Shimodaira (2000). Improving predictive inference under covariate shift by weighting
       the log-likelihood function. Journal of Statistical Planning and Inference 90.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from transferable.regressors import ImportanceWeightedRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = ImportanceWeightedRegressor(Ridge()).adapt(X, X[:, 0], X[:40] + 0.5)
    >>> round(model.score(X[:40], X[:40, 0]), 1)
    1.0
    """

    @staticmethod
    def _default() -> Any:
        return LeftOutRidge()

    def _fit_domains(self, domains: Domains) -> None:
        self._fit_weighted(domains, domains.numbers[domains.source])
        self.transduction_ = domains.restore(self._predict_numbers(domains.X[:]))

    def _predict_numbers(self, rows: Any) -> NDArray[np.float64]:
        return np.asarray(self.estimator_.predict(rows), dtype=np.float64)
