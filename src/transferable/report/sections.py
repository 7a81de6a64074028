"""The page of a report: what its sections show, as plain values, and how it is rendered.

Each section is a function of the data of a report; words and markup are in page.html.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, StrictUndefined
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import confusion_matrix

from transferable._files import replacing, visible
from transferable.diagnostics import MEASURES, Assessment
from transferable.events import stage
from transferable.images.reading import PictureError, thumbnail
from transferable.persistence import versions
from transferable.regressors._measured import LEVEL
from transferable.report.data import Facts, ReportData, describe
from transferable.wrapping import unwrap

# Distinct for any kind of colour vision, and dark enough on white and light enough on black.
CLASS_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#c4679a", "#8c6d31"),
    *("#7a5fd0", "#c22f2f", "#0a8fa3", "#7f8500", "#5c6f87"),
)
_KINDS_NAMED, _KINDS_SHOWN = 3, 12  # of changed labels: in the sentence, in the table
_FEW_CLASSES = 12  # whose counts can be read inside the cells of a matrix
_COLUMNS_NAMED = 12
_PASSAGE = 300  # letters of a text, the rest of which opens
_WORDS_SHOWN = 40
_COLUMNS_SHOWN = 30
_MOST_POINTS = 1200
_LEAST_CERTAIN = 40
_BINS = 30  # of the distribution of numbers
_SIDE = 64  # pixels of a thumbnail, which take at most 6 kB of the page
_CHANGED_SHOWN, _CLASSES_SHOWN, _OF_CLASSES = 30, 40, 160  # thumbnails; classes that have any
# Meaning of the entries of ``history_``.
_TERMS = {
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
_NUMBER = re.compile(r"[\d–+-][\W\d_]*")  # or a range, or a share
_TAIL = 0.02  # of the rows at either end of an axis, which do not set its limits


class Bar(NamedTuple):
    """Cell with a share, and a bar that is full for the largest one."""

    share: float
    domain: str
    largest: float = 1.0

    def __str__(self) -> str:
        return percent(self.share)


class Shade(NamedTuple):
    """Cell of a matrix, darker for a larger share of the largest value."""

    words: str
    share: float


class Row(NamedTuple):
    """Cell that names a target row and leads to its point."""

    name: str
    point: int
    unfamiliar: bool
    picture: str | None


class Album(NamedTuple):
    """Cell of pictures with their names."""

    pictures: list[tuple[str | None, str]]


class Passage(NamedTuple):
    """Cell with a text, of which the beginning is shown and the rest opens."""

    first: str
    rest: str


def passage(text: Any) -> Passage:
    """Return a text with the place where it is cut, at most after 300 letters."""
    shown = str(text)
    at = len(shown) if len(shown) <= _PASSAGE else _PASSAGE
    return Passage(shown[:at], shown[at:])


@dataclass
class Table:
    """Table, whose first column names the rows."""

    caption: str
    head: Sequence[Any]
    rows: Sequence[Sequence[Any]]

    @cached_property
    def numeric(self) -> list[bool]:
        """Whether all cells of each column are numbers, ranges or shares of numbers."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.head)
        shown = [[str(cell).strip() for cell in cells] for cells in columns[1:]]
        return [False, *(bool(texts) and all(map(_NUMBER.fullmatch, texts)) for texts in shown)]


def percent(share: float) -> str:
    """Return a share in per cent."""
    return f"{100 * share:.1f} %"


