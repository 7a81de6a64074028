"""Data of a report on a fitted model."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.decomposition import TruncatedSVD

from transferable._linalg.arrays import dense
from transferable.classifiers import AutoAdapter
from transferable.diagnostics import (
    Assessment,
    DomainGap,
    assess_trust,
    column_shifts,
    domain_gap,
    shared_space,
)
from transferable.images import ImageClassifier
from transferable.images.classifier import pictures_of
from transferable.tables import TableClassifier, TableEncoder
from transferable.tables.columns import as_text, numbers_of
from transferable.tables.encoder import as_table
from transferable.trust import rows_to_label
from transferable.wrapping import labels_of, unwrap

_MOST_ROWS = 1000  # of each domain, for the gap between them
_TO_LABEL, _TO_MEASURE = 30, 20  # rows: of classes, of numbers
_MOST_COLUMNS = 12  # that rows to label are shown with: those that moved most
_DIRECTIONS = 20  # of words, in which domains are compared before adaptation


@dataclass(frozen=True)
class Facts:
    """Circumstances of an adaptation that its model does not record.

    Attributes
    ----------
    source_name, target_name : str
        Names of the domains, usually those of their files.
    command : str
        The command line that repeats it; empty if it was none.
    seed : int
        Seed of the random steps.
    notes : list of str or None
        Notes on the input; None takes the model's own notes.
    seconds : float or None
        Time of the fit.
    audit : str
        The command line that chooses rows to label; empty for the call from Python.
    made : date
        The day, today by default.
    """

    source_name: str = "source"
    target_name: str = "target"
    command: str = ""
    seed: int = 0
    notes: list[str] | None = None
    seconds: float | None = None
    audit: str = ""
    made: date = field(default_factory=date.today)


@dataclass(frozen=True)
class Texts:
    """Columns of sentences: the texts of the target, and the words of both domains.

    ``columns`` are their names, ``given`` the text of each target row, ``rows`` the encoded target,
    ``words`` the columns of these that are words, ``terms`` the words, and ``counts`` how many
    texts of the source and of the target have each.
    """

    columns: list[str]
    given: list[str]
    rows: Any
    words: slice
    terms: list[str]
    counts: NDArray[np.intp]

    def spoken(self, pool: Any, row: int, code: int, most: int = 3) -> tuple[str, str]:
        """Return the words of a row that speak most for a class, and those against it.

        A word speaks by its value times its coefficient for the class, above those for others, in
        the linear members of a pool by their weights.
        """
        own = self.rows[[row]][:, self.words]
        ahead = np.zeros(own.nnz)
        consensus = pool.consensus_
        for weight, member in zip(consensus.weights, consensus.members, strict=True):
            linear = getattr(member.model, "estimator_", member.model)
            if member.view != "per domain" and hasattr(linear, "coef_"):
                scores = linear.coef_[:, self.words][:, own.indices] * own.data
                scores = np.vstack([-scores, scores]) if len(scores) == 1 else scores
                ahead += weight / member.temperature * (scores[code] - scores.mean(axis=0))
        order = np.argsort(-ahead, kind="stable")
        ends = order[ahead[order] > 0][:most], order[::-1][ahead[order[::-1]] < 0][:most]
        first, last = (", ".join(self.terms[own.indices[k]] for k in some) for some in ends)
        return first, last


@dataclass(frozen=True)
class ReportData:
    """One adaptation: its input, its results, and how to repeat it.

    ``Xs`` and ``Xt`` are rows as the estimator takes them, the latter None where its fit holds the
    scores of target rows, ``before`` the rows on a common scale, before any adaptation,
    ``telling_columns`` the columns of the target that moved most, as given, ``files`` the pictures
    of source and target rows, ``texts`` the words of those with columns of sentences. Of target
    rows, ``confidence`` has the probabilities of the labels, ``unfamiliar`` those unlike any
    source row, ``row_names`` their ids, or numbers from 1; ``pool`` is the AutoAdapter that judged,
    ``numbers`` what is known of predicted numbers, ``measured`` the stack that measured rows have
    corrected.
    """

    facts: Facts
    method: str
    estimator: Any
    label: str
    Xs: NDArray[Any]
    ys: NDArray[Any]
    Xt: NDArray[Any] | None
    before: tuple[NDArray[Any], NDArray[Any]]
    feature_names: list[str]
    telling_columns: pd.DataFrame
    classes: NDArray[Any]
    predicted: NDArray[Any]
    probabilities: Any
    shifts: Any  # of the columns of numbers; None if there are none
    ids: pd.DataFrame
    trust: Any = None
    yt: Any = None
    parameters: dict[str, Any] = field(default_factory=dict)
    preprocessing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    files: Any = None
    texts: Any = None
    numbers: pd.DataFrame | None = None
    measured: Any = field(init=False)
    confidence: Any = field(init=False)
    accuracy: float | None = field(init=False)
    pool: Any = field(init=False)
    unfamiliar: NDArray[np.bool_] = field(init=False)
    row_names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        own = self.trust is not None and self.trust.agreement is None
        pool: Any = None if self.trust is None else unwrap(self.trust.pool)
        stack = getattr(unwrap(self.estimator), "stack_", None)
        accuracy = None
        if self.yt is not None and self.numbers is None:
            accuracy = float(np.mean(self.predicted == self.yt))
        ids = self.ids.astype(str).to_numpy().tolist()
        vars(self).update(
            confidence=None if self.probabilities is None else self.probabilities.max(axis=1),
            accuracy=accuracy,
            measured=stack if stack is not None and stack.correction else None,
            pool=pool,
            unfamiliar=pool.unfamiliar_ if own else np.zeros(len(self.predicted), dtype=bool),
            row_names=[" · ".join(map(str, row)) for row in ids],
        )

    @property
    def audit(self) -> str:
        """The command, or the call, that chooses rows to label."""
        judge = "model"
        if self.trust is not None and self.trust.agreement is not None:
            judge = f"{type(self.trust.pool).__name__}().adapt(Xs, ys, Xt)"
        return self.facts.audit or f"{judge}.audit_rows({len(self.to_label)})"

    @cached_property
    def to_label(self) -> NDArray[np.intp]:
        """Target rows for a person to label; none if the labels were not judged."""
        most = _TO_LABEL if self.numbers is None else _TO_MEASURE
        n_rows = min(most, len(self.predicted))
        if self.trust is None:
            return np.empty(0, dtype=np.intp)
        if self.trust.agreement is None:
            return self.pool.audit_rows(n_rows).rows
        strata = np.where(self.predicted != self.trust.source_only, 0, 2)
        sure = np.zeros(len(strata)) if self.confidence is None else self.confidence
        return rows_to_label(strata, sure, n_rows, np.random.default_rng(0)).rows

    def space(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return rows, counted with the source's first, in the space in which the model decides.

        A pool has a space for target rows alone: of these rows, others are left out.
        """
        ours, theirs = rows[rows < len(self.ys)], rows[rows >= len(self.ys)] - len(self.ys)
        if self.Xt is not None:
            some = self.Xs[ours], self.Xt[theirs]
            X = sp.vstack(some, format="csr") if self.texts else np.concatenate(some)
            return shared_space(self.estimator, X, np.repeat([1, -1], [len(ours), len(theirs)]))
        P = np.asarray(self.probabilities)[theirs]
        return P if P.shape[1] > 2 else P[:, 1:] - P[:, :1]

    @cached_property
    def gaps(self) -> list[DomainGap]:
        """Gap before and, unless a pool decides, after; of up to 1,000 rows each."""
        n, m = len(self.ys), len(self.predicted)
        ours, theirs = (
            np.unique(np.linspace(0, k - 1, min(k, _MOST_ROWS)).astype(int)) for k in (n, m)
        )
        labels = self.ys[ours], self.predicted[theirs]  # predicted ones of the target
        pairs = [(self.before[0][ours], self.before[1][theirs])]
        if self.Xt is not None:
            Z = self.space(np.concatenate([ours, n + theirs]))
            pairs.append((Z[: len(ours)], Z[len(ours) :]))
        return [domain_gap(*pair, *labels) for pair in pairs]


