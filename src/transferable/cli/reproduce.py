"""``transferable reproduce``: the paper's tables and figures from the real data."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

import typer

from transferable.cli._console import FAILURE, Messages, reporting, stdout
from transferable.cli._options import Quiet, flag

if TYPE_CHECKING:
    from transferable.experiments.cells import Cell
    from transferable.experiments.comparison import Comparison
    from transferable.experiments.records import Record
    from transferable.experiments.runner import Run
    from transferable.experiments.study import Study

_PIPE_WIDTH = 160


def run(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT",
            help="surf, decaf6, efficientnet, digits, coil, ablation, timing, fig-confusion, "
            "fig-convergence, fig-tsne, fig-sensitivity, or all (the default). By name only: "
            "digits-full, the deep methods, which need a GPU.",
        ),
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Only these methods, separated by commas: JDA,TFDF.")
    ] = "",
    tasks: Annotated[
        str, typer.Option(help="Only these tasks, separated by commas: C-A,D-W.")
    ] = "",
    protocol: Annotated[
        str,
        typer.Option(
            help="fixed: one documented setting per dataset. oracle: the best of the paper's grid "
            "by target accuracy, an upper bound. label-free: the best of it by scores that see no "
            "target label."
        ),
    ] = "fixed",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; by default one for each core.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            file_okay=False, help="Folder for records, tables and figures; a run goes on there."
        ),
    ] = Path("transferable-results"),
    as_json: Annotated[
        bool, flag("--json", help="Print records as JSON Lines instead of tables.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce the paper's tables and figures, ours beside the published numbers.

    Finished records are kept in the folder as they come: a run that was stopped goes on from there.
    Data is looked up in the folder named by TRANSFERABLE_DATA, and downloaded where it can be.
    Ends with status 1 if data is missing or a method failed, and with 130 if interrupted.
    """
    messages = Messages(quiet=quiet)
    with reporting(f"Interrupted; the same command goes on with what {out} holds."):
        from joblib import cpu_count

        from transferable.experiments.study import plan_study

        everything = not what or "all" in what
        study = plan_study(
            [] if everything else what or [],
            methods=_names(methods),
            tasks=[re.sub(r"\s*(?:->|→|[->:])\s*", "->", task) for task in _names(tasks)],
            protocol=protocol,
        )
        possible, rows = _possible(study, messages, everything)
        run = _compute(possible, rows, jobs or cpu_count(), out, messages, as_json)
        tables = _write(possible, run, out, messages)
        if not as_json:
            _print(tables, out)
        for cell, reason in run.failures:
            messages.say(f"Failed: {cell.method} on {cell.dataset} {cell.task}: {reason}")
    if run.failures:
        raise typer.Exit(FAILURE)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _possible(study: Study, messages: Messages, everything: bool) -> tuple[Study, dict[str, int]]:
    """What the data there is allows, and the rows of each task; an error if it is too little."""
    possible, rows, missing = study.with_data()
    if not possible.plan or (possible.plan.keys() != study.plan.keys() and not everything):
        raise FileNotFoundError("; ".join(missing))
    for text in missing:
        messages.note(text)
    return possible, rows


def _compute(
    study: Study, rows: dict[str, int], jobs: int, out: Path, messages: Messages, as_json: bool
) -> Run:
    """Compute with a bar, whose time left takes the sizes of tasks into account."""
    from transferable.experiments.records import RecordStore

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

        run = study.run(store, rows, jobs=jobs, finished=finished)
    if as_json and not streaming:
        for record in study.answers(run):
            typer.echo(record.to_line())
    return run


def _print(tables: list[Comparison], out: Path) -> None:
    from transferable.experiments.rendering import to_terminal

    console = stdout()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    for table in tables:
        console.print(to_terminal(table, console))
        console.print()
    console.print(f"Tables, figures and records are in {out}", soft_wrap=True, markup=False)


def _write(study: Study, run: Run, out: Path, messages: Messages) -> list[Comparison]:
    """Write tables and figures to the folder; return the tables."""
    from transferable.experiments import report

    tables: list[Comparison] = []
    pictures: dict[str, Path] = {}
    for name, cells in study.plan.items():
        tables += report.tables_of(name, study.protocol, cells, run.records, whole=study.whole)
        if name in report.CAPTIONS and all(cell.key in run.records for cell in cells):
            with messages.bar(f"Drawing {name}"):
                pictures[name] = report.draw(name, cells, run.records, out / "figures")
    report.write_tables(tables, out / "tables")
    command = join(["transferable", *sys.argv[1:]])
    report.write_page(out / "report.md", command, tables, pictures)
    return tables
