"""Command line: one module for each command, which is imported when the command is named."""

import inspect
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from threading import Timer
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from transferable import __version__
from transferable._files import visible

__all__ = ["COMMANDS", "app", "main"]

interruptions: list[int] = []  # signals of this process
_PAIR = "source.csv target.csv --label kind"


class Command(NamedTuple):
    """Help of a command, and its function: ``module.function``."""

    home: str
    summary: str
    examples: tuple[str, ...] = ()


COMMANDS = {
    "adapt": Command(
        "adapt.run",
        "Label the rows of TARGET with what the labelled rows of SOURCE, or of several, teach.",
        (
            f"adapt {_PAIR} --id who --out predictions.csv --report report.html",
            f"adapt {_PAIR} --tune --model model.tfm --out predictions.parquet",
            "cat target.csv | transferable adapt source.csv - --label kind > predictions.csv",
            "adapt photos/source photos/target --embedder timm:resnet50 --out predictions.csv",
        ),
    ),
    "predict": Command(
        "predict.run",
        "Label the rows of FILE, which is read piece by piece, with a saved model.",
        ("predict model.tfm new.csv --out predictions.csv",),
    ),
    "audit": Command(
        "audit.run",
        "Measure how good PREDICTIONS are by a few rows of TARGET that a person labels.",
        (
            "audit target.csv predictions.csv --rows 30",
            "audit target.csv predictions.csv --labelled to-label.csv --model model.tfm",
        ),
    ),
    "inspect": Command(
        "predict.inspect",
        "Show what a saved model was made with, what it takes and what it predicts.",
        ("inspect model.tfm",),
    ),
    "diagnose": Command(
        "diagnose.run",
        "Measure how far TARGET is from SOURCE and judge whether labels could be used.",
        (f"diagnose {_PAIR}",),
    ),
    "compare": Command(
        "compare.run",
        "Label TARGET by every method and show how far they agree, how good they are, and their "
        "time.",
        (f"compare {_PAIR} --methods tfdf,coral,jda",),
    ),
    "methods": Command(
        "methods.run",
        "List the methods by family, or show the parameters of one, which --set takes.",
        ("methods", "methods tfdf"),
    ),
    "demo": Command(
        "demo.run",
        "Adapt printed digits to handwritten ones and show what it gains.",
        ("demo", "demo --export digits"),
    ),
}


@contextmanager
def _literal_errors() -> Iterator[None]:
    """Let errors of usage show what was typed literally."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):  # of click, which some versions of typer bring along
            text = visible(error.format_message())
            error.format_message = lambda: text
        raise


class _Group(TyperGroup):
    """Group of commands that are listed by a table and imported when they are named."""

    make_context = _literal_errors()(TyperGroup.make_context)
    invoke = _literal_errors()(TyperGroup.invoke)

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = {name: TyperCommand(name, help=c.summary) for name, c in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if name is None or command is None else imported(name), rest


class _Command(TyperCommand):
    """Command whose --help is shown as a flag."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.metavar = ""
        return option


@cache
def imported(name: str) -> Any:
    """Import a command, with examples and references below its help."""
    module, function = COMMANDS[name].home.split(".")
    run = getattr(import_module(f"transferable.cli.{module}"), function)
    shown = "\n\n".join(
        f"`{'' if ' | ' in example else 'transferable '}{example}`"
        for example in COMMANDS[name].examples
    )
    more = "docs/command-line.md in the repository, or its page in the documentation"
    epilog = f"**Examples**\n\n{shown}\n\nMore: {more}." if shown else None
    alone = typer.Typer(
        add_completion=False,
        rich_markup_mode="markdown",
        pretty_exceptions_show_locals=False,
    )
    alone.command(name, cls=_Command, epilog=epilog)(spread(run))
    return typer.main.get_command(alone)


def spread(run: Callable[..., None]) -> Callable[..., None]:
    """Return a command with an option for each field of parameters that are groups of options."""
    groups: dict[str, Any] = {}
    options = []
    hints = get_type_hints(run, include_extras=True)
    for name, parameter in inspect.signature(run).parameters.items():
        kind, only = hints[name], inspect.Parameter.KEYWORD_ONLY
        if is_dataclass(kind):
            groups[name] = kind
            own = get_type_hints(kind, include_extras=True)
            options += [
                inspect.Parameter(f.name, only, default=f.default, annotation=own[f.name])
                for f in fields(kind)
            ]
        else:
            options.append(parameter.replace(kind=only, annotation=kind))

    def command(**given: Any) -> None:
        for name, kind in groups.items():
            try:
                given[name] = kind(**{f.name: given.pop(f.name) for f in fields(kind)})
            except ValueError as error:
                raise typer.BadParameter(str(error)) from None
        run(**given)

    command.__doc__ = run.__doc__
    command.__annotations__ = {option.name: option.annotation for option in options}
    vars(command)["__signature__"] = inspect.Signature(options)
    return command


app = typer.Typer(
    name="transferable",
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version.",
            metavar="",
        ),
    ] = False,
) -> None:
    """Label the rows of one domain with what you know about another.

    You have labelled rows from a source (last year's sensors, printed digits) and unlabelled rows
    from a target (new sensors, handwriting). Results go to standard output, messages to standard
    error.
    """
    if version:
        typer.echo(f"transferable {__version__}")
        raise typer.Exit


def prepare_process() -> None:
    """Replace closed streams, escape warnings, and clean up files being written when terminated.

    Readers of files written in C may take an interruption for a failed read, so it is recorded too.
    Where Python cannot raise it, as during finalisation, the signal is sent again.
    """

    def interrupt(*_: Any) -> None:
        interruptions.append(signal.SIGINT)
        raise KeyboardInterrupt

    def end(*_: Any) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    def send_again(lost: Any) -> None:
        signals = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}
        if lost.exc_type in signals:
            Timer(0.01, os.kill, (os.getpid(), signals[lost.exc_type])).start()
        else:
            sys.__unraisablehook__(lost)

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    written = warnings.formatwarning
    warnings.formatwarning = lambda *parts: visible(written(*parts))
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, end)
    sys.unraisablehook = send_again


def main() -> None:
    """Run the command line."""
    prepare_process()
    app()