def describe(
    model: Any,
    Xs: Any,
    ys: ArrayLike | str | None,
    Xt: Any,
    *,
    yt: ArrayLike | None = None,
    trust: Assessment | bool = True,
    facts: Facts | None = None,
) -> ReportData:
    """Collect the data of a report on a fitted model; arguments are those of `write_report`."""
    facts = facts or Facts()
    if isinstance(model, ImageClassifier):
        rows = _of_pictures(model, Xs, ys, Xt)
        model, Xs, ys, Xt = model.estimator_, rows["Xs"], rows["ys"], rows["Xt"]
    else:
        collect = _of_table if isinstance(model, TableClassifier) else _of_arrays
        rows = collect(model, Xs, ys, Xt)
    estimator = unwrap(rows.pop("fitted"), to_rows=True)
    numbers = None
    if is_regressor(estimator):
        numbers = getattr(estimator, "labels_", None)
        numbers = labels_of(estimator, rows["Xt"]) if numbers is None else numbers
        trust = trust is not False and getattr(model, "trust_", None) is not None and trust
    if trust is True:
        trust = assess_trust(model, Xs, ys, Xt, random_state=facts.seed)
    rows |= {} if facts.notes is None else {"notes": facts.notes}
    if isinstance(estimator, AutoAdapter):  # a pool knows what it has said of the target
        rows["Xt"] = None
        predicted = estimator.labels_["prediction"].to_numpy()
        P = estimator._labels["probabilities"]
    else:
        predicted, P = np.asarray(estimator.predict(rows["Xt"])), None
        if hasattr(estimator, "predict_proba"):
            P = estimator.predict_proba(rows["Xt"])
    if not rows["ids"].shape[1]:
        rows["ids"] = pd.DataFrame({"row": range(1, len(predicted) + 1)})
    named = unwrap(model)
    return ReportData(
        facts=facts,
        method=type(named).__name__,
        estimator=estimator,
        classes=getattr(estimator, "classes_", np.zeros(0)),
        numbers=numbers,
        predicted=predicted,
        probabilities=P,
        trust=trust or None,
        yt=None if yt is None else np.asarray(yt),
        parameters=named.get_params(deep=False),
        **rows,
    )


