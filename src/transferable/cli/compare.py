"""``transferable compare``: what every method makes of the same two files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transferable.cli._console import FAILURE, Messages, reporting, stdout
from transferable.cli._inputs import Inputs, Roles, read_inputs
from transferable.cli._options import (
    Decimal,
    Device,
    Drop,
    Encoding,
    Features,
    Ids,
    Json,
    Label,
    Landmarks,
    Missing,
    Quiet,
    Scale,
    Seed,
    Separator,
    Sheet,
    Source,
    Target,
    TargetLabel,
    complete_methods,
    dialect_of,
)

if TYPE_CHECKING:
    from rich.table import Table

    from transferable.diagnostics import MethodOutcome


@dataclass(frozen=True)
class Line:
    """One method beside the others; shares are None where they are not known."""

    method: str
    adapts: bool
    agreement: float | None
    consistency: float | None
    accuracy: float | None
    seconds: float
    failure: str
    left_out: bool


def run(
    source: Source,
    target: Target,
    label: Label,
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Methods with commas between them, or all: tfdf,jda,coral.",
            autocompletion=complete_methods,
        ),
    ] = "all",
    target_label: TargetLabel = None,
    ids: Ids = None,
    drop: Drop = None,
    features: Features = None,
    scale: Scale = "auto",
    n_landmarks: Landmarks = None,
    device: Device = None,
    sep: Separator = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    sheet: Sheet = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(min=0.0, help="Time for all methods; what is not done by then is left out."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Methods that are fitted at a time.")] = 1,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Label TARGET by every method and show how far they agree, how good they are, and their time.

    Agreement is the share of target rows to which a method gives the label that most methods give;
    consistency, how far neighbouring rows get the same label, beyond chance. Neither is an
    accuracy, which only true target labels tell. Two models of the source alone are there for
    comparison; nothing they learn, not even a scale, is of the target. All methods have their
    default parameters.
    Ends with status 0, with 1 if a method failed, and with 2 if the input cannot be used.
    """
    messages = Messages(quiet=quiet)
    with reporting():
        import numpy as np

        from transferable.diagnostics import compare_methods, source_only_methods

        chosen = _chosen(methods, seed, n_landmarks, device)
        dialect = dialect_of(sep, decimal, encoding, missing, sheet)
        roles = Roles(label, target_label, ids, drop, features)
        inputs = read_inputs((source, target), roles, dialect, messages)
        ys = inputs.labels
        with messages.hearing():
            encoder = inputs.encoder(scale).adapt(inputs.source, None, inputs.target)
        alone = source_only_methods()
        with messages.bar("Comparing methods") as bar:
            steps = iter(bar.through([*alone, *chosen], str))
            outcomes = []
            for group, encoding_of, seconds in (
                (alone, encoder.of_source_alone(inputs.source), None),
                (chosen, encoder, max_seconds),
            ):
                Xs = encoding_of.transform(inputs.source, np.ones(len(inputs.source)))
                Xt = encoding_of.transform(inputs.target)
                outcomes += compare_methods(
                    *(group, Xs, ys, Xt),
                    track=lambda found: ((m, next(steps))[0] for m in found),
                    max_seconds=seconds,
                    n_jobs=jobs,
                )
            next(steps, None)
        lines = _lines(outcomes, inputs, Xt, set(alone), messages)
        if not any(line.adapts and line.agreement is not None for line in lines):
            messages.note("No method was done; only models of the source alone are compared.")
        if as_json:
            record = {
                "n_source": len(inputs.source),
                "n_target": len(inputs.target),
                "scale": encoder.scale_,
                "seed": seed,
                "results": [vars(line) for line in lines],
                "notes": messages.notes,
            }
            typer.echo(json.dumps(record))
        else:
            stdout().print(_table(lines, evaluated=inputs.true is not None))
        _say_who_is_missing(lines, messages)
    if any(line.failure and not line.left_out for line in lines):
        raise typer.Exit(FAILURE)


def _chosen(names: str, seed: int, n_landmarks: str | None, device: str | None) -> dict[str, Any]:
    """The methods by name; landmarks and device for those that take them, which some must."""
    from transferable.cli._methods import all_methods, configured, method_named, require, takes

    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted or "all" in wanted:
        wanted = list(all_methods())
    classes = [method_named(name) for name in wanted]
    given = {"n_landmarks": n_landmarks, "device": device}
    options: dict[str, Any] = {option: text for option, text in given.items() if text is not None}
    for option in options:
        require(option, classes)
    return {
        cls.__name__: configured(
            cls.__name__,
            seed=seed,
            **{option: text for option, text in options.items() if takes(option, cls)},
        )
        for cls in classes
    }


def _lines(
    outcomes: list[MethodOutcome], inputs: Inputs, Xt: Any, alone: set[str], messages: Messages
) -> list[Line]:
    """The best first: by accuracy where it is known, by agreement otherwise; failures last."""
    import numpy as np

    from transferable.diagnostics import vote
    from transferable.metrics import consistency_along, neighbor_edges

    majority = vote(outcomes)
    edges = neighbor_edges(Xt) if len(majority) > 1 else None
    lines = []
    for o in outcomes:
        agreement = consistency = accuracy = None
        if o.predicted is not None:
            agreement = float(np.mean(o.predicted == majority))
            codes = np.unique(o.predicted, return_inverse=True)[1]
            consistency = 0.0 if edges is None else consistency_along(edges, codes)
            evaluation = inputs.evaluate(o.predicted, messages)
            accuracy = None if evaluation is None else evaluation.accuracy
        lines.append(
            Line(
                o.name,
                adapts=o.name not in alone,
                agreement=agreement,
                consistency=consistency,
                accuracy=accuracy,
                seconds=round(o.seconds, 3),
                failure=o.failure,
                left_out=o.left_out,
            )
        )
    return sorted(lines, key=lambda line: (-(line.accuracy or 0), -(line.agreement or 0)))


def _say_who_is_missing(lines: list[Line], messages: Messages) -> None:
    """Why some methods gave no labels, in a line for each reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        if line.failure:
            what = "Left out" if line.left_out else "Failed"
            reasons.setdefault((what, line.failure), []).append(line.method)
    for (what, why), names in reasons.items():
        messages.say(f"{what}: {', '.join(names)}: {why}")


def _table(lines: list[Line], *, evaluated: bool) -> Table:
    from rich.table import Table

    known = ["agreement", "consistency", *(["target accuracy"] if evaluated else [])]
    table = Table()
    table.add_column("method", no_wrap=True)
    table.add_column("learnt from")
    for heading in (*known, "seconds"):
        table.add_column(heading, justify="right")
    for line in lines:
        shares = [line.agreement, line.consistency, *([line.accuracy] if evaluated else [])]
        missing = "left out" if line.left_out else "failed"
        table.add_row(
            line.method,
            "both" if line.adapts else "source",
            *(missing if share is None else f"{share:.1%}" for share in shares),
            f"{line.seconds:.1f}",
        )
    return table
