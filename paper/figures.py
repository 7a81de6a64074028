"""The paper's figures: class confusion, convergence, t-SNE and sensitivity to parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix
from sklearn.utils import Bunch

from transferable._linalg.arrays import unit_rows
from transferable.diagnostics import unit_variance
from transferable.metrics import mmcd_distance, mmd_distance
from transferable.plots import INK, DomainScatterDisplay, finish, line_style

from .benchmarks import BENCHMARKS
from .plans import METHOD, SENSITIVITY, SOURCE_ONLY, parameter_path
from .records import SEED, Cell, Record
from .running import Iterates, fit_iterates

CAPTIONS = {
    "fig-confusion": "Which classes the source-only model confuses in its own domain and in the "
    "target, and what adaptation makes of it (Fig. 1 of the paper). Cells are per cents of "
    "the rows of a true class. The source-only model was trained on the very source rows.",
    "fig-convergence": "Distance between the domains after each iteration, with the target's true "
    "labels (for this figure alone), and accuracy (Fig. 3). Embeddings are scaled to total "
    "variance 1, so that distances of different methods can be compared; dotted lines go on from "
    "the iterate after which a method's labels no longer change.",
    "fig-tsne": "t-SNE of the rows before adaptation and as each method embeds them (Fig. 4); up "
    "to 80 rows of each class and domain, evenly spaced in the data.",
    "fig-sensitivity": "Accuracy of TFDF as one parameter runs over the paper's grid and the "
    "others keep the dataset's setting (Fig. 5).",
}
_DECADES = 50  # ratio of the largest to the smallest value from which an axis is logarithmic
_TSNE_ROWS = 80  # of each class and domain: enough to see clusters, few enough to see rows


def draw(
    experiment: str, cells: Sequence[Cell], records: Mapping[str, Record], folder: Path
) -> Path:
    """Draw the figure of an experiment, save it as PNG and SVG, and return the former's path."""
    if experiment == "fig-sensitivity":
        return save(sensitivity(cells, records), folder, experiment)
    drawings = {"fig-confusion": confusion, "fig-convergence": convergence, "fig-tsne": tsne}
    return save(drawings[experiment](cells), folder, experiment)


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write a figure as SVG and PNG; return the path of the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", dpi=200)
    return folder / f"{name}.png"


def _load(cell: Cell) -> Bunch:
    return BENCHMARKS[cell.dataset].fetch().task(cell.source, cell.target)


def confusion(cells: Sequence[Cell]) -> Figure:
    """Draw Fig. 1: confusion by the source-only model in both domains, by others in the target."""
    task = _load(cells[0])
    panels: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
    for cell in cells:
        labels = fit_iterates(cell, task)[0].transduction_
        method = "source alone" if cell.method == SOURCE_ONLY else cell.method
        if cell.method == SOURCE_ONLY:
            panels[f"Source {cell.source} by {method}"] = task.ys, labels[: len(task.ys)]
        panels[f"Target {cell.target} by {method}"] = task.yt, labels[len(task.ys) :]
    n_classes, n_panels = len(task.target_names), len(panels)
    figure = Figure(figsize=(4 * n_panels, 4.6), layout="constrained")
    axes = figure.subplots(1, n_panels, squeeze=False, sharey=True)[0]
    for ax, (title, (true, predicted)) in zip(axes, panels.items(), strict=True):
        shares = 100 * confusion_matrix(true, predicted, labels=range(n_classes), normalize="true")
        ConfusionMatrixDisplay(shares, display_labels=task.target_names).plot(
            ax=ax,
            cmap="Blues",
            colorbar=False,
            include_values=n_classes <= 20,
            values_format=".0f",
            xticks_rotation="vertical",
            im_kw={"vmin": 0, "vmax": 100},
        )
        ax.set_title(f"{title}\n{100 * np.mean(true == predicted):.1f} % correct", loc="left")
        ax.label_outer()
    return figure


def convergence(cells: Sequence[Cell]) -> Figure:
    """Draw Fig. 3: MMD, MMCD and accuracy after each iteration, with the target's true labels.

    The embeddings of different methods have different sizes. Each is scaled to total variance 1,
    so that distances are shares of it and can be compared.
    """
    task = _load(cells[0])
    studies = {cell.method: fit_iterates(cell, task)[1] for cell in cells}
    curves: dict[str, dict[str, dict[float, float]]] = {}
    for method, iterates in studies.items():
        for title, values in _convergence_curves(iterates, task).items():
            curves.setdefault(title, {})[method] = dict(enumerate(values, 1))
    figure = _draw_curves(curves, (3.3, 2.5))
    longest = max(len(iterates.labels) for iterates in studies.values())
    for ax, (title, panel) in zip(figure.axes, curves.items(), strict=True):
        finish(ax, title, "iteration")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        for position, (method, curve) in enumerate(panel.items()):
            # A method stops once its labels stay the same: later iterates equal the last.
            if studies[method].settled:
                last, colour = len(curve), line_style(position)["color"]
                ax.plot([last, longest], [curve[last]] * 2, color=colour, linestyle=":")
    figure.axes[0].legend(frameon=False, labelcolor=INK)
    return figure


