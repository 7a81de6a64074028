"""What adaptation did: the sections about the rows before and after, and about the fit."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from transferable.diagnostics import MEASURES, history_of
from transferable.plots import ConvergenceDisplay, DomainGapDisplay, DomainScatterDisplay
from transferable.report.data import ReportData
from transferable.report.html import Section, figure, number, paragraph, table, text

__all__ = ["convergence", "gap", "pictures"]

_MOST_ROWS_MAPPED = 1500
_MAPS: dict[Literal["pca", "tsne"], str] = {"pca": "principal components", "tsne": "t-SNE"}
_COLOURS: tuple[Literal["domain", "class"], ...] = ("domain", "class")


def gap(data: ReportData) -> Section:
    """The gap between the domains before and after, overall and per class."""
    before, after = data.gaps.values()
    head = ["rows", *(f"{m} {stage}" for m in MEASURES for stage in ("before", "after"))]
    lines: list[list[Any]] = [
        ["all rows", *(number(g.overall[m]) for m in MEASURES for g in (before, after))]
    ]
    for c in before.by_class:
        values = (g.by_class[c][m] for m in MEASURES for g in (before, after))
        lines.append([c, *(number(value) for value in values)])
    explanation = (
        "A-distance: 0 if a linear classifier cannot tell source from target on rows it was not "
        "trained on, 2 if it never errs. MMD: distance of the means; MMCD: of the means and the "
        "covariances; both where the rows’ total standard deviation is 1. “Before” are the rows "
        "as given, on a common scale, “after” the space in which the method decides. Classes of "
        "the target are the predicted ones: a small gap within classes is no proof that labels "
        "are right. A dash marks classes with too few rows in one of the domains."
    )
    overall = "; ".join(
        f"{m} {number(before.overall[m], 2)} before and {number(after.overall[m], 2)} after"
        for m in MEASURES
    )
    description = f"Gap between source and target: {overall}. The table has that of each class."
    caption = "Gap between source and target, of all rows and of each class; smaller is closer."
    content = [
        paragraph(explanation),
        figure("gap-figure", DomainGapDisplay(data.gaps).plot().figure_, caption, description),
        table("The gap in numbers", head, lines),
    ]
    return Section("gap", "The gap between the domains", content)


def pictures(data: ReportData) -> Section:
    """Pictures of the rows in the plane, before and after, by domain and by class."""
    explanation = (
        "Filled circles are source rows, hollow triangles target rows. Principal components keep "
        "distances as well as a plane can. t-SNE keeps neighbourhoods: neither the distances "
        "between its clusters nor their sizes mean anything."
    )
    content = [paragraph(explanation)]
    for method, name in _MAPS.items():
        display = DomainScatterDisplay.from_tables(
            data.stages,
            data.sample_domain,
            data.labels,
            method=method,
            max_rows=_MOST_ROWS_MAPPED,
            random_state=data.seed or 0,
        )
        content.append(f"<h3>By {name}</h3>")
        before, after = (_mixed(points, display.source) for points in display.points.values())
        for by in _COLOURS:
            caption = f"{len(display.source):,} rows by {name}, coloured by {by}."
            if by == "class":
                caption += " Classes of target rows are the predicted ones."
            description = (
                f"Rows of both domains in the plane by {name}, coloured by {by}, before and after "
                "adaptation. The nearest neighbour in the picture is of the other domain for "
                f"{before:.0%} of rows before and {after:.0%} after."
            )
            drawing = display.plot(by=by).figure_
            content.append(figure(f"{method}-{by}", drawing, caption, description))
    return Section("pictures", "Pictures of the rows", content)


def _mixed(points: NDArray[np.float64], source: NDArray[np.bool_]) -> float:
    """Share of points whose nearest neighbour is of the other domain."""
    nearest = NearestNeighbors(n_neighbors=1).fit(points).kneighbors(return_distance=False)[:, 0]
    return float(np.mean(source[nearest] != source))


def convergence(data: ReportData) -> Section:
    """Each term of the objective after each round."""
    history = history_of(data.estimator)
    if history is None:
        content = [paragraph(f"{text(data.method)} keeps no record of its iterations.")]
        return Section("convergence", "Convergence", content)
    explanation = (
        "Each term of the objective after each round of solving and relabelling. What is aligned "
        "changes with the labels, so the objective need not fall in every round."
    )
    name, first, last = (*next(iter(history[0].items())), next(iter(history[-1].values())))
    description = f"Curves over {len(history)} rounds; {name} goes from {first:.4g} to {last:.4g}."
    caption = "The objective, its terms, and the share of target labels that each round changed."
    drawing = ConvergenceDisplay.from_estimator(data.estimator).figure_
    content = [
        paragraph(explanation),
        figure("convergence-figure", drawing, caption, description),
    ]
    return Section("convergence", "Convergence", content)
