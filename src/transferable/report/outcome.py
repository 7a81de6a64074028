"""What was given and what came out: the sections about the two tables and the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.plots import ConfusionDisplay
from transferable.report.data import ReportData
from transferable.report.figures import MOST_CLASSES, class_balance, confidence_histogram
from transferable.report.html import (
    Section,
    definitions,
    figure,
    number,
    paragraph,
    table,
    text,
)

__all__ = ["balance", "confidence", "evaluation", "given", "repeat"]

_COLUMNS_NAMED = 12
_LEAST_CERTAIN = 20


def given(data: ReportData) -> Section:
    """Files, rows, labels, columns, preprocessing and notes."""
    labels = "given for evaluation only; the fit has not seen them"
    rows = [
        ("source", data.source_name, f"{len(data.ys):,}", f"column {data.label}"),
        (
            "target",
            data.target_name,
            f"{len(data.predicted):,}",
            "none" if data.yt is None else labels,
        ),
    ]
    columns = ", ".join(map(str, data.feature_names[:_COLUMNS_NAMED]))
    more = len(data.feature_names) - _COLUMNS_NAMED
    facts = {f"{len(data.feature_names):,} columns": columns + (f", {more:,} more" * (more > 0))}
    notes = "".join(f"<li>{text(note, None)}</li>" for note in data.notes)
    content = [
        table("The two domains", ("domain", "file", "rows", "labels"), rows),
        definitions(facts | data.preprocessing),
        f"<h3>Notes on the input</h3><ul>{notes}</ul>" if notes else "",
    ]
    return Section("given", "What was given", content)


def balance(data: ReportData) -> Section:
    """Class balance of the source against that of the predicted target."""
    labels = {"source, given": data.ys, "target, predicted": data.predicted}
    if data.yt is not None:
        labels["target, true"] = data.yt
    counts = {name: _counts(values, data.classes) for name, values in labels.items()}
    shares = {name: n / max(n.sum(), 1) for name, n in counts.items()}
    rows = [
        (c, *(f"{n[i]:,} ({shares[name][i]:.1%})" for name, n in counts.items()))
        for i, c in enumerate(data.classes.tolist())
    ]
    source, target = list(shares.values())[:2]
    largest = np.sort(np.argsort(-(source + target), kind="stable")[:MOST_CLASSES])
    drawn = {"source, given": source[largest], "target, predicted": target[largest]}
    change = np.abs(target - source)
    caption = "Share of each class among source rows and among the labels predicted for the target."
    if len(largest) < len(data.classes):
        caption += f" Shown are the {len(largest)} largest of {len(data.classes)} classes."
    description = (
        f"Bars of the share of rows in {len(largest)} classes, source beside predicted target. The "
        f"largest difference, {100 * change.max():.1f} points, is in class "
        f"{data.classes[change.argmax()]}."
    )
    drawing = class_balance(drawn, data.classes[largest].tolist())
    content = [
        figure("balance-figure", drawing, caption, description),
        table("Rows of each class", ("class", *counts), rows),
    ]
    return Section("balance", "Class balance", content)


def _counts(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    return np.array([np.count_nonzero(labels == c) for c in classes.tolist()], dtype=np.intp)


def confidence(data: ReportData) -> Section:
    """Confidence of the labels and the rows that are least certain."""
    title = "How certain the labels are"
    if data.probabilities is None:
        content = [paragraph(f"{text(data.method)} gives labels without confidence.")]
        return Section("confidence", title, content)
    best = data.probabilities.max(axis=1)
    caveat = (
        "Confidence is the probability that the method gives its own label. It is estimated "
        "without target labels: where domains differ much, expect it to exceed the accuracy. The "
        "least certain rows are those whose label is least ahead of the runner-up."
    )
    description = (
        f"Histogram of confidence over {len(best):,} target rows: median {np.median(best):.2f}; "
        f"{np.mean(best >= 0.9):.0%} of rows have at least 0.9."
    )
    caption = "Target rows by the confidence of their label."
    content = [
        paragraph(caveat),
        figure("confidence-figure", confidence_histogram(best), caption, description),
        _least_certain(data, data.probabilities),
    ]
    return Section("confidence", title, content)


def _least_certain(data: ReportData, probabilities: NDArray[Any]) -> str:
    """Rows whose best class is least ahead of the next."""
    order = np.argsort(probabilities, axis=1, kind="stable")
    every = np.arange(len(order))
    best, second = probabilities[every, order[:, -1]], probabilities[every, order[:, -2]]
    rows = np.argsort(best - second, kind="stable")[:_LEAST_CERTAIN]
    columns: dict[str, Any] = _row_names(data)
    n_names = len(columns)
    columns |= {
        "prediction": data.predicted,
        "confidence": [number(value) for value in best],
        "runner-up": data.classes[order[:, -2]],
    }
    if data.yt is not None:
        columns["true label"] = data.yt
    lines = [[column[i] for column in columns.values()] for i in rows]
    return table(f"The {len(rows)} least certain rows", list(columns), lines, names=n_names)


def _row_names(data: ReportData) -> dict[str, Any]:
    if data.ids is None or data.ids.shape[1] == 0:
        return {"row": range(1, len(data.predicted) + 1)}
    return {str(name): data.ids.iloc[:, i].tolist() for i, name in enumerate(data.ids.columns)}


def evaluation(data: ReportData) -> Section | None:
    """The confusion matrix, if true labels were given."""
    if data.yt is None:
        return None
    right = float(np.mean(data.predicted == data.yt))
    display = ConfusionDisplay.from_predictions(data.yt, {data.method: data.predicted})
    lines = []
    for c in np.unique(data.yt).tolist():
        rows = data.yt == c
        lines.append((c, f"{rows.sum():,}", f"{np.mean(data.predicted[rows] == c):.1%}"))
    verdict = (
        f"{right:.1%} of {len(data.yt):,} target rows got their true label. True labels were used "
        "here and for nothing else."
    )
    description = (
        f"Confusion matrix of {len(display.labels)} classes; {right:.1%} of rows are on the "
        "diagonal. The table has the accuracy of each class."
    )
    caption = "Which per cent of the rows of a true class were given each class."
    content = [
        paragraph(verdict),
        figure("confusion-figure", display.figure_, caption, description),
        table("Accuracy of each true class", ("class", "rows", "accuracy"), lines),
    ]
    return Section("evaluation", "Against the true labels", content)


def repeat(data: ReportData) -> Section:
    """Parameters, versions, seed and the exact command."""
    seed = "none was set" if data.seed is None else data.seed
    content = [
        f'<pre tabindex="0" aria-label="The command"><code>{text(data.command, None)}</code></pre>',
        f"<h3>Parameters of {text(data.method)}</h3>",
        definitions(data.parameters),
        "<h3>Versions and seed</h3>",
        definitions({**data.versions, "seed": seed}),
    ]
    return Section("repeat", "How to repeat it", content)
