"""``python -m paper``: the paper's tables and figures from the real data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transferable.cli import prepare_process
from transferable.cli._console import FAILURE, Messages, reporting
from transferable.cli._options import Quiet, flag

app = typer.Typer(pretty_exceptions_show_locals=False)


@app.command()
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
        from .report import reproduce

        succeeded = reproduce(
            what or [],
            methods=methods,
            tasks=tasks,
            protocol=protocol,
            jobs=jobs,
            out=out,
            as_json=as_json,
            messages=messages,
        )
    if not succeeded:
        raise typer.Exit(FAILURE)


if __name__ == "__main__":
    prepare_process()
    app(prog_name="python -m paper")