def _picture(file: Path) -> str | None:
    """Return a small picture as the address of an image; None if it cannot be read."""
    try:
        content = thumbnail(file, _SIDE, colours=128)
    except PictureError:
        return None
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def _evenly(rows: NDArray[np.intp], most: int) -> list[int]:
    """Return at most `most` of the rows, the first and the last among them."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int))].tolist()


def changed(data: ReportData) -> dict[str, Any]:
    """List the labels that adapting changed, from what to what."""
    shown: dict[str, Any] = {"kinds": None, "pictures": None}
    changes = data.trust.trust.changes
    if len(changes) > _KINDS_NAMED:
        lines = [(alone, now, f"{rows:,}") for alone, now, rows in changes[:_KINDS_SHOWN]]
        caption = f"Changed labels, {len(lines)} of {len(changes)} kinds"
        shown["kinds"] = Table(caption, ["by the source alone", "now", "rows"], lines)
    if data.files and len(changes):
        alone, now = data.trust.source_only, data.predicted
        rows = np.flatnonzero(alone != now)
        rows = rows[np.lexsort([now[rows], alone[rows]])]
        shown["pictures"] = [
            (_picture(data.files[1][row]), f"{alone[row]} → {now[row]}, {data.row_names[row]}")
            for row in _evenly(rows, _CHANGED_SHOWN)
        ]
    return shown


def balance(data: ReportData) -> Table:
    """Show the class shares of the source, of the predicted target, and any other known."""
    labels = {"source": data.ys, "target, predicted": data.predicted}
    if data.trust is not None:
        labels["target, by the source alone"] = data.trust.source_only
    if data.yt is not None:
        labels["true"] = data.yt
    classes = data.classes.tolist()
    shares = [[float(np.mean(given == c)) for given in labels.values()] for c in classes]
    most = max(map(max, shares))
    domains = ["source" if name == "source" else "target" for name in labels]
    lines = [
        [c, *(Bar(share, domain, most) for share, domain in zip(own, domains, strict=True))]
        for c, own in zip(classes, shares, strict=True)
    ]
    caption = "Share of each class; the longest bar is the largest share"
    return Table(caption, ["class", *labels], lines)


def classes(data: ReportData) -> Table:
    """Show pictures of each class: of the source, and of the target from the surest on."""
    sizes = np.array([np.sum(data.predicted == c) for c in data.classes])
    shown = np.sort(np.argsort(-sizes, kind="stable")[:_CLASSES_SHOWN])
    each = min(12, _OF_CLASSES // len(shown))
    sure = np.zeros(len(data.predicted)) if data.confidence is None else data.confidence
    names = [file.name for file in data.files[0]], data.row_names
    lines = []
    for c in data.classes[shown]:
        ours, theirs = (np.flatnonzero(labels == c) for labels in (data.ys, data.predicted))
        theirs = theirs[np.argsort(-sure[theirs], kind="stable")]
        chosen = _evenly(ours, each // 3), _evenly(theirs, each - each // 3)
        albums = (
            Album([(_picture(files[row]), named[row]) for row in rows])
            for files, named, rows in zip(data.files, names, chosen, strict=True)
        )
        lines.append([c, *albums])
    return Table("Pictures by class", ["class", "source", "target"], lines)


def agreement(data: ReportData) -> dict[str, Any]:
    """Show how often every two candidates of the pool agree."""
    every, kappas = data.pool.candidates_, data.pool.agreement_
    left_out = every[every.error.notna()]
    weights = every.set_index("name").weight
    names = [f"{name}, weight {weights[name]:.2f}" for name in kappas]
    return {
        "left_out": "; ".join(left_out.name + " (" + left_out.error + ")"),
        "kappas": _matrix("Cohen’s kappa", "candidate", names, kappas.to_numpy(), "{:.2f}"),
    }


def _matrix(
    caption: str, corner: str, names: Iterable[Any], values: NDArray[np.float64], form: str
) -> Table:
    """Return a table of values of every two names, darker for more; columns are numbered."""
    shares = np.maximum(values / values.max(), 0)
    lines = [
        [f"{i + 1}. {name}", *(Shade(form.format(v), s) for v, s in zip(*both, strict=True))]
        for i, (name, *both) in enumerate(zip(names, values, shares, strict=True))
    ]
    return Table(caption, [corner, *range(1, len(values) + 1)], lines)


def to_label(data: ReportData) -> Table | dict[str, Any]:
    """List rows for a person to label, without what was predicted for them."""
    if data.files:
        rows = data.to_label.tolist()
        return {"pictures": [(_picture(data.files[1][i]), data.row_names[i]) for i in rows]}
    telling = data.telling_columns
    lines = [
        (data.row_names[row], *(f"{v:.4g}" if isinstance(v, float) else v for v in values))
        for row, *values in telling.iloc[data.to_label].itertuples()
    ]
    head = [" · ".join(map(str, data.ids)), *telling]
    if data.texts is not None:
        texts = [passage(data.texts.given[row]) for row in data.to_label]
        others = [k for k, c in enumerate(telling, 1) if c not in data.texts.columns]
        lines = [
            (line[0], text, *(line[k] for k in others))
            for line, text in zip(lines, texts, strict=True)
        ]
        head = [head[0], "text", *(head[k] for k in others)]
    return Table(f"{len(lines)} rows", head, lines)


def uncertain(data: ReportData) -> Table:
    """List the least certain rows, to be sorted and searched, each with a link to its point."""
    place = {row: i for i, row in enumerate(_drawn(data).tolist())}
    ranked = data.classes[np.argsort(data.probabilities, axis=1, kind="stable")]
    more = {"runner-up": ranked[:, -2]} if len(data.classes) > 2 else {}
    more |= {} if data.trust is None else {"source alone": data.trust.source_only}
    more |= {} if data.yt is None else {"true": data.yt}
    lines = []
    for row in _least_certain(data).tolist():
        point, strange = place[len(data.ys) + row], bool(data.unfamiliar[row])
        picture = _picture(data.files[1][row]) if data.files else None
        named = Row(data.row_names[row], point, strange, picture)
        sure = f"{data.probabilities[row].max():,.2f}"
        line = [named, data.predicted[row], sure, *(told[row] for told in more.values())]
        if data.texts is not None:
            line.append(passage(data.texts.given[row]))
            if data.pool is not None:
                code = int(np.flatnonzero(data.classes == data.predicted[row])[0])
                line += data.texts.spoken(data.pool, row, code)
        lines.append(line)
    head = [" · ".join(map(str, data.ids)), "prediction", "confidence", *more]
    if data.texts is not None:
        head += ["text", "words for it", "words against it"][: 3 if data.pool is not None else 1]
    unit = "pictures" if data.files else "rows"
    return Table(f"The {len(lines)} least certain {unit}", head, lines)


def evaluation(data: ReportData) -> dict[str, Any]:
    """Show the accuracy of each class and the confusion matrix, if true labels were given."""
    right = data.predicted == data.yt
    lines = []
    for c in np.unique(data.yt).tolist():
        rows = data.yt == c
        wrong, counts = np.unique(data.predicted[rows & ~right], return_counts=True)
        mostly = f"{wrong[counts.argmax()]} ({counts.max():,})" if len(wrong) else "–"
        lines.append([c, f"{rows.sum():,}", Bar(float(np.mean(right[rows])), "target"), mostly])
    head = ["class", "rows", "accuracy", "mostly taken for"]
    names, confusion = np.union1d(data.classes, data.yt), None
    if len(names) <= _FEW_CLASSES:
        shares = confusion_matrix(data.yt, data.predicted, labels=names, normalize="true")
        caption = "Labels (across) of the rows of each true class (down), in per cent"
        confusion = _matrix(caption, "true", names, 100 * shares, "{:.0f}")
    by_class = Table("Accuracy of each true class", head, lines)
    return {"right": right.sum(), "by_class": by_class, "confusion": confusion}


def pictures(data: ReportData) -> dict[str, Any]:
    """Place rows in the plane, before and after, with what each is."""
    rows, n = _drawn(data), len(data.ys)
    source = rows < n
    labels = np.concatenate([data.ys[rows[source]], data.predicted[rows[~source] - n]])
    names, counts = np.unique(np.concatenate([data.ys, data.predicted]), return_counts=True)
    largest = names[np.argsort(-counts, kind="stable")[: len(CLASS_COLOURS)]]
    colours = {name: i for i, name in enumerate(np.sort(largest).tolist())}
    before = np.concatenate([data.before[0][rows[source]], data.before[1][rows[~source] - n]])
    panels = []
    after = data.space(rows)
    for key, title, Z, only in (
        ("b", "Before adaptation", before, data.feature_names[0]),
        (
            *("p", f"After {data.method}{', target rows' * (len(after) < len(rows))}", after),
            "the score between the classes",
        ),
    ):
        shown = np.arange(len(rows))[-len(Z) :]  # all, or the target, which comes last
        places, how = _planar(Z, source[shown], only)
        marks = [
            (i, source[i], colours.get(labels[i], "x"), *place)
            for i, place in zip(shown.tolist(), places.tolist(), strict=True)
        ]
        panels.append({"key": key, "title": f"{title}, by {how}", "marks": marks})
    codes = {c: i for i, c in enumerate(data.classes.tolist())}
    points: list[list[Any]] = [[codes.get(label, -1)] for label in labels.tolist()]
    for point, row in zip(points[source.sum() :], (rows[~source] - n).tolist(), strict=True):
        sure = None if data.confidence is None else round(float(data.confidence[row]), 3)
        point += [short(data.row_names[row]), sure]
    return {
        "n_rows": len(rows),
        "coloured": list(colours),
        "others": len(data.classes) - len(colours),
        "panels": panels,
        "points": {"classes": [short(name) for name in codes], "points": points},
    }


def short(value: Any, limit: int = 200) -> str:
    """Return visible text, cut in the middle if it is long: names often differ at their ends."""
    shown = visible(value)
    if len(shown) > limit:
        shown = shown[: limit // 2] + "…" + shown[len(shown) - (limit - 1) // 2 :]
    return shown


def _drawn(data: ReportData) -> NDArray[np.intp]:
    """Return positions of rows, source rows first: the least certain, and others evenly."""
    n, m = len(data.ys), len(data.predicted)
    half = _MOST_POINTS // 2
    ours, theirs = (np.linspace(0, k - 1, min(k, half)).astype(int) for k in (n, m))
    return np.unique(np.concatenate([ours, n + theirs, n + _least_certain(data)]))


def _least_certain(data: ReportData) -> NDArray[np.intp]:
    """Return target rows whose best class is least ahead of the next, in that order."""
    if data.probabilities is None:
        return np.empty(0, dtype=np.intp)
    ranked = np.sort(data.probabilities, axis=1)
    return np.argsort(ranked[:, -1] - ranked[:, -2], kind="stable")[:_LEAST_CERTAIN]


def _planar(
    rows: NDArray[Any], source: NDArray[np.bool_], only: str
) -> tuple[NDArray[np.float64], str]:
    """Map rows into the unit square, along two principal directions; return how, too.

    These are the principal components of rows of unit length from the median, which outliers
    cannot turn. Rows of one dimension, called `only`, are a band for each domain, in which they lie
    at random heights, so that they do not hide each other.
    """
    centred = np.asarray(rows, dtype=np.float64) - np.median(rows, axis=0)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    directions = centred / np.where(length > 0, length, 1.0)
    values, vectors = np.linalg.eigh(directions.T @ directions)
    axes = vectors[:, :-3:-1]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), range(axes.shape[1])])
    plane, how = centred @ axes, "two principal directions"
    if len(values) == 1 or values[-2] < 1e-9 * values[-1]:
        jitter = np.random.default_rng(0).uniform(0, 0.45, size=len(rows))
        plane = np.column_stack([plane[:, 0], jitter + 0.55 * source])
        both = "source rows above, target rows below" if source.any() else "target rows"
        how = f"{only}; {both}, at random heights"
    low, high = np.quantile(plane, [_TAIL, 1 - _TAIL], axis=0)
    margin = np.where(high > low, (high - low) / 2, np.inf)
    low, high = (np.clip(end, plane.min(0), plane.max(0)) for end in (low - margin, high + margin))
    outside = int(((plane < low) | (plane > high)).any(axis=1).sum())
    how += f"; rows farther out, drawn at the edge: {outside:,}" if outside else ""
    return (plane.clip(low, high) - low) / np.where(high > low, high - low, 1.0), how


def columns(data: ReportData) -> Table:
    """List the columns by the difference of their values between the domains, if they have any."""
    lines = [
        (s.name, f"{s.distance:.2f}", f"{s.source_mean:.4g}", f"{s.target_mean:.4g}")
        for s in data.shifts[:_COLUMNS_SHOWN]
    ]
    caption = f"The {len(lines)} columns that differ most, of {len(data.shifts)}"
    return Table(caption, ["column", "KS distance", "source mean", "target mean"], lines)


def words(data: ReportData) -> dict[str, Any]:
    """Show how many words both domains share, and the most frequent that only one uses."""
    terms, counts = np.array(data.texts.terms, dtype=object), data.texts.counts
    lines = []
    for name, own, other in zip(("source", "target"), counts, counts[::-1], strict=True):
        alone = np.flatnonzero(other == 0)
        most = alone[np.argsort(-own[alone], kind="stable")[:_WORDS_SHOWN]]
        shown = ", ".join(f"{terms[k]} ({own[k]})" for k in most)
        lines.append([name, f"{len(alone):,}", Passage(shown, "")])
    shared = (counts > 0).all(axis=0)
    head = ["domain", "words", "the most frequent, with the number of texts"]
    return {
        "shared": float(shared.mean()),
        "terms": len(terms),
        "texts": [float(own[shared].sum() / max(own.sum(), 1)) for own in counts],
        "alone": Table("Words of one domain only", head, lines),
    }


def gap(data: ReportData) -> Table:
    """Show the gap between the domains before and, if known, after, overall and per class."""
    pairs = {"all rows": [g.overall for g in data.gaps]}
    pairs |= {c: [g.by_class[c] for g in data.gaps] for c in data.gaps[0].by_class}
    lines = [
        [
            name,
            *(" → ".join("–" if v[m] != v[m] else f"{v[m]:,.2f}" for v in pair) for m in MEASURES),
        ]
        for name, pair in pairs.items()
    ]
    when = "before → after" if len(data.gaps) == 2 else "before"
    head = ["rows", *(f"{measure}, {when}" for measure in MEASURES)]
    return Table("The gap in numbers", head, lines)


def given(data: ReportData) -> dict[str, Any]:
    """List files, rows, labels, columns and preprocessing."""
    labels = "none" if data.yt is None else "given for evaluation only; the fit has not seen them"
    rows = [
        ("source", data.facts.source_name, f"{len(data.ys):,}", f"column {data.label}"),
        ("target", data.facts.target_name, f"{len(data.predicted):,}", labels),
    ]
    named = ", ".join(map(str, data.feature_names[:_COLUMNS_NAMED]))
    more = len(data.feature_names) - _COLUMNS_NAMED
    shown = {f"{len(data.feature_names):,} columns": named + (f", {more:,} more" * (more > 0))}
    domains = Table("The two domains", ("domain", "name", "rows", "labels"), rows)
    return {"domains": domains, "input": shown | data.preprocessing}


def repeat(data: ReportData) -> dict[str, Any]:
    """List versions, seed and time."""
    shown: dict[str, Any] = {**versions(), "seed": data.facts.seed}
    if data.facts.seconds is not None:
        shown["time of the fit"] = f"{data.facts.seconds:.1f} s"
    return shown


def fit(data: ReportData) -> dict[str, Any]:
    """Give each term of the objective after each round, if recorded, and where a stage begins."""
    history = getattr(unwrap(data.estimator), "history_", None)
    if not history:
        return {"curves": {}}
    curves = {_TERMS.get(key, key): [entry[key] for entry in history] for key in history[0]}
    return {"curves": curves, "stage": _second_stage(data, history)}


def _second_stage(data: ReportData, history: list[dict[str, float]]) -> int | None:
    """Return the first round of the second stage of a method that has one."""
    if "confusion" not in history[0]:
        return None
    most = int(getattr(data.estimator, "max_iter", len(history)))
    settled = (i for i, entry in enumerate(history[:most], 1) if entry.get("changed") == 0)
    first = next(settled, most)
    return first if first < len(history) else None


# -- numbers -----------------------------------------------------------------------------------


def numbers(data: ReportData) -> dict[str, Any]:
    """Show how numbers are distributed, and those of the source alone beside the answers."""
    known: Any = data.numbers
    drawn = {"source": data.ys, "target, predicted": data.predicted}
    alone = known.get("source_only")
    if alone is not None:
        drawn["target, by the source alone"] = alone.to_numpy()
    low, high = (end(map(end, drawn.values())) for end in (min, max))
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    shares = {name: np.histogram(v, edges)[0] / len(v) for name, v in drawn.items()}
    most = max(map(max, shares.values()))
    lines = [
        [name, *(f"{np.quantile(values, q):.4g}" for q in (0.05, 0.25, 0.5, 0.75, 0.95))]
        for name, values in drawn.items()
    ]
    marks = []
    if alone is not None:
        rows = np.unique(np.linspace(0, len(alone) - 1, min(len(alone), _MOST_POINTS)).astype(int))
        both = np.column_stack([alone.to_numpy()[rows], data.predicted[rows]])
        low, high = both.min(), max(both.max(), both.min() + 1e-12)
        marks = ((both - low) / (high - low)).tolist()
    head = ["numbers", "5 %", "25 %", "median", "75 %", "95 %"]
    return {
        "bars": {name: (values / most).tolist() for name, values in shares.items()},
        "ends": f"{edges[0]:.4g} to {edges[-1]:.4g}",
        "quantiles": Table("Quantiles", head, lines),
        "marks": marks,
    }


def measured(data: ReportData) -> Table:
    """List measured rows beside their predictions by the other measured ones."""
    stack = data.measured
    given = stack.units.restored(stack.given)
    off = stack.correction.left_out * stack.units.deviation
    half = stack.half_width(LEVEL)
    lines = [
        [
            data.row_names[stack.known[k]],
            *(f"{given[k]:.4g}", f"{given[k] - off[k]:.4g}", f"{off[k]:.3g}"),
            f"{given[k] - off[k] - half:.4g} to {given[k] - off[k] + half:.4g}",
        ]
        for k in np.argsort(-np.abs(off), kind="stable")
    ]
    head = [" · ".join(map(str, data.ids)), "measured", "by the others", "off by", "90 % interval"]
    return Table(f"{len(lines)} measured rows", head, lines)


def disagreeing(data: ReportData) -> Table:
    """List the rows on which the candidates lie farthest apart."""
    found: Any = data.numbers
    rows = np.argsort(-found["spread"].to_numpy(), kind="stable")[:_LEAST_CERTAIN]
    columns = [
        name for name in ("prediction", "spread", "source_only", "low", "high") if name in found
    ]
    lines = [
        [
            data.row_names[row],
            *(f"{found[name].iloc[row]:.4g}" for name in columns),
            "unfamiliar" if data.unfamiliar[row] else "",
            *([] if data.yt is None else [f"{data.yt[row]:.4g}"]),
        ]
        for row in rows.tolist()
    ]
    head = [" · ".join(map(str, data.ids)), *(name.replace("_", " ") for name in columns), "note"]
    head += [] if data.yt is None else ["true"]
    return Table(f"The {len(lines)} rows on which the candidates disagree most", head, lines)


def errors(data: ReportData) -> Table:
    """Show the errors of numbers against the true ones, by the size of the prediction."""
    true: Any = data.yt
    order = np.argsort(data.predicted, kind="stable")
    parts = {"all rows": order}
    names = ("lowest third", "middle third", "highest third")
    parts |= dict(zip(names, np.array_split(order, 3), strict=True))
    lines = []
    for name, rows in parts.items():
        off = data.predicted[rows] - true[rows]
        line = [
            f"{len(rows):,}",
            f"{np.median(np.abs(off)):.4g}",
            f"{np.sqrt(np.mean(off**2)):.4g}",
        ]
        lines.append([name, *line, f"{np.mean(off):.3g}"])
    head = ["by prediction", "rows", "median error", "root mean squared", "mean, with its sign"]
    return Table("Errors against the true numbers", head, lines)


def columns_out(data: ReportData) -> dict[str, Any]:
    """List columns that leave the source's range, and those that differ most."""
    out = [] if data.trust is None else data.trust.trust.columns
    lines = [[name, Bar(share, "target")] for name, share in out[:_COLUMNS_SHOWN]]
    head = ["column", "target rows outside of the source's range"]
    table = Table("Columns out of range", head, lines) if lines else None
    return {"out": table, "shifts": columns(data) if data.shifts else None}


