"""``transferable diagnose``: the gap between two domains, and whether labels could be used."""

from __future__ import annotations

import json
from math import isnan
from typing import Any

import typer

from transferable.cli import _options as opt
from transferable.cli._console import Messages, print_lines, print_table, reporting
from transferable.cli._inputs import Inputs, read_tables
from transferable.cli.methods import configured
from transferable.diagnostics import (
    Assessment,
    ColumnShift,
    Diagnosis,
    assess_trust,
    column_shifts,
    diagnose,
)

_COLUMNS_SHOWN = 10


def run(
    source: opt.Source,
    target: opt.Target,
    *,
    columns: opt.Columns,
    form: opt.Format,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Measure how far TARGET is from SOURCE and judge whether labels could be used.

    A-distance is 0 if a linear classifier cannot separate the domains and 2 if it never errs;
    MMD is the distance of their means, MMCD of their means and covariances, where the rows' total
    standard deviation is 1. Without true target labels, classes are those that a model of the
    source predicts. The verdict is that of 'adapt', of at most 1,000 rows of each domain. With
    --scale joint, the gap is measured before anything is scaled away.
    Ends with status 0, with 1 if something failed, and with 2 if the input cannot be used.
    """
    messages = Messages(quiet=quiet)
    with reporting():
        inputs = read_tables((source, target), columns, form, messages)
        inputs.refuse_numbers("'transferable diagnose'")
        estimator = configured(None, seed=seed)
        with messages.hearing():
            encoder = inputs.encoder()
            encoder._learn(inputs.source, inputs.target, classifier=estimator)
            raw = inputs.encoder("none").adapt(inputs.source, None, inputs.target)
        Xs, Xt = inputs.rows(encoder)
        with messages.bar("Measuring the gap"):
            found = diagnose(Xs, inputs.labels, Xt, _true(inputs, messages), random_state=seed)
            shifts = column_shifts(*inputs.rows(raw), raw.get_feature_names_out().tolist())
        with messages.bar("Judging the labels"):
            inputs.model.set_params(estimator=estimator)
            verdict = assess_trust(inputs.model, *inputs.pair, random_state=seed)
        if as_json:
            record = {"n_source": Xs.shape[0], "n_target": Xt.shape[0], "n_features": Xs.shape[1]}
            record |= {"scale": encoder.scale_, "seed": seed}
            typer.echo(json.dumps(record | _record(found, verdict, shifts, messages.notes)))
        else:
            rows = f"{Xs.shape[0]:,} source rows, {Xt.shape[0]:,} target rows"
            print_lines(f"{rows}, {Xs.shape[1]} feature{'s' * (Xs.shape[1] != 1)}")
            _print(found, shifts)
            print_lines(*found.lines, *verdict.trust.lines)


def _true(inputs: Inputs, messages: Messages) -> Any:
    """Return true target labels, if every row has one."""
    if inputs.true is None:
        return None
    true, known = inputs.true_labels(messages)
    if known.all():
        return true
    messages.note(
        f"some rows have no value in {inputs.true.name!r}; the gap per class takes predicted "
        "classes instead."
    )
    return None


def _print(found: Diagnosis, shifts: list[ColumnShift]) -> None:
    """Print the gap and the columns that differ."""
    gaps = {"all rows": found.gap.overall}
    gaps |= {f"class {name}": values for name, values in found.gap.by_class.items()}
    rows = [
        [name, *("-" if isnan(value) else f"{value:.2f}" for value in values.values())]
        for name, values in gaps.items()
    ]
    print_table(["gap between"], list(found.gap.overall), rows, bold=[0])
    rows = [
        [s.name, f"{s.distance:.2f}", f"{s.source_mean:.4g}", f"{s.target_mean:.4g}"]
        for s in shifts[:_COLUMNS_SHOWN]
    ]
    numbers = ["KS distance", "source mean", "target mean"]
    print_table(["columns that differ most"], numbers, rows)


def _record(
    found: Diagnosis, verdict: Assessment, shifts: list[ColumnShift], notes: list[str]
) -> dict[str, Any]:
    def numbers(values: dict[str, float]) -> dict[str, float | None]:
        """Return numbers valid in JSON: None for what could not be measured."""
        return {name: None if isnan(value) else value for name, value in values.items()}

    return {
        "gap": numbers(found.gap.overall),
        "gap_by_class": {str(c): numbers(values) for c, values in found.gap.by_class.items()},
        "within_classes": numbers({"A-distance": found.within, "by_chance": found.within_chance}),
        "a_distance_by_chance": found.chance,
        "home_accuracy": None if isnan(found.home_accuracy) else found.home_accuracy,
        "trust": verdict.record,
        "columns": [shift._asdict() for shift in shifts],
        "notes": notes,
    }
