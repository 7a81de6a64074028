"""Command line: one module for each command, assembled here.

Commands import their dependencies only when they run, so that ``--help`` answers at once.
"""

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from transferable import __version__
from transferable.cli import adapt, audit, compare, demo, diagnose, methods, predict
from transferable.cli._console import literal_errors, prepare_process

__all__ = ["app", "main"]


class _Group(TyperGroup):
    """Group of commands whose errors show what was typed literally."""

    make_context = literal_errors()(TyperGroup.make_context)
    invoke = literal_errors()(TyperGroup.invoke)


app = typer.Typer(
    name="transferable",
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class _Command(TyperCommand):
    """Command whose --help is shown as a flag."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.metavar = ""
        return option


def _add(name: str, run: Any, *examples: str) -> None:
    """Add a command, with examples and references below its help."""
    shown = "\n\n".join(f"`{example}`" for example in examples)
    more = "docs/command-line.md in the repository, or its page in the documentation"
    epilog = f"**Examples**\n\n{shown}\n\nMore: {more}." if examples else None
    app.command(name, cls=_Command, epilog=epilog)(run)


_PAIR = "source.csv target.csv --label kind"
_add(
    "adapt",
    adapt.run,
    f"transferable adapt {_PAIR} --id who --out predictions.csv --report report.html",
    f"transferable adapt {_PAIR} --tune --model model.tfm --out predictions.parquet",
    "cat target.csv | transferable adapt source.csv - --label kind > predictions.csv",
    "transferable adapt photos/source photos/target --embedder timm:resnet50 --out predictions.csv",
)
_add("predict", predict.run, "transferable predict model.tfm new.csv --out predictions.csv")
_add(
    "audit",
    audit.run,
    "transferable audit target.csv predictions.csv --rows 30",
    "transferable audit target.csv predictions.csv --labelled to-label.csv --model model.tfm",
)
_add("inspect", predict.inspect, "transferable inspect model.tfm")
_add("diagnose", diagnose.run, f"transferable diagnose {_PAIR}")
_add("compare", compare.run, f"transferable compare {_PAIR} --methods tfdf,coral,jda")
_add("methods", methods.run, "transferable methods", "transferable methods tfdf")
_add("demo", demo.run, "transferable demo", "transferable demo --export digits")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"transferable {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Say which version.",
            metavar="",
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
    prepare_process()
    app()