def _of_arrays(model: Any, Xs: Any, ys: Any, Xt: Any) -> dict[str, Any]:
    source, target = (np.asarray(dense(X), dtype=np.float64) for X in (Xs, Xt))
    names = list(getattr(model, "feature_names_in_", range(1, source.shape[1] + 1)))
    names = [f"column {name}" if isinstance(name, int) else str(name) for name in names]
    shifts = column_shifts(source, target, names)
    telling = [names.index(shift.name) for shift in shifts[:_MOST_COLUMNS]]
    return {
        "fitted": model,
        "label": "ys",
        "Xs": source,
        "ys": np.asarray(ys),
        "Xt": target,
        "before": (source, target),
        "feature_names": names,
        "telling_columns": pd.DataFrame(target)[telling].set_axis(
            [names[k] for k in telling], axis=1
        ),
        "shifts": shifts,
        "ids": pd.DataFrame(),
        "notes": [],
    }


def _of_pictures(model: ImageClassifier, Xs: Any, ys: Any, Xt: Any) -> dict[str, Any]:
    given = pictures_of(Xs, classes=ys is None), pictures_of(Xt, classes=False)
    source, target = model.embed(*given, names=("source", "target"))
    return {
        "fitted": model.estimator_,
        "label": "folder" if ys is None else "ys",
        "Xs": source.rows,
        "ys": source.labels if ys is None else np.asarray(ys)[source.read],
        "Xt": target.rows,
        "before": (source.rows, target.rows),
        "feature_names": [f"embedding {k}" for k in range(1, model.n_features_in_ + 1)],
        "telling_columns": pd.DataFrame(index=range(len(target))),
        "shifts": None,
        "ids": pd.DataFrame({"file": target.names}),
        "preprocessing": {"embedder": str(model.model)},
        "notes": model.notes_,
        "files": (source.files, target.files),
    }


