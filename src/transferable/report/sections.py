"""Parts of the page: its first screen, and its sections with their tables and drawings.

All text from a file of the user passes through :func:`text`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transferable.diagnostics import MEASURES, TERM_TITLES, history_of
from transferable.exceptions import visible
from transferable.report.data import ReportData

# Distinct for any kind of colour vision, and dark enough on white and light enough on black.
CLASS_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#c4679a", "#8c6d31"),
    *("#7a5fd0", "#c22f2f", "#0a8fa3", "#7f8500", "#5c6f87"),
)
VERDICTS = {
    "good": ("Probably", "Adapting seems to have paid."),
    "fair": ("With care", "Adapting seems to have paid, but many labels are likely to be wrong."),
    "doubtful": (
        "Not yet",
        "Nothing shows that adapting is better than a model of the source alone.",
    ),
}
_LONGEST_TEXT = 200
_RANKED = 3  # items of a list on the first screen
_UNSURE = 0.5
_FEW_CLASSES = 12  # whose counts can be read inside the cells of a matrix
_COLUMNS_NAMED = 12
_COLUMNS_SHOWN = 30
_MOST_POINTS = 1200
_LEAST_CERTAIN = 40
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
    if limit is not None and len(shown) > limit:
        shown = shown[: limit - 1] + "…"
    return escape(shown)


def paragraph(content: str, kind: str = "") -> str:
    """Return a paragraph of markup, optionally of a class of the style sheet."""
    return f'<p class="{kind}">{content}</p>' if kind else f"<p>{content}</p>"


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def _definitions(items: Mapping[str, Any]) -> str:
    pairs = (f"<div><dt>{text(k)}</dt><dd>{text(v)}</dd></div>" for k, v in items.items())
    return f"<dl>{''.join(pairs)}</dl>"


def _barred(share: float, kind: str, most: float = 1.0) -> str:
    """Return a share, and a bar that is full for the largest one."""
    width = f"{100 * min(max(share / most, 0.0), 1.0):.1f}%"
    bar = f'<span class="bar {kind}" aria-hidden="true"><i style="width:{width}"></i></span>'
    return _percent(share, 1) + bar


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


def answer(data: ReportData) -> str:
    """Return the first screen: whether to trust the labels, what changed, what to do next."""
    trust = data.trust
    trusted = [paragraph("Not estimated.", "big")]
    if trust is not None:
        word, reason = VERDICTS[trust.verdict]
        if not trust.changed:
            reason = "Adapting changed no label; a model of the source alone says the same."
        trusted = [paragraph(word, "big"), paragraph(reason)]
    cards = [_card("trust", "Can I trust it?", *trusted, kind=trust.verdict if trust else "")]
    accuracies = _accuracies(data)
    if accuracies:
        title = "Accuracy" if trust is None else "Accuracy, estimated without labels"
        cards.append(_card("accuracy", title, *accuracies))
    if trust is not None:
        n = len(data.predicted)
        lead = f"<b>{trust.changed:,}</b> of {n:,} labels ({_percent(trust.changed / n)}) differ"
        pairs = [
            (f"{text(c.source_only, 24)} → {text(c.adapted, 24)}", f"{c.rows:,}")
            for c in trust.changes[:_RANKED]
        ]
        cards.append(_card("changed", "Against the source alone", paragraph(lead), _ranked(pairs)))
    pairs = [(text(s.name, 24), f"{s.distance:.2f}") for s in data.shifts[:_RANKED]]
    scale = paragraph("<small>0 is alike, 1 has nothing in common</small>")
    cards.append(_card("shifted", "Columns that shifted most", _ranked(pairs), scale))
    items = "".join(f"<li>{step}</li>" for step in _steps(data))
    cards.append(_card("next", "What to do next", f"<ul>{items}</ul>"))
    return f'<div class="answer">{"".join(cards)}</div>'


def _card(key: str, title: str, *content: str, kind: str = "") -> str:
    body = "".join(content)
    return f'<section class="card {kind}" id="{key}"><h2>{text(title)}</h2>{body}</section>'


def _ranked(pairs: Sequence[tuple[str, str]]) -> str:
    items = "".join(f"<li>{name} <b>{value}</b></li>" for name, value in pairs)
    return f'<ol class="ranked">{items}</ol>' if items else ""


def _accuracies(data: ReportData) -> list[str]:
    """Return the measured accuracy, if there is any, and the estimates with their ranges."""
    lines = []
    if data.yt is not None:
        right = float(np.mean(data.predicted == data.yt))
        lines.append(paragraph(f"<b>{_percent(right, 1)}</b> measured with the true labels"))
    if data.trust is not None:
        estimate = data.trust.estimate
        for name, found in (("adapted", estimate.adapted), ("source alone", estimate.source_only)):
            low, share, high = found.low, found.accuracy, found.high
            lines.append(
                f'<p class="estimate"><span>{name}</span> <b>{_percent(share)}</b> '
                f"<small>{_percent(low)} to {_percent(high)}</small>"
                '<span class="range" aria-hidden="true">'
                f'<i style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></i>'
                f'<b style="left:{100 * share:.1f}%"></b></span></p>'
            )
    return lines


def _steps(data: ReportData) -> list[str]:
    steps, trust = [], data.trust
    if trust is not None and trust.verdict == "doubtful":
        steps.append(
            'Label 30 or so of the <a href="#uncertain">least certain rows</a> by hand, and keep '
            "the model that gets more of them right."
        )
    elif data.confidence is not None:
        unsure = int(np.sum(data.confidence < _UNSURE))
        steps.append(
            f'Check the <a href="#uncertain">least certain rows</a>; {unsure:,} have a confidence '
            f"below {_percent(_UNSURE)}."
        )
    if trust is not None:
        ours = {c: float(np.mean(data.ys == c)) for c in data.classes.tolist()}
        name, share = max(trust.shares.items(), key=lambda pair: abs(pair[1] - ours[pair[0]]))
        steps.append(
            f'See whether <a href="#balance">class shares</a> are plausible: {text(name, 24)} went '
            f"from {_percent(ours[name])} to an estimated {_percent(share)}."
        )
    return steps


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
        _point_panel(title, _planar(Z, data.facts.seed), source, kinds, anchors=anchors)
        for title, Z, anchors in (
            ("Before adaptation", before, False),
            (f"After {data.method}", data.space(rows), True),
        )
    )
    content = [
        paragraph(
            f"{len(rows):,} rows by their two principal components; dots are source rows, "
            "triangles target rows with their predicted class. Point at a row, or tap it, to see "
            "what it is."
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


def _planar(rows: NDArray[Any], seed: int) -> NDArray[np.float64]:
    """Map rows onto the plane of their two principal components, within the unit square.

    A single column is the first axis; rows are then spread along the second at random, so that
    they do not hide each other.
    """
    centred = np.asarray(rows, dtype=np.float64) - rows.mean(axis=0)
    if centred.shape[1] == 1:
        spread = np.random.default_rng(seed).uniform(-1, 1, size=(len(centred), 1))
        plane = np.hstack([centred, spread * (np.abs(centred).max() or 1.0)])
    else:
        _, vectors = np.linalg.eigh(centred.T @ centred)
        axes = vectors[:, :-3:-1]
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
        plane = centred @ axes
    low, high = plane.min(axis=0), plane.max(axis=0)
    return (plane - low) / np.where(high > low, high - low, 1.0)


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
    found: list[list[Any]] = []
    for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
        point: list[Any] = [codes.get(label, -1)]
        if row >= n:
            sure = None if data.confidence is None else round(float(data.confidence[row - n]), 3)
            point += [visible(data.row_names[row - n])[:_LONGEST_TEXT], sure]
        found.append(point)
    classes = [visible(name)[:_LONGEST_TEXT] for name in codes]
    written = json.dumps({"classes": classes, "points": found}).replace("<", "\\u003c")
    return f'<script type="application/json" id="points">{written}</script>'


def _point_panel(
    title: str,
    points: NDArray[np.float64],
    source: NDArray[np.bool_],
    kinds: Sequence[int],
    *,
    anchors: bool,
) -> str:
    """Draw source rows as dots and target rows as triangles; classes by number, -1 for none.

    With `anchors`, every target point can be linked to.
    """
    x = _MARGIN + points[:, 0] * (_WIDTH - 2 * _MARGIN)
    y = _HEIGHT - _MARGIN - points[:, 1] * (_HEIGHT - 2 * _MARGIN)
    marks = []
    for i in np.argsort(~source, kind="stable").tolist():
        colour = f"c{kinds[i]}" if kinds[i] >= 0 else "cx"
        if source[i]:
            shape = f'circle cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="2.2"'
        else:
            shape = f'path d="M{x[i]:.1f} {y[i] - 3:.1f}l2.9 5h-5.8z"'
        anchor = f' id="p{i}"' if anchors and not source[i] else ""
        marks.append(
            f'<{shape} class="p {"s" if source[i] else "t"} {colour}" data-r="{i}"{anchor}/>'
        )
    description = (
        f"{title}: {int(source.sum()):,} source rows and {int((~source).sum()):,} target rows in "
        "the plane. The tables below have the numbers."
    )
    return _panel(title, description, "".join(marks), _HEIGHT, "points")


def _curve_panel(title: str, values: Sequence[float], stage: int | None) -> str:
    """Draw a curve over rounds; a line marks where the second stage begins."""
    height, left, bottom = 130, 8, 22
    y = np.asarray(values, dtype=float)
    low, high = float(y.min()), float(y.max())
    span = high - low or 1.0
    step = (_WIDTH - 2 * left) / max(len(y) - 1, 1)
    at = [
        (left + i * step, height - bottom - (v - low) / span * (height - bottom - 22))
        for i, v in enumerate(y.tolist())
    ]
    line = " ".join(f"{px:.1f},{py:.1f}" for px, py in at)
    parts = [f'<polyline class="curve" points="{line}"/>']
    parts += [f'<circle class="knot" cx="{px:.1f}" cy="{py:.1f}" r="2"/>' for px, py in at]
    if stage is not None:
        px = left + (stage - 0.5) * step
        parts.append(
            f'<line class="stage" x1="{px:.1f}" x2="{px:.1f}" y1="14" y2="{height - 20}"/>'
        )
    ends = f"{y[0]:.4g} → {y[-1]:.4g}"
    parts += [
        f'<text x="{left}" y="{height - 6}">round 1</text>',
        f'<text x="{_WIDTH - left}" y="{height - 6}" text-anchor="end">round {len(y)}</text>',
        f'<text x="{_WIDTH - left}" y="12" text-anchor="end">{ends}</text>',
    ]
    description = f"{title}: {ends} over {len(y)} rounds."
    return _panel(title, description, "".join(parts), height, "curves")


def _panel(title: str, description: str, content: str, height: int, kind: str) -> str:
    """Return a drawing as wide as its column, with a text alternative."""
    return (
        f'<figure class="panel"><figcaption>{text(title)}</figcaption>'
        f'<svg class="{kind}" role="img" viewBox="0 0 {_WIDTH} {height}" '
        f'aria-label="{text(description, None)}">{content}</svg></figure>'
    )


def uncertain(data: ReportData) -> Section:
    """List the least certain rows, to be sorted and searched, each with a link to its point."""
    title = "The least certain rows"
    if data.probabilities is None:
        content = [paragraph(f"{text(data.method)} gives labels without confidence.")]
        return Section("uncertain", title, content)
    place = {row: i for i, row in enumerate(_drawn(data).tolist())}
    runners_up = data.classes[np.argsort(data.probabilities, axis=1, kind="stable")[:, -2]]
    more = {} if data.trust is None else {"source alone": data.trust.source_only}
    more |= {} if data.yt is None else {"true": data.yt}
    lines = [
        [
            f'<a href="#p{place[len(data.ys) + row]}">{text(data.row_names[row], 60)}</a>',
            text(data.predicted[row]),
            f"{data.probabilities[row].max():,.2f}",
            *(text(labels[row]) for labels in (runners_up, *more.values())),
        ]
        for row in _least_certain(data).tolist()
    ]
    names = "row" if data.ids is None or data.ids.shape[1] == 0 else " · ".join(map(str, data.ids))
    head = [names, "prediction", "confidence", "runner-up", *more]
    caption = f"The {len(lines)} least certain rows"
    content = [
        paragraph(
            "Rows whose label is least ahead of the runner-up. Confidence is the method’s own, "
            "learnt without target labels: where domains differ much it exceeds the accuracy. A "
            "row’s name leads to its point in the picture."
        ),
        '<label class="search">Search <input type="search" id="search" autocomplete="off"></label>',
        _table(caption, head, lines, attributes=' id="rows"', marked=True),
    ]
    return Section("uncertain", title, content)


def balance(data: ReportData) -> Section:
    """Show the class prior of the source, of the predicted target, and any other known."""
    classes = data.classes.tolist()

    def shares_of(labels: NDArray[Any]) -> list[float]:
        return [float(np.mean(labels == c)) for c in classes]

    shares = {"source": shares_of(data.ys), "target, predicted": shares_of(data.predicted)}
    if data.trust is not None:
        shares["source alone"] = shares_of(data.trust.source_only)
        shares["estimated"] = [data.trust.shares[c] for c in classes]
    if data.yt is not None:
        shares["true"] = shares_of(data.yt)
    most = max(max(values) for values in shares.values())
    kinds = {name: "source" if name == "source" else "target" for name in shares}
    lines = [
        [text(c), *(_barred(shares[name][i], kind, most) for name, kind in kinds.items())]
        for i, c in enumerate(classes)
    ]
    words = (
        "Shares of the classes among source rows and among the labels that the target got. "
        "“Estimated” are the shares under which a model of the source explains the target best."
    )
    head = ["class", *shares]
    shown = _table("Share of each class", head, lines, attributes=' class="bars"', marked=True)
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
    verdict = (
        f"{_percent(float(right.mean()), 1)} of {len(data.yt):,} target rows got their true label. "
        "True labels were used here and for nothing else."
    )
    head = ["class", "rows", "accuracy", "mostly taken for"]
    content = [
        paragraph(verdict),
        _table("Accuracy of each true class", head, lines, marked=True),
        _matrix(data.yt, data.predicted, data.classes),
    ]
    return Section("evaluation", "Against the true labels", content)


def _matrix(true: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> str:
    """Show the share of each label in each true class, darker for more."""
    names = list(dict.fromkeys([*classes.tolist(), *np.unique(true).tolist()]))
    few = len(names) <= _FEW_CLASSES
    rows = []
    for one in names:
        mine = predicted[true == one]
        cells = []
        for other in names:
            share = float(np.mean(mine == other)) if len(mine) else 0.0
            title = f"{text(one, 40)} as {text(other, 40)}: {_percent(share, 1)}"
            shown = f"{100 * share:.0f}" if few and share >= 0.005 else ""
            shade = f'style="--share:{share:.3f}" class="{"full" if share > 0.55 else ""}"'
            cells.append(f'<td {shade} title="{title}">{shown}</td>')
        rows.append(f'<tr><th scope="row">{text(one, 16)}</th>{"".join(cells)}</tr>')
    heads = "".join(f'<th scope="col"><span>{text(name, 16)}</span></th>' for name in names)
    hint = "" if few else " On a narrow screen the table above says the same."
    return (
        f'<table class="matrix {"few" if few else "many"}"><caption>Per cent of the rows of each '
        f"true class (down) that got each label (across).{hint}</caption>"
        f'<thead><tr><th scope="col">true</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def columns(data: ReportData) -> Section:
    """List the columns by the difference of their values between the domains."""
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
    shown: dict[str, Any] = {**data.versions, "seed": facts.seed}
    if facts.seconds is not None:
        shown["time of the fit"] = f"{facts.seconds:.1f} s"
    command = f"<pre><code>{text(facts.command, None)}</code></pre>" if facts.command else ""
    return Section("repeat", "How to repeat it", [command, _definitions(shown)], folded=True)


def fit(data: ReportData) -> Section:
    """Draw each term of the objective after each round, and list the parameters."""
    history = history_of(data.estimator)
    if history is None:
        content = [paragraph(f"{text(data.method)} keeps no record of its iterations.")]
    else:
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
        content = [paragraph(words), f'<div class="panels curves">{panels}</div>']
    content += [f"<h3>Parameters of {text(data.method)}</h3>", _definitions(data.parameters)]
    return Section("fit", "Convergence and parameters", content, folded=True)


def _second_stage(data: ReportData, history: list[dict[str, float]]) -> int | None:
    """Return the first round of the second stage of a method that has one."""
    if "confusion" not in history[0]:
        return None
    most = int(getattr(data.estimator, "max_iter", len(history)))
    settled = [i for i, entry in enumerate(history[:most]) if entry.get("changed") == 0]
    first = settled[0] + 1 if settled else most
    return first if first < len(history) else None
