"""Parts of the page: its first screen, and its sections with their tables and drawings.

All text from a file of the user passes through :func:`text`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from transferable.diagnostics import MEASURES, TERM_TITLES, history_of
from transferable.exceptions import visible
from transferable.images import PictureError, thumbnail
from transferable.persistence import versions
from transferable.report.data import ReportData

# Distinct for any kind of colour vision, and dark enough on white and light enough on black.
CLASS_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#c4679a", "#8c6d31"),
    *("#7a5fd0", "#c22f2f", "#0a8fa3", "#7f8500", "#5c6f87"),
)
_LONGEST_TEXT = 200
_KINDS_NAMED, _KINDS_SHOWN = 3, 12  # of changed labels: in the sentence, in the table
_FEW_CLASSES = 12  # whose counts can be read inside the cells of a matrix
_COLUMNS_NAMED = 12
_COLUMNS_SHOWN = 30
_MOST_POINTS = 1200
_LEAST_CERTAIN = 40
_SIDE = 64  # pixels of a thumbnail, which take at most 6 kB of the page
_CHANGED_SHOWN, _CLASSES_SHOWN, _OF_CLASSES = 30, 40, 160  # thumbnails; classes that have any
_TAIL = 0.02  # of the rows at either end of an axis, which do not set its limits
_WIDTH, _HEIGHT, _MARGIN = 340, 300, 8  # of a drawing


class Section(NamedTuple):
    """Part of the page: its identifier, its title, its content as markup, folded or not."""

    key: str
    title: str
    content: Sequence[str]
    folded: bool = False

    def html(self) -> str:
        """Return the section with its heading."""
        heading = f'<h2 id="{self.key}">{text(self.title)}</h2>'
        body = "\n".join(part for part in self.content if part)
        if self.folded:
            heading, body = f"<details><summary>{heading}</summary>", f"{body}\n</details>"
        return f'<section aria-labelledby="{self.key}">\n{heading}\n{body}\n</section>'


def text(value: Any, limit: int | None = _LONGEST_TEXT) -> str:
    """Return any value as text of the page: nothing in it is markup or invisible."""
    shown = visible(value)
    if limit is not None and len(shown) > limit:  # names often differ at their ends
        shown = shown[: limit // 2] + "…" + shown[len(shown) - (limit - 1) // 2 :]
    return escape(shown)


def paragraph(content: str) -> str:
    """Return a paragraph of markup."""
    return f"<p>{content}</p>"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _definitions(items: Mapping[str, Any]) -> str:
    pairs = (f"<div><dt>{text(k)}</dt><dd>{text(v, 2000)}</dd></div>" for k, v in items.items())
    return f"<dl>{''.join(pairs)}</dl>"


def _barred(share: float, kind: str, most: float = 1.0) -> str:
    """Return a share, and a bar that is full for the largest one."""
    width = f'<i style="width:{100 * share / most:.1f}%"></i>'
    return f'{_percent(share)}<span class="bar {kind}" aria-hidden="true">{width}</span>'


def _table(
    caption: str,
    head: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    attributes: str = "",
    marked: bool = False,
) -> str:
    """Return a table; the first column names the rows, columns of numbers are aligned.

    Cells are texts, unless `marked` states that they are markup already. A column is one of numbers
    if all of its cells begin and end as numbers do.
    """
    lines = [list(map(str, row)) for row in rows]
    sides = [
        ' class="n"' if i and lines and all(_is_number(line[i]) for line in lines) else ""
        for i in range(len(head))
    ]
    show = (lambda cell: cell) if marked else text
    cells = "".join(f'<th scope="col"{k}>{text(h)}</th>' for h, k in zip(head, sides, strict=True))
    body = "".join(
        f'<tr><th scope="row">{show(line[0])}</th>'
        + "".join(f"<td{k}>{show(c)}</td>" for c, k in zip(line[1:], sides[1:], strict=True))
        + "</tr>\n"
        for line in lines
    )
    return (
        f"<table{attributes}><caption>{text(caption)}</caption>"
        f"<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    )


def _is_number(cell: str) -> bool:
    plain = cell.split("<", 1)[0].strip()
    begins = bool(plain) and (plain[0].isdigit() or plain[0] in "–-+")
    return begins and not any(c.isalpha() for c in plain)


def _thumbnail(file: Path, name: str = "") -> str:
    """Return a small picture; nothing if it can no longer be read."""
    try:
        content = base64.b64encode(thumbnail(file, _SIDE, colours=128)).decode()
    except PictureError:
        return ""
    shown = text(name, 60)
    return f'<img src="data:image/png;base64,{content}" alt="{shown}" title="{shown}">'


def _strip(files: Sequence[Path], captions: Iterable[str]) -> str:
    """Return pictures side by side, each above its caption."""
    shown = "".join(
        f"<figure>{_thumbnail(file)}<figcaption>{text(caption, 100)}</figcaption></figure>"
        for file, caption in zip(files, captions, strict=True)
    )
    return f'<div class="strip">{shown}</div>'


def _evenly(rows: NDArray[np.intp], most: int) -> list[int]:
    """Return at most so many of the rows, the first and the last among them."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int))].tolist()


