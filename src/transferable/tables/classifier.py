"""Classifier and regressor of tables, with their preprocessing inside."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone, is_regressor
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted

from transferable.base import Takes, refusal
from transferable.classifiers import TFDF, AdaptedClassifier, AutoAdapter
from transferable.domains import (
    are_several,
    as_numbers,
    check_order,
    domain_ids,
    refuse_numbers,
    target_labels,
)
from transferable.events import note, silence
from transferable.regressors import AdaptedRegressor, AutoRegressor
from transferable.tables.columns import Scale, joined
from transferable.tables.encoder import TableEncoder, TakesTables, as_table
from transferable.tables.reading import Problems, TableError, require_columns, who
from transferable.tables.text import Embedder
from transferable.trust import Trust
from transferable.wrapping import (
    LABEL_COLUMNS,
    FileClassifier,
    columns_of,
    delegated,
    labels_of,
    unwrap,
)

_POOL_ROWS = 20_000  # of both domains, beyond which one model is fitted instead of a pool
_MANY_CLASSES = 50  # more labels than that, and than half of the rows, are not classes
_FEW_ROWS = 10  # of more, not every value can be a class
_FEW_NUMBERS = 5  # different values, up to which numbers may be classes
_SAME = 1 - 1e-9  # correlation with the label beyond which a column is that


def default_method(n_rows: int = 0) -> type[Any]:
    """Return the default method for tables of `n_rows` rows in all, here and for commands."""
    return TFDF if n_rows > _POOL_ROWS else AutoAdapter


def classifier_for(estimator: Any, n_rows: int = 0) -> Any:
    """Return an unfitted copy of a classifier, or around a transformer; None is the default one."""
    estimator = default_method(n_rows)() if estimator is None else clone(estimator)
    if "sample_domain" not in inspect.signature(estimator.fit).parameters:
        raise TypeError(
            "estimator must be one of this library, or take sample_domain in fit as they do; got "
            f"{type(estimator).__name__}."
        )
    return estimator if hasattr(estimator, "predict") else AdaptedClassifier(estimator)


@dataclass(kw_only=True, eq=False, repr=False)
class TableClassifier(TakesTables, FileClassifier):
    """Classifier of the rows of a table, learnt from a labelled table of another domain.

    Tables go in as they are, through a :class:`TableEncoder`, which matches columns by name and
    handles text and missing values; a column or list of texts is a table of one column.

    Parameters
    ----------
    estimator : estimator or None, default=None
        A classifier or transformer of this library, or a search over one; a transformer is followed
        by one nearest neighbour. None is :class:`~transferable.AutoAdapter`, or, beyond 20,000 rows
        of both tables together, for which a pool of models takes long, :class:`~transferable.TFDF`.
    scale : {"auto", "per-domain", "joint", "none", "unit"}, default="auto"
        As for :class:`TableEncoder`, like the other parameters.
    ids : sequence of str, default=()
        Columns of identifiers, which are not features.
    drop : sequence of str, default=()
        Columns to leave out.
    features : sequence of str or None, default=None
        The columns to use; None uses all that remain.
    text : sequence of str, default=()
        Columns to read as words, whatever they hold.
    embedder : callable, "wordllama" or None, default=None
        Embeds texts beside their words.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the source.
    transduction_ : ndarray of shape (n_rows,)
        The label of every fitted row, in input order: source rows have their given one.
    label_ : str or None
        The column of labels, if it was named.
    encoder_ : TableEncoder
        The fitted preprocessing.
    estimator_ : classifier
        The fitted classifier of encoded rows.
    notes_ : list of str
        Notes on what was left out or chosen, and why.

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
    >>> model = TableClassifier().adapt(source, "label", target)
    >>> float(np.mean(model.predict(target) == label))
    1.0
    """

    estimator: Any = field(default=None, kw_only=False)
    scale: Scale = "auto"
    ids: Sequence[str] = ()
    drop: Sequence[str] = ()
    features: Sequence[str] | None = None
    text: Sequence[str] = ()
    embedder: Embedder | str | None = None

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}

    @property
    def _wrapped(self) -> Any:
        return self.estimator_ if hasattr(self, "estimator_") else self._made()

    def _made(self, n_rows: int = 0) -> Any:
        """Return an unfitted estimator for tables of `n_rows` rows in all."""
        return classifier_for(self.estimator, n_rows)

    def _checked(self, labels: pd.Series, label: str | None, where: str) -> tuple[Any, list[str]]:
        """Return labels of the source, and notes on them; refuse those that cannot be learnt."""
        ys = checked_labels(labels, label, where)
        return ys, _notes_on(ys)

    @staticmethod
    def _of_target(ys: NDArray[Any], known: ArrayLike | None, n_target: int) -> NDArray[Any]:
        """Return known target labels, None where there is none, or placeholders without any."""
        if known is None:
            return np.repeat(ys[:1], n_target)
        column = pd.Series(target_labels(known, n_target))
        unknown = column.isna() | ((column == -1) & (-1 not in ys.tolist()))
        if ys.dtype.kind == "U":
            column = column.map(str, na_action="ignore")
        return column.mask(unknown, None).to_numpy(dtype=object)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return self.encoder_.transform(X)

    @property
    def takes(self) -> Takes:
        """Optional inputs that the estimator supports, except weights of rows."""
        return replace(getattr(self._made(), "takes", Takes()), sample_weight=False)

    def fit(self, X: Any, y: ArrayLike | str, sample_domain: ArrayLike | None = None) -> Self:
        """Learn from the rows of both domains in one table.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_columns)
            The rows of both domains.
        y : array-like of shape (n_rows,) or str
            Labels, or the name of their column in `X`; those of target rows are used only if the
            estimator has ``target_labels="use"``.
        sample_domain : array-like of shape (n_rows,), default=None
            Positive for source rows, by the number of their source, negative for target rows.
            Without it, rows without a label, as for the estimators of the library, are the target;
            without any, the source is fitted alone.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        table = as_table(X)
        labels: Any = y
        if isinstance(y, str):
            require_columns(list(table.columns), [y], who(table, "the table"))
            column = table[y].astype(object)
            labels = column.where(column.notna(), None).to_numpy()
        labels = np.asarray(labels)
        labels = column_or_1d(labels, dtype=labels.dtype, warn=True)
        labels = as_numbers(labels) if is_regressor(self) else labels  # -1 is a number, too
        ids = domain_ids(labels, sample_domain, len(table))
        source = ids > 0
        given = pd.Series(labels)[source]
        parts = table[source], table[~source]
        uses = getattr(self.estimator, "target_labels", "ignore") == "use"
        known = labels[~source] if uses and sample_domain is not None else None
        codes = self._learn(parts, given, y if isinstance(y, str) else None, ids[source], known)
        self._targets = np.flatnonzero(~source)
        self.transduction_ = np.empty(len(table), dtype=codes.dtype)
        self.transduction_[source], self.transduction_[~source] = np.split(codes, [source.sum()])
        return self

    def adapt(self, Xs: Any, ys: Any, Xt: Any, *, yt: ArrayLike | None = None) -> Self:
        """Learn from a labelled source table and an unlabelled target table.

        Parameters
        ----------
        Xs : frame or array-like of shape (n_source, n_columns), or list of such
            Source rows; a list is several sources, of which the columns that all have are used.
        ys : array-like of shape (n_source,), list of such, or str
            Labels, or the name of their column in `Xs`, which is ignored in the target.
        Xt : frame or array-like of shape (n_target, n_columns)
            Target rows.
        yt : array-like of shape (n_target,), default=None
            Known labels of target rows, which are used; rows without one are marked by ``-1``
            among integers unless it is a class, ``NaN`` or ``None``. Estimators without support
            for target labels refuse them.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        if not are_several(Xs):
            check_order(Xs, ys, Xt)
        marks, target = None, as_table(Xt)
        if are_several(Xs):
            source, marks, notes = joined([as_table(table) for table in Xs])
            for text in notes:
                note(text)
            ys = ys if isinstance(ys, str) else np.concatenate([np.asarray(y) for y in ys])
        else:
            source = as_table(Xs)
        given = ys
        if isinstance(ys, str):
            require_columns(list(source.columns), [ys], who(source, "the source"))
            given = source[ys]
        if np.shape(given)[:1] != (len(source),):
            raise ValueError(
                f"ys has shape {np.shape(given)}, but Xs has {len(source)} rows; give one label "
                "each."
            )
        if np.ndim(given) > 1:
            given = column_or_1d(np.asarray(given), warn=True)
        label = ys if isinstance(ys, str) else None
        self.transduction_ = self._learn((source, target), pd.Series(given), label, marks, yt)
        self._targets = np.arange(len(source), len(source) + len(target))
        return self

    def label(self, X: Any) -> pd.DataFrame:
        table = as_table(X)
        names = self._names_of(table)
        return pd.concat([names, labels_of(self.estimator_, self._rows(table))], axis=1)

    def _shown(self, X: Any, rows: NDArray[np.intp]) -> tuple[pd.DataFrame, None]:
        table = as_table(X)
        if len(table) != len(self._targets):
            raise ValueError(
                f"X has {len(table)} rows, the target of the fit {len(self._targets)}; pass that."
            )
        return table.iloc[rows], None

    def _names_of(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of ids in a table; refuse one that is called as a label is."""
        for name in self.ids:
            if name in LABEL_COLUMNS:
                raise TableError(
                    f"id column {name!r} has a name the predictions need; rename it in "
                    f"{who(table, 'the table')}."
                )
        return table[[name for name in self.ids if name in table]].reset_index(drop=True)

    @property
    def trust_(self) -> Trust | None:
        """Whether the labels can be used; one column without words is never enough for that."""
        trust = self.estimator_.trust_
        several = len(self.feature_names_in_) > 1 or self.encoder_.words_
        if trust is None:
            return trust
        names = self.encoder_.get_feature_names_out().tolist()
        state = trust.state if several or trust.state != "use" else "check"
        moved = tuple((names[k], part) for k, part in trust.moved)
        return replace(trust, state=state, moved=moved)

    def _learn(
        self,
        parts: tuple[pd.DataFrame, pd.DataFrame],
        labels: pd.Series,
        label: str | None,
        marks: NDArray[Any] | None = None,
        known: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Fit encoder and estimator; return the labels of source rows, then of target rows."""
        source, target = parts
        n_rows = len(source) + len(target)
        classifier = self._made(n_rows)
        problems = Problems()
        aside, names = [*self.drop], pd.DataFrame()
        with problems.catching():
            names = self._names_of(target)
        if label is not None:
            with problems.catching():
                check_parts(label, self)
            aside += [label]
        with problems.catching():
            ys, notes = self._checked(labels, label, who(source, "the source"))
            if label in target.columns:
                notes.insert(0, f"the target's own column {label!r} is not looked at.")
            if self.estimator is None and isinstance(classifier, TFDF):
                notes.append(
                    f"the method is {type(classifier).__name__}: {default_method().__name__} fits "
                    f"several models, which takes long for {n_rows:,} rows; for it, pass it as "
                    "the estimator."
                )
        given = self.get_params(deep=False) | {"drop": aside}
        encoder = TableEncoder(**{k: v for k, v in given.items() if k != "estimator"})
        if label is None or label in source.columns:
            with problems.catching(), silence():  # notes are of no use before an error
                encoder._learn(source, target, marks, classifier=classifier)
                if encoder.words_ and not get_tags(classifier).input_tags.sparse:
                    problems.add(
                        f"{type(unwrap(classifier)).__name__} takes no sparse rows, which words "
                        "are. Take a method that does, such as AutoAdapter or TFDF for classes, or "
                        "leave the words out: "
                        f"drop={[*encoder.words_]!r}."
                    )
        problems.raise_if_any()
        for text in (*notes, *encoder.notes_):
            note(text)
        if encoder.words_ and getattr(classifier, "kind", None) == "auto":
            classifier.set_params(kind="words")
        marks = np.ones(len(source)) if marks is None else marks
        Z = [encoder.transform(source, marks)]
        if len(target):
            Z.append(encoder.transform(target))
        ids = np.concatenate([marks, np.full(len(target), -1)])
        if known is not None:
            if not getattr(classifier, "takes", Takes()).target_labels:
                raise ValueError(refusal(classifier, "target_labels", "leave yt out"))
            classifier.set_params(target_labels="use")
        y = np.concatenate([ys, self._of_target(ys, known, len(target))])
        rows = sp.vstack(Z, format="csr") if sp.issparse(Z[0]) else np.concatenate(Z)
        classifier.fit(rows, y, **({"sample_domain": ids} if len(target) else {}))
        found = getattr(classifier, "labels_", None)
        if found is None and len(target):
            found = labels_of(classifier, Z[1])
        self._labels = columns_of(pd.concat([names, found], axis=1))
        self.notes_, self.label_ = [*notes, *encoder.notes_], label
        self.encoder_, self.estimator_ = encoder, classifier
        self.feature_names_in_ = encoder.feature_names_in_
        self.n_features_in_ = encoder.n_features_in_
        if hasattr(classifier, "classes_"):
            self.classes_ = classifier.classes_
        return np.asarray(classifier.transduction_)


class TableRegressor(RegressorMixin, TableClassifier):
    """Regressor of the rows of a table, learnt from a table with numbers of another domain.

    Tables go in as they are, as for :class:`TableClassifier`.

    Parameters
    ----------
    estimator : estimator or None, default=None
        A regressor of this library, or a transformer that needs no classes, which ridge follows.
        None is :class:`~transferable.AutoRegressor`.
    scale, ids, drop, features, text
        As for :class:`TableClassifier`.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_rows,)
        The number of every fitted row, in input order: source rows have their given one.
    label_ : str or None
        The column of numbers, if it was named.
    encoder_ : TableEncoder
        The fitted preprocessing.
    estimator_ : regressor
        The fitted regressor of encoded rows.
    notes_ : list of str
        Notes on what was left out or chosen, and why.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from transferable.tables import TableRegressor
    >>> rng = np.random.default_rng(0)
    >>> flats = pd.DataFrame({"rooms": rng.integers(1, 6, 80), "side": ["sun", "yard"] * 40})
    >>> price = 90.0 * flats.rooms + 40 * (flats.side == "sun")
    >>> model = TableRegressor().adapt(flats[:50], price[:50], flats[50:])
    >>> model.score(flats[50:], price[50:]) > 0.9
    True
    """

    def _made(self, n_rows: int = 0) -> Any:
        estimator = AutoRegressor() if self.estimator is None else clone(self.estimator)
        return estimator if hasattr(estimator, "predict") else AdaptedRegressor(estimator)

    def _checked(self, labels: pd.Series, label: str | None, where: str) -> tuple[Any, list[str]]:
        refuse_missing(labels, label, where)
        try:
            ys = as_numbers(labels.to_numpy())
            refuse_numbers(ys)
        except ValueError as error:
            raise TableError(f"{where}: {label or 'ys'!r}: {error}") from error
        few = len(np.unique(ys))
        if few > _FEW_NUMBERS:
            return ys, []
        return ys, [f"{label or 'ys'!r} has {few} different values only; are these classes?"]

    @staticmethod
    def _of_target(ys: NDArray[Any], known: ArrayLike | None, n_target: int) -> NDArray[Any]:
        return np.full(n_target, np.nan) if known is None else as_numbers(known)

    def _learn(
        self,
        parts: tuple[pd.DataFrame, pd.DataFrame],
        labels: pd.Series,
        label: str | None,
        marks: NDArray[Any] | None = None,
        known: ArrayLike | None = None,
    ) -> NDArray[Any]:
        numbers = super()._learn(parts, labels, label, marks, known)
        given = pd.to_numeric(labels).to_numpy(float)
        for name in self.encoder_.numeric_:
            column = pd.to_numeric(parts[0][name], errors="coerce").to_numpy(float)
            there = np.isfinite(column)
            if (
                np.ptp(column[there])
                and abs(np.corrcoef(column[there], given[there])[0, 1]) > _SAME
            ):
                text = (
                    f"column {name!r} is the label in another unit, or nearly; leave it out if it "
                    "is not there where numbers are to be predicted."
                )
                note(text)
                self.notes_ = [*self.notes_, text]
        return numbers

    @property
    def trust_(self) -> Any:
        """What can be seen without labels, with the names of the columns."""
        seen = getattr(self.estimator_, "trust_", None)
        names = self.encoder_.get_feature_names_out().tolist()
        return seen and replace(seen, columns=[(names[k], part) for k, part in seen.columns])

    @delegated
    def spread(self, X: Any) -> NDArray[np.float64]:
        """Return how far the models lie apart for each row, as :meth:`AutoRegressor.spread` does.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_columns)
            Rows with the fitted columns.

        Returns
        -------
        spread : ndarray of shape (n_rows,)
            Standard deviation of the models' numbers.
        """
        return self.estimator_.spread(self._rows(X))

    @delegated
    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """Return an interval for each row, as :meth:`AutoRegressor.predict_interval` does.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_columns)
            Rows with the fitted columns.
        coverage : float in (0, 1), default=0.9
            Share of the rows whose number is to lie within.

        Returns
        -------
        intervals : ndarray of shape (n_rows, 2)
            Lower and upper ends.
        """
        return self.estimator_.predict_interval(self._rows(X), coverage)


def check_parts(label: str, model: TableClassifier) -> None:
    """Refuse a column of labels that has another role too."""
    roles = {"id": model.ids, "dropped": model.drop, "feature": model.features, "text": model.text}
    for role, names in roles.items():
        if label in (names or ()):
            raise TableError(f"column {label!r} cannot be the label and also {role}; name it once.")


def refuse_missing(column: pd.Series, label: str | None, where: str) -> None:
    """Refuse labels of the source of which some are missing."""
    missing = int(column.isna().sum())
    if missing:
        called = f"the label column {label!r}" if label else "ys"
        raise TableError(
            f"{where}: {missing} of the {len(column)} source rows have no value in {called}; fill "
            "it or remove these rows."
        )


def checked_labels(column: pd.Series, label: str | None, where: str = "the source") -> NDArray[Any]:
    """Return labels of the source, text as text and numbers as numbers; refuse invalid classes."""
    refuse_missing(column, label, where)
    values = column.astype(object).tolist()
    labels = np.array([str(v) for v in values] if isinstance(values[0], str) else values)
    classes, n = np.unique(labels), len(labels)
    if len(classes) < 2:
        raise TableError(
            f"{where}: the {n} source rows all have the label {classes[0].item()!r}, which is one "
            "class; at least two are needed."
        )
    if labels.dtype.kind == "f" and not np.all(classes == np.floor(classes)):
        example = classes[classes != np.floor(classes)][0].item()
        raise TableError(
            f"{where}: Unknown label type: {label or 'ys'!r} holds fractions, such as {example}, "
            "which measure something; turn them into text if they are names of classes."
        )
    if len(classes) > max(_MANY_CLASSES, n // 2) or len(classes) == n > _FEW_ROWS:
        raise TableError(
            f"{where}: {label or 'ys'!r} has {len(classes):,} different values in {n:,} source "
            "rows, so it seems to name rows or to measure something; labels are classes that "
            "several rows share."
        )
    return labels


def _notes_on(labels: NDArray[Any]) -> list[str]:
    """Return notes on texts of numbers."""
    notes: list[str] = []
    if labels.dtype.kind != "U":
        return notes
    numbers: dict[float, list[str]] = {}
    for text in np.unique(labels).tolist():
        try:
            numbers.setdefault(float(text), []).append(text)
        except ValueError:
            return notes
    notes += [
        f"the labels {' and '.join(map(repr, texts))} are one number, written in "
        f"{len(texts)} ways, and are taken for {len(texts)} classes; write them alike if they are "
        "one."
        for texts in numbers.values()
        if len(texts) > 1
    ]
    broken = [texts[0] for number, texts in numbers.items() if not number.is_integer()]
    if broken:
        notes.append(
            f"labels such as {broken[0]!r} are taken for names of classes, as they are written, "
            "and not for measurements."
        )
    return notes
