"""``transferable methods``: what ``--method`` may name."""

from __future__ import annotations

import inspect
import json
import re
from typing import Annotated, Any

import typer

from transferable.cli._console import reporting, stdout


def run(
    name: Annotated[
        str | None, typer.Argument(help="Only this method, with its parameters.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array, parameters included.")
    ] = False,
) -> None:
    """List the methods, or tell the parameters of one, which --set takes.

    Classifiers label rows themselves; a transformer learns a feature space that both domains
    share, in which one nearest neighbour labels them.
    """
    from rich.table import Table

    from transferable.cli._methods import all_methods, method_named

    with reporting():
        methods = all_methods().values() if name is None else [method_named(name)]
    records = [_record(method) for method in methods]
    console = stdout()
    if as_json:
        typer.echo(json.dumps(records))
    elif name is None:
        table = Table("method", "kind", "what it does")
        for record in records:
            table.add_row(record["method"], record["kind"], record["summary"])
        console.print(table, markup=False)
    else:
        (record,) = records
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
