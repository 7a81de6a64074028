"""Encoder of tables as rows of numbers, learnt from both domains."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import check_is_fitted

from transferable.base import Takes
from transferable.domains import (
    are_several,
    are_texts,
    as_pandas,
    domain_ids,
    is_frame,
    marked_ids,
    positions_of,
)
from transferable.events import note, silence
from transferable.tables.columns import (
    SCALES,
    Scale,
    as_text,
    choose_columns,
    choose_scale,
    joined,
    numbers_of,
    shared_categories,
)
from transferable.tables.reading import Problems, TableError, listed, require_columns, who
from transferable.tables.text import LONG, PROBE, Embedder, embedded, embedder_of, middle_length

_BLOCK_CELLS = 2**22  # that are encoded at once
_FEW_ROWS = 10  # of a domain, too few to learn a scale
_MANY_ROWS = 10_000  # of both domains; fewer need no saving of memory
_SAME_PROBE = 1e-3  # difference of embeddings of one text by the same weights, on any machine
_MOST_SPREADS = 160  # within which single precision rounds by less than 1e-5 of a spread


class TakesTables(BaseEstimator):
    """Mixin of estimators of tables, which may hold text and gaps."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class TableEncoder(TransformerMixin, TakesTables):
    """Encoder of tables of two domains as rows of numbers that both domains share.

    Columns are matched by name, in any order. Numbers and booleans are numeric; missing ones get
    the median. Text is categorical: one indicator for each category present in both domains, a
    missing value being a category of its own, and none for any other category. Columns of sentences
    become words, of at least two texts of either domain, each row of sublinear TF-IDF of unit
    length; rows are then sparse, and their other columns count as much as one text. A column is of
    sentences if more than half of its texts differ and the middle one has at least four words.
    Dates are refused.
    Columns that only one table has, that are empty in one of them or that merely number the rows
    are left out, as reported in `notes_`.

    Parameters
    ----------
    scale : {"auto", "per-domain", "joint", "none", "unit"}, default="auto"
        "per-domain" scales numeric columns to mean 0 and variance 1 in each domain, with missing
        values filled from the same domain; "joint" does so over both domains; "none" only fills
        missing values; "unit" fills them and scales rows to unit length. "auto" is "none" if all
        columns seem to be of one unit, as pixels and embeddings are, and "per-domain" otherwise.
        They seem so if there are at least 20 numeric columns and none of text, and the widest range
        is at most ten times that of the narrowest quarter.
    ids : sequence of str, default=()
        Columns of identifiers, which are not features.
    drop : sequence of str, default=()
        Columns to leave out.
    features : sequence of str or None, default=None
        The columns to use; None uses all that remain.
    text : sequence of str, default=()
        Columns to read as words, whatever they hold.
    embedder : callable, "wordllama" or None, default=None
        Maps a list of texts to an array with a row for each, which stands beside their words.
        "wordllama" is the installed package of that name. Texts are cut at 3,000 letters and given
        in batches of 64. It helps with short texts, of up to about 25 words.

    Attributes
    ----------
    numeric_ : list of str
        The numeric columns in use.
    categories_ : dict of str to list of str
        The text columns in use, with the categories present in both domains.
    words_ : dict of str to Words
        The columns of sentences in use, with their words (``terms``) and the ``weights`` of these.
    probe_ : ndarray of shape (n_embedded,) or None
        The embedding of a fixed text, by which an embedder is known again.
    scale_ : str
        The scale in use.
    medians_, means_, spreads_ : ndarray of shape (n_sources + 1, n_numeric)
        Fill values, offsets and divisors for rows of each source and of the target.
    dtype_ : dtype
        Precision of encoded rows: single where there are more than 10,000 and that rounds no
        column by more than 1e-5 of its spread, else double.
    notes_ : list of str
        Notes on what was left out or chosen, and why.
    feature_names_in_ : ndarray of str
        The columns in use.

    Examples
    --------
    >>> import pandas as pd
    >>> from transferable.tables import TableEncoder
    >>> source = pd.DataFrame({"size": [1.0, 2.0, None], "colour": ["red", "blue", "red"]})
    >>> target = pd.DataFrame({"colour": ["red", "blue"], "size": [30.0, 10.0]})
    >>> encoder = TableEncoder(scale="none").adapt(source, None, target)
    >>> encoder.transform(target)
    array([[30.,  0.,  1.],
           [10.,  1.,  0.]])
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'colour=blue', 'colour=red']
    """

    scale: Scale = "auto"
    ids: Sequence[str] = ()
    drop: Sequence[str] = ()
    features: Sequence[str] | None = None
    text: Sequence[str] = ()
    embedder: Embedder | str | None = None

    takes = Takes(several_sources=True, no_labels=True)
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"sample_domain": True}

    def fit(self, X: Any, y: Any = None, sample_domain: ArrayLike | None = None) -> Self:
        """Learn from the rows of both domains in one table.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_columns)
            The rows of both domains.
        y : array-like of shape (n_rows,), default=None
            Used to separate the domains without `sample_domain`: target rows have no label. None
            takes all rows for source rows.
        sample_domain : array-like of shape (n_rows,), default=None
            Positive for source rows, negative for target rows; several positive numbers are
            several sources, which "per-domain" scales each by itself.

        Returns
        -------
        self : object
            The fitted encoder.
        """
        table = as_table(X)
        ids: NDArray[Any] = np.ones(len(table))
        if y is not None or sample_domain is not None:
            ids = domain_ids(ids if y is None else y, sample_domain, len(table))
        return self._learn(table[ids > 0], table[ids < 0], ids[ids > 0])

    def adapt(self, Xs: Any, ys: Any, Xt: Any) -> Self:
        """Learn from a source table and a target table.

        Parameters
        ----------
        Xs : frame or array-like of shape (n_source, n_columns), or list of such
            Source rows; a list is several sources, 1, 2, ... in its order.
        ys : object
            Ignored; present for a common signature.
        Xt : frame or array-like of shape (n_target, n_columns)
            Target rows.

        Returns
        -------
        self : object
            The fitted encoder.
        """
        if not are_several(Xs):
            return self._learn(as_table(Xs), as_table(Xt))
        source, marks, _ = joined([as_table(table) for table in Xs])
        return self._learn(source, as_table(Xt), marks)

    def transform(self, X: Any, sample_domain: ArrayLike | None = None) -> Any:
        """Return rows of numbers for rows of a table.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_columns)
            Rows with the fitted columns; others are ignored.
        sample_domain : array-like of shape (n_rows,), default=None
            Positive for source rows, by the number of their source, negative for target rows; None
            treats all as target rows.

        Returns
        -------
        Z : ndarray or csr_array of shape (n_rows, n_features)
            Filled, scaled and with indicators; sparse if there are words.
        """
        check_is_fitted(self)
        table = as_table(X)
        if not is_frame(as_pandas(X)) and table.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {table.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        side = np.full(len(table), len(self._source_ids))
        if sample_domain is not None:
            ids = marked_ids(sample_domain, len(table))
            side = np.where(ids > 0, positions_of(ids, self._source_ids, ids > 0), side)
        where = who(table, "the table")
        require_columns(list(table.columns), self.feature_names_in_, where)
        width = len(self.numeric_) + sum(map(len, self.categories_.values()))
        rows: Any = np.empty((len(table), width), dtype=self.dtype_)
        together = max(1, _BLOCK_CELLS // max(len(table), 1))
        for start in range(0, len(self.numeric_), together):
            part = slice(start, min(start + together, len(self.numeric_)))
            values = numbers_of(table, self.numeric_[part], where)
            values = np.where(np.isnan(values), self.medians_[side, part], values)
            rows[:, part] = (values - self.means_[side, part]) / self.spreads_[side, part]
        at = len(self.numeric_)
        for name, categories in self.categories_.items():
            codes = pd.Index(categories).get_indexer(as_text(table[name]))
            rows[:, at : at + len(categories)] = codes[:, None] == np.arange(len(categories))
            at += len(categories)
        if self.words_:
            several = max(1, len(self.numeric_) + len(self.categories_))
            parts = [sp.csr_array(rows / np.sqrt(several))]
            parts += [words.rows(table[name]) for name, words in self.words_.items()]
            if self.embedder is not None:
                parts += self._embedded(table)
            rows = sp.hstack(parts, format="csr", dtype=self.dtype_)
        return normalize(rows, copy=False) if self.scale_ == "unit" else rows

    def of_source_alone(self, source: Any) -> TableEncoder:
        """Return an encoder of these columns fitted to source rows only, for baselines.

        Parameters
        ----------
        source : frame or array-like of shape (n_source, n_columns)
            The source rows.

        Returns
        -------
        encoder : TableEncoder
            Fitted; it encodes rows of both domains alike.
        """
        check_is_fitted(self)
        scale: Scale = "joint" if self.scale_ == "per-domain" else self.scale_
        columns = self.feature_names_in_.tolist()
        with silence():
            return TableEncoder(scale=scale, features=columns, text=[*self.words_]).fit(source)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the encoded columns.

        Parameters
        ----------
        input_features : object, default=None
            Ignored.

        Returns
        -------
        names : ndarray of str
            Numeric columns by their names, indicators as ``column=category``, words as
            ``column=word``, embeddings as ``embedded column=number``.
        """
        check_is_fitted(self)
        named = self.categories_ | {name: words.terms for name, words in self.words_.items()}
        if self.probe_ is not None:
            axes = [str(k) for k in range(1, len(self.probe_) + 1)]
            named |= {f"embedded {name}": axes for name in self.words_}
        indicators = (f"{c}={value}" for c, values in named.items() for value in values)
        return np.array([*self.numeric_, *indicators], dtype=object)

    def _learn(
        self,
        source: pd.DataFrame,
        target: pd.DataFrame,
        marks: NDArray[Any] | None = None,
        *,
        classifier: Any = None,
    ) -> Self:
        """Learn from the rows of all sources, marked by their numbers, and of the target.

        Where "auto" would scale each domain by itself, both have one scale for classifiers that
        scale domains themselves.
        """
        if self.scale not in SCALES:
            raise TableError(f"scale={self.scale!r} is unknown; choose one of {', '.join(SCALES)}.")
        both = source, target if len(target) else source
        self._check_names(*both)
        problems = Problems()
        aside, named = {*self.ids, *self.drop}, self.features
        columns = [
            table[[c for c in table.columns if c not in aside] if named is None else list(named)]
            for table in both
        ]
        numeric, text, notes = choose_columns(
            *columns, text=self.text, numbered=named is not None, problems=problems
        )
        categories, words, more = shared_categories(
            columns[0], columns[1], text, self.text, problems
        )
        for name in words:
            if not words[name].terms and self.embedder is None:
                problems.add(
                    f"column {name!r} holds no word that two texts have in common (a word is a run "
                    "of letters or digits; texts written without spaces need an embedder), so "
                    f"nothing can be learnt from it; leave it out: drop={[name]!r}."
                )
        if not (numeric or categories or words or problems):
            problems.add("no column is left to learn from. " + " ".join(notes + more))
        with problems.catching():
            numbers = tuple(numbers_of(t, numeric, who(t, "the source")) for t in columns)
        problems.raise_if_any()
        scale = self.scale
        if scale == "auto":
            alone = len(numeric) == columns[0].shape[1]
            scale = choose_scale(numbers, all_numeric=alone)  # type: ignore[arg-type]
            if scale == "per-domain" and getattr(classifier, "_scales_domains", False):
                scale = "joint"
        self.numeric_, self.categories_, self.words_ = numeric, categories, words
        self.scale_ = scale
        self.probe_: Any = None
        if self.embedder is not None:
            more += self._notes_on_embedder(both, self.embedder)
        self.feature_names_in_ = np.array([*numeric, *categories, *words], dtype=object)
        self.n_features_in_ = source.shape[1]
        marks = np.ones(len(source)) if marks is None else marks
        self._source_ids = np.unique(marks)
        sources = [numbers[0][marks == one] for one in self._source_ids]
        self._learn_scale([*sources, numbers[1]])
        self.notes_ = [*notes, *more, *self._notes_on_scale(len(source), len(target))]
        widths = [table.shape[1] for table in columns]
        if len(self.feature_names_in_) == 1 < max(widths):
            single = (
                f"{self.feature_names_in_[0]!r} is the only column to learn from, of {widths[0]} "
                f"in the source and {widths[1]} in the target; check that columns which mean the "
                "same have the same name in both."
            )
            self.notes_.append(single)
            warnings.warn(single, stacklevel=3)
        for text_of_note in self.notes_:
            note(text_of_note)
        return self

    def _learn_scale(self, domains: list[NDArray[np.float64]]) -> None:
        """Learn fill values, means and scales of the rows of each domain, and their precision."""
        joint, scaled = self.scale_ != "per-domain", self.scale_ in ("per-domain", "joint")
        learnt, farthest = [], 0.0
        for part in [np.concatenate(domains)] * len(domains) if joint else domains:
            if not part.shape[1]:
                learnt.append((np.empty(0),) * 3)
                continue
            medians = np.nanmedian(part, axis=0)
            filled = np.where(np.isnan(part), medians, part)
            scaler = StandardScaler().fit(filled)
            spreads = scaler.scale_
            means = scaler.mean_ if scaled else np.zeros_like(spreads)
            farthest = max(farthest, (np.abs(filled - means).max(axis=0) / spreads).max())
            learnt.append((medians, means, spreads if scaled else np.ones_like(spreads)))
        self.medians_, self.means_, self.spreads_ = map(np.stack, zip(*learnt, strict=True))
        many = sum(map(len, domains)) > _MANY_ROWS
        self.dtype_ = np.dtype(np.float32 if many and farthest < _MOST_SPREADS else np.float64)

    def _notes_on_scale(self, n_source: int, n_target: int) -> list[str]:
        notes = []
        if self.scale == "auto" and self.scale_ == "none":
            notes.append(
                "columns have similar ranges, as pixels and embeddings do, and are taken as they "
                "are; the scale 'per-domain' would bring each domain to one by itself."
            )
        for name, n_rows in (("source", n_source), ("target", n_target)):
            if self.scale_ == "per-domain" and 0 < n_rows < _FEW_ROWS:
                notes.append(
                    f"the {name} is scaled by its own {n_rows} row{'s' * (n_rows > 1)}, too few to "
                    "estimate a scale; the scale 'joint' takes that of both domains."
                )
        if self.dtype_ == np.float32:
            notes.append(
                f"the {n_source + n_target:,} rows are kept in single precision, which rounds no "
                "column by more than 0.001 % of its spread and takes half of the memory."
            )
        return notes

    def _notes_on_embedder(
        self, both: Sequence[pd.DataFrame], embedder: Embedder | str
    ) -> list[str]:
        """Try the embedder, and return a note for each column of texts that are long for it."""
        if not self.words_:
            raise TableError(
                "An embedder is for columns of sentences, and there is none; leave it out."
            )
        self.probe_ = embedded(pd.Series([PROBE]), embedder_of(embedder))[0]
        lengths = {
            name: middle_length(pd.concat([t[name] for t in both]).dropna().map(str).tolist())
            for name in self.words_
        }
        return [
            f"the texts of column {name!r} have {length:.0f} words in the median; embeddings have "
            f"been measured to harm above {LONG}."
            for name, length in lengths.items()
            if length > LONG
        ]

    def _embedded(self, table: pd.DataFrame) -> list[NDArray[np.float64]]:
        """Return the embeddings of each column of sentences, by the embedder of the fit."""
        embedder = embedder_of(self.embedder)  # type: ignore[arg-type]  # there is one
        probe = embedded(pd.Series([PROBE]), embedder)[0]
        if probe.shape != self.probe_.shape or np.abs(probe - self.probe_).max() > _SAME_PROBE:
            raise TableError(
                "the embedder is another than that of the fit: it embeds the same text otherwise; "
                "use the one of the fit, or fit again."
            )
        return [embedded(table[name], embedder) for name in self.words_]

    def _check_names(self, source: pd.DataFrame, target: pd.DataFrame) -> None:
        """Refuse names of missing columns, and columns with two roles."""
        problems = Problems()
        either = list(dict.fromkeys([*source.columns, *target.columns]))
        for names in (self.ids, self.drop, self.text):
            with problems.catching():
                require_columns(either, names, who(source, "source"), who(target, "target"))
        for table, where in ((source, "the source"), (target, "the target")):
            with problems.catching():
                require_columns(list(table.columns), self.features or (), who(table, where))
        used = dict.fromkeys([*(self.features or ()), *self.text])
        twice = [name for name in used if name in {*self.ids, *self.drop}]
        if twice:
            problems.add(f"column {listed(twice)} cannot be a feature and also set aside.")
        problems.raise_if_any()


def as_table(X: Any) -> pd.DataFrame:
    """Return a frame of pandas for one of any library, a list of texts, or an array of columns."""
    table = as_pandas(X)
    if not is_frame(table):
        if are_texts(table):
            return pd.DataFrame({str(getattr(table, "name", None) or "text"): list(table)})
        rows = check_array(X, dtype=None, ensure_all_finite=False, input_name="X")
        table = pd.DataFrame(rows, columns=[f"x{i}" for i in range(rows.shape[1])])
        return table.infer_objects() if rows.dtype == object else table
    names = [str(name) for name in table.columns]
    if len(set(names)) < len(names):
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        raise TableError(
            f"{who(table, 'the table')} has several columns called {listed(twice)}; rename them."
        )
    return table if list(table.columns) == names else table.set_axis(names, axis=1)
