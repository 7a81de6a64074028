"""Classes: their shares in both domains, and the true labels against the predicted ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.report.data import ReportData
from transferable.report.html import Section, bar, paragraph, percent, table, text

__all__ = ["balance", "evaluation"]

_FEW_CLASSES = 12  # whose counts can be read inside the cells of a matrix


def balance(data: ReportData) -> Section:
    """Class shares of the source, of the predicted target, and whatever else is known."""
    shares = {"source": _shares(data.ys, data.classes)}
    shares["target, predicted"] = _shares(data.predicted, data.classes)
    if data.trust is not None:
        shares["source alone"] = _shares(data.trust.source_only, data.classes)
        shares["estimated"] = np.array([data.trust.shares[c] for c in data.classes.tolist()])
    if data.yt is not None:
        shares["true"] = _shares(data.yt, data.classes)
    most = max(float(values.max()) for values in shares.values())
    lines = [
        [text(c), *(f"{percent(v[i], 1)}{bar(v[i] / most, kind)}" for kind, v in _kinds(shares))]
        for i, c in enumerate(data.classes.tolist())
    ]
    words = (
        "Shares of the classes among source rows and among the labels that the target got. "
        "“Estimated” are the shares under which a model of the source explains the target best."
    )
    caption = "Share of each class"
    content = [
        paragraph(words),
        table(caption, ["class", *shares], lines, kind="bars", marked=True),
    ]
    return Section("balance", "Class shares", content)


def _kinds(shares: dict[str, NDArray[Any]]) -> list[tuple[str, NDArray[Any]]]:
    return [("source" if i == 0 else "target", v) for i, v in enumerate(shares.values())]


def _shares(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    return np.array([np.mean(labels == c) for c in classes.tolist()])


def evaluation(data: ReportData) -> Section | None:
    """Accuracy of each class and the confusion matrix, if true labels were given."""
    if data.yt is None:
        return None
    right = data.predicted == data.yt
    lines = []
    for c in np.unique(data.yt).tolist():
        rows = data.yt == c
        share = float(np.mean(right[rows]))
        wrong, counts = np.unique(data.predicted[rows & ~right], return_counts=True)
        mostly = f"{text(wrong[counts.argmax()])} ({counts.max():,})" if len(wrong) else "–"
        lines.append(
            [text(c), f"{rows.sum():,}", f"{percent(share, 1)}{bar(share, 'target')}", mostly]
        )
    verdict = (
        f"{percent(float(right.mean()), 1)} of {len(data.yt):,} target rows got their true label. "
        "True labels were used here and for nothing else."
    )
    head = ["class", "rows", "accuracy", "mostly taken for"]
    content = [
        paragraph(verdict),
        table("Accuracy of each true class", head, lines, marked=True),
        _matrix(data.yt, data.predicted, data.classes),
    ]
    return Section("evaluation", "Against the true labels", content)


def _matrix(true: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> str:
    """Which share of each true class got each label, darker for more."""
    names = list(dict.fromkeys([*classes.tolist(), *np.unique(true).tolist()]))
    few = len(names) <= _FEW_CLASSES
    rows = []
    for one in names:
        mine = predicted[true == one]
        cells = []
        for other in names:
            share = float(np.mean(mine == other)) if len(mine) else 0.0
            told = f"{text(one, 40)} as {text(other, 40)}: {percent(share, 1)}"
            shown = f"{100 * share:.0f}" if few and share >= 0.005 else ""
            shade = f'style="--share:{share:.3f}" class="{"full" if share > 0.55 else ""}"'
            cells.append(f'<td {shade} title="{told}">{shown}</td>')
        rows.append(f'<tr><th scope="row">{text(one, 16)}</th>{"".join(cells)}</tr>')
    heads = "".join(f'<th scope="col"><span>{text(name, 16)}</span></th>' for name in names)
    size = "few" if few else "many"
    hint = "" if few else " On a narrow screen the table above says the same."
    return (
        f'<table class="matrix {size}"><caption>Per cent of the rows of each true class (down) '
        f"that got each label (across).{hint}</caption>"
        f'<thead><tr><th scope="col">true</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
