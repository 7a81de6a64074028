"""The paper's figures: class confusion, convergence, t-SNE and sensitivity to parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from sklearn.utils import Bunch

from transferable.experiments.benchmarks import BENCHMARKS
from transferable.experiments.cells import SEED, Cell
from transferable.experiments.evaluate import Iterates, fit_iterates
from transferable.experiments.plans import METHOD, SENSITIVITY, SOURCE_ONLY, parameter_path
from transferable.experiments.records import Record
from transferable.linalg.rows import unit_rows
from transferable.metrics import mmcd_distance, mmd_distance
from transferable.plots import ConfusionDisplay

__all__ = ["confusion", "convergence", "save", "sensitivity", "tsne"]

_INK = "#222222"
# Colours that readers with any kind of colour vision tell apart, and a mark for print without.
_LINES = {"color": ("#0072b2", "#d55e00", "#111111"), "marker": ("o", "s", "D")}
_CLASS_COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"),
    *("#d55e00", "#8c6d31", "#111111", "#b3b300", "#8a8a8a"),
)
_TSNE_ROWS = 80  # of each class and domain: enough to see clusters, few enough to see rows


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write a figure as SVG and PNG; return the path of the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", dpi=200)
    return folder / f"{name}.png"


def _load(cell: Cell) -> Bunch:
    return BENCHMARKS[cell.dataset].fetch().task(cell.source, cell.target)


def confusion(cells: Sequence[Cell]) -> Figure:
    """Fig. 1: what the source-only model confuses at home and abroad, and the others abroad."""
    task = _load(cells[0])
    names = task.target_names
    true: dict[str, NDArray[Any]] = {}
    predicted: dict[str, NDArray[Any]] = {}
    for cell in cells:
        labels = fit_iterates(cell, task)[0].transduction_
        method = "source-only model" if cell.method == SOURCE_ONLY else cell.method
        if cell.method == SOURCE_ONLY:
            title = f"Source {cell.source} by {method}"
            true[title], predicted[title] = names[task.ys], names[labels[: len(task.ys)]]
        title = f"Target {cell.target} by {method}"
        true[title], predicted[title] = names[task.yt], names[labels[len(task.ys) :]]
    return ConfusionDisplay.from_predictions(true, predicted, labels=names).figure_


def convergence(cells: Sequence[Cell]) -> Figure:
    """Fig. 3: MMD, MMCD and accuracy after each iteration, with the target's true labels.

    The embeddings of different methods have different sizes. Each is scaled to total variance 1,
    so that distances are shares of it and can be compared.
    """
    task = _load(cells[0])
    studies = {cell.method: fit_iterates(cell, task)[1] for cell in cells}
    longest = max(len(iterates.labels) for iterates in studies.values())
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    axes = figure.subplots(1, 3)
    for position, (method, iterates) in enumerate(studies.items()):
        line = _line(position)
        for ax, curve in zip(axes, _convergence_curves(iterates, task), strict=True):
            ax.plot(range(1, len(curve) + 1), curve, label=method, **line)
            # A method stops once its labels stay the same: later iterates equal the last.
            if iterates.settled:
                ends = (len(curve), longest)
                ax.plot(ends, [curve[-1]] * 2, color=line["color"], linestyle=":", linewidth=1.2)
    titles = ("MMD distance", "MMCD distance", "accuracy on the target (%)")
    for ax, title in zip(axes, titles, strict=True):
        _finish(ax, title, "iteration")
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[0].legend(frameon=False)
    return figure


def _convergence_curves(
    iterates: Iterates, task: Bunch
) -> tuple[list[float], list[float], list[float]]:
    """MMD, MMCD and accuracy of each iterate."""
    n_source = len(task.ys)
    embeddings = [_scaled(table) for table in iterates.tables]
    halves = [(Z[:n_source], Z[n_source:]) for Z in embeddings]
    return (
        [mmd_distance(*pair, task.ys, task.yt) for pair in halves],
        [mmcd_distance(*pair, task.ys, task.yt) for pair in halves],
        [100 * float(np.mean(labels[n_source:] == task.yt)) for labels in iterates.labels],
    )


def _scaled(table: NDArray[Any]) -> NDArray[np.float64]:
    centred = table - table.mean(axis=0)
    return centred / np.sqrt(np.mean(np.sum(centred**2, axis=1)))


def tsne(cells: Sequence[Cell], *, rows_per_class: int = _TSNE_ROWS) -> Figure:
    """Fig. 4: rows of both domains before adaptation and as each method embeds them."""
    task = _load(cells[0])
    rows = _sample(task, rows_per_class)
    tables = {"before adaptation": np.concatenate([task.Xs, task.Xt])[rows]}
    tables |= {c.method: fit_iterates(c, task)[1].tables[-1][rows] for c in cells}
    labels, source = np.concatenate([task.ys, task.yt])[rows], rows < len(task.ys)
    figure = Figure(figsize=(3.2 * len(tables), 3.9), layout="constrained")
    axes = figure.subplots(1, len(tables), squeeze=False)[0]
    for ax, (title, table) in zip(axes, tables.items(), strict=True):
        points = _tsne_map(table)
        for domain, marker in ((source, "o"), (~source, "^")):
            colours = [_CLASS_COLOURS[label % len(_CLASS_COLOURS)] for label in labels[domain]]
            face = colours if marker == "o" else "none"
            ax.scatter(
                *points[domain].T,
                s=11,
                marker=marker,
                facecolors=face,
                edgecolors=colours,
                linewidths=0.6,
            )
        ax.set_title(title, loc="left", color=_INK, fontsize=11)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_color("#cccccc")
    figure.legend(
        handles=_tsne_legend(cells[0], task),
        loc="outside lower center",
        ncols=12,
        frameon=False,
        fontsize=9,
        handletextpad=0.1,
        columnspacing=1.0,
    )
    return figure


def _sample(task: Bunch, rows_per_class: int) -> NDArray[np.intp]:
    """Positions, source rows first, of so many rows of each class and domain, drawn evenly."""
    chosen = []
    for start, labels in ((0, task.ys), (len(task.ys), task.yt)):
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            steps = np.linspace(0, len(rows) - 1, min(rows_per_class, len(rows)))
            chosen.append(start + rows[np.unique(steps.astype(np.intp))])
    return np.concatenate(chosen)


def _tsne_map(table: NDArray[Any]) -> NDArray[np.float64]:
    perplexity = min(30.0, (len(table) - 1) / 3)
    map_ = TSNE(perplexity=perplexity, init="pca", random_state=SEED)
    return np.asarray(map_.fit_transform(unit_rows(table)), dtype=np.float64)


def _tsne_legend(cell: Cell, task: Bunch) -> list[Line2D]:
    classes = [
        Line2D([], [], linestyle="", marker="s", color=_CLASS_COLOURS[k % 10], label=str(name))
        for k, name in enumerate(task.target_names)
    ]
    source = Line2D([], [], linestyle="", marker="o", color=_INK, label=f"source {cell.source}")
    target = Line2D(
        [],
        [],
        linestyle="",
        marker="^",
        color=_INK,
        fillstyle="none",
        label=f"target {cell.target}",
    )
    return [*classes, source, target]


def sensitivity(cells: Sequence[Cell], records: Mapping[str, Record]) -> Figure:
    """Fig. 5: accuracy along the paper's grid, one parameter at a time."""
    figure = Figure(figsize=(3.1 * len(SENSITIVITY), 3.4), layout="constrained")
    axes = figure.subplots(1, len(SENSITIVITY), sharey=True)
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    for ax, (name, letter) in zip(axes, SENSITIVITY.items(), strict=True):
        for position, task in enumerate(tasks):
            curve = _curve([c for c in cells if c.task == task], name, records)
            ax.plot(
                curve.keys(), curve.values(), label=task.replace("->", " → "), **_line(position)
            )
        if name != "n_neighbors":
            ax.set_xscale("log")
        _finish(ax, "", f"{letter}  ({name})")
    axes[0].set_ylabel(f"accuracy of {METHOD} on the target (%)", color=_INK)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside upper center",
        frameon=False,
        ncols=len(tasks),
    )
    return figure


def _curve(cells: Sequence[Cell], name: str, records: Mapping[str, Record]) -> dict[float, float]:
    """Accuracy by the values of one parameter, the others as documented; in rising order."""
    path = parameter_path(cells[0].parameters, name)
    along = [cell for cell in cells if set(cell.changes) <= {path} and cell.key in records]
    points = {c.parameters[path]: 100 * records[c.key].accuracy for c in along}
    # A setting that is chosen from the data has no place on the axis.
    return dict(sorted((x, y) for x, y in points.items() if not isinstance(x, str)))


def _line(position: int) -> dict[str, Any]:
    style = {key: values[position % len(values)] for key, values in _LINES.items()}
    return {**style, "linewidth": 1.6, "markersize": 4.5}


def _finish(ax: Axes, title: str, x_label: str) -> None:
    ax.set_title(title, loc="left", color=_INK, fontsize=11)
    ax.set_xlabel(x_label, color=_INK)
    ax.tick_params(colors=_INK)
    ax.grid(color="#e4e4e4", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
