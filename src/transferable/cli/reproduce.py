"""``transferable reproduce``: the paper's tables and figures from the real data."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

import typer

from transferable.cli._console import stdout

if TYPE_CHECKING:
    from rich.console import Console

    from transferable.experiments.cells import Cell
    from transferable.experiments.comparison import Comparison
    from transferable.experiments.records import Record, RecordStore
    from transferable.experiments.runner import Run
    from transferable.experiments.study import Study

_INTERRUPTED = 130
_PIPE_WIDTH = 160


def run(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT",
            help="surf, decaf6, efficientnet, digits, coil, ablation, timing, fig-confusion, "
            "fig-convergence, fig-tsne, fig-sensitivity, or all (the default).",
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
        bool, typer.Option("--json", help="Print records as JSON Lines instead of tables.")
    ] = False,
) -> None:
    """Reproduce the paper's tables and figures, ours beside the published numbers.

    Finished records are kept in the folder as they come: a run that was stopped goes on from there.
    Data is looked up in the folder named by TRANSFERABLE_DATA, and downloaded where it can be.
    Ends with status 1 if data is missing or a method failed, and with 130 if interrupted.
    """
    from concurrent.futures.process import BrokenProcessPool

    from joblib import cpu_count
    from rich.console import Console

    from transferable.experiments.study import plan_study

    messages = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    everything = not what or "all" in what
    try:
        study = plan_study(
            [] if everything else what or [],
            methods=_names(methods),
            tasks=[re.sub(r"\s*(?:->|→|[->:])\s*", "->", task) for task in _names(tasks)],
            protocol=protocol,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        failed = _reproduce(study, jobs or cpu_count(), out, messages, as_json, everything)
    except KeyboardInterrupt:
        messages.print(f"Interrupted; the same command goes on with what {out} holds.")
        raise typer.Exit(_INTERRUPTED) from None
    except BrokenProcessPool:
        messages.print(
            "Error: a worker process died, perhaps for want of memory. Finished records are kept; "
            "try the same command with --jobs 1."
        )
        raise typer.Exit(1) from None
    except BrokenPipeError:  # whoever read standard output has seen enough
        raise
    except OSError as error:
        messages.print(f"Error: {error}")
        raise typer.Exit(1) from None
    raise typer.Exit(int(failed))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _reproduce(
    study: Study, jobs: int, out: Path, messages: Console, as_json: bool, everything: bool
) -> bool:
    """Run a study and write what it came to; whether anything failed."""
    from transferable.experiments.records import RecordStore
    from transferable.experiments.rendering import to_terminal

    possible, rows, notices = study.with_data()
    for notice in notices:
        messages.print(notice)
    if not possible.plan or (possible.plan.keys() != study.plan.keys() and not everything):
        messages.print("Error: what was asked needs the data named above.")
        return True
    store = RecordStore(out)
    damaged = store.set_aside_damaged()
    if damaged:
        messages.print(
            f"{damaged} damaged line(s) of {store.path} set aside in {store.damaged_path.name}; "
            "the records they held are computed again."
        )
    run = _run(possible, store, rows, jobs, messages, as_json)
    for cell, reason in run.failures:
        messages.print(f"Failed: {cell.method} on {cell.dataset} {cell.task}: {reason}")
    tables = _write(possible, run, out, messages)
    if not as_json:
        console = stdout()
        if not console.is_terminal:
            console.width = _PIPE_WIDTH
        for table in tables:
            console.print(to_terminal(table, console))
            console.print()
        console.print(f"Tables, figures and records are in {out}", soft_wrap=True, markup=False)
    return bool(run.failures)


def _run(
    study: Study,
    store: RecordStore,
    rows: dict[str, int],
    jobs: int,
    messages: Console,
    as_json: bool,
) -> Run:
    """Compute with a progress bar, whose time left takes the sizes of tasks into account."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    known = store.load()
    cost = {key: 0.0 if key in known else float(n) ** 2 for key, n in rows.items()}
    streaming = as_json and study.protocol != "oracle"
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=messages,
        transient=True,
        disable=not messages.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=sum(cost.values()))

        def finished(cell: Cell, record: Record | None) -> None:
            bar.update(task, advance=cost[cell.key], description=f"{cell.dataset} {cell.task}")
            if streaming and record is not None:
                typer.echo(record.to_line())

        run = study.run(store, rows, jobs=jobs, finished=finished)
    if as_json and not streaming:
        for record in study.answers(run):
            typer.echo(record.to_line())
    return run


def _write(study: Study, run: Run, out: Path, messages: Console) -> list[Comparison]:
    """Write tables and figures to the folder; return the tables."""
    from transferable.experiments import report

    tables: list[Comparison] = []
    pictures: dict[str, Path] = {}
    for name, cells in study.plan.items():
        tables += report.tables_of(name, study.protocol, cells, run.records, whole=study.whole)
        if name in report.CAPTIONS and all(cell.key in run.records for cell in cells):
            with messages.status(f"Drawing {name}"):
                pictures[name] = report.draw(name, cells, run.records, out / "figures")
    report.write_tables(tables, out / "tables")
    command = join(["transferable", *sys.argv[1:]])
    report.write_page(out / "report.md", command, tables, pictures)
    return tables
