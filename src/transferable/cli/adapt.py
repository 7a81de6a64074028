"""``transferable adapt``: labels for one file with what another teaches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transferable.cli._console import Messages, reporting, stdout
from transferable.cli._options import (
    Device,
    Drop,
    Features,
    Ids,
    Json,
    Label,
    Landmarks,
    Method,
    Quiet,
    Scale,
    Seed,
    Source,
    TargetLabel,
)
from transferable.cli._predictions import (
    check_distinct,
    check_folder,
    check_output,
    names,
    writing,
)

if TYPE_CHECKING:
    from transferable.cli._adaptation import Adaptation


def run(
    source: Source,
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Rows to label, of the other domain.")
    ],
    label: Label,
    method: Method = "tfdf",
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for the predictions, .csv or .tsv; by default they go to standard output.",
            callback=check_output,
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="File for the model, which 'predict' uses.", callback=check_folder),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="File for a report, one page of HTML.", callback=check_folder),
    ] = None,
    target_label: TargetLabel = None,
    ids: Ids = None,
    drop: Drop = None,
    features: Features = None,
    scale: Scale = "auto",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Parameter of the method, such as alignment=10; may be repeated.",
        ),
    ] = None,
    n_landmarks: Landmarks = None,
    device: Device = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Label the rows of TARGET with what the labelled rows of SOURCE teach.

    Writes one line for each target row, in order: its id columns, the prediction, its confidence
    and the runner-up. Columns are matched by name; numbers, booleans, text and missing values are
    taken care of, and notes on standard error say what was left out.
    Ends with status 0, with 1 if something failed, and with 2 if the input cannot be used.
    """
    messages = Messages(quiet=quiet)
    with reporting():
        from transferable.cli._adaptation import adapt, read
        from transferable.cli._methods import configured
        from transferable.cli._reporting import report_on
        from transferable.tables import TableClassifier

        check_distinct((source, target), (out, model, report))
        aside = [*names(drop), *([target_label] if target_label not in (None, label) else [])]
        unfitted = TableClassifier(
            configured(method, settings or (), seed=seed, n_landmarks=n_landmarks, device=device),
            label=label,
            scale=scale,  # type: ignore[arg-type]
            ids=names(ids),
            drop=aside,
            features=names(features) or None,
        )
        tables = read(source, messages), read(target, messages)
        if source.resolve() == target.resolve():
            messages.note("target and source are the same file; there is nothing to adapt to.")
        result = adapt(unfitted, *tables, target_label, messages)
        if out is not None or not as_json:
            with writing(out) as writer:
                writer.write(result.lines)
        if model is not None:
            from transferable import save

            save(result.model, model)
        if report is not None:
            report_on(result, report, (source, target), seed, messages)
        files = {"predictions": out, "model": model, "report": report}
        if as_json:
            record = _record(result, files, seed, messages.notes)
            typer.echo(json.dumps(record, default=_plain))
        else:
            _tell(result, files, messages)


def _tell(result: Adaptation, files: dict[str, Path | None], messages: Messages) -> None:
    """Sum up on standard output, or on standard error if the predictions went to the former."""
    lines = [result.summary(), result.verdict()]
    lines += [f"{kind.capitalize()} saved to {path}" for kind, path in files.items() if path]
    if files["predictions"] is None:
        for line in lines:
            messages.say(line)
        return
    console = stdout()
    console.print(lines[0], markup=False, soft_wrap=True)
    console.print(result.table())
    for line in lines[1:]:
        console.print(line, markup=False, soft_wrap=True)


def _record(
    result: Adaptation, files: dict[str, Path | None], seed: int, notes: list[str]
) -> dict[str, Any]:
    """Everything for machines; with the predictions, unless they are in a file."""
    from transferable.persistence import versions

    found = result.evaluation
    record = {
        "method": result.method,
        "parameters": result.parameters,
        "scale": result.model.scale_,
        "seed": seed,
        "n_source": len(result.source),
        "n_target": len(result.target),
        "features": result.model.feature_names_,
        "classes": {
            name: {"source": ours, "predicted": theirs}
            for name, (ours, theirs) in result.counts().items()
        },
        "mean_confidence": float(result.lines["confidence"].mean()),
        "evaluation": found
        and {"column": found.column, "rows": int(found.known.sum()), "accuracy": found.accuracy},
        "seconds": round(result.seconds, 3),
        "notes": notes,
        "files": {kind: path and str(path) for kind, path in files.items()},
        "versions": versions(),
    }
    if files["predictions"] is None:
        record["predictions"] = result.lines.to_dict("records")
    return record


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python; anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)
