"""Run a study, print its tables, write them and the figures."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import join

import typer
from joblib import cpu_count

from transferable.cli._console import Messages, Terminal
from transferable.persistence import versions

from . import figures
from .comparison import (
    Comparison,
    lines_of,
    markdown_row,
    to_csv,
    to_html,
    to_markdown,
    to_terminal,
)
from .plans import METHOD, METHOD_AS_PUBLISHED, Study, plan_study
from .records import Cell, Record, RecordStore, code_version
from .running import Run, run_cells
from .tables import tables_of

_PIPE_WIDTH = 160


def reproduce(
    what: Sequence[str],
    *,
    methods: str,
    tasks: str,
    protocol: str,
    jobs: int | None,
    out: Path,
    as_json: bool,
    messages: Messages,
) -> bool:
    """Run the requested study; return whether every method succeeded."""
    everything = not what or "all" in what
    study = plan_study(
        [] if everything else what,
        methods=_names(methods),
        tasks=[re.sub(r"\s*(?:->|→|[->:])\s*", "->", task) for task in _names(tasks)],
        protocol=protocol,
    )
    possible, rows, missing = study.with_data()
    if not possible.plan or (possible.plan.keys() != study.plan.keys() and not everything):
        raise FileNotFoundError("; ".join(missing))
    for text in missing:
        messages.note(text)
    run = _compute(possible, rows, jobs or cpu_count(), out, messages, as_json)
    tables = _write(possible, run, out, messages)
    if not as_json:
        _print(tables, out)
    for cell, reason in run.failures:
        messages.say(f"Failed: {cell.method} on {cell.dataset} {cell.task}: {reason}")
    return not run.failures


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _compute(
    study: Study, rows: dict[str, int], jobs: int, out: Path, messages: Messages, as_json: bool
) -> Run:
    """Compute with a progress bar, whose time left takes the sizes of tasks into account."""
    store = RecordStore(out)
    damaged = store.set_aside_damaged()
    if damaged:
        messages.note(
            f"{damaged} damaged line(s) of {store.path} set aside in {store.damaged_path.name}; "
            "the records they held are computed again."
        )
    known = store.load()
    cost = {key: 0.0 if key in known else float(n) ** 2 for key, n in rows.items()}
    left = whole = sum(cost.values()) or 1.0
    streaming = as_json and study.protocol != "oracle"
    with messages.bar("Computing") as bar:

        def finished(cell: Cell, record: Record | None) -> None:
            nonlocal left
            left -= cost[cell.key]
            bar.tick(1.0 - left / whole, f"{cell.dataset} {cell.task}")
            if streaming and record is not None:
                typer.echo(record.to_line())

        largest_first = sorted(study.cells, key=lambda cell: -rows[cell.key])
        run = run_cells(largest_first, store, jobs=jobs, finished=finished)
    if as_json and not streaming:
        for record in study.answers(run.records):
            typer.echo(record.to_line())
    return run


def _print(tables: Sequence[Comparison], out: Path) -> None:
    console = Terminal()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    for table in tables:
        console.print(to_terminal(table, console))
        console.print()
    console.print(f"Tables, figures and records are in {out}", soft_wrap=True)


def _write(study: Study, run: Run, out: Path, messages: Messages) -> list[Comparison]:
    """Write tables, figures and a page of all of them to the folder; return the tables."""
    tables: list[Comparison] = []
    pictures: dict[str, Path] = {}
    for name, cells in study.plan.items():
        tables += tables_of(name, study.protocol, cells, run.records, whole=study.whole)
        if name in figures.CAPTIONS and all(cell.key in run.records for cell in cells):
            with messages.bar(f"Drawing {name}"):
                pictures[name] = figures.draw(name, cells, run.records, out / "figures")
    folder = out / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        for ending, render in (("md", to_markdown), ("html", to_html), ("csv", to_csv)):
            (folder / f"{table.name}.{ending}").write_text(render(table), encoding="utf-8")
    summary = _summary(tables)
    if summary:
        (out / "summary.csv").write_text(lines_of(summary), encoding="utf-8")
    _write_page(out / "report.md", summary, tables, pictures)
    return tables


def _write_page(
    path: Path,
    summary: Sequence[list[str]],
    tables: Sequence[Comparison],
    pictures: Mapping[str, Path],
) -> None:
    """Write all tables and figures on one Markdown page, with the command that made it."""
    command = join(["python", "-m", "paper", *sys.argv[1:]])
    libraries = versions(code_version())
    made_with = ", ".join(f"{name} {version}" for name, version in libraries.items())
    lines = [f"Made by `{command}` with {made_with}.", ""]
    if summary:
        head, *rows = map(markdown_row, summary)
        lines += [head, markdown_row(["---"] * len(summary[0])), *rows, ""]
    lines += [to_markdown(table) for table in tables]
    for name, picture in pictures.items():
        relative = picture.relative_to(path.parent).as_posix()
        lines += [f"### {name}", "", f"![{name}]({relative})", "", figures.CAPTIONS[name], ""]
    path.write_text("\n".join(lines), encoding="utf-8")


def _summary(tables: Sequence[Comparison]) -> list[list[str]]:
    """Return the average of our method in each table beside the published and the best other."""
    rows = []
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
        values = ["" if value is None else f"{value:.1f}" for value in averages]
        dataset = table.title.split(":")[0]
        rows.append([table.name, dataset, *values, best, f"{others[best]:.1f}"])
    forms = METHOD, METHOD_AS_PUBLISHED, f"printed for {METHOD}"
    head = ["table", "dataset", *forms, "best other method", "its average"]
    return [head, *rows] if rows else []
