"""``fit`` with weights of rows, for the methods that take them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transferable.base import DomainAdapter, DomainTransformer

__all__ = ["WeightedFit", "WeightedTransformer"]


class WeightedFit(DomainAdapter):
    """Base of the estimators whose ``fit`` takes weights of rows.

    A row of weight 2 counts as two equal rows, in losses, means, covariances and norms, and a row
    of weight 0 is left out. A graph of neighbours and drawn landmarks know rows, not weights.
    """

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from labelled source rows and unlabelled target rows, stacked in any order.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            The rows of all domains. Frames may be of pandas, polars, pyarrow or any library that
            speaks the dataframe interchange protocol.
        y : array-like of shape (n_samples,) or None, default=None
            Labels. Those of target rows are looked at only with ``target_labels="use"``, where the
            method has that parameter. Methods that look at none (see ``takes.no_labels``) do
            without, given ``sample_domain``.
        sample_domain : array-like of shape (n_samples,), default=None
            Positive for source rows, negative for target rows; several positive numbers are
            several sources. Without it, unlabelled rows are the target: ``-1`` in integer labels
            (if at least two other labels remain), ``NaN`` in float labels, ``None`` in object
            labels. Without any unlabelled row there is no target, and the source is fitted alone,
            with a warning.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, at least 0. A weight of 2 is that of two equal rows, a row of
            weight 0 is left out. None weighs all alike.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sample_domain, sample_weight)


class WeightedTransformer(WeightedFit, DomainTransformer):
    """The same for transformers."""

    def fit_transform(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NDArray[np.floating]:
        """Fit as :meth:`fit` does and return the adapted rows in input order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of all domains.
        y : array-like of shape (n_samples,) or None, default=None
            Labels, as in :meth:`fit`.
        sample_domain : array-like of shape (n_samples,), default=None
            Positive for source rows, negative for target rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            The adapted rows, each mapped as a row of its own domain.
        """
        self.fit(X, y, sample_domain=sample_domain, sample_weight=sample_weight)
        return self._fitted_rows(X, self._validate_rows(X), y, sample_domain)