def _draw_curves(
    panels: Mapping[str, Mapping[str, Mapping[float, float]]], size: tuple[float, float]
) -> Figure:
    """Draw a panel beside the other for each title, with a curve for each name."""
    figure = Figure(figsize=(size[0] * len(panels) + 0.2, size[1] + 0.4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, curves in zip(axes, panels.values(), strict=True):
        for position, (name, curve) in enumerate(curves.items()):
            ax.plot(list(curve), list(curve.values()), label=name, **line_style(position))
    return figure


def _convergence_curves(iterates: Iterates, task: Bunch) -> dict[str, list[float]]:
    """Return MMD, MMCD and accuracy of each iterate."""
    n_source = len(task.ys)
    embeddings = [unit_variance(table) for table in iterates.tables]
    halves = [(Z[:n_source], Z[n_source:]) for Z in embeddings]
    right = [np.mean(labels[n_source:] == task.yt) for labels in iterates.labels]
    return {
        "MMD distance": [mmd_distance(*pair, task.ys, task.yt) for pair in halves],
        "MMCD distance": [mmcd_distance(*pair, task.ys, task.yt) for pair in halves],
        "accuracy on the target (%)": [100 * float(share) for share in right],
    }


def tsne(cells: Sequence[Cell], *, rows_per_class: int = _TSNE_ROWS) -> Figure:
    """Draw Fig. 4: rows of both domains before adaptation and as each method embeds them."""
    task = _load(cells[0])
    rows = _sample(task, rows_per_class)
    tables = {"before adaptation": np.concatenate([task.Xs, task.Xt])[rows]}
    tables |= {c.method: fit_iterates(c, task)[1].tables[-1][rows] for c in cells}
    return DomainScatterDisplay.from_tables(
        {title: unit_rows(table) for title, table in tables.items()},
        np.where(rows < len(task.ys), 1, -1),
        task.target_names[np.concatenate([task.ys, task.yt])[rows]],
        method="tsne",
        max_rows=len(rows),
        random_state=SEED,
        domain_names=(f"source {cells[0].source}", f"target {cells[0].target}"),
    ).figure_


def _sample(task: Bunch, rows_per_class: int) -> NDArray[np.intp]:
    """Return evenly spaced positions, source rows first, of rows of each class and domain."""
    chosen = []
    for start, labels in ((0, task.ys), (len(task.ys), task.yt)):
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            steps = np.linspace(0, len(rows) - 1, min(rows_per_class, len(rows)))
            chosen.append(start + rows[np.unique(steps.astype(np.intp))])
    return np.concatenate(chosen)


def sensitivity(cells: Sequence[Cell], records: Mapping[str, Record]) -> Figure:
    """Draw Fig. 5: accuracy along the paper's grid, one parameter at a time."""
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    curves = {
        f"{letter}  ({name})": {
            task.replace("->", " → "): _curve([c for c in cells if c.task == task], name, records)
            for task in tasks
        }
        for name, letter in SENSITIVITY.items()
    }
    figure = _draw_curves(curves, (3.1, 3.1))
    for ax, (label, panel) in zip(figure.axes, curves.items(), strict=True):
        finish(ax, "", label)
        ax.sharey(figure.axes[0])
        values = [value for curve in panel.values() for value in curve]
        if values and min(values) > 0 and max(values) >= _DECADES * min(values):
            ax.set_xscale("log")
    figure.axes[0].set_ylabel(f"accuracy of {METHOD} on the target (%)", color=INK)
    handles, _ = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles=handles, frameon=False, loc="outside upper center", ncols=len(tasks))
    return figure


def _curve(cells: Sequence[Cell], name: str, records: Mapping[str, Record]) -> dict[float, float]:
    """Return accuracy by the values of one parameter, the others as documented; in rising order."""
    path = parameter_path(cells[0].parameters, name)
    along = [cell for cell in cells if set(cell.changes) <= {path} and cell.key in records]
    points = {c.parameters[path]: 100 * records[c.key].accuracy for c in along}
    # A setting that is chosen from the data has no place on the axis.
    return dict(sorted((x, y) for x, y in points.items() if not isinstance(x, str)))
