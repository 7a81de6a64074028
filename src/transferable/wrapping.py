"""Estimators around other estimators: what they forward, and how they are opened.

A wrapper makes rows of its input for the estimator that it wraps: it encodes a table, embeds
pictures, or maps rows into a feature space. :func:`unwrap` returns what is inside.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from transferable.base import DomainAdapter
from transferable.labelling import write_page
from transferable.trust import Audit, RowsToLabel, Trust, label_table

__all__ = ["FileClassifier", "Wrapper", "delegated", "unwrap"]

_OF_NUMBERS = "spread", "low", "high"
LABEL_COLUMNS = "prediction", "confidence", "runner_up", "source_only", "unfamiliar", *_OF_NUMBERS
_BLOCK = 4096  # rows that are labelled at once


def delegated(method: Callable[..., Any]) -> Any:
    """Hide a method of a wrapper unless the wrapped estimator has one of the same name.

    A page to audit needs the rows that an audit chooses.
    """
    needed = method.__name__.replace("_page", "_rows")
    return available_if(lambda self: hasattr(self._wrapped, needed))(method)


class Wrapper:
    """Mixin of classifiers that make rows of their input for another one."""

    @property
    def _wrapped(self) -> Any:
        """The estimator inside: fitted, or else as it was given."""
        raise NotImplementedError

    def _rows(self, X: Any) -> Any:
        """Return new input as rows for the fitted estimator inside."""
        raise NotImplementedError

    @delegated
    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Return the probability of each class, if the estimator gives any.

        Parameters
        ----------
        X : array-like, frame or pictures
            Rows to label, as in ``fit``.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column for each label of `classes_`; NaN for pictures that cannot be read.
        """
        return self._answers("predict_proba", X)

    @delegated
    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Return scores of the classes, if the estimator gives any.

        Parameters
        ----------
        X : array-like, frame or pictures
            Rows to score, as in ``fit``.

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            As the estimator's own ``decision_function``; NaN for pictures that cannot be read.
        """
        return self._answers("decision_function", X)

    def _answers(self, method: str, X: Any) -> NDArray[Any]:
        """Return the result of a method of the estimator inside for new input."""
        rows = self._rows(X)
        with np.errstate(under="ignore"):
            return np.asarray(getattr(self._wrapped, method)(rows))


class FileClassifier(Wrapper, ClassifierMixin, BaseEstimator):
    """Base of the classifiers of tables and of pictures, whose labels are a table."""

    estimator_: Any
    _labels: dict[str, Any]

    @property
    def trust_(self) -> Trust | None:
        """Whether the labels of the target can be used, if the estimator judges that."""
        return self.estimator_.trust_

    @property
    def labels_(self) -> pd.DataFrame:
        """The labels of the target rows of the fit, as :meth:`label` returns them."""
        check_is_fitted(self)
        return pd.DataFrame(
            {
                name: pd.Series(column, dtype=object) if isinstance(column, list) else column
                for name, column in self._labels.items()
            }
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels of rows of the target domain.

        Parameters
        ----------
        X : frame, array-like or pictures
            Rows to label, as in ``adapt``; columns that were not fitted are ignored.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            The label of each; None for pictures that cannot be read.
        """
        return self._answers("predict", X)

    def label(self, X: Any) -> pd.DataFrame:
        """Label rows of the target domain.

        Parameters
        ----------
        X : frame, array-like or pictures
            Rows to label, as in ``adapt``.

        Returns
        -------
        labels : DataFrame
            One row for each: its names (columns of ids, or the file), ``prediction``, its
            ``confidence`` and the ``runner_up`` by the probabilities, if the estimator gives any;
            of an :class:`~transferable.AutoAdapter` also ``source_only``, the label by models of
            the source alone, and ``unfamiliar``, whether the row is unlike any source row; of
            pictures ``problem``, the reason why a file could not be read.
        """
        raise NotImplementedError

    @delegated
    def audit_rows(
        self, n_rows: int | None = None, *, random_state: int | None = None
    ) -> RowsToLabel:
        """Choose target rows for a person to label, as :meth:`AutoAdapter.audit_rows` does.

        Parameters
        ----------
        n_rows : int or None, default=None
            How many; None leaves that to the estimator.
        random_state : int, optional
            Seed of the draw of rows with classes.

        Returns
        -------
        chosen : RowsToLabel
            Numbers of target rows, and the number of rows that each stands for.
        """
        check_is_fitted(self)
        given = {"n_rows": n_rows, "random_state": random_state}
        return self.estimator_.audit_rows(**{k: v for k, v in given.items() if v is not None})

    @delegated
    def audit_page(self, path: str | os.PathLike[str], X: Any, n_rows: int = 30) -> RowsToLabel:
        """Write a page on which a person labels target rows by clicking.

        The page is one HTML file for any browser, without a server or a network. It returns the
        labels as a CSV file with the columns ``row``, numbered from 1, and ``label``, which is "?"
        for classes that the source lacks.

        Parameters
        ----------
        path : path
            The HTML file.
        X : frame, array-like or pictures
            The target of the fit.
        n_rows : int, default=30
            How many rows.

        Returns
        -------
        chosen : RowsToLabel
            The rows on the page, as :meth:`audit_rows` chooses them.
        """
        if not hasattr(self, "classes_"):
            raise ValueError("Numbers cannot be clicked; fill those of audit_rows into a table.")
        chosen = self.audit_rows(n_rows)
        shown, pictures = self._shown(X, chosen.rows)
        shown = shown.drop(columns=["row", "label"], errors="ignore")
        shown.insert(0, "row", chosen.rows + 1)
        write_page(path, shown, self.classes_.tolist(), pictures=pictures)
        return chosen

    def _shown(self, X: Any, rows: NDArray[np.intp]) -> tuple[pd.DataFrame, list[bytes] | None]:
        """Return what a person sees of some target rows: columns, and pictures if there are any."""
        raise NotImplementedError

    @delegated
    def audit(self, rows: ArrayLike, labels: ArrayLike) -> Audit:
        """Compare labels with those that a person gave, as :meth:`AutoAdapter.audit` does.

        Parameters
        ----------
        rows : array-like of shape (n_rows,)
            Numbers of target rows.
        labels : array-like of shape (n_rows,)
            Their true labels.

        Returns
        -------
        audit : Audit
            The accuracy and corrected labels; its model takes what this one does.
        """
        check_is_fitted(self)
        found = self.estimator_.audit(rows, labels)
        model = copy(self)
        model.estimator_ = found.model
        model._labels = self._labels | columns_of(found.model.labels_)
        if hasattr(self, "transduction_"):
            model.transduction_ = self.transduction_.copy()
            model.transduction_[self._targets] = model._labels["prediction"]
        return replace(found, model=model)


