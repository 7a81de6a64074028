"""``transferable inspect``: what a saved model is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from transferable.cli._console import reporting, stdout
from transferable.cli._options import Json

_SHOWN = 12  # of a list, to people; --json has all


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model.")],
    as_json: Json = False,
) -> None:
    """Tell what a saved model was made with, what it takes and what it predicts."""
    with reporting():
        record = _record(model)
        if as_json:
            typer.echo(json.dumps(record))
            return
        from rich.table import Table

        table = Table(show_header=False)
        for name, value in record.items():
            table.add_row(name, _shown(value))
        stdout().print(table)


def _record(path: Path) -> dict[str, Any]:
    """What the file says of itself, and what the model in it says."""
    from transferable.cli._methods import parameters_of
    from transferable.persistence import about, load
    from transferable.tables import TableClassifier, TableError

    if not path.is_file():
        raise TableError(f"there is no file {path}.")
    record = about(path)
    model = load(path)
    if not isinstance(model, TableClassifier):
        return record | {"parameters": parameters_of(model)}
    encoder, fitted = model.encoder_, model.estimator_
    method = getattr(fitted, "best_estimator_", fitted)
    method = getattr(method, "transformer", None) or method
    return record | {
        "method": type(method).__name__,
        "parameters": parameters_of(method),
        "classes": model.classes_.tolist(),
        "label": model.label_,
        "id columns": list(model.ids),
        "numeric columns": encoder.numeric_,
        "categorical columns": list(encoder.categories_),
        "features": len(encoder.get_feature_names_out()),
        "scale": encoder.scale_,
        "notes": model.notes_,
    }


def _shown(value: Any) -> str:
    from rich.markup import escape

    if isinstance(value, dict):
        return escape("\n".join(f"{name} {part}" for name, part in value.items()))
    if isinstance(value, list):
        more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
        return escape((", ".join(map(str, value[:_SHOWN])) or "none") + more)
    return escape(str(value))
