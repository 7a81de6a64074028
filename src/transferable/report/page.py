"""The page: head, summary, contents and sections, without a script or a link to elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from transferable._atomic import replacing
from transferable.report.data import ReportData
from transferable.report.html import Section, definitions, number, paragraph, text
from transferable.report.outcome import balance, confidence, evaluation, given, repeat
from transferable.report.spaces import convergence, gap, pictures

__all__ = ["render_report", "write_report"]

_Writer = Callable[[ReportData], Section | None]
_SECTIONS: tuple[_Writer, ...] = (
    *(given, gap, pictures, balance, confidence, convergence, evaluation, repeat),
)
# Whatever slipped through the escaping could still not run, load or send anything.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'"


def write_report(
    path: str | os.PathLike[str],
    data: ReportData,
    *,
    track: Callable[[Sequence[_Writer]], Iterable[_Writer]] = iter,
) -> None:
    """Write the report of an adaptation to a file, whole or not at all.

    Parameters
    ----------
    path : path
        The HTML file.
    data : ReportData
        What the report is about.
    track : callable, default=iter
        Goes through the sections while they are written, for a progress bar.
    """
    page = render_report(data, track=track)
    with replacing(path) as file:
        file.write(page)


def render_report(
    data: ReportData, *, track: Callable[[Sequence[_Writer]], Iterable[_Writer]] = iter
) -> str:
    """Give the report of an adaptation as HTML.

    Parameters
    ----------
    data : ReportData
        What the report is about.
    track : callable, default=iter
        Goes through the sections while they are written, for a progress bar.

    Returns
    -------
    page : str
        A page that needs nothing but itself.
    """
    found = [section for write in track(_SECTIONS) if (section := write(data)) is not None]
    title = f"{text(data.method)}: {text(data.source_name)} → {text(data.target_name)}"
    links = "".join(f'<li><a href="#{s.key}">{text(s.title)}</a></li>' for s in found)
    style = files("transferable.report").joinpath("style.css").read_text(encoding="utf-8")
    body = "\n".join(section.html() for section in found)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="transferable {text(data.versions.get("transferable", ""))}">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
<header>
<h1>{title}</h1>
{_summary(data)}
</header>
<nav aria-label="Sections"><ol>{links}</ol></nav>
<main id="main">
{body}
</main>
</body>
</html>
"""


def _summary(data: ReportData) -> str:
    """What happened, in a sentence and a few numbers."""
    sentence = (
        f"<strong>{text(data.method)}</strong> labelled {len(data.predicted):,} rows of "
        f"{text(data.target_name)} with what {len(data.ys):,} labelled rows of "
        f"{text(data.source_name)} teach."
    )
    before, after = (stage.overall["A-distance"] for stage in data.gaps.values())
    facts: dict[str, Any] = {"classes": len(data.classes)}
    if data.yt is not None:
        facts["accuracy on the target"] = f"{np.mean(data.predicted == data.yt):.1%}"
    if data.probabilities is not None:
        facts["mean confidence"] = f"{data.probabilities.max(axis=1).mean():.1%}"
    facts["A-distance, before → after"] = f"{number(before, 2)} → {number(after, 2)}"
    if data.seconds is not None:
        facts["time of the fit"] = f"{data.seconds:.1f} s"
    return paragraph(sentence, "lead") + f'<div class="facts">{definitions(facts)}</div>'
