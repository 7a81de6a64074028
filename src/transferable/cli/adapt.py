"""``transferable adapt``: labels for one file from another, labelled one."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer

from transferable.base import DomainRegressor
from transferable.cli import _console as console
from transferable.cli import _options as opt
from transferable.cli._console import Messages, print_lines
from transferable.cli._inputs import (
    Inputs,
    are_folders,
    read_folders,
    read_tables,
    with_probabilities,
)
from transferable.cli.methods import (
    configured,
    for_numbers,
    for_rows,
    parameters_of,
    tuned,
    use_labels,
)
from transferable.diagnostics import Assessment, assess_trust
from transferable.persistence import save, versions
from transferable.tables.reading import who
from transferable.wrapping import FileClassifier, unwrap


def run(
    context: typer.Context,
    source: opt.Source,
    target: Annotated[
        list[Path],
        typer.Argument(
            metavar="TARGET",
            help="Rows to label, of the other domain; - for CSV on standard input. Of several "
            "files the last is the target, and those before it are further sources.",
        ),
    ],
    *,
    columns: opt.Columns,
    method: opt.Method = None,
    tune: Annotated[
        bool,
        opt.flag(
            "--tune", help="Search the method's settings by scores that need no target label."
        ),
    ] = False,
    out: opt.Out = None,
    probabilities: opt.Probabilities = False,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the model, which 'predict' uses.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for a report, one page of HTML.",
        ),
    ] = None,
    no_estimate: Annotated[
        bool,
        opt.flag(
            "--no-estimate",
            help="Do not judge the labels, which for methods other than AutoAdapter takes a fit of "
            "it to up to 1,000 rows, nor compare with a model of the source alone.",
        ),
    ] = False,
    use_target_labels: Annotated[
        bool,
        opt.flag(
            "--use-target-labels",
            help="Learn from the values of --target-label, which may be there for some rows only.",
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Parameter of the method, such as alignment=10; may be repeated.",
        ),
    ] = None,
    n_landmarks: opt.Landmarks = None,
    embedder: opt.Embedder = None,
    device: opt.Device = None,
    form: opt.Format,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    escape_formulas: opt.EscapeFormulas = False,
    quiet: opt.Quiet = False,
) -> None:
    """Label the rows of TARGET with what the labelled rows of SOURCE, or of several, teach.

    Writes one line for each target row, in order: its id columns, the prediction, its confidence,
    the runner-up, the label by models of the source alone, and whether it is unlike any source row.
    Columns are matched by name; numbers,
    booleans, text and missing values are taken care of, and notes on standard error list what was
    left out. Of folders of pictures, SOURCE has a folder for each class, and there is a line for
    each picture of TARGET. Ends with status 0, with 1 if something failed, and with 2 if the input
    cannot be used.
    """
    messages = Messages(quiet=quiet)
    files = (source, *target)
    with console.reporting():
        folders = are_folders(files, context)
        out = console.checked_output(files, out, model, report)
        written = {"predictions": out, "model": model, "report": report}
        if report is not None and len(files) > 2:
            raise ValueError("--report shows one source and one target; leave it out.")
        estimator = configured(
            method,
            settings or (),
            seed=seed,
            n_landmarks=n_landmarks,
            device=None if folders else device,
            one_model=tune,
        )
        if use_target_labels:
            use_labels(estimator, columns.target_label, tune=tune)
        search = tuned(estimator, seed=seed) if tune else None
        if folders:
            inputs = read_folders(files, embedder, device, messages)
        else:
            if isinstance(estimator, DomainRegressor):
                columns = replace(columns, task=opt.Task.numbers)
            inputs = read_tables(files, columns, form, messages, embedder)
        if inputs.numbers:
            for option, given in (
                ("--tune", tune),
                ("--probabilities", probabilities),
            ):
                if given:
                    inputs.refuse_numbers(option)
            estimator = for_numbers(method, settings or (), inputs.label, seed)
            if use_target_labels:
                use_labels(estimator, columns.target_label, tune=tune)
        n_rows = len(inputs.source) + len(inputs.target)
        named = method is not None
        estimator = for_rows(estimator, n_rows, settings or (), messages, named=named)
        inputs.model.set_params(estimator=search or estimator)
        judge = None if no_estimate else seed
        result = _adapt(inputs, messages, judge, probabilities, use_target_labels)
        if out is not None or not as_json:
            with console.writing(out, escape_formulas=escape_formulas) as write:
                write(result.lines)
        if model is not None:
            save(result.model, model)
        most = opt.ROWS_TO_MEASURE if inputs.numbers else opt.ROWS_TO_LABEL
        few = str(min(most, len(inputs.target)))
        pair = [str(files[-1]), str(out or "predictions.csv")]
        audit = shlex.join(["transferable", "audit", *pair, "--rows", few])
        if report is not None:
            _report(result, report, files, seed, messages, audit)
        if as_json:
            record = _record(result, written, seed, messages.notes)
            text = json.dumps(record, default=lambda v: v.item() if hasattr(v, "item") else str(v))
            typer.echo(text)
        else:
            _print(result, written, messages, audit)


_QUANTILES = {"5 %": 0.05, "median": 0.5, "95 %": 0.95}


class _Adaptation(NamedTuple):
    """A fitted model with its labels of the target."""

    model: FileClassifier
    inputs: Inputs
    lines: pd.DataFrame
    learnt: int  # known target labels that the fit has used
    evaluation: dict[str, Any] | None
    trust: Assessment | None
    seconds: float
    counts: dict[Any, tuple[int, int]]  # rows of each class in the source, and as predicted


def _adapt(
    inputs: Inputs, messages: Messages, seed: int | None, every_class: bool, uses_labels: bool
) -> _Adaptation:
    """Fit a model, which labels the target's rows, and judge these labels with a seed."""
    model, start, learnt, more = inputs.model, perf_counter(), 0, {}
    with messages.hearing(), messages.bar("Adapting"):
        if uses_labels:
            known, given = inputs.true_labels(messages)
            more["yt"] = [label if kept else None for label, kept in zip(known, given, strict=True)]
            learnt = int(given.sum())
        model.adapt(*inputs.pair, **more)
    seconds = perf_counter() - start
    if inputs.parts:
        messages.note(_on_sources(model, inputs.parts))
    search: Any = model.estimator_
    if hasattr(search, "best_params_"):
        chosen = ", ".join(f"{name}={value}" for name, value in search.best_params_.items())
        messages.note(f"of {len(search.cv_results_['params'])} settings, --tune chose {chosen}.")
    lines = model.labels_
    if every_class:
        lines = with_probabilities(lines, model, inputs.target)
    trust, own = None, getattr(model, "trust_", None)
    if seed is not None and own is not None:  # a verdict on these very labels
        trust = Assessment(
            *(own, lines["prediction"].to_numpy(), lines["source_only"].to_numpy()),
            agreement=None,
            pool=model,
        )
    elif seed is not None:
        trust = _trust(model, inputs, seed, messages)
    if trust is None:
        lines = lines.drop(columns=["source_only", "unfamiliar"], errors="ignore")
    elif trust.agreement is not None:
        lines = lines.assign(source_only=trust.source_only)
    evaluation = None
    if inputs.true is not None and not uses_labels:
        evaluation = inputs.evaluate(lines["prediction"].to_numpy(), messages)
    ours, theirs = (Counter(c.tolist()) for c in (inputs.labels, lines["prediction"]))
    classes = getattr(model, "classes_", np.empty(0)).tolist()
    counts = {name: (ours[name], theirs[name]) for name in classes}
    return _Adaptation(model, inputs, lines, learnt, evaluation, trust, seconds, counts)


