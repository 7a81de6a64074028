"""``transferable predict``: labels for new rows by a saved model."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transferable.cli._console import Messages, reporting, stdout
from transferable.cli._predictions import (
    check_distinct,
    check_output,
    names,
    predicted,
    writing,
)

if TYPE_CHECKING:
    from transferable.tables import TableClassifier


def run(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model that 'adapt --model' has saved.")
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Rows to label, of the target domain.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for the predictions, .csv or .tsv; by default they go to standard output.",
            callback=check_output,
        ),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column that names rows; by default those of 'adapt', if they are there.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each row, or with --out one.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes, no progress.")] = False,
) -> None:
    """Label the rows of FILE, which is read piece by piece, with a saved model.

    Writes what 'adapt' writes. The model knows how to treat the columns: the file needs no
    preparation. Loading a model runs no code that its file brings.
    Ends with status 0, with 1 if something failed, and with 2 if the input cannot be used.
    """
    messages = Messages(quiet=quiet)
    with reporting():
        check_distinct((model, file), (out,))
        loaded = load_table_model(model)
        counts = _predict(
            loaded, file, out, names(ids), messages, lines_of_json=as_json and not out
        )
        if out is None:
            return
        if as_json:
            record = {"n_rows": counts.total(), "predicted": counts, "predictions": str(out)}
            typer.echo(json.dumps(record))
        else:
            stdout().print(
                f"{counts.total():,} rows labelled; predictions saved to {out}",
                markup=False,
                soft_wrap=True,
            )


def load_table_model(path: Path) -> TableClassifier:
    """Load a saved model that takes tables."""
    from transferable.persistence import load
    from transferable.tables import TableClassifier, TableError

    if not path.is_file():
        raise TableError(f"there is no file {path}.")
    loaded = load(path)
    if not isinstance(loaded, TableClassifier):
        raise TableError(
            f"{path} holds a {type(loaded).__name__}, which takes arrays; use transferable.load in "
            "Python, or save a model with 'transferable adapt --model'."
        )
    return loaded


def _predict(
    model: TableClassifier,
    file: Path,
    out: Path | None,
    ids: list[str],
    messages: Messages,
    *,
    lines_of_json: bool,
) -> Counter[str]:
    """Label and write piece after piece; how often each class was predicted."""
    from transferable.tables import iter_table

    counts: Counter[str] = Counter()
    wanted = ids
    shown_beside = out is None and sys.stdout.isatty()
    with messages.bar("Predicting", hidden=shown_beside) as bar, writing(out) as writer:
        for piece, done in iter_table(file, text=model.categorical_):
            if not counts:
                wanted = ids or [name for name in model.ids if name in piece.columns]
            lines, _ = predicted(model, piece, wanted)
            if lines_of_json:
                typer.echo(lines.to_json(orient="records", lines=True), nl=False)
            else:
                writer.write(lines)
            counts.update(lines["prediction"].astype(str).tolist())
            bar.tick(done)
    return counts
