"""What every scorer shares: scikit-learn's signature over the library's contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from transferable.model_selection._evidence import Evidence

__all__ = ["LabelFreeScorer"]


class LabelFreeScorer(ABC):
    """A callable ``scorer(estimator, X, y, sample_domain=None)``; higher is better.

    Rows and their marks are those of the library's ``fit``: unlabelled rows, or those with a
    negative ``sample_domain``, are the target, and their labels are never looked at. It can be
    given to scikit-learn as ``scoring=``, provided that target rows are unlabelled in `y`.
    """

    labels_only: ClassVar[bool] = False  # whether predicted labels are all it looks at

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, sample_domain: ArrayLike | None = None
    ) -> float:
        """Score a fitted estimator.

        Parameters
        ----------
        estimator : classifier
            Fitted.
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of both domains.
        y : array-like of shape (n_samples,)
            Labels of source rows; those of target rows are never looked at.
        sample_domain : array-like of shape (n_samples,), default=None
            Positive for source rows, negative for target rows; None reads the unlabelled marks.

        Returns
        -------
        score : float
            Higher is better.
        """
        return self.score(Evidence(estimator, X, y, sample_domain))

    @abstractmethod
    def score(self, evidence: Evidence) -> float:
        """The score of what was collected about an estimator."""
