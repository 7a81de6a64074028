"""The space in which a fitted estimator compares both domains, and the record of its fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline

from transferable.base import DomainAdapter, DomainTransformer
from transferable.linalg.rows import dense

__all__ = ["TERM_TITLES", "history_of", "shared_space"]

# What the entries of ``history_`` mean to a reader who has not seen the code.
TERM_TITLES = {
    "objective": "objective (sum of terms)",
    "source": "squared error on the source",
    "ridge": "norm of the classifier",
    "manifold": "roughness along the graph",
    "variance": "variance of the scores",
    "means": "discrepancy of means",
    "covariances": "discrepancy of covariances",
    "confusion": "class confusion",
    "balance": "balance",
    "changed": "share of labels changed",
}


def shared_space(estimator: Any, X: Any, sample_domain: ArrayLike) -> NDArray[np.float64]:
    """Rows as the fitted estimator sees them when it decides.

    That is the embedding of a transformer, also of one inside an
    :class:`~transferable.classifiers.AdaptedClassifier`, and the scores of a classifier that
    learns no embedding.

    Parameters
    ----------
    estimator : estimator
        Fitted: one of this library, or a pipeline of transformers.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows of both domains.
    sample_domain : array-like of shape (n_samples,)
        Positive for source rows, negative for target rows.

    Returns
    -------
    table : ndarray of shape (n_samples, n_columns)
        One row for each row of `X`.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable import TFDFV
    >>> from transferable.diagnostics import shared_space
    >>> rng = np.random.default_rng(0)
    >>> ys = np.arange(30) % 3
    >>> Xs = rng.normal(size=(30, 5)) + 3 * np.eye(3, 5)[ys]
    >>> model = TFDFV(manifold_dim=None).adapt(Xs, ys, Xs + 0.5)
    >>> shared_space(model, Xs, np.ones(30)).shape
    (30, 3)
    """
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps:
            X = X if step in (None, "passthrough") else shared_space(step, X, sample_domain)
        return np.asarray(dense(X), dtype=np.float64)
    if hasattr(estimator, "transformer_") and hasattr(estimator, "estimator_"):
        adapted = shared_space(estimator.transformer_, X, sample_domain)
        final = estimator.estimator_
        return shared_space(final, adapted, sample_domain) if _adapts(final) else adapted
    if isinstance(estimator, DomainTransformer):
        table = estimator.transform(X, sample_domain=sample_domain)
    else:
        table = _outputs(estimator, X)
    rows = np.asarray(dense(table), dtype=np.float64)
    return rows.reshape(len(rows), -1)


def _adapts(estimator: Any) -> bool:
    return isinstance(estimator, DomainAdapter)


def _outputs(estimator: Any, X: Any) -> Any:
    for name in ("transform", "decision_function", "predict_proba"):
        if hasattr(estimator, name):
            return getattr(estimator, name)(X)
    raise ValueError(
        f"{type(estimator).__name__} has no embedding, scores or probabilities to show; wrap a "
        "classifier that has one of them."
    )


def history_of(estimator: Any) -> list[dict[str, float]] | None:
    """The ``history_`` of a fitted estimator or of the one it wraps; None if none was recorded.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator.

    Returns
    -------
    history : list of dict or None
        For each round the objective, its terms and whatever else the method noted.

    Examples
    --------
    >>> from transferable.diagnostics import history_of
    >>> from transferable.classifiers import CAPLS
    >>> history_of(CAPLS()) is None
    True
    """
    while estimator is not None:
        if getattr(estimator, "history_", None):
            return list(estimator.history_)
        estimator = getattr(estimator, "estimator_", None)
    return None
