"""Data of a report on a fitted model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transferable.diagnostics import (
    ColumnShift,
    DomainGap,
    Trust,
    assess_trust,
    column_shifts,
    domain_gap,
    shared_space,
)
from transferable.linalg.arrays import dense
from transferable.persistence import versions
from transferable.tables import TableClassifier, TableEncoder
from transferable.tables.classifier import checked_labels
from transferable.tables.encoder import as_table

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 1000  # of each domain, for the gap between them


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
    """

    source_name: str = "source"
    target_name: str = "target"
    command: str = ""
    seed: int = 0
    notes: list[str] | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class ReportData:
    """One adaptation: its input, its results, and how to repeat it.

    ``Xs`` and ``Xt`` are rows as the estimator takes them, ``before`` the rows on a common scale,
    before any adaptation.
    """

    facts: Facts
    method: str
    estimator: Any
    label: str
    Xs: NDArray[Any]
    ys: NDArray[Any]
    Xt: NDArray[Any]
    before: tuple[NDArray[Any], NDArray[Any]]
    feature_names: list[str]
    classes: NDArray[Any]
    predicted: NDArray[Any]
    probabilities: NDArray[Any] | None
    shifts: list[ColumnShift]
    trust: Trust | None = None
    yt: NDArray[Any] | None = None
    ids: pd.DataFrame | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    preprocessing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @cached_property
    def versions(self) -> dict[str, str]:
        """Versions of the libraries that computed it."""
        return versions()

    @cached_property
    def confidence(self) -> NDArray[np.float64] | None:
        """Probability of the label that was given to each target row."""
        return None if self.probabilities is None else self.probabilities.max(axis=1)

    @cached_property
    def row_names(self) -> list[str]:
        """Names of target rows: their ids, or numbers from 1."""
        if self.ids is None or self.ids.shape[1] == 0:
            return [str(i) for i in range(1, len(self.predicted) + 1)]
        return [" · ".join(map(str, row)) for row in self.ids.astype(str).to_numpy().tolist()]

    def space(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return rows, counted with the source's first, in the space in which the model decides."""
        source = rows < len(self.ys)
        X = np.concatenate([self.Xs[rows[source]], self.Xt[rows[~source] - len(self.ys)]])
        marks = np.repeat([1, -1], [source.sum(), (~source).sum()])
        return shared_space(self.estimator, X, marks)

    @cached_property
    def gaps(self) -> tuple[DomainGap, DomainGap]:
        """Gap before and after, with predicted labels on target rows, of up to 1000 each."""
        n, m = len(self.ys), len(self.predicted)
        ours, theirs = (
            np.unique(np.linspace(0, k - 1, min(k, _MOST_ROWS)).astype(int)) for k in (n, m)
        )
        Z = self.space(np.concatenate([ours, n + theirs]))
        labels = self.ys[ours], self.predicted[theirs]
        return (
            domain_gap(self.before[0][ours], self.before[1][theirs], *labels),
            domain_gap(Z[: len(ours)], Z[len(ours) :], *labels),
        )


def describe(
    model: Any,
    Xs: Any,
    ys: ArrayLike | str,
    Xt: Any,
    *,
    yt: ArrayLike | None = None,
    trust: Trust | bool = True,
    facts: Facts | None = None,
) -> ReportData:
    """Collect the data of a report on a fitted model.

    Parameters
    ----------
    model : classifier
        A :class:`~transferable.tables.TableClassifier` or any classifier of the library.
    Xs, ys, Xt : array-like, frame
        The data it was fitted to; `ys` may be the name of a column of a table.
    yt : array-like of shape (n_target,), default=None
        True labels of the target, to compare with.
    trust : Trust or bool, default=True
        The assessment of the labels; True computes it by a few fits of up to 1000 rows.
    facts : Facts or None, default=None
        The circumstances of the adaptation.

    Returns
    -------
    data : ReportData
        The input of :func:`render_report`.
    """
    facts = facts or Facts()
    collect = _of_table if isinstance(model, TableClassifier) else _of_arrays
    rows = collect(model, Xs, ys, Xt)
    estimator, plain = rows.pop("fitted"), rows.pop("plain")
    estimator = getattr(estimator, "best_estimator_", estimator)
    if trust is True:
        trust = assess_trust(
            estimator, rows["Xs"], rows["ys"], rows["Xt"], plain=plain, random_state=facts.seed
        )
    rows |= {} if facts.notes is None else {"notes": facts.notes}
    named = getattr(estimator, "transformer", None) or estimator
    has_probabilities = hasattr(estimator, "predict_proba")
    return ReportData(
        facts=facts,
        method=type(named).__name__,
        estimator=estimator,
        classes=estimator.classes_,
        predicted=np.asarray(estimator.predict(rows["Xt"])),
        probabilities=estimator.predict_proba(rows["Xt"]) if has_probabilities else None,
        trust=trust or None,
        yt=None if yt is None else np.asarray(yt),
        parameters=named.get_params(deep=False),
        **rows,
    )


def _of_arrays(model: Any, Xs: Any, ys: Any, Xt: Any) -> dict[str, Any]:
    source, target = (np.asarray(dense(X), dtype=np.float64) for X in (Xs, Xt))
    names = list(getattr(model, "feature_names_in_", range(1, source.shape[1] + 1)))
    names = [f"column {name}" if isinstance(name, int) else str(name) for name in names]
    return {
        "fitted": model,
        "plain": (source, target),
        "label": "ys",
        "Xs": source,
        "ys": np.asarray(ys),
        "Xt": target,
        "before": (source, target),
        "feature_names": names,
        "shifts": column_shifts(source, target, names),
        "notes": [],
    }


def _of_table(model: TableClassifier, Xs: Any, ys: Any, Xt: Any) -> dict[str, Any]:
    source, target, encoder = as_table(Xs), as_table(Xt), model.encoder_
    labels = source[ys] if isinstance(ys, str) else ys
    alone = encoder.of_source_alone(source)
    raw = TableEncoder(scale="none", features=encoder.feature_names_in_.tolist())
    raw.adapt(source, None, target)
    marks = np.ones(len(source))
    given = raw.transform(source, marks), raw.transform(target)
    spread = np.concatenate(given).std(axis=0)
    spread[spread == 0] = 1.0
    names = raw.get_feature_names_out().tolist()
    indicators = len(names) - len(encoder.numeric_)
    preprocessing: dict[str, str] = {"scale": encoder.scale_}
    if encoder.numeric_:
        preprocessing["numeric columns"] = f"{len(encoder.numeric_)}; medians where missing"
    if encoder.categories_:
        count = f"{len(encoder.categories_)}, as {indicators} indicators"
        preprocessing["categorical columns"] = count
    return {
        "fitted": model.estimator_,
        "plain": (alone.transform(source), alone.transform(target)),
        "label": model.label_ or "ys",
        "Xs": encoder.transform(source, marks),
        "ys": checked_labels(labels, None),
        "Xt": encoder.transform(target),
        "before": tuple(X / spread for X in given),
        "feature_names": names,
        "shifts": column_shifts(*given, names),
        "ids": target[[name for name in model.ids if name in target.columns]],
        "preprocessing": preprocessing,
        "notes": model.notes_,
    }