def labels_of(estimator: Any, rows: Any) -> pd.DataFrame:
    """Return the labels of rows by a fitted classifier, in blocks that bound memory."""
    starts: Sequence[int] = range(0, max(rows.shape[0], 1), _BLOCK)
    tables = [_labels_of(estimator, rows[start : start + _BLOCK]) for start in starts]
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)


def columns_of(table: pd.DataFrame) -> dict[str, Any]:
    """Return the columns of a table as plain arrays, or as lists where they hold text or gaps."""
    columns: dict[str, Any] = {}
    for name, column in table.items():
        if getattr(column.dtype, "kind", "O") in "biuf" and column.notna().all():
            columns[str(name)] = column.to_numpy()
        else:
            values = column.astype(object)
            columns[str(name)] = values.where(values.notna(), None).tolist()
    return columns


def unwrap(model: Any, *, to_rows: bool = False) -> Any:
    """Return the method inside of wrappers, fitted if they are.

    Parameters
    ----------
    model : estimator
        Any estimator; one that wraps no other is returned unchanged.
    to_rows : bool, default=False
        Whether to stop at the classifier that takes rows of numbers, which may itself be around a
        transformer.

    Returns
    -------
    method : estimator
        The estimator that adapts: of a transformer with a classifier behind it, the transformer,
        unless the classifier adapts.
    """
    while isinstance(model, Wrapper):
        inner = model._wrapped
        if hasattr(model, "transformer"):
            if to_rows:
                return model
            if not isinstance(inner, DomainAdapter):
                if model.transformer is None:
                    return model
                inner = getattr(model, "transformer_", model.transformer)
        model = inner
    return model


def _labels_of(estimator: Any, rows: Any) -> pd.DataFrame:
    if hasattr(estimator, "label"):
        return estimator.label(rows)
    classes = getattr(estimator, "classes_", np.zeros(0))  # numbers have none
    some = rows.shape[0] > 0
    labels = np.asarray(estimator.predict(rows)) if some else classes[:0]
    if not hasattr(estimator, "predict_proba"):
        return pd.DataFrame({"prediction": labels})
    P = np.asarray(estimator.predict_proba(rows)) if some else np.empty((0, len(classes)))
    return label_table(classes, P, prediction=labels)
