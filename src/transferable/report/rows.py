"""Rows of the target: their pictures before and after, and the least certain of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.report.data import ReportData
from transferable.report.drawing import CLASS_COLOURS, planar, point_panel
from transferable.report.html import Section, number, paragraph, table, text

__all__ = ["pictures", "uncertain"]

_MOST_POINTS = 1200
_LEAST_CERTAIN = 40


def pictures(data: ReportData) -> Section:
    """Rows in the plane, before and after, by domain or by class; points tell what they are."""
    rows = _drawn(data)
    n = len(data.ys)
    source = rows < n
    labels = np.concatenate([data.ys[rows[source]], data.predicted[rows[~source] - n]])
    coloured = _coloured(data)
    kinds = [coloured.get(label, -1) for label in labels.tolist()]
    before = np.concatenate([data.before[0][rows[source]], data.before[1][rows[~source] - n]])
    stages = {"Before adaptation": before, f"After {data.method}": data.space(rows)}
    panels = [
        point_panel(
            title,
            _told(title, source),
            planar(Z, data.facts.seed),
            source,
            kinds,
            anchors=bool(last),
        )
        for last, (title, Z) in enumerate(stages.items())
    ]
    content = [
        paragraph(
            f"{len(rows):,} rows by their two principal components; dots are source rows, "
            "triangles target rows with their predicted class. Point at a row, or tap it, to see "
            "what it is."
        ),
        _controls(data, coloured),
        f'<div class="panels">{"".join(panels)}</div>',
        '<p id="tip" role="status" aria-live="polite"></p>',
        _points(data, rows, labels),
    ]
    return Section("pictures", "The rows before and after", content)


def _drawn(data: ReportData) -> NDArray[np.intp]:
    """Positions of rows, source rows first: the least certain, and others evenly."""
    n, m = len(data.ys), len(data.predicted)
    half = _MOST_POINTS // 2
    ours, theirs = (np.linspace(0, k - 1, min(k, half)).astype(int) for k in (n, m))
    return np.unique(np.concatenate([ours, n + theirs, n + _least_certain(data)]))


def _least_certain(data: ReportData) -> NDArray[np.intp]:
    """Target rows whose best class is least ahead of the next, in that order."""
    if data.probabilities is None:
        return np.empty(0, dtype=np.intp)
    ranked = np.sort(data.probabilities, axis=1)
    return np.argsort(ranked[:, -1] - ranked[:, -2], kind="stable")[:_LEAST_CERTAIN]


def _coloured(data: ReportData) -> dict[Any, int]:
    """The classes that have a colour of their own, the largest, by number."""
    every = np.concatenate([data.ys, data.predicted])
    names, counts = np.unique(every, return_counts=True)
    largest = names[np.argsort(-counts, kind="stable")[: len(CLASS_COLOURS)]]
    return {name: i for i, name in enumerate(np.sort(largest).tolist())}


def _controls(data: ReportData, coloured: dict[Any, int]) -> str:
    """What chooses the colours, and what they mean."""
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


def _told(title: str, source: NDArray[np.bool_]) -> str:
    return (
        f"{title}: {int(source.sum()):,} source rows and {int((~source).sum()):,} target rows in "
        "the plane. The tables below have the numbers."
    )


def _points(data: ReportData, rows: NDArray[np.intp], labels: NDArray[Any]) -> str:
    """What the script tells of each point; data, which no browser runs."""
    n, codes = len(data.ys), {c: i for i, c in enumerate(data.classes.tolist())}
    found: list[list[Any]] = []
    for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
        code = codes.get(label, -1)
        if row < n:
            found.append([code])
            continue
        sure = None if data.confidence is None else round(float(data.confidence[row - n]), 3)
        found.append([code, _plain(data.row_names[row - n]), sure])
    classes = [_plain(name) for name in data.classes.tolist()]
    written = json.dumps({"classes": classes, "points": found}).replace("<", "\\u003c")
    return f'<script type="application/json" id="points">{written}</script>'


def _plain(value: Any) -> str:
    return "".join(c if c.isprintable() else " " for c in str(value))[:200]


def uncertain(data: ReportData) -> Section:
    """The least certain rows, to be sorted and searched, each with a link to its point."""
    title = "The least certain rows"
    if data.probabilities is None:
        content = [paragraph(f"{text(data.method)} gives labels without confidence.")]
        return Section("uncertain", title, content)
    rows, place = _least_certain(data), {r: i for i, r in enumerate(_drawn(data).tolist())}
    order = np.argsort(data.probabilities, axis=1, kind="stable")
    lines = []
    for row in rows.tolist():
        name = text(data.row_names[row], 60)
        linked = f'<a href="#p{place[len(data.ys) + row]}">{name}</a>'
        line = [
            linked,
            text(data.predicted[row]),
            number(float(data.probabilities[row].max()), 2),
            text(data.classes[order[row, -2]]),
        ]
        if data.trust is not None:
            line.append(text(data.trust.source_only[row]))
        if data.yt is not None:
            line.append(text(data.yt[row]))
        lines.append(line)
    names = "row" if data.ids is None or data.ids.shape[1] == 0 else " · ".join(map(str, data.ids))
    head = [names, "prediction", "confidence", "runner-up"]
    head += ["source alone"] * (data.trust is not None) + ["true"] * (data.yt is not None)
    content = [
        paragraph(
            "Rows whose label is least ahead of the runner-up. Confidence is the method’s own, "
            "learnt without target labels: where domains differ much it exceeds the accuracy. A "
            "row’s name leads to its point in the picture."
        ),
        '<label class="search">Search <input type="search" id="search" autocomplete="off"></label>',
        table(f"The {len(lines)} least certain rows", head, lines, key="rows", marked=True),
    ]
    return Section("uncertain", title, content)
