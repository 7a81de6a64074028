"""The first screen: can the labels be trusted, what changed, what shifted, what to do next."""

from __future__ import annotations

import numpy as np

from transferable.diagnostics import Trust
from transferable.report.data import ReportData
from transferable.report.html import paragraph, percent, range_bar, text

__all__ = ["answer"]

_SHOWN = 3
_UNSURE = 0.5
_WORDS = {
    "good": ("Probably", "Adapting seems to have paid."),
    "fair": ("With care", "Adapting seems to have paid, but many labels are likely to be wrong."),
    "doubtful": (
        "Not yet",
        "Nothing shows that adapting is better than a model of the source alone.",
    ),
}


def answer(data: ReportData) -> str:
    """What whoever opens the page wants to know first, as markup."""
    cards = [_trusted(data), _accuracy(data), _changed(data), _shifted(data), _next(data)]
    return f'<div class="answer">{"".join(card for card in cards if card)}</div>'


def _card(key: str, title: str, *content: str, kind: str = "") -> str:
    body = "".join(content)
    return f'<section class="card {kind}" id="{key}"><h2>{text(title)}</h2>{body}</section>'


def _trusted(data: ReportData) -> str:
    if data.trust is None:
        return _card("trust", "Can I trust it?", paragraph("Not estimated.", "big"))
    word, reason = _WORDS[data.trust.verdict]
    if not data.trust.changed:
        reason = "Adapting changed no label; a model of the source alone says the same."
    return _card(
        "trust",
        "Can I trust it?",
        paragraph(word, "big"),
        paragraph(reason),
        kind=data.trust.verdict,
    )


def _accuracy(data: ReportData) -> str:
    """Estimated accuracies with their ranges, and the measured one if there is any."""
    lines = []
    if data.yt is not None:
        right = float(np.mean(data.predicted == data.yt))
        lines.append(paragraph(f"<b>{percent(right, 1)}</b> measured with the true labels"))
    if data.trust is not None:
        estimate = data.trust.estimate
        for name, found in (("adapted", estimate.adapted), ("source alone", estimate.source_only)):
            lines.append(
                f'<p class="estimate"><span>{name}</span> <b>{percent(found.accuracy)}</b> '
                f"<small>{percent(found.low)} to {percent(found.high)}</small>"
                f"{range_bar(found.low, found.accuracy, found.high)}</p>"
            )
    title = "Accuracy, estimated without labels" if data.trust is not None else "Accuracy"
    return _card("accuracy", title, *lines) if lines else ""


def _changed(data: ReportData) -> str:
    if data.trust is None:
        return ""
    trust, n = data.trust, len(data.predicted)
    lead = f"<b>{trust.changed:,}</b> of {n:,} labels ({percent(trust.changed / n)}) differ"
    items = "".join(
        f"<li>{text(c.source_only, 24)} → {text(c.adapted, 24)} <b>{c.rows:,}</b></li>"
        for c in trust.changes[:_SHOWN]
    )
    return _card("changed", "Against the source alone", paragraph(lead), _items(items))


def _shifted(data: ReportData) -> str:
    items = "".join(
        f"<li>{text(s.name, 24)} <b>{s.distance:.2f}</b></li>" for s in data.shifts[:_SHOWN]
    )
    scale = paragraph("<small>0 is alike, 1 has nothing in common</small>")
    return _card("shifted", "Columns that shifted most", _items(items), scale)


def _next(data: ReportData) -> str:
    items = "".join(f"<li>{step}</li>" for step in _steps(data, data.trust))
    return _card("next", "What to do next", f"<ul>{items}</ul>")


def _steps(data: ReportData, trust: Trust | None) -> list[str]:
    steps = []
    if trust is not None and trust.verdict == "doubtful":
        steps.append(
            'Label 30 or so of the <a href="#uncertain">least certain rows</a> by hand, and keep '
            "the model that gets more of them right."
        )
    elif data.confidence is not None:
        unsure = int(np.sum(data.confidence < _UNSURE))
        steps.append(
            f'Check the <a href="#uncertain">least certain rows</a>; {unsure:,} have a confidence '
            f"below {percent(_UNSURE)}."
        )
    if trust is not None:
        ours = {c: float(np.mean(data.ys == c)) for c in data.classes.tolist()}
        name, share = max(trust.shares.items(), key=lambda pair: abs(pair[1] - ours[pair[0]]))
        steps.append(
            f'See whether <a href="#balance">class shares</a> are plausible: {text(name, 24)} went '
            f"from {percent(ours[name])} to an estimated {percent(share)}."
        )
    return steps


def _items(items: str) -> str:
    return f'<ol class="ranked">{items}</ol>' if items else ""
