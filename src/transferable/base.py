"""The contract of classifiers and of transformers: what a fitted estimator answers.

What both do with their input is in :mod:`transferable.adapter`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.metrics import accuracy_score

from transferable.adapter import DomainAdapter
from transferable.exceptions import warn_of_marks
from transferable.linalg.arrays import like, on_host
from transferable.marks import domain_ids, known_labels, marked_ids

__all__ = ["DomainAdapter", "DomainClassifier", "DomainTransformer"]


class DomainClassifier(ClassifierMixin, DomainAdapter):
    """Base of the classifiers: labels for the target rows and for new rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the source.
    transduction_ : ndarray of shape (n_samples,)
        The predicted label of every fitted row, in input order.
    """

    classes_: NDArray[Any]
    transduction_: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """Label rows, those that were fitted or new ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to label.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The label of each row.
        """
        rows = self._validate_rows(X)
        return like(X, self.classes_[self._predict_codes(rows)])

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on the rows that have a label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their labels. Rows without one, marked as in :meth:`fit`, are left out: ``-1`` among
            integers unless it is a class, ``NaN`` or ``None``.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts.

        Returns
        -------
        score : float
            Share of the labelled rows that are predicted right.
        """
        rows, labels = known_labels(on_host(y), self.classes_)
        weights = None if sample_weight is None else np.asarray(on_host(sample_weight))[rows]
        return float(accuracy_score(labels, on_host(self.predict(X))[rows], sample_weight=weights))

    def _complete(
        self, rows: Any, ids: NDArray[Any], y: ArrayLike | None, kept: NDArray[np.intp]
    ) -> None:
        left_out = np.setdiff1d(np.arange(len(ids)), kept)
        labels = np.empty(len(ids), dtype=self.transduction_.dtype)
        labels[kept] = self.transduction_
        labels[left_out] = self.classes_[self._predict_codes(rows[left_out])]
        self.transduction_ = labels

    @abstractmethod
    def _predict_codes(self, rows: Any) -> NDArray[np.intp]:
        """Class codes of validated rows."""


class DomainTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DomainAdapter):
    """Base of the transformers: a feature space that both domains share.

    Some methods map every row alike, others map each domain in its own way. The latter take rows
    for target rows, which is what new rows are, unless ``sample_domain`` marks them as source.
    """

    _n_features_out: int
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"sample_domain": True}

    def transform(self, X: Any, sample_domain: ArrayLike | None = None) -> NDArray[np.floating]:
        """Bring rows, those that were fitted or new ones, into the shared feature space.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of either domain.
        sample_domain : array-like of shape (n_samples,), default=None
            Positive for source rows, negative for target rows, as in ``fit``; None takes all for
            target rows. It matters to methods with a map for each domain only.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            The adapted rows.
        """
        rows = self._validate_rows(X)
        n = rows.shape[0]
        unmarked = sample_domain is None
        ids = np.zeros(n) if unmarked else marked_ids(on_host(sample_domain), n)
        return like(X, self._transform_rows(rows, self._told(ids)))

    def fit_transform(
        self, X: Any, y: ArrayLike | None = None, sample_domain: ArrayLike | None = None
    ) -> NDArray[np.floating]:
        """Fit as :meth:`fit` does and return the adapted rows in input order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of both domains.
        y : array-like of shape (n_samples,) or None, default=None
            Labels; those of target rows are never looked at. None as in :meth:`fit`.
        sample_domain : array-like of shape (n_samples,), default=None
            Positive for source rows, negative for target rows. Without it, a warning tells that
            a step that follows in a Pipeline would take -1 in `y` for a class.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            The adapted rows, each mapped as a row of its own domain.
        """
        rows = self.fit(X, y, sample_domain=sample_domain)._validate_rows(X)
        return self._fitted_rows(X, rows, y, sample_domain)

    def _fitted_rows(
        self, X: Any, rows: Any, y: ArrayLike | None, sample_domain: ArrayLike | None
    ) -> NDArray[np.floating]:
        """The adapted form of rows that were fitted."""
        ids = domain_ids(on_host(y), on_host(sample_domain), rows.shape[0])
        if sample_domain is None and (ids < 0).any() and np.asarray(on_host(y)).dtype.kind in "iu":
            warn_of_marks(type(self).__name__, int(np.sum(ids < 0)))
        return like(X, self._transform_rows(rows, self._told(ids)))

    def _told(self, ids: NDArray[Any]) -> NDArray[Any]:
        """What a map is told of rows with these ids, 0 for unmarked: which are the source's."""
        return ids > 0

    @abstractmethod
    def _transform_rows(self, rows: Any, source: NDArray[np.bool_]) -> NDArray[np.floating]:
        """Adapted form of validated rows, of which `source` marks those of the source."""
