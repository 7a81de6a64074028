"""``transferable methods``: what ``--method`` may name."""

from __future__ import annotations

import inspect
import json
import re
from typing import Annotated, Any

import typer

from transferable.cli._console import reporting, stdout
from transferable.cli._options import complete_methods


def run(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Only this method, with its parameters.",
            autocompletion=complete_methods,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array, parameters included.")
    ] = False,
) -> None:
    """List the methods, or tell the parameters of one, which --set takes.

    Classifiers label rows themselves; a transformer learns a feature space that both domains
    share, in which one nearest neighbour labels them.
    """
    with reporting():
        from transferable.cli._methods import all_methods, method_named

        methods = all_methods().values() if name is None else [method_named(name)]
        records = [_record(method) for method in methods]
        if as_json:
            typer.echo(json.dumps(records))
        elif name is None:
            _list(records)
        else:
            _describe(records[0])


def _list(records: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("method", "kind", "what it does")
    for record in records:
        table.add_row(record["method"], record["kind"], record["summary"])
    stdout().print(table, markup=False)


def _describe(record: dict[str, Any]) -> None:
    from rich.table import Table

    console = stdout()
    console.print(record["summary"], markup=False)
    table = Table("parameter", "default")
    for parameter, value in record["parameters"].items():
        table.add_row(parameter, str(value))
    console.print(table, markup=False)


def _record(method: type[Any]) -> dict[str, Any]:
    from transferable.cli._methods import parameters_of

    return {
        "method": method.__name__.lower(),
        "kind": "transformer" if hasattr(method, "transform") else "classifier",
        "summary": re.split(r"\n\s*\n", inspect.getdoc(method) or "")[0].replace("\n", " "),
        "parameters": parameters_of(method()),
    }