def answer(data: ReportData) -> str:
    """Return the first screen: the verdict on the labels, and what to do next."""
    measured, tick = "", ""
    if data.yt is not None:
        right = float(np.mean(data.predicted == data.yt))
        words = '<a href="#evaluation">measured with the true labels</a>'
        measured = paragraph(f"<b>{_percent(right)}</b> {words}")
        tick = f'<b style="left:{100 * right:.1f}%"></b>'
    if data.trust is None:
        return f'<section class="card"><h2>Not judged</h2>{measured}</section>'
    trust, n = data.trust.trust, len(data.to_label)
    estimate, reason, _, *limits = (_sentence(line) for line in data.trust.lines)
    estimate = estimate.removeprefix(f"{trust.title}: ")
    judge = f"{type(data.trust.pool).__name__}().adapt(Xs, ys, Xt)"
    model = "model" if data.trust.agreement is None else judge
    command = data.facts.audit or f"{model}.audit_rows({n})"
    interval = f"left:{100 * trust.low:.1f}%;width:{100 * (trust.high - trust.low):.1f}%"
    return (
        f'<div class="answer"><section class="card {trust.state}" id="trust">'
        f"<h2>{trust.title}</h2>{paragraph(estimate[0].upper() + estimate[1:])}"
        f'<div class="range" aria-hidden="true"><i style="{interval}"></i>{tick}</div>'
        '<div class="scale" aria-hidden="true"><i>0 %</i><i>50 %</i><i>100 %</i></div>'
        f"{measured}{paragraph(reason)}{''.join(map(paragraph, limits))}</section>"
        '<section class="card" id="next"><h2>Next</h2>'
        f'<p>To measure the accuracy, label <a href="#label">{n} rows</a> by hand:</p>'
        f"<pre><code>{text(command, None)}</code></pre></section></div>"
    )


def _sentence(line: str) -> str:
    return text(line.removesuffix("."), None) + "."


def changed(data: ReportData) -> Section | None:
    """List the labels that adapting changed, from what to what."""
    if data.trust is None:
        return None
    (_, _, words, *_), changes = data.trust.lines, data.trust.trust.changes
    content = [paragraph(_sentence(words))]
    if len(changes) > _KINDS_NAMED:
        lines = [(alone, now, f"{rows:,}") for alone, now, rows in changes[:_KINDS_SHOWN]]
        caption = f"Changed labels, {len(lines)} of {len(changes)} kinds"
        content.append(_table(caption, ["by the source alone", "now", "rows"], lines))
    if data.files and len(changes):
        alone, now = data.trust.source_only, data.predicted
        rows = np.flatnonzero(alone != now)
        rows = rows[np.lexsort([now[rows], alone[rows]])]
        some = _evenly(rows, _CHANGED_SHOWN)
        captions = (f"{alone[row]} → {now[row]}, {data.row_names[row]}" for row in some)
        content.append(_strip([data.files[1][row] for row in some], captions))
    return Section("changed", "What adapting changed", content)


