"""``transferable diagnose``: how far apart two domains are, and whether adapting may pay."""

from __future__ import annotations

import json
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transferable.cli._console import Messages, reporting, stdout
from transferable.cli._inputs import Inputs, Roles, read_inputs
from transferable.cli._options import (
    Decimal,
    Drop,
    Encoding,
    Features,
    Ids,
    Json,
    Label,
    Missing,
    Quiet,
    Seed,
    Separator,
    Sheet,
    Source,
    Target,
    TargetLabel,
    dialect_of,
    one_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.table import Table

    from transferable.diagnostics import ColumnShift, Diagnosis, DomainGap
    from transferable.tables import TableEncoder

_COLUMNS_SHOWN = 10


def run(
    source: Source,
    target: Target,
    label: Label,
    target_label: TargetLabel = None,
    ids: Ids = None,
    drop: Drop = None,
    features: Features = None,
    scale: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Scaling of numeric columns for the gap: auto (as 'adapt', whose estimates are "
            "told), per-domain, joint (the gap before anything is scaled away), none or unit.",
            **one_of("auto", "per-domain", "joint", "none", "unit"),
        ),
    ] = "auto",
    sep: Separator = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    sheet: Sheet = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how far TARGET is from SOURCE and say whether adaptation is likely to pay.

    A-distance is 0 if a linear classifier cannot tell the domains apart and 2 if it never errs;
    MMD is the distance of their means, MMCD of their means and covariances, where the rows' total
    standard deviation is 1. Without true target labels, classes are those that a model of the
    source predicts. The verdict is a rule of thumb that needs no target label; the estimates and
    the warning are those of 'adapt'.
    Ends with status 0, with 1 if something failed, and with 2 if the input cannot be used.
    """
    messages = Messages(quiet=quiet)
    with reporting():
        from transferable.cli._methods import configured
        from transferable.diagnostics import column_shifts, diagnose
        from transferable.tables.classifier import fitted_encoder

        dialect = dialect_of(sep, decimal, encoding, missing, sheet)
        roles = Roles(label, target_label, ids, drop, features)
        inputs = read_inputs((source, target), roles, dialect, messages)
        ys = inputs.labels
        estimator = configured(None, seed=seed)
        with messages.hearing():
            encoder = inputs.encoder(scale)
            fitted_encoder(encoder, estimator, inputs.source, inputs.target)
            raw = inputs.encoder("none").adapt(inputs.source, None, inputs.target)
        Xs, Xt = _rows(encoder, inputs)
        alone = encoder.of_source_alone(inputs.source)
        with messages.bar("Measuring the gap"):
            found = diagnose(
                Xs,
                ys,
                Xt,
                _true(inputs, messages),
                estimator=estimator,
                plain=(alone.transform(inputs.source), alone.transform(inputs.target)),
                random_state=seed,
            )
            shifts = column_shifts(*_rows(raw, inputs), raw.get_feature_names_out().tolist())
        if as_json:
            sizes = {"n_source": len(Xs), "n_target": len(Xt), "n_features": Xs.shape[1]}
            record = sizes | {"scale": encoder.scale_, "seed": seed}
            typer.echo(json.dumps(record | _record(found, shifts, messages.notes)))
            return
        console = stdout()
        rows = f"{len(Xs):,} source rows, {len(Xt):,} target rows"
        console.print(f"{rows}, {Xs.shape[1]} features", markup=False)
        console.print(_gap_table(found.gap))
        console.print(_shift_table(shifts))
        console.print(f"Is adaptation likely to pay? {found.verdict.capitalize()}:", style="bold")
        console.print(found.reason, markup=False)
        console.print(_estimates(found), markup=False)


def _rows(encoder: TableEncoder, inputs: Inputs) -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    marks = np.ones(len(inputs.source))
    return encoder.transform(inputs.source, marks), encoder.transform(inputs.target)


def _true(inputs: Inputs, messages: Messages) -> Any:
    """True target labels, if every row has one."""
    evaluation = inputs.evaluate(inputs.labels[[0] * len(inputs.target)], messages)
    if evaluation is None or evaluation.known.all():
        return None if evaluation is None else evaluation.true
    messages.note(
        f"some rows have no value in {evaluation.column!r}; the gap per class takes predicted "
        "classes instead."
    )
    return None


def _gap_table(gap: DomainGap) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("gap between")
    for measure in gap.overall:
        table.add_column(measure, justify="right")
    table.add_row("all rows", *(f"{value:.2f}" for value in gap.overall.values()), style="bold")
    for name, values in gap.by_class.items():
        shown = ("-" if isnan(value) else f"{value:.2f}" for value in values.values())
        table.add_row(escape(f"class {name}"), *shown)
    return table


def _shift_table(shifts: list[ColumnShift]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("columns that differ most")
    for heading in ("KS distance", "source mean", "target mean"):
        table.add_column(heading, justify="right")
    for shift in shifts[:_COLUMNS_SHOWN]:
        means = f"{shift.source_mean:.4g}", f"{shift.target_mean:.4g}"
        table.add_row(escape(shift.name), f"{shift.distance:.2f}", *means)
    return table


def _estimates(found: Diagnosis) -> str:
    """Both estimated accuracies, or the warning that names them."""
    transfer = found.transfer
    if transfer.warning:
        return f"Warning: {transfer.warning}"
    return (
        f"Estimated without labels, {transfer.method} gets {transfer.adapted} of the target rows "
        f"right, logistic regression on the source alone {transfer.source_only}."
    )


def _record(found: Diagnosis, shifts: list[ColumnShift], notes: list[str]) -> dict[str, Any]:
    return {
        "gap": _numbers(found.gap.overall),
        "gap_by_class": {str(c): _numbers(values) for c, values in found.gap.by_class.items()},
        "within_classes": _numbers({"A-distance": found.within, "by_chance": found.within_chance}),
        "a_distance_by_chance": found.chance,
        "home_accuracy": _numbers({"": found.home_accuracy})[""],
        "changed_by_adapting": found.changed,
        "estimated_accuracy": {
            name: {"accuracy": estimate.accuracy, "low": estimate.low, "high": estimate.high}
            for name, estimate in (
                ("adapted", found.transfer.adapted),
                ("source_only", found.transfer.source_only),
            )
        },
        "verdict": found.transfer.verdict,
        "warning": found.transfer.warning,
        "kind": found.kind,
        "columns": [shift._asdict() for shift in shifts],
        "adaptation_likely_to_pay": found.verdict,
        "reason": found.reason,
        "notes": notes,
    }


def _numbers(values: dict[str, float]) -> dict[str, float | None]:
    """Numbers that JSON knows: none for what could not be measured."""
    return {name: None if isnan(value) else value for name, value in values.items()}
