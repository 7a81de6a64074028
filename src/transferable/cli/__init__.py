"""The command line: one module for each command, put together here.

Commands import what they compute with only when they run, so that ``--help`` answers at once.
"""

from typing import Annotated

import typer

from transferable import __version__
from transferable.cli import adapt, compare, demo, diagnose, inspect, methods, predict, reproduce

__all__ = ["app", "main"]

app = typer.Typer(
    name="transferable",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("adapt")(adapt.run)
app.command("predict")(predict.run)
app.command("inspect")(inspect.run)
app.command("diagnose")(diagnose.run)
app.command("compare")(compare.run)
app.command("methods")(methods.run)
app.command("demo")(demo.run)
app.command("reproduce")(reproduce.run)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"transferable {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Say which version."
        ),
    ] = False,
) -> None:
    """Label the rows of one domain with what you know about another.

    You have labelled rows from a source (last year's sensors, printed digits) and unlabelled rows
    from a target (new sensors, handwriting). Results go to standard output, messages to standard
    error.
    """


def main() -> None:
    """Run the command line."""
    app()