def classes(data: ReportData) -> Section | None:
    """Show pictures of each class: of the source, and of the target from the surest on."""
    if data.files is None:
        return None
    sizes = np.array([np.sum(data.predicted == c) for c in data.classes])
    shown = np.sort(np.argsort(-sizes, kind="stable")[:_CLASSES_SHOWN])
    each = min(12, _OF_CLASSES // len(shown))
    sure = np.zeros(len(data.predicted)) if data.confidence is None else data.confidence
    lines = []
    for c in data.classes[shown]:
        ours, theirs = (np.flatnonzero(labels == c) for labels in (data.ys, data.predicted))
        theirs = theirs[np.argsort(-sure[theirs], kind="stable")]
        cells = (
            (data.files[0], _evenly(ours, each // 3), [file.name for file in data.files[0]]),
            (data.files[1], _evenly(theirs, each - each // 3), data.row_names),
        )
        pictures = [
            "".join(_thumbnail(files[row], names[row]) for row in rows)
            for files, rows, names in cells
        ]
        lines.append([text(c), *pictures])
    words = (
        "Some pictures of each class: of the source, and of those of the target that have its "
        "label, from the surest to the least sure."
    )
    if len(shown) < len(data.classes):
        words += f" The {len(shown)} classes with most labels, of {len(data.classes)}."
    table = _table("Pictures by class", ["class", "source", "target"], lines, marked=True)
    return Section("classes", "Pictures of each class", [paragraph(words), table])


def agreement(data: ReportData) -> Section | None:
    """Show how often every two candidates of the pool agree."""
    if data.pool is None:
        return None
    every, kappas = data.pool.candidates_, data.pool.agreement_
    missing = every[every.error.notna()]
    weights = every.set_index("name").weight
    words = (
        "Cohen’s kappa of the labels that every two candidates of AutoAdapter give the target: 1 "
        "if they always agree, 0 if as often as by chance. Candidates that agree may all be wrong."
    )
    left_out = [f"{name} ({why})" for name, why in zip(missing.name, missing.error, strict=True)]
    words += f" Left out: {text('; '.join(left_out), None)}." if left_out else ""
    names = [f"{name}, weight {weights[name]:.2f}" for name in kappas]
    shown = _matrix("Cohen’s kappa", "candidate", names, kappas.to_numpy(), "{:.2f}")
    return Section("agreement", "Agreement of the candidates", [paragraph(words), shown])


def _matrix(
    caption: str, corner: str, names: Iterable[Any], values: NDArray[np.float64], form: str
) -> str:
    """Return a table of values of every two names, darker for more; columns are numbered."""
    shares = np.maximum(values / values.max(), 0)
    lines = [
        [f"{i + 1}. {text(name)}"]
        + [
            f'<span class="{"full" * bool(share > 0.55)}" style="--share:{share:.3f}">'
            f"{form.format(value)}</span>"
            for value, share in zip(values[i], shares[i], strict=True)
        ]
        for i, name in enumerate(names)
    ]
    head = [corner, *range(1, len(values) + 1)]
    return _table(caption, head, lines, attributes=' class="matrix"', marked=True)


def to_label(data: ReportData) -> Section | None:
    """List rows for a person to label, without what was predicted for them."""
    if data.trust is None:
        return None
    lines = [
        (data.row_names[row], *(f"{v:.4g}" if isinstance(v, float) else v for v in values))
        for row, *values in data.first_columns.iloc[data.to_label].itertuples()
    ]
    words = (
        "Half of them, if there are so many, are rows whose label adapting changed, a sixth "
        "unfamiliar ones, and the rest others. Predictions are left out so that they do not sway "
        "whoever labels the rows."
    )
    head = [" · ".join(map(str, data.ids)), *data.first_columns]
    shown = _table(f"{len(lines)} rows", head, lines, attributes=' class="even"')
    if data.files:
        rows = data.to_label.tolist()
        shown = _strip([data.files[1][row] for row in rows], (data.row_names[row] for row in rows))
    return Section("label", "Rows to label", [paragraph(words), shown])


def pictures(data: ReportData) -> Section:
    """Draw rows in the plane, before and after, by domain or by class."""
    rows = _drawn(data)
    n = len(data.ys)
    source = rows < n
    labels = np.concatenate([data.ys[rows[source]], data.predicted[rows[~source] - n]])
    names, counts = np.unique(np.concatenate([data.ys, data.predicted]), return_counts=True)
    largest = names[np.argsort(-counts, kind="stable")[: len(CLASS_COLOURS)]]
    coloured = {name: i for i, name in enumerate(np.sort(largest).tolist())}
    kinds = [coloured.get(label, -1) for label in labels.tolist()]
    before = np.concatenate([data.before[0][rows[source]], data.before[1][rows[~source] - n]])
    panels = "".join(
        _point_panel(key, title, _planar(Z, source, only), source, kinds)
        for key, title, Z, only in (
            ("b", "Before adaptation", before, data.feature_names[0]),
            ("p", f"After {data.method}", data.space(rows), "the score between the classes"),
        )
    )
    content = [
        paragraph(
            f"{len(rows):,} rows; dots are source rows, triangles target rows with their predicted "
            "class. Point at a row, or tap it, to see what it is."
        ),
        _controls(data, coloured),
        f'<div class="panels">{panels}</div>',
        '<p id="tip" role="status" aria-live="polite"></p>',
        _points(data, rows, labels),
    ]
    return Section("pictures", "The rows before and after", content)


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
    """Map rows into the unit square, along two principal directions, and say how.

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
        how = f"{only}; source rows above, target rows below, at random heights"
    low, high = np.quantile(plane, [_TAIL, 1 - _TAIL], axis=0)
    margin = np.where(high > low, (high - low) / 2, np.inf)
    low, high = (np.clip(end, plane.min(0), plane.max(0)) for end in (low - margin, high + margin))
    outside = int(((plane < low) | (plane > high)).any(axis=1).sum())
    how += f"; rows farther out, drawn at the edge: {outside:,}" if outside else ""
    return (plane.clip(low, high) - low) / np.where(high > low, high - low, 1.0), how


def _controls(data: ReportData, coloured: dict[Any, int]) -> str:
    """Return the choice of colours, and their meaning."""
    others = len(data.classes) - len(coloured)
    keys = "".join(f'<li><i class="c{i}"></i>{text(name, 24)}</li>' for name, i in coloured.items())
    if others > 0:
        keys += f'<li><i class="cx"></i>{others} smaller classes, which share a colour</li>'
    options = "".join(
        f'<option value="{i}">{text(name, 40)}</option>'
        for i, name in enumerate(data.classes.tolist())
    )
    return (
        '<form class="controls"><fieldset><legend>Colour</legend>'
        '<label><input type="radio" name="by" id="by-class" checked>by class</label>'
        '<label><input type="radio" name="by" id="by-domain">by domain</label></fieldset>'
        '<label>Only class <select id="only"><option value="">all</option>'
        f"{options}</select></label></form>"
        f'<ul class="key by-class">{keys}</ul>'
        '<ul class="key by-domain"><li><i class="source"></i>source</li>'
        '<li><i class="target"></i>target</li></ul>'
    )


def _points(data: ReportData, rows: NDArray[np.intp], labels: NDArray[Any]) -> str:
    """Return the data of each point for the script, which no browser runs."""
    n, codes = len(data.ys), {c: i for i, c in enumerate(data.classes.tolist())}
    found: list[list[Any]] = [[codes.get(label, -1)] for label in labels.tolist()]
    for point, row in zip(found, rows.tolist(), strict=True):
        if row >= n:
            sure = None if data.confidence is None else round(float(data.confidence[row - n]), 3)
            point += [visible(data.row_names[row - n])[:_LONGEST_TEXT], sure]
    classes = [visible(name)[:_LONGEST_TEXT] for name in codes]
    written = json.dumps({"classes": classes, "points": found}).replace("<", "\\u003c")
    return f'<script type="application/json" id="points">{written}</script>'


def _point_panel(
    key: str,
    title: str,
    place: tuple[NDArray[np.float64], str],
    source: NDArray[np.bool_],
    kinds: Sequence[int],
) -> str:
    """Draw source rows as dots and target rows as triangles; classes by number, -1 for none."""
    points, how = place
    size = np.array([_WIDTH, _HEIGHT])
    x, y = (_MARGIN + np.abs(points - [0, 1]) * (size - 2 * _MARGIN)).T
    marks = []
    for i in np.argsort(~source, kind="stable").tolist():
        kind = f"{'s' if source[i] else 't'} c{kinds[i] if kinds[i] >= 0 else 'x'}"
        if source[i]:
            shape = f'circle cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="2.2"'
        else:
            shape = f'path d="M{x[i]:.1f} {y[i] - 3:.1f}l2.9 5h-5.8z"'
        marks.append(f'<{shape} class="p {kind}" id="{key}{i}" data-r="{i}"/>')
    return _panel(f"{title}, by {how}", "".join(marks), _HEIGHT, "points")


def _curve_panel(title: str, values: Sequence[float], stage: int | None) -> str:
    """Draw a curve over rounds; a line marks where the second stage begins."""
    height, left = 110, 8
    low, span = min(values), (max(values) - min(values)) or 1.0
    step = (_WIDTH - 2 * left) / max(len(values) - 1, 1)
    at = [
        (left + i * step, height - left - (v - low) / span * (height - 2 * left))
        for i, v in enumerate(values)
    ]
    line = " ".join(f"{px:.1f},{py:.1f}" for px, py in at)
    parts = [f'<polyline class="curve" points="{line}"/>']
    parts += [f'<circle class="knot" cx="{px:.1f}" cy="{py:.1f}" r="2"/>' for px, py in at]
    if stage is not None:
        px = left + (stage - 0.5) * step
        parts.append(f'<line class="stage" x1="{px:.1f}" x2="{px:.1f}" y1="0" y2="{height}"/>')
    ends = f"{title}: {values[0]:.4g} → {values[-1]:.4g} in {len(values)} rounds"
    return _panel(ends, "".join(parts), height, "curves")


def _panel(title: str, content: str, height: int, kind: str) -> str:
    """Return a drawing as wide as its column, with its title as a text alternative."""
    return (
        f'<figure class="panel"><figcaption>{text(title)}</figcaption>'
        f'<svg class="{kind}" role="img" viewBox="0 0 {_WIDTH} {height}" '
        f'aria-label="{text(title)}">{content}</svg></figure>'
    )


def uncertain(data: ReportData) -> Section | None:
    """List the least certain rows, to be sorted and searched, each with a link to its point."""
    if data.probabilities is None:
        return None
    place = {row: i for i, row in enumerate(_drawn(data).tolist())}
    ranked = data.classes[np.argsort(data.probabilities, axis=1, kind="stable")]
    more = {"runner-up": ranked[:, -2]} if len(data.classes) > 2 else {}
    more |= {} if data.trust is None else {"source alone": data.trust.source_only}
    more |= {} if data.yt is None else {"true": data.yt}
    lines = [
        [
            (_thumbnail(data.files[1][row]) if data.files else "")
            + f'<a href="#p{place[len(data.ys) + row]}">{text(data.row_names[row], 60)}</a>'
            + " <small>unfamiliar</small>" * bool(data.unfamiliar[row]),
            text(data.predicted[row]),
            f"{data.probabilities[row].max():,.2f}",
            *(text(labels[row]) for labels in more.values()),
        ]
        for row in _least_certain(data).tolist()
    ]
    head = [" · ".join(map(str, data.ids)), "prediction", "confidence", *more]
    caption = f"The {len(lines)} least certain rows"
    words = (
        "Rows whose label is least ahead of the runner-up. Confidence is the method’s own, learnt "
        "without target labels: where domains differ much it exceeds the accuracy. A row’s name "
        "leads to its point in the picture."
    )
    if strange := int(data.unfamiliar.sum()):
        words += (
            f" Unfamiliar rows, {strange:,} of {len(data.unfamiliar):,}, are far from all source "
            "rows and of uncertain label, as rows of a class are that the source lacks."
        )
    content = [
        paragraph(words),
        '<label class="search">Search <input type="search" id="search" autocomplete="off"></label>',
        _table(caption, head, lines, attributes=' id="rows"', marked=True),
    ]
    return Section("uncertain", "The least certain rows", content)


def balance(data: ReportData) -> Section:
    """Show the class shares of the source, of the predicted target, and any other known."""
    classes = data.classes.tolist()

    def shares_of(labels: NDArray[Any]) -> list[float]:
        return [float(np.mean(labels == c)) for c in classes]

    shares = {"source": shares_of(data.ys), "target, predicted": shares_of(data.predicted)}
    if data.trust is not None:
        shares["target, by the source alone"] = shares_of(data.trust.source_only)
    if data.yt is not None:
        shares["true"] = shares_of(data.yt)
    most = max(max(values) for values in shares.values())
    kinds = {name: "source" if name == "source" else "target" for name in shares}
    lines = [
        [text(c), *(_barred(shares[name][i], kind, most) for name, kind in kinds.items())]
        for i, c in enumerate(classes)
    ]
    words = (
        "Shares of the classes among source rows and among the labels that the target got. A class "
        "that all but vanishes, or swallows another, is the first thing to check."
    )
    head = ["class", *shares]
    caption = "Share of each class; the longest bar is the largest share"
    shown = _table(caption, head, lines, attributes=' class="even"', marked=True)
    return Section("balance", "Class shares", [paragraph(words), shown])


def evaluation(data: ReportData) -> Section | None:
    """Show the accuracy of each class and the confusion matrix, if true labels were given."""
    if data.yt is None:
        return None
    right = data.predicted == data.yt
    lines = []
    for c in np.unique(data.yt).tolist():
        rows = data.yt == c
        wrong, counts = np.unique(data.predicted[rows & ~right], return_counts=True)
        mostly = f"{text(wrong[counts.argmax()])} ({counts.max():,})" if len(wrong) else "–"
        share = float(np.mean(right[rows]))
        lines.append([text(c), f"{rows.sum():,}", _barred(share, "target"), mostly])
    verdict = f"{right.sum():,} of {len(right):,} target rows got their true label."
    head = ["class", "rows", "accuracy", "mostly taken for"]
    content = [paragraph(verdict), _table("Accuracy of each true class", head, lines, marked=True)]
    names = np.union1d(data.classes, data.yt)
    if len(names) <= _FEW_CLASSES:
        counts = confusion_matrix(data.yt, data.predicted, labels=names)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        caption = "Labels (across) of the rows of each true class (down), in per cent"
        content.append(_matrix(caption, "true", names, 100 * shares, "{:.0f}"))
    return Section("evaluation", "Against the true labels", content)


def columns(data: ReportData) -> Section | None:
    """List the columns by the difference of their values between the domains, if they have any."""
    if not data.shifts:
        return None
    lines = [
        (s.name, f"{s.distance:.2f}", f"{s.source_mean:.4g}", f"{s.target_mean:.4g}")
        for s in data.shifts[:_COLUMNS_SHOWN]
    ]
    explanation = (
        "Kolmogorov and Smirnov’s statistic: 0 if a column has the same values in both domains, 1 "
        "if none in common."
    )
    head = ["column", "KS distance", "source mean", "target mean"]
    shown = f"The {len(lines)} columns that differ most, of {len(data.shifts)}"
    content = [paragraph(explanation), _table(shown, head, lines)]
    return Section("columns", "Columns that shifted", content, folded=True)


def gap(data: ReportData) -> Section:
    """Show the gap between the domains before and after, overall and per class."""
    before, after = data.gaps

    def arrows(name: Any, first: dict[str, float], last: dict[str, float]) -> list[Any]:
        shown = [["–" if v[m] != v[m] else f"{v[m]:,.2f}" for v in (first, last)] for m in MEASURES]
        return [name, *(f"{one} → {other}" for one, other in shown)]

    lines = [arrows("all rows", before.overall, after.overall)]
    lines += [arrows(c, before.by_class[c], after.by_class[c]) for c in before.by_class]
    explanation = (
        "A-distance: 0 if a linear classifier cannot tell source from target on rows it was not "
        "trained on, 2 if it never errs. MMD: distance of the means; MMCD: of the means and the "
        "covariances; both where the rows’ total standard deviation is 1. “Before” are the rows "
        "as given, on a common scale, “after” the space in which the method decides. Classes of "
        "the target are the predicted ones: a small gap within classes is no proof that labels "
        "are right. A dash marks classes with too few rows in one of the domains. Of more than "
        "1,000 rows in a domain, so many are measured."
    )
    head = ["rows", *(f"{measure}, before → after" for measure in MEASURES)]
    content = [paragraph(explanation), _table("The gap in numbers", head, lines)]
    return Section("gap", "The gap between the domains", content, folded=True)


def given(data: ReportData) -> Section:
    """List files, rows, labels, columns, preprocessing and notes."""
    labels = "none" if data.yt is None else "given for evaluation only; the fit has not seen them"
    rows = [
        ("source", data.facts.source_name, f"{len(data.ys):,}", f"column {data.label}"),
        ("target", data.facts.target_name, f"{len(data.predicted):,}", labels),
    ]
    named = ", ".join(map(str, data.feature_names[:_COLUMNS_NAMED]))
    more = len(data.feature_names) - _COLUMNS_NAMED
    shown = {f"{len(data.feature_names):,} columns": named + (f", {more:,} more" * (more > 0))}
    notes = "".join(f"<li>{text(note, None)}</li>" for note in data.notes)
    content = [
        _table("The two domains", ("domain", "name", "rows", "labels"), rows),
        _definitions(shown | data.preprocessing),
        f"<h3>Notes on the input</h3><ul>{notes}</ul>" if notes else "",
    ]
    return Section("given", "What was given", content, folded=True)


def repeat(data: ReportData) -> Section:
    """List versions, seed, time and the exact command."""
    facts = data.facts
    shown: dict[str, Any] = {**versions(), "seed": facts.seed}
    if facts.seconds is not None:
        shown["time of the fit"] = f"{facts.seconds:.1f} s"
    command = f"<pre><code>{text(facts.command, None)}</code></pre>" if facts.command else ""
    return Section("repeat", "How to repeat it", [command, _definitions(shown)], folded=True)


def fit(data: ReportData) -> Section:
    """List the parameters, and draw each term of the objective after each round, if recorded."""
    content = [_definitions(data.parameters)]
    history = history_of(data.estimator)
    if history is not None:
        stage = _second_stage(data, history)
        words = (
            "Each term of the objective after each round of solving and relabelling. What is "
            "aligned changes with the labels, so the objective need not fall in every round."
        )
        if stage is not None:
            words += (
                f" From round {stage + 1} on, behind the dashed line, is the second stage: the "
                "labels of the first are the start, and a term that separates the classes which "
                "are confused is added. It jumps there because the objective is another one."
            )
        panels = "".join(
            _curve_panel(TERM_TITLES.get(key, key), [entry[key] for entry in history], stage)
            for key in history[0]
        )
        content += ["<h3>Convergence</h3>", paragraph(words)]
        content.append(f'<div class="panels curves">{panels}</div>')
    return Section("fit", f"Parameters of {data.method}", content, folded=True)


def _second_stage(data: ReportData, history: list[dict[str, float]]) -> int | None:
    """Return the first round of the second stage of a method that has one."""
    if "confusion" not in history[0]:
        return None
    most = int(getattr(data.estimator, "max_iter", len(history)))
    settled = (i for i, entry in enumerate(history[:most], 1) if entry.get("changed") == 0)
    first = next(settled, most)
    return first if first < len(history) else None
