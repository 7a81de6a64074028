"""A classifier that takes tables as they come, with its preprocessing inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from transferable.base import DomainAdapter
from transferable.classifiers import TFDF, AdaptedClassifier
from transferable.domains import source_mask
from transferable.tables._errors import TableError, listed
from transferable.tables.columns import as_numbers, as_text
from transferable.tables.encoding import (
    SCALES,
    Scale,
    choose_columns,
    choose_scale,
    make_encoder,
    shared_categories,
)

__all__ = ["TableClassifier"]

_MANY_CLASSES = 50  # labels of more than that, and of more than half of the rows, are no classes
_FEW_ROWS = 10  # of more, not every one can be a class of its own


class TableClassifier(ClassifierMixin, BaseEstimator):
    """Label the rows of a table with what a labelled table of another domain teaches.

    Columns are found by name, in any order. Numbers and booleans are numeric; missing ones get
    the median. Text is categorical: one indicator for each category that both domains know, a
    missing value being a category of its own, and any other category none of them. Dates are
    refused. Columns that only one table has, that are empty in one of them or that merely number
    the rows are left out, which `notes_` tells.

    Parameters
    ----------
    estimator : estimator or None, default=None
        A classifier or transformer of this library; a transformer is followed by one nearest
        neighbour. None means :class:`~transferable.TFDF`.
    label : str, default="label"
        The source's column of labels. A column of that name in the target is not looked at.
    scale : {"auto", "per-domain", "joint", "none", "unit"}, default="auto"
        "per-domain" brings numeric columns to mean 0 and variance 1 in each domain, with missing
        values filled from the same domain; "joint" does so over both domains; "none" only fills
        missing values; "unit" fills them and brings rows to unit length. "auto" is "none" if all
        columns seem to be of one unit, as pixels and embeddings are, and "per-domain" otherwise.
        They seem so if there are at least 20 numeric columns and none of text, and the widest
        ranges over at most ten times what the narrowest quarter does.
    ids : sequence of str, default=()
        Columns that name rows, which are no features.
    drop : sequence of str, default=()
        Columns to leave out.
    features : sequence of str or None, default=None
        The columns to use; None uses all that remain.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the source.
    numeric_, categorical_ : list of str
        The columns in use.
    feature_names_ : list of str
        What the estimator sees: numeric columns and indicators.
    encoder_, source_encoder_ : Pipeline
        scikit-learn's preprocessing of target and source rows; one and the same unless
        `scale_` is "per-domain".
    scale_ : str
        What `scale` came to.
    estimator_ : classifier
        The fitted classifier of encoded rows.
    notes_ : list of str
        What was left out or chosen, and why.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from transferable.tables import TableClassifier
    >>> rng = np.random.default_rng(0)
    >>> label = np.repeat(["ill", "well"], 20)
    >>> size = rng.normal(size=40) + 4 * (label == "well")
    >>> colour = np.where(label == "ill", "red", "blue")
    >>> source = pd.DataFrame({"size": size, "colour": colour, "label": label})
    >>> target = pd.DataFrame({"colour": colour, "size": 10 * size + 3})
    >>> model = TableClassifier().adapt(source, target)
    >>> float(np.mean(model.predict(target) == label))
    1.0
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        label: str = "label",
        scale: Scale = "auto",
        ids: Sequence[str] = (),
        drop: Sequence[str] = (),
        features: Sequence[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.label = label
        self.scale = scale
        self.ids = ids
        self.drop = drop
        self.features = features

    def adapt(self, source: pd.DataFrame, target: pd.DataFrame) -> Self:
        """Learn from a labelled source table and an unlabelled target table.

        Parameters
        ----------
        source : DataFrame
            Rows with the column `label`.
        target : DataFrame
            Rows of the other domain.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        return self._learn(*self.prepare(source, target))

    def prepare(
        self, source: pd.DataFrame, target: pd.DataFrame
    ) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.float64]]:
        """Learn the preprocessing alone.

        Parameters
        ----------
        source : DataFrame
            Rows with the column `label`.
        target : DataFrame
            Rows of the other domain.

        Returns
        -------
        Xs, ys, Xt : ndarray
            Encoded source rows, their labels, and encoded target rows.
        """
        labels = self._labels(source)
        _check_classes(labels, self.label)
        Xs, Xt = self._encode_both(source, target)
        return Xs, labels, Xt

    def fit(self, X: pd.DataFrame, y: ArrayLike, sample_domain: ArrayLike | None = None) -> Self:
        """Learn from the rows of both domains in one table.

        Parameters
        ----------
        X : DataFrame
            The rows of both domains.
        y : array-like of shape (n_rows,)
            Labels; those of target rows are never looked at.
        sample_domain : array-like of shape (n_rows,), default=None
            Positive for source rows, negative for target rows. Without it, rows that have no
            label, as for the estimators of the library, are the target.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        source = source_mask(y, sample_domain, len(X))
        if source.all():
            raise TableError("there are no target rows; mark them with a negative sample_domain.")
        labels = _as_labels(pd.Series(y)[source])
        _check_classes(labels, "y")
        Xs, Xt = self._encode_both(X[source], X[~source])
        return self._learn(Xs, labels, Xt)

    def _learn(
        self, Xs: NDArray[np.float64], labels: NDArray[Any], Xt: NDArray[np.float64]
    ) -> Self:
        self.estimator_ = self._classifier().adapt(Xs, labels, Xt)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, table: pd.DataFrame) -> NDArray[Any]:
        """Label rows of the target domain.

        Parameters
        ----------
        table : DataFrame
            Rows with the columns that were learnt from; others are not looked at.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            The label of each row.
        """
        return self.estimator_.predict(self.encode(table))

    def predict_proba(self, table: pd.DataFrame) -> NDArray[np.floating]:
        """Probability of each class.

        Parameters
        ----------
        table : DataFrame
            Rows with the columns that were learnt from; others are not looked at.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column for each label of `classes_`.
        """
        return self.estimator_.predict_proba(self.encode(table))

    def encode(self, table: pd.DataFrame, *, source: bool = False) -> NDArray[np.float64]:
        """Rows as the estimator sees them.

        Parameters
        ----------
        table : DataFrame
            Rows with the columns that were learnt from.
        source : bool, default=False
            Whether they are of the source domain.

        Returns
        -------
        X : ndarray of shape (n_rows, n_features)
            Filled, scaled and with indicators, in the order of `feature_names_`.
        """
        check_is_fitted(self)
        rows = self._prepare(table, "source" if source else "table")
        encoder = self.source_encoder_ if source else self.encoder_
        return np.asarray(encoder.transform(rows), dtype=np.float64)

    def _encode_both(
        self, source: pd.DataFrame, target: pd.DataFrame
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Choose columns, fit the encoders and encode the rows of both domains."""
        if self.scale not in SCALES:
            raise TableError(f"scale={self.scale!r} is unknown; choose one of {', '.join(SCALES)}.")
        rows, others = self._candidates(source, "source"), self._candidates(target, "target")
        numeric, text, notes = choose_columns(rows, others, numbered=self.features is not None)
        categories, more = shared_categories(rows, others, text)
        if not numeric and not categories:
            raise TableError("no column is left to learn from. " + " ".join(notes + more))
        self.numeric_, self.categorical_ = numeric, list(categories)
        self.notes_ = notes + more

        rows, others = self._prepare(rows, "source"), self._prepare(others, "target")
        self.scale_ = self.scale
        if self.scale == "auto":
            self.scale_ = choose_scale(rows, others, numeric)
            if self.scale_ == "none":
                self.notes_.append(
                    "columns have similar ranges, as pixels and embeddings do, and are taken as "
                    "they are; the scale 'per-domain' would bring each domain to one by itself."
                )
        encoder = make_encoder(numeric, categories, self.scale_)
        if self.scale_ == "per-domain":
            self.source_encoder_, self.encoder_ = clone(encoder).fit(rows), encoder.fit(others)
        else:
            encoder.fit(pd.concat([rows, others], ignore_index=True))
            self.source_encoder_ = self.encoder_ = encoder
        self.feature_names_ = numeric + [
            f"{column}={value}" for column, values in categories.items() for value in values
        ]
        return self.source_encoder_.transform(rows), self.encoder_.transform(others)

    def _classifier(self) -> Any:
        estimator = TFDF() if self.estimator is None else clone(self.estimator)
        if not isinstance(estimator, DomainAdapter):
            raise TypeError(
                f"estimator must be one of this library, got {type(estimator).__name__}."
            )
        return AdaptedClassifier(estimator) if hasattr(estimator, "transform") else estimator

    def _labels(self, source: pd.DataFrame) -> NDArray[Any]:
        """The source's labels; text as text, numbers as numbers."""
        _require(source, [self.label], "source")
        taken = {"id": self.ids, "dropped": self.drop, "feature": self.features or ()}
        for role, names in taken.items():
            if self.label in names:
                raise TableError(
                    f"column {self.label!r} cannot be the label and also {role}; name it once."
                )
        column = source[self.label]
        missing = int(column.isna().sum())
        if missing:
            raise TableError(
                f"{missing} of the {len(column)} source rows have no value in the label column "
                f"{self.label!r}; fill it or remove these rows."
            )
        return _as_labels(column)

    def _candidates(self, table: pd.DataFrame, name: str) -> pd.DataFrame:
        """The columns that may become features."""
        if self.features is not None:
            _require(table, self.features, name)
            return table[list(self.features)]
        aside = {self.label, *self.ids, *self.drop}
        return table[[column for column in table.columns if column not in aside]]

    def _prepare(self, table: pd.DataFrame, name: str) -> pd.DataFrame:
        """The columns in use, numbers as floats and text as text."""
        _require(table, self.numeric_ + self.categorical_, name)
        columns: dict[str, Any] = {c: as_numbers(table[c]) for c in self.numeric_}
        columns |= {c: as_text(table[c]) for c in self.categorical_}
        return pd.DataFrame(columns)


def _as_labels(column: pd.Series) -> NDArray[Any]:
    """Text as text, numbers as numbers."""
    values = column.astype(object).tolist()
    return np.array([str(v) for v in values] if isinstance(values[0], str) else values)


def _check_classes(labels: NDArray[Any], name: str) -> None:
    """Refuse labels of which there is one only, and what is no label of a class."""
    classes, n = np.unique(labels), len(labels)
    if len(classes) < 2:
        raise TableError(
            f"the {n} source rows all have the label {classes[0].item()!r}; at least two labels "
            "are needed."
        )
    if len(classes) > max(_MANY_CLASSES, n // 2) or len(classes) == n > _FEW_ROWS:
        raise TableError(
            f"{name!r} has {len(classes):,} different values in {n:,} source rows, so it seems to "
            "name rows or to measure something; labels are classes that several rows share."
        )


def _require(table: pd.DataFrame, names: Sequence[str], where: str) -> None:
    """Refuse a table that lacks columns."""
    lacking = [name for name in names if name not in table.columns]
    if lacking:
        raise TableError(
            f"the {where} has no column {listed(lacking)}; it has {listed(table.columns)}."
        )
