"""``transferable adapt``: labels for one file with what another teaches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transferable.cli._console import Messages, reporting, stdout
from transferable.cli._inputs import Roles, read_inputs
from transferable.cli._options import (
    Decimal,
    Device,
    Drop,
    Encoding,
    EscapeFormulas,
    Features,
    Ids,
    Json,
    Label,
    Landmarks,
    Method,
    Missing,
    Quiet,
    Scale,
    Seed,
    Separator,
    Sheet,
    Source,
    TargetLabel,
    dialect_of,
    flag,
)
from transferable.cli._predictions import check_distinct, check_folder, check_output, writing

if TYPE_CHECKING:
    from transferable.cli._adaptation import Adaptation
    from transferable.diagnostics import Trust


def run(
    context: typer.Context,
    source: Source,
    target: Annotated[
        list[Path],
        typer.Argument(
            metavar="TARGET",
            help="Rows to label, of the other domain; - for CSV on standard input. Of several "
            "files the last is the target, and those before it are further sources.",
        ),
    ],
    label: Label,
    method: Method = None,
    tune: Annotated[
        bool,
        flag("--tune", help="Search the method's settings by scores that need no target label."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the predictions, .csv, .tsv or .parquet; by default, or with -, they go "
            "to standard output. On a cluster, a folder.",
        ),
    ] = None,
    probabilities: Annotated[
        bool, flag("--probabilities", help="Write the probability of every class as well.")
    ] = False,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File for the model, which 'predict' uses.", callback=check_folder
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File for a report, one page of HTML.", callback=check_folder
        ),
    ] = None,
    no_estimate: Annotated[
        bool,
        flag(
            "--no-estimate",
            help="Do not estimate the accuracy, which takes a few fits of up to 1,000 rows, nor "
            "compare with a model of the source alone.",
        ),
    ] = False,
    target_label: TargetLabel = None,
    use_target_labels: Annotated[
        bool,
        flag(
            "--use-target-labels",
            help="Learn from the values of --target-label, which may be there for some rows only.",
        ),
    ] = False,
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
    sep: Separator = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    sheet: Sheet = None,
    seed: Seed = 0,
    as_json: Json = False,
    escape_formulas: EscapeFormulas = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Fit on the workers of a Dask scheduler, such as tcp://host:8786: SOURCE and "
            "TARGET are patterns of Parquet files, as 'rows/*.parquet', that all workers can read.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="The same on so many processes that are started for it."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Label the rows of TARGET with what the labelled rows of SOURCE, or of several, teach.

    Writes one line for each target row, in order: its id columns, the prediction, its confidence,
    the runner-up, and what a model of the source alone says. Columns are matched by name; numbers,
    booleans, text and missing values are taken care of, and notes on standard error say what was
    left out. Ends with status 0, with 1 if something failed, and with 2 if the input cannot be
    used.
    """
    messages = Messages(quiet=quiet)
    files = (source, *target)
    roles = Roles(label, target_label, ids, drop, features)
    if scheduler is not None or workers is not None:
        with reporting():
            # Older versions of typer keep paths as text in the context's parameters.
            given = {**context.params, "out": out, "model": model}
            _adapt_on_cluster(given, roles, messages)
        return
    out = _checked(out)
    with reporting():
        from transferable.cli._adaptation import adapt
        from transferable.cli._methods import configured, for_rows, tuned, use_labels
        from transferable.tables import TableClassifier

        written = {"predictions": out, "model": model, "report": report}
        _check_files(files, written)
        if method is None and (len(files) > 2 or use_target_labels):
            messages.note("the method is TFDF, which takes several sources and target labels.")
        estimator = configured(
            method,
            settings or (),
            seed=seed,
            n_landmarks=n_landmarks,
            device=device,
            one_model=tune or use_target_labels or len(files) > 2,
        )
        if use_target_labels:
            use_labels(estimator, target_label, tune=tune)
        search = tuned(estimator, seed=seed) if tune else None
        dialect = dialect_of(sep, decimal, encoding, missing, sheet)
        inputs = read_inputs(files, roles, dialect, messages, uses_labels=use_target_labels)
        estimator = for_rows(
            estimator, inputs.n_rows, settings or (), messages, named=method is not None
        )
        unfitted = TableClassifier(
            search or estimator,
            scale=scale,  # type: ignore[arg-type]
            ids=inputs.ids,
            drop=inputs.drop,
            features=inputs.features,
        )
        estimates = not no_estimate
        result = adapt(
            unfitted, inputs, messages, seed=seed, estimates=estimates, every_class=probabilities
        )
        if out is not None or not as_json:
            with writing(out, escape_formulas=escape_formulas) as writer:
                writer.write(result.lines)
        _keep(result, written, files, seed, messages, as_json=as_json)


