"""``transferable methods``: what ``--method`` may name."""

from __future__ import annotations

import inspect
import json
import re
from typing import Annotated, Any

import typer

from transferable.cli._console import reporting, stdout
from transferable.cli._options import complete_methods, flag


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
        bool, flag("--json", help="Print a JSON array, parameters included.")
    ] = False,
) -> None:
    """List the methods by family, or tell the parameters of one, which --set takes.

    Classifiers label rows themselves; a transformer learns a feature space that both domains
    share, in which one nearest neighbour labels them.
    """
    with reporting():
        from transferable.cli._methods import all_methods, method_named

        methods = all_methods().values() if name is None else [method_named(name)]
        records = sorted(map(_record, methods), key=lambda record: record["family"])
        if as_json:
            typer.echo(json.dumps(records))
        elif name is None:
            _list(records)
        else:
            _describe(records[0])


def _list(records: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table()
    for heading in ("family", "method"):
        table.add_column(heading, no_wrap=True)
    for heading in ("kind", "what it does"):
        table.add_column(heading)
    last = ""
    for record in records:
        default = "\n(the default)" if record["default"] else ""
        family = record["family"] if record["family"] != last else ""
        table.add_row(family, record["method"] + default, record["kind"], record["summary"])
        last = record["family"]
    stdout().print(table, markup=False)


def _describe(record: dict[str, Any]) -> None:
    from rich.table import Table

    console = stdout()
    console.print(record["summary"], markup=False)
    if record["takes"]:
        console.print(f"Takes {' and '.join(record['takes'])}.", markup=False)
    table = Table("parameter", "default", "what it does")
    for parameter, value in record["parameters"].items():
        table.add_row(parameter, str(value), record["explained"].get(parameter, ""))
    console.print(table, markup=False)


def _record(method: type[Any]) -> dict[str, Any]:
    from transferable.cli._methods import chosen_method, family_of, parameters_of

    return {
        "family": family_of(method),
        "method": method.__name__.lower(),
        "default": method is chosen_method(None),
        "kind": "transformer" if hasattr(method, "transform") else "classifier",
        "summary": re.split(r"\n\s*\n", inspect.getdoc(method) or "")[0].replace("\n", " "),
        "takes": _takes(method()),
        "parameters": parameters_of(method()),
        "explained": _explained(method),
    }


def _explained(method: type[Any]) -> dict[str, str]:
    """What the documentation says of each parameter, also where it refers to another method's."""
    from transferable import all_estimators

    classes = dict(all_estimators())
    text = inspect.getdoc(method) or ""
    part = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE
    )
    entries = re.split(r"^(?=\w)", part[1], flags=re.MULTILINE) if part else []
    found: dict[str, str] = {}
    for head, _, body in (entry.partition("\n") for entry in entries if entry.strip()):
        told = _plain(body)
        other = re.search(r"\b[Aa]s (?:in|for) (\w+)\.?$", told)
        theirs = _explained(classes[other[1]]) if other and other[1] in classes else {}
        for name in head.partition(":")[0].split(","):
            found[name.strip()] = theirs.get(name.strip(), told)
    return found


def _plain(text: str) -> str:
    """Words without the marks of reStructuredText."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", " ".join(text.split()))
    return text.replace("``", "").replace("`", "")


def _takes(estimator: Any) -> list[str]:
    """What rows and how many, by the estimator's tags and parameters."""
    from sklearn.utils import get_tags

    sparse = ["sparse rows"] if get_tags(estimator).input_tags.sparse else []
    landmarks = ["landmarks"] if "n_landmarks" in estimator.get_params(deep=False) else []
    return sparse + landmarks
