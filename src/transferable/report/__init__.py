"""Report of one adaptation: a self-contained HTML file.

The verdict and the next step come first, then what it rests on and rows to look at, then details;
nothing is loaded from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from typing import Any

from numpy.typing import ArrayLike

from transferable._files import replacing
from transferable.diagnostics import Assessment
from transferable.persistence import versions
from transferable.report import sections
from transferable.report.data import Facts, ReportData, describe
from transferable.report.sections import CLASS_COLOURS, Section, answer, text

__all__ = ["Facts", "ReportData", "describe", "render_report", "write_report"]

_Writer = Callable[[ReportData], Section | None]
_SECTIONS: tuple[_Writer, ...] = (
    *(sections.changed, sections.balance, sections.classes, sections.agreement, sections.to_label),
    *(sections.uncertain, sections.evaluation, sections.pictures, sections.columns),
    *(sections.gap, sections.given, sections.repeat, sections.fit),
)


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
    track: Callable[[Sequence[_Writer]], Iterable[_Writer]] = iter,
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
    track : callable, default=iter
        Goes through the sections while they are written, for a progress bar.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from transferable import AutoAdapter
    >>> from transferable.report import write_report
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat(["cat", "dog"], 20)
    >>> Xs = rng.normal(size=(40, 3)) + 4 * (ys == "dog")[:, None]
    >>> model = AutoAdapter(effort="fast").adapt(Xs, ys, Xs + 0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(f"{folder}/report.html", model, Xs, ys, Xs + 0.5)
    ...     model.trust_.title in pathlib.Path(folder, "report.html").read_text("utf-8")
    True
    """
    data = describe(model, Xs, ys, Xt, yt=yt, trust=trust, facts=facts)
    page = render_report(data, track=track)
    with replacing(path) as file:
        file.write(page)


def render_report(
    data: ReportData, *, track: Callable[[Sequence[_Writer]], Iterable[_Writer]] = iter
) -> str:
    """Return the report of an adaptation as HTML.

    Parameters
    ----------
    data : ReportData
        Content of the report, from :func:`describe`.
    track : callable, default=iter
        Goes through the sections while they are written, for a progress bar.

    Returns
    -------
    page : str
        A page that needs nothing but itself.
    """
    found = [section for write in track(_SECTIONS) if (section := write(data)) is not None]
    names = text(data.facts.source_name), text(data.facts.target_name)
    title, made = f"{names[0]} → {names[1]}", data.facts.made.isoformat()
    links = "".join(f'<li><a href="#{s.key}">{text(s.title)}</a></li>' for s in found)
    body = "\n".join(section.html() for section in found)
    script, style = (
        files("transferable.report").joinpath(name).read_text(encoding="utf-8")
        for name in ("script.js", "style.css")
    )
    # Only this script may run, and nothing may be loaded or sent.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    colours = "".join(f".c{i} {{ --own: {colour}; }}\n" for i, colour in enumerate(CLASS_COLOURS))
    lead = (
        f"<strong>{text(data.method)}</strong> labelled {len(data.predicted):,} rows of "
        f"{names[1]} with what {len(data.ys):,} labelled rows of {names[0]} teach."
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="transferable {text(versions()["transferable"])}">
<title>{title}, {made}</title>
<style>
{style}{colours}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
<header>
<h1>{title} <time datetime="{made}">{made}</time></h1>
<p class="lead">{lead}</p>
</header>
<main id="main">
{answer(data)}
<nav aria-label="Sections"><ol>{links}</ol></nav>
{body}
</main>
<script>{script}</script>
</body>
</html>
"""