def _of_table(model: TableClassifier, Xs: Any, ys: Any, Xt: Any) -> dict[str, Any]:
    source, target, encoder = as_table(Xs), as_table(Xt), model.encoder_
    labels = source[ys] if isinstance(ys, str) else ys
    given = _as_given(encoder, source, target)
    spread = np.concatenate(given).std(axis=0)
    spread[spread == 0] = 1.0
    before, names = [X / spread for X in given], encoder.get_feature_names_out().tolist()
    plain = given[0].shape[1]
    indicators = plain - len(encoder.numeric_)
    Xs, texts = encoder.transform(source, np.ones(len(source))), None
    if encoder.words_:
        texts = _texts(encoder, target, Xs, plain, names)
        words = sp.vstack([Xs, texts.rows])[:, texts.words]
        svd = TruncatedSVD(min(_DIRECTIONS, words.shape[1] - 1, words.shape[0] - 1), random_state=0)
        both = np.split(svd.fit_transform(words), [len(source)]) if words.shape[1] > 1 else given
        before = [np.hstack(parts) for parts in zip(before, both, strict=True)]
    known = isinstance(model.estimator_, AutoAdapter)
    shifts = column_shifts(given[0], given[1], names[:plain]) if plain else []
    indicated = (name for name, values in encoder.categories_.items() for _ in values)
    owners = dict(zip(names[:plain], [*encoder.numeric_, *indicated], strict=True))
    telling = list(dict.fromkeys([*encoder.words_, *(owners[shift.name] for shift in shifts)]))
    preprocessing: dict[str, str] = {"scale": encoder.scale_}
    if encoder.numeric_:
        preprocessing["numeric columns"] = f"{len(encoder.numeric_)}; medians where missing"
    if encoder.categories_:
        count = f"{len(encoder.categories_)}, as {indicators} indicators"
        preprocessing["categorical columns"] = count
    return {
        "fitted": model.estimator_,
        "label": model.label_ or "ys",
        "Xs": Xs,
        "ys": model._checked(pd.Series(labels), None, "the source")[0],
        "Xt": None if known else encoder.transform(target),
        "before": tuple(before),
        "feature_names": [
            *names[:plain],
            *(f"{name} ({len(words.terms):,} words)" for name, words in encoder.words_.items()),
        ],
        "telling_columns": target[telling[:_MOST_COLUMNS]].reset_index(drop=True),
        "shifts": shifts or None,
        "texts": texts,
        "ids": target[[name for name in model.ids if name in target.columns]],
        "preprocessing": preprocessing,
        "notes": model.notes_,
    }


def _texts(
    encoder: TableEncoder, target: pd.DataFrame, Xs: Any, start: int, names: list[str]
) -> Texts:
    """Return the texts of a table and their words, which stand from the start column on."""
    given = target[list(encoder.words_)].astype(object)
    words = slice(start, start + sum(len(words.terms) for words in encoder.words_.values()))
    named = names[words]
    if len(encoder.words_) == 1:
        named = next(iter(encoder.words_.values())).terms
    rows = encoder.transform(target)
    counts = [np.bincount(X[:, words].indices, minlength=len(named)) for X in (Xs, rows)]
    shown = given.where(given.notna(), "").agg("\n".join, axis=1).tolist()
    return Texts(list(encoder.words_), shown, rows, words, named, np.array(counts))


def _as_given(encoder: TableEncoder, *tables: pd.DataFrame) -> list[NDArray[np.float64]]:
    """Return the columns in use before scaling: medians of both tables for missing numbers."""
    columns: list[list[NDArray[Any]]] = [[] for _ in tables]
    if encoder.numeric_:
        shown = [numbers_of(table, encoder.numeric_, "") for table in tables]
        medians = np.nanmedian(np.concatenate(shown), axis=0)
        columns = [[np.where(np.isnan(numbers), medians, numbers)] for numbers in shown]
    for table, own in zip(tables, columns, strict=True):
        for name, categories in encoder.categories_.items():
            own.append(as_text(table[name])[:, None] == np.array(categories, dtype=object))
    empty = [np.empty((len(table), 0)) for table in tables]
    return [
        np.ascontiguousarray(np.hstack([none, *own]), dtype=np.float64)
        for none, own in zip(empty, columns, strict=True)
    ]