def _checked(out: Path | None) -> Path | None:
    try:
        return check_output(out)
    except typer.BadParameter as error:
        error.param_hint = "'--out'"
        raise


# Options of fits in memory that fits on a cluster do not know, by their parameters.
_IN_MEMORY = {
    "tune": "--tune",
    "report": "--report",
    "target_label": "--target-label",
    "use_target_labels": "--use-target-labels",
    "device": "--device",
    "escape_formulas": "--escape-formulas",
    "sheet": "--sheet",
}


def _adapt_on_cluster(given: dict[str, Any], roles: Roles, messages: Messages) -> None:
    """Fit on workers, to what the parameters of the command say; refuse what these cannot."""
    from transferable.cli._cluster import adapt_parts

    options = [option for name, option in _IN_MEMORY.items() if given[name]]
    options += ["--scale"] if given["scale"] not in ("auto", "none") else []
    if options:
        raise ValueError(
            f"{', '.join(options)} cannot be had with --scheduler or --workers; leave it out."
        )
    if len(given["target"]) > 1:
        raise ValueError(
            f"{1 + len(given['target'])} files were named; on a cluster, give one pattern of "
            "SOURCE and one of TARGET, in quotes: 'source/*.parquet' 'target/*.parquet'."
        )
    same = ("scheduler", "workers", "method", "n_landmarks", "model", "seed", "as_json")
    adapt_parts(
        str(given["source"]),
        str(given["target"][0]),
        given["out"],
        settings=given["settings"] or (),
        roles=roles,
        every_class=given["probabilities"],
        messages=messages,
        **{name: given[name] for name in same},
    )


def _check_files(files: Sequence[Path], written: dict[str, Path | None]) -> None:
    check_distinct(files, tuple(written.values()))
    if written["report"] is not None and len(files) > 2:
        raise ValueError("--report shows one source and one target; leave it out.")


def _keep(
    result: Adaptation,
    written: dict[str, Path | None],
    files: Sequence[Path],
    seed: int,
    messages: Messages,
    *,
    as_json: bool,
) -> None:
    """Save the model, write the report and sum up."""
    from transferable import save
    from transferable.cli._reporting import report_on

    if written["model"] is not None:
        save(result.model, written["model"])
    if written["report"] is not None:
        report_on(result, written["report"], (files[0], files[-1]), seed, messages)
    if as_json:
        record = _record(result, written, seed, messages.notes)
        typer.echo(json.dumps(record, default=_plain))
    else:
        _tell(result, written, messages)


def _tell(result: Adaptation, files: dict[str, Path | None], messages: Messages) -> None:
    """Sum up on standard output, or on standard error if the predictions went to the former."""
    lines = [result.summary(), *result.verdicts()]
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
        "scale": result.model.encoder_.scale_,
        "seed": seed,
        "n_source": len(result.inputs.source),
        "n_target": len(result.inputs.target),
        "features": result.model.encoder_.get_feature_names_out().tolist(),
        "classes": {
            name: {"source": ours, "predicted": theirs}
            for name, (ours, theirs) in result.counts().items()
        },
        "mean_confidence": float(result.lines["confidence"].mean()),
        "evaluation": found
        and {"column": found.column, "rows": int(found.known.sum()), "accuracy": found.accuracy},
        "trust": result.trust and _trust(result.trust),
        "seconds": round(result.seconds, 3),
        "notes": notes,
        "files": {kind: path and str(path) for kind, path in files.items()},
        "versions": versions(),
    }
    if files["predictions"] is None:
        record["predictions"] = result.lines.to_dict("records")
    return record


def _trust(trust: Trust) -> dict[str, Any]:
    """What is known of the labels without a true one."""
    estimates = {"adapted": trust.estimate.adapted, "source_only": trust.estimate.source_only}
    return {
        "verdict": trust.verdict,
        "warning": trust.warning,
        "estimated_accuracy": {
            name: {"accuracy": found.accuracy, "low": found.low, "high": found.high}
            for name, found in estimates.items()
        },
        "changed": trust.changed,
        "changes": [change._asdict() for change in trust.changes],
        "estimated_class_shares": {str(name): share for name, share in trust.shares.items()},
    }


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python; anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)
