"""Report of one adaptation: a self-contained HTML file.

The verdict and the next step come first, then what it rests on and rows to look at, then details;
nothing is loaded from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import os
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from numpy.typing import ArrayLike

from transferable._files import replacing, visible
from transferable.diagnostics import Assessment
from transferable.events import stage
from transferable.persistence import versions
from transferable.report.data import Facts, ReportData, describe
from transferable.report.sections import (
    CLASS_COLOURS,
    OF_NUMBERS,
    SECTIONS,
    Album,
    Bar,
    Passage,
    Row,
    Shade,
    percent,
    short,
)

__all__ = ["Facts", "write_report"]


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
    return (
        _environment()
        .from_string(page)
        .render(
            data=data,
            shown=shown,
            colours=CLASS_COLOURS,
            version=versions()["transferable"],
            script=script,
            style=style,
            digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def _environment() -> Environment:
    """Return what renders the page: every value is escaped, invisible characters are shown."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else visible(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "grouped": "{:,}".format,
        "percent": percent,
        "short": short,
        "tenths": "{:.1f}".format,
    }
    for kind in (Album, Bar, Passage, Row, Shade):
        environment.tests[kind.__name__.lower()] = lambda value, kind=kind: isinstance(value, kind)
    return environment
