"""Files a run leaves beside its records: tables in three formats, figures, and a page of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transferable.experiments._version import code_version
from transferable.experiments.cells import Cell
from transferable.experiments.comparison import Comparison
from transferable.experiments.plans import METHOD, METHOD_AS_PUBLISHED, TABLES
from transferable.experiments.records import Record
from transferable.experiments.rendering import to_csv, to_html, to_markdown
from transferable.experiments.tables import ablation_table, accuracy_table, timing_tables
from transferable.persistence import versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CAPTIONS", "draw", "tables_of", "write_page", "write_tables"]

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


def tables_of(
    experiment: str,
    protocol: str,
    cells: Sequence[Cell],
    records: Mapping[str, Record],
    *,
    whole: bool,
) -> list[Comparison]:
    """The tables of an experiment; none for a figure."""
    if experiment in TABLES:
        return [accuracy_table(experiment, protocol, cells, records, whole=whole)]
    if experiment == "ablation":
        return [ablation_table(cells, records)]
    return timing_tables(cells, records) if experiment == "timing" else []


def draw(
    experiment: str,
    cells: Sequence[Cell],
    records: Mapping[str, Record],
    folder: Path,
) -> Path:
    """Draw a figure, save it as PNG and SVG, and return the former."""
    from transferable.experiments import figures

    drawings: dict[str, Callable[[], Figure]] = {
        "fig-confusion": lambda: figures.confusion(cells),
        "fig-convergence": lambda: figures.convergence(cells),
        "fig-tsne": lambda: figures.tsne(cells),
        "fig-sensitivity": lambda: figures.sensitivity(cells, records),
    }
    return figures.save(drawings[experiment](), folder, experiment)


def write_tables(tables: Sequence[Comparison], folder: Path) -> None:
    """Each table as Markdown, HTML and CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        for ending, render in (("md", to_markdown), ("html", to_html), ("csv", to_csv)):
            (folder / f"{table.name}.{ending}").write_text(render(table), encoding="utf-8")


def write_page(
    path: Path, command: str, tables: Sequence[Comparison], figures: Mapping[str, Path]
) -> None:
    """All tables and figures of a run on one Markdown page, with the command that made it."""
    libraries = versions(code_version())
    made_with = ", ".join(f"{name} {version}" for name, version in libraries.items())
    lines = [f"Made by `{command}` with {made_with}.", "", *_summary(tables)]
    lines += [to_markdown(table) for table in tables]
    for name, picture in figures.items():
        relative = picture.relative_to(path.parent).as_posix()
        lines += [f"### {name}", "", f"![{name}]({relative})", "", CAPTIONS[name], ""]
    path.write_text("\n".join(lines), encoding="utf-8")


def _summary(tables: Sequence[Comparison]) -> list[str]:
    """The average of our method in each table beside the published one and the best other."""
    lines = []
    for table in tables:
        last = table.columns[-1]
        if table.lower_is_better:
            continue
        others = {m: table.ours[m, last] for m in table.rows if (m, last) in table.ours}
        own = others.pop(METHOD, None)
        if own is None or not others:
            continue
        best = max(others, key=others.__getitem__)
        averages = own, others.get(METHOD_AS_PUBLISHED), table.published.get((METHOD, last))
        values = ["-" if value is None else f"{value:.1f}" for value in averages]
        lines.append(f"| {table.title} | {' | '.join(values)} | {best} {others[best]:.1f} |")
    if not lines:
        return []
    forms = f"{METHOD} | {METHOD_AS_PUBLISHED} | printed for {METHOD}"
    head = f"| average | {forms} | best other method here |"
    return [head, "| --- | --: | --: | --: | --- |", *lines, ""]