# Each section, and what it needs to be known, if anything.
SECTIONS: dict[str, tuple[Callable[[ReportData], Any], str]] = {
    "changed": (changed, "trust"),
    "balance": (balance, ""),
    "classes": (classes, "files"),
    "agreement": (agreement, "pool"),
    "label": (to_label, "trust"),
    "uncertain": (uncertain, "probabilities"),
    "evaluation": (evaluation, "yt"),
    "pictures": (pictures, ""),
    "columns": (columns, "shifts"),
    "words": (words, "texts"),
    "gap": (gap, ""),
    "given": (given, ""),
    "repeat": (repeat, ""),
    "fit": (fit, ""),
}
OF_NUMBERS: dict[str, tuple[Callable[[ReportData], Any], str]] = {
    "numbers": (numbers, ""),
    "measured": (measured, "measured"),
    "label": (to_label, "trust"),
    "disagreeing": (disagreeing, "pool"),
    "errors": (errors, "yt"),
    "out": (columns_out, ""),
    "given": (given, ""),
    "repeat": (repeat, ""),
    "fit": (fit, ""),
}


# -- the page ---------------------------------------------------------------------------------


# Every value is escaped, and invisible characters are shown.
_PAGE = Environment(
    autoescape=True,
    undefined=StrictUndefined,
    finalize=lambda value: value if hasattr(value, "__html__") else visible(value),
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGE.filters |= {
    "grouped": "{:,}".format,
    "percent": percent,
    "short": short,
    "tenths": "{:.1f}".format,
}
for _kind in (Album, Bar, Passage, Row, Shade):
    _PAGE.tests[_kind.__name__.lower()] = lambda value, kind=_kind: isinstance(value, kind)


def write_report(
    path: str | os.PathLike[str],
    model: Any,
    Xs: Any,
    ys: ArrayLike | str | None,
    Xt: Any,
    *,
    yt: ArrayLike | None = None,
    trust: Assessment | bool = True,
    facts: Facts | None = None,
) -> None:
    """Write the report of a fitted model to a file, completely or not at all.

    Parameters
    ----------
    path : path
        The HTML file.
    model : classifier
        A :class:`~transferable.tables.TableClassifier`, an
        :class:`~transferable.images.ImageClassifier` or any classifier of the library.
    Xs, ys, Xt : array-like, frame, or pictures
        The data it was fitted to; for a table, `ys` may be the name of its column, for folders of
        pictures it is None.
    yt : array-like of shape (n_target,), default=None
        True labels of the target, to compare with; the fit has not used them.
    trust : Assessment or bool, default=True
        The verdict on the labels, from :func:`~transferable.diagnostics.assess_trust`; True
        computes it, for methods other than AutoAdapter by a fit of one, and False leaves it out.
    facts : Facts or None, default=None
        Names of the domains, commands, the seed, notes, time and date, where they are known.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from transferable import AutoAdapter
    >>> from transferable.datasets import make_shifted
    >>> from transferable.report import write_report
    >>> task = make_shifted()
    >>> model = AutoAdapter(effort="fast").adapt(task.Xs, task.ys, task.Xt)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(f"{folder}/report.html", model, task.Xs, task.ys, task.Xt)
    ...     model.trust_.title in pathlib.Path(folder, "report.html").read_text("utf-8")
    True
    """
    page = render_report(describe(model, Xs, ys, Xt, yt=yt, trust=trust, facts=facts))
    with replacing(path) as file:
        file.write(page)


def render_report(data: ReportData) -> str:
    """Return the report as one page of HTML that loads nothing."""
    shown = {}
    sections = SECTIONS if data.numbers is None else OF_NUMBERS
    for i, (key, (section, needed)) in enumerate(sections.items()):
        stage("Writing the report", i / len(sections), key)
        if not needed or getattr(data, needed) is not None:
            shown[key] = section(data)
    script, style, page = (
        files("transferable.report").joinpath(name).read_text(encoding="utf-8")
        for name in ("script.js", "style.css", "page.html")
    )
    return _PAGE.from_string(page).render(
        data=data,
        shown=shown,
        colours=CLASS_COLOURS,
        version=versions()["transferable"],
        script=script,
        style=style,
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