def _on_sources(model: FileClassifier, parts: Sequence[pd.DataFrame]) -> str:
    """Return the sources with their weights, where the method weighs them."""
    weights = getattr(unwrap(model), "source_weights_", None)
    texts = [f"{who(part, f'source {k}')} ({len(part):,} rows)" for k, part in enumerate(parts, 1)]
    if weights is not None:
        texts = [f"{text} counts {weight:.2f}" for text, weight in zip(texts, weights, strict=True)]
    return f"{len(parts)} sources: {', '.join(texts)}."


def _trust(
    model: FileClassifier, inputs: Inputs, seed: int, messages: Messages
) -> Assessment | None:
    """Judge the labels; return None, with a note, where that cannot be."""
    judged = model, *inputs.pair
    if inputs.numbers and model.trust_ is None:
        messages.note("only AutoRegressor states what can be seen without labels.")
        return None
    if inputs.label is None:  # of pictures, their embeddings
        judged = model.estimator_, inputs.source.rows, inputs.labels, inputs.target.rows
    with messages.bar("Judging the labels"):
        try:
            return assess_trust(*judged, random_state=seed)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            messages.note(f"the labels cannot be judged here: {error}")
            return None


def _report(
    result: _Adaptation,
    path: Path,
    files: Sequence[Path],
    seed: int,
    messages: Messages,
    audit: str,
) -> None:
    """Write the report of an adaptation of one file to another as a page."""
    from transferable.report import Facts, write_report  # which few calls need

    true = None
    if result.evaluation is not None:
        true, known = result.inputs.true_labels(messages)
        if not known.all():
            messages.note("the report is not compared with true labels: some of these are missing.")
            true = None
    names = ["standard input" if str(f) == "-" else f.name or f.resolve().name for f in files]
    command = shlex.join(["transferable", *sys.argv[1:]])
    with messages.bar("Writing the report"):
        write_report(
            path,
            result.model,
            *result.inputs.pair,
            yt=true,
            trust=result.trust or False,
            facts=Facts(
                *(names[0], names[-1], command, seed, messages.notes, result.seconds), audit=audit
            ),
        )


