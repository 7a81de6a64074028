"""What is folded: the gap in numbers, the columns, the input, the fit, and how to repeat it."""

from __future__ import annotations

from typing import Any

from transferable.diagnostics import MEASURES, TERM_TITLES, history_of
from transferable.report.data import ReportData
from transferable.report.drawing import curve_panel
from transferable.report.html import Section, definitions, number, paragraph, table, text

__all__ = ["columns", "fit", "gap", "given", "repeat"]

_COLUMNS_NAMED = 12
_COLUMNS_SHOWN = 30


def gap(data: ReportData) -> Section:
    """The gap between the domains before and after, overall and per class."""
    before, after = data.gaps
    lines: list[list[Any]] = [["all rows", *_arrows(before.overall, after.overall)]]
    lines += [[c, *_arrows(before.by_class[c], after.by_class[c])] for c in before.by_class]
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
    content = [paragraph(explanation), table("The gap in numbers", head, lines)]
    return Section("gap", "The gap between the domains", content, folded=True)


def _arrows(before: dict[str, float], after: dict[str, float]) -> list[str]:
    return [f"{number(before[m], 2)} → {number(after[m], 2)}" for m in MEASURES]


def columns(data: ReportData) -> Section:
    """The columns by how much their values differ between the domains."""
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
    content = [paragraph(explanation), table(shown, head, lines)]
    return Section("columns", "Columns that shifted", content, folded=True)


def given(data: ReportData) -> Section:
    """Files, rows, labels, columns, preprocessing and notes."""
    labels = "given for evaluation only; the fit has not seen them"
    facts = data.facts
    rows = [
        ("source", facts.source_name, f"{len(data.ys):,}", f"column {data.label}"),
        (
            "target",
            facts.target_name,
            f"{len(data.predicted):,}",
            "none" if data.yt is None else labels,
        ),
    ]
    named = ", ".join(map(str, data.feature_names[:_COLUMNS_NAMED]))
    more = len(data.feature_names) - _COLUMNS_NAMED
    shown = {f"{len(data.feature_names):,} columns": named + (f", {more:,} more" * (more > 0))}
    notes = "".join(f"<li>{text(note, None)}</li>" for note in data.notes)
    content = [
        table("The two domains", ("domain", "name", "rows", "labels"), rows),
        definitions(shown | data.preprocessing),
        f"<h3>Notes on the input</h3><ul>{notes}</ul>" if notes else "",
    ]
    return Section("given", "What was given", content, folded=True)


def fit(data: ReportData) -> Section:
    """Each term of the objective after each round, and the parameters."""
    content = []
    history = history_of(data.estimator)
    if history is None:
        content.append(paragraph(f"{text(data.method)} keeps no record of its iterations."))
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
        panels = [
            curve_panel(TERM_TITLES.get(key, key), [entry[key] for entry in history], stage)
            for key in history[0]
        ]
        content += [paragraph(words), f'<div class="panels curves">{"".join(panels)}</div>']
    content += [f"<h3>Parameters of {text(data.method)}</h3>", definitions(data.parameters)]
    return Section("fit", "Convergence and parameters", content, folded=True)


def _second_stage(data: ReportData, history: list[dict[str, float]]) -> int | None:
    """The round with which the second stage of a method that has one begins."""
    if "confusion" not in history[0]:
        return None
    most = int(getattr(data.estimator, "max_iter", len(history)))
    settled = [i for i, entry in enumerate(history[:most]) if entry.get("changed") == 0]
    first = settled[0] + 1 if settled else most
    return first if first < len(history) else None


def repeat(data: ReportData) -> Section:
    """Versions, seed, time and the exact command."""
    facts = data.facts
    shown: dict[str, Any] = {**data.versions, "seed": facts.seed}
    if facts.seconds is not None:
        shown["time of the fit"] = f"{facts.seconds:.1f} s"
    command = f"<pre><code>{text(facts.command, None)}</code></pre>" if facts.command else ""
    content = [command, definitions(shown)]
    return Section("repeat", "How to repeat it", content, folded=True)
