"""``transferable compare``: what every method makes of the same two files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transferable.cli._console import FAILURE, Messages, reporting, stdout
from transferable.cli._options import (
    Device,
    Drop,
    Features,
    Ids,
    Json,
    Label,
    Landmarks,
    Quiet,
    Scale,
    Seed,
    Source,
    Target,
    TargetLabel,
    complete_methods,
)
from transferable.cli._pair import Choice, Pair, read_pair

if TYPE_CHECKING:
    from rich.table import Table

    from transferable.diagnostics import MethodOutcome


@dataclass(frozen=True)
class Line:
    """One method beside the others; shares are None where they are not known."""

    method: str
    adapts: bool
    agreement: float | None
    accuracy: float | None
    seconds: float
    failure: str


def run(
    source: Source,
    target: Target,
    label: Label,
    methods: Annotated[
        str,
        typer.Option(
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
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Label TARGET by every method and show how far they agree, how good they are, and their time.

    Agreement is the share of target rows to which a method gives the label that most methods give;
    it is no accuracy, which only true target labels tell. Two models of the source alone are there
    for comparison. All methods have their default parameters.
    Ends with status 0, with 1 if a method failed, and with 2 if the input cannot be used.
    """
    messages = Messages(quiet=quiet)
    with reporting():
        from transferable.diagnostics import compare_methods, source_only_methods

        chosen = _chosen(methods, seed, n_landmarks, device)
        choice = Choice(label, target_label, ids, drop, features)
        (pair,) = read_pair((source, target), choice, (scale,), messages)
        alone = source_only_methods()
        with messages.bar("Comparing methods") as bar:
            outcomes = compare_methods(
                *(alone | chosen, pair.Xs, pair.ys, pair.Xt),
                track=lambda steps: bar.through(steps, lambda step: step[0]),
            )
        lines = _lines(outcomes, pair, set(alone))
        if as_json:
            record = {"n_source": len(pair.Xs), "n_target": len(pair.Xt), "scale": pair.scale}
            record |= {"seed": seed, "results": [vars(line) for line in lines]}
            typer.echo(json.dumps(record | {"notes": messages.notes}))
        else:
            stdout().print(_table(lines, evaluated=pair.true is not None))
        for line in lines:
            if line.failure:
                messages.say(f"Failed: {line.method}: {line.failure}")
    if any(line.failure for line in lines):
        raise typer.Exit(FAILURE)


def _chosen(names: str, seed: int, n_landmarks: str | None, device: str | None) -> dict[str, Any]:
    """The methods by name; landmarks and device for those that take them, which some must."""
    from transferable.cli._methods import all_methods, configured, method_named, require, takes

    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted or "all" in wanted:
        wanted = list(all_methods())
    classes = [method_named(name) for name in wanted]
    given = {"n_landmarks": n_landmarks, "device": device}
    options = {option: text for option, text in given.items() if text is not None}
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


def _lines(outcomes: list[MethodOutcome], pair: Pair, alone: set[str]) -> list[Line]:
    """The best first: by accuracy where it is known, by agreement otherwise; failures last."""
    import numpy as np

    from transferable.diagnostics import vote

    majority = vote(outcomes)
    lines = []
    for o in outcomes:
        agreement = accuracy = None
        if o.predicted is not None:
            agreement = float(np.mean(o.predicted == majority))
            evaluation = pair.evaluate(o.predicted)
            accuracy = None if evaluation is None else evaluation.accuracy
        seconds = round(o.seconds, 3)
        lines.append(Line(o.name, o.name not in alone, agreement, accuracy, seconds, o.failure))
    return sorted(lines, key=lambda line: (-(line.accuracy or 0), -(line.agreement or 0)))


def _table(lines: list[Line], *, evaluated: bool) -> Table:
    from rich.table import Table

    table = Table("method", "domains learnt from")
    for heading in ("agreement", *(["target accuracy"] if evaluated else []), "seconds"):
        table.add_column(heading, justify="right")
    for line in lines:
        shares = [line.agreement, *([line.accuracy] if evaluated else [])]
        table.add_row(
            line.method,
            "both" if line.adapts else "source",
            *("failed" if share is None else f"{share:.1%}" for share in shares),
            f"{line.seconds:.1f}",
        )
    return table