def _print(
    result: _Adaptation, files: dict[str, Path | None], messages: Messages, audit: str
) -> None:
    """Print a summary on standard output, or on standard error if predictions go to the former."""
    inputs, trust = result.inputs, result.trust
    n_features = result.model.estimator_.n_features_in_
    summary = (
        f"{type(unwrap(result.model)).__name__} learnt from {len(inputs.source):,} source "
        f"and {len(inputs.target):,} target {inputs.unit}, "
        f"{n_features} feature{'s' * (n_features != 1)}, in {result.seconds:.1f} s"
    )
    lines = _verdicts(result)
    lines += [f"{kind.capitalize()} saved to {path}" for kind, path in files.items() if path]
    if trust is not None and files["predictions"] is not None:
        few = min(opt.ROWS_TO_MEASURE if inputs.numbers else opt.ROWS_TO_LABEL, len(inputs.target))
        aim = "error, measure" if inputs.numbers else "accuracy, label"
        lines.append(f"To measure the {aim} {few} {inputs.unit}: {audit}")
    if files["predictions"] is None:
        for line in (summary, *lines):
            messages.say(line)
        return
    if inputs.numbers:
        print_lines(summary)
        console.print_table(["numbers"], list(_QUANTILES), _quantile_rows(result))
        print_lines(*lines)
        return
    confidence = result.lines["confidence"].groupby(result.lines["prediction"].astype(str)).mean()
    unit = inputs.unit
    numbers = [f"source {unit}", f"target {unit}, predicted", "mean confidence"]
    rows = [
        [name, f"{ours:,}", f"{theirs:,}", f"{confidence[name]:.1%}" if theirs else "-"]
        for name, (ours, theirs) in result.counts.items()
    ]
    if trust is not None:
        numbers.append("by the source alone")
        alone = result.lines["source_only"].astype(str).value_counts()
        rows = [[*row, f"{int(alone.get(row[0], 0)):,}"] for row in rows]
    print_lines(summary)
    console.print_table(["class"], numbers, rows)
    print_lines(*lines)


def _quantile_rows(result: _Adaptation) -> list[list[str]]:
    """Return quantiles of the numbers of the source and of those predicted."""
    found = {"source": result.inputs.labels, "target, predicted": result.lines["prediction"]}
    if "source_only" in result.lines:
        found["target, by the source alone"] = result.lines["source_only"]
    return [
        [name, *(f"{np.quantile(values, q):.4g}" for q in _QUANTILES.values())]
        for name, values in found.items()
    ]


def _verdicts(result: _Adaptation) -> list[str]:
    """Return lines on the accuracy, and on the evaluation or its absence."""
    inputs, found = result.inputs, result.evaluation
    lines = [] if result.trust is None else result.trust.trust.lines
    if result.learnt and inputs.true is not None:
        lines.append(
            f"The {result.learnt:,} values in {inputs.true.name!r} were learnt from; the "
            f"{'error' if inputs.numbers else 'accuracy'} elsewhere is unknown."
        )
    elif found is None and inputs.numbers:
        pass  # the verdict has said so
    elif found is None:
        lines.append("The target's true labels were not given; its accuracy is unknown.")
    else:
        lines.append(console.accuracy_line(found, "target rows"))
    return lines


def _predicted(result: _Adaptation) -> dict[str, Any]:
    """Return what was predicted, in all, for JSON."""
    if result.inputs.numbers:
        rows = _quantile_rows(result)
        return {"numbers": {name: [*map(float, values)] for name, *values in rows}}
    return {
        "classes": {
            name: {"source": ours, "predicted": theirs}
            for name, (ours, theirs) in result.counts.items()
        },
        "mean_confidence": float(result.lines["confidence"].mean()),
    }


def _record(
    result: _Adaptation, files: dict[str, Path | None], seed: int, notes: list[str]
) -> dict[str, Any]:
    """Return the record for JSON, with the predictions unless they are in a file."""
    model, method, trust = result.model, unwrap(result.model), result.trust
    if result.inputs.label is None:
        rows = {"embedder": model.model, "n_features": model.estimator_.n_features_in_}
    else:
        encoder = model.encoder_
        rows = {"scale": encoder.scale_, "features": encoder.get_feature_names_out().tolist()}
    record = {
        "method": type(method).__name__,
        "parameters": parameters_of(method),
        **rows,
        "seed": seed,
        "n_source": len(result.inputs.source),
        "n_target": len(result.inputs.target),
        **_predicted(result),
        "evaluation": result.evaluation,
        "trust": trust and trust.record,
        "seconds": round(result.seconds, 3),
        "notes": notes,
        "files": {kind: path and str(path) for kind, path in files.items()},
        "versions": versions(),
    }
    if files["predictions"] is None:
        record["predictions"] = result.lines.to_dict("records")
    return record
