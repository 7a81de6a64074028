"""What every scorer shares: a signature, and what it may look at, never a target label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import MetadataRequest

from transferable._sklearn import safe_indexing
from transferable.classifiers._scores import class_scores
from transferable.domains import Domains, stack_domains
from transferable.routing import call_with_marks, takes_marks
from transferable.workspace import Same, workspace

__all__ = ["Evidence", "LabelFreeScorer", "class_probabilities", "fit_domains", "held_out_rows"]

_HELD_OUT = 5  # one source row in so many is held out


def read_domains(X: Any, y: ArrayLike, sample_domain: ArrayLike | None) -> Domains:
    """The domains of stacked rows; an error if there is no target row to judge by."""
    rows = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    domains = Domains.from_stacked(rows, y, sample_domain, workspace=workspace())
    if domains.n_target == 0:
        raise ValueError(
            f"None of the {len(domains.order)} rows is a target row, and without target labels it "
            "is by target rows that a model is judged; mark them with -1 in y or a negative "
            "sample_domain."
        )
    return domains


def fit_domains(estimator: Any, Xs: Any, ys: NDArray[Any], Xt: Any) -> Any:
    """A fitted copy: adapted to the target if the estimator can, else trained on the source."""
    model = clone(estimator)
    if hasattr(model, "adapt"):
        return model.adapt(Xs, ys, Xt)
    if takes_marks(model):
        return call_with_marks(model.fit, *stack_domains(Xs, ys, Xt))
    return model.fit(Xs, ys)


class LabelFreeScorer(ABC):
    """A callable ``scorer(estimator, X, y, sample_domain=None)``; higher is better.

    Rows and their marks are those of the library's ``fit``: unlabelled rows, or those with a
    negative ``sample_domain``, are the target, and their labels are never looked at. It can be
    given to scikit-learn as ``scoring=``, which hands it ``sample_domain`` if metadata is routed;
    else target rows have to be unlabelled in `y`.
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

    def get_metadata_routing(self) -> MetadataRequest:
        """What scikit-learn is asked to hand over besides rows and labels.

        Returns
        -------
        routing : MetadataRequest
            ``sample_domain``.
        """
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_domain", alias=True)
        return request

    @abstractmethod
    def score(self, evidence: Evidence) -> float:
        """The score of what was collected about an estimator."""


class Evidence:
    """A fitted estimator beside the rows it is judged by; what is costly is computed once.

    Rows are in the order of their content, so that no score depends on how they were stacked.
    `just_fitted` tells that they are the rows the estimator was fitted with, in the same order.

    Attributes
    ----------
    Xs, Xt : tables
        Rows of the source and of the target, in the container they came in.
    ys : ndarray of shape (n_source,)
        Labels of the source rows.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        *,
        just_fitted: bool = False,
    ) -> None:
        self.estimator = estimator
        self.just_fitted = just_fitted
        self.domains, self.Xs, self.Xt = workspace().get(
            "split rows", Same(X, y, sample_domain), _split, X, y, sample_domain
        )
        self.ys = self.domains.classes[self.domains.y]

    @cached_property
    def labels(self) -> NDArray[Any]:
        """Predicted labels of the target rows."""
        if self.just_fitted and hasattr(self.estimator, "transduction_"):
            return self.estimator.transduction_[self.domains.order[self.domains.n_source :]]
        return np.asarray(self.estimator.predict(self.Xt))

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """Predicted class codes of the target rows, in 0 .. n_predicted - 1."""
        return np.unique(self.labels, return_inverse=True)[1]

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Predicted distributions over the classes, of the target rows."""
        return class_probabilities(self.estimator, self.Xt)

    @cached_property
    def held_out(self) -> tuple[Any, NDArray[np.intp]]:
        """A copy fitted without a fifth of the source rows of each class, and those rows."""
        rows = held_out_rows(self.domains.y)
        kept = np.setdiff1d(np.arange(self.domains.n_source), rows)
        model = fit_domains(self.estimator, safe_indexing(self.Xs, kept), self.ys[kept], self.Xt)
        return model, rows


def _split(X: Any, y: ArrayLike, sample_domain: ArrayLike | None) -> tuple[Domains, Any, Any]:
    """The domains, and the rows of each in the container they came in."""
    domains = read_domains(X, y, sample_domain)
    source, target = np.split(domains.order, [domains.n_source])
    return domains, safe_indexing(X, source), safe_indexing(X, target)


def held_out_rows(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first fifth of each class; a class of fewer than two keeps its only row."""
    groups = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    firsts = [rows[: (len(rows) + _HELD_OUT - 2) // _HELD_OUT] for rows in groups]
    return np.sort(np.concatenate(firsts))


def class_probabilities(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Distributions over the classes by whatever the estimator offers."""
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X), dtype=np.float64)
    if hasattr(estimator, "decision_function"):
        return softmax(class_scores(estimator, X), axis=1)
    labels, classes = np.asarray(estimator.predict(X)), np.asarray(estimator.classes_)
    return (labels[:, None] == classes[None, :]).astype(np.float64)
