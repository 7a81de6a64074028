"""Importance weighting: a learner trained on source rows as frequent as in the target."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from transferable._sklearn import Interval, StrOptions
from transferable.base import DomainAdapter, DomainClassifier, class_scores
from transferable.domains import Domains
from transferable.ratios import RATIOS, effective_sample_size

_FEW = 0.05  # share of the source rows below which the effective sample size is warned about
_LEAST = 1e-6  # weight of a row of a class that the target seems to lack, as a share of the mean


class Weighting(DomainAdapter):
    """Base of what trains any learner on source rows weighted towards the target."""

    family = "weighting"
    estimator: Any = field(default=None, kw_only=False)
    ratio: str | Callable[[Any, Any], NDArray[np.floating]] = field(
        default="logistic", kw_only=False
    )
    clip: float | None = 10.0

    _published = {"clip": None}  # noqa: RUF012
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "ratio": [StrOptions(set(RATIOS)), callable],
        "clip": [Interval(Real, 1, None, closed="left"), None],
    }

    @property
    def _accept_sparse(self) -> bool:  # type: ignore[override]
        return bool(get_tags(self._learner()).input_tags.sparse)

    @staticmethod
    def _default() -> Any:
        """Return the learner that is taken without one."""
        return LinearSVC(dual=False, random_state=0)

    def _learner(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    def _fit_weighted(self, domains: Domains, y: NDArray[Any]) -> None:
        """Train the learner on source rows with these labels."""
        learner = clone(self._learner())
        if not has_fit_parameter(learner, "sample_weight"):
            raise ValueError(
                f"{type(learner).__name__} takes no sample_weight in fit, so it cannot be weighted;"
                " choose another estimator."
            )
        weights = self._weights(domains)
        weights = weights / weights.mean()
        self.effective_sample_size_ = effective_sample_size(weights)
        if self.effective_sample_size_ < _FEW * domains.n_source:
            warnings.warn(
                f"The {domains.n_source} weighted source rows are worth as much as "
                f"{self.effective_sample_size_:.1f} equal ones: a few rows carry the weight. The "
                "source hardly covers the target; lower clip, or align the domains instead.",
                UserWarning,
                stacklevel=3,
            )
        self.estimator_ = learner.fit(domains.Xs, y, sample_weight=weights)
        self.sample_weight_ = domains.restore(np.pad(weights, (0, domains.n_target)))

    def _weights(self, domains: Domains) -> NDArray[np.float64]:
        """Return clipped ratios."""
        if domains.n_target == 0:
            return np.ones(domains.n_source)
        ratio = RATIOS[self.ratio] if isinstance(self.ratio, str) else self.ratio
        weights = np.asarray(ratio(domains.Xs, domains.Xt))
        if weights.shape != (domains.n_source,) or weights.dtype.kind not in "fiub":
            raise ValueError(
                f"The ratio gave weights of shape {weights.shape} and dtype {weights.dtype}; it "
                f"must give a number for each of the {domains.n_source} source rows."
            )
        weights = weights.astype(np.float64)
        effective_sample_size(weights)  # refuses what cannot be weights
        return np.minimum(weights / weights.mean(), np.inf if self.clip is None else self.clip)


class ImportanceWeighted(Weighting, DomainClassifier, example='ratio="nearest"'):
    """Any scikit-learn classifier, trained on source rows weighted towards the target.

    Source rows are weighted by the ratio of the target's density to the source's. Where labels
    depend on rows alike in both domains (covariate shift) and the source covers the target, the
    weighted loss on the source is that of the target.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Takes ``sample_weight`` in ``fit``; None is a linear SVM.
    ratio : {"kliep", "kmm", "logistic", "nearest", "rulsif", "ulsif"} or callable, \
default="logistic"
        Estimator of the weights: a function of :mod:`transferable.ratios`, or a callable that takes
        source and target rows and returns a weight for each source row.
    clip : float or None, default=10.0
        Largest weight, where the mean is 1 before clipping; None clips nothing.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier; its classes are positions in `classes_`.
    sample_weight_ : ndarray of shape (n_samples,)
        Weights of the fitted rows in input order, 1 on average over the source, 0 for the target.
        Rows of a class without any weight get a millionth, so that it stays known.
    effective_sample_size_ : float
        Number of equally weighted rows with as much information. Below 5 % of all, a warning.

    Notes
    -----
    Published without clipping. Where domains lie apart a few rows then carry all weight: the
    estimator is trained on these alone.

    References
    ----------
    .. [1] H. Shimodaira (2000). Improving predictive inference under covariate shift by weighting
       the log-likelihood function. Journal of Statistical Planning and Inference 90.
    .. [2] M. Sugiyama, M. Krauledat, K.-R. Mueller (2007). Covariate shift adaptation by importance
       weighted cross validation. JMLR 8.
    """

    def _fit_domains(self, domains: Domains) -> None:
        self._fit_weighted(domains, domains.y)

    def _weights(self, domains: Domains) -> NDArray[np.float64]:
        weights = super()._weights(domains)
        # Learners drop rows of weight 0, and with the last row of a class its scores.
        lacking = np.bincount(domains.y, weights, minlength=domains.n_classes) < _LEAST
        weights[lacking[domains.y]] = _LEAST
        return weights

    def _scores(self, rows: Any) -> NDArray[np.float64]:
        return class_scores(self.estimator_, rows)
