"""``transferable compare``: what every method makes of the same two files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transferable.cli._console import FAILURE, Messages, reporting, stdout
from transferable.cli._pair import (
    Choice,
    Drop,
    Features,
    Ids,
    Json,
    Label,
    Pair,
    Quiet,
    Seed,
    Source,
    Target,
    TargetLabel,
    read_pair,
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
    accuracy: float | None
    seconds: float
    failure: str


def run(
    source: Source,
    target: Target,
    label: Label,
    methods: Annotated[
        str, typer.Option(help="Methods with commas between them, or all: tfdf,jda,coral.")
    ] = "all",
    target_label: TargetLabel = None,
    ids: Ids = None,
    drop: Drop = None,
    features: Features = None,
    scale: Annotated[
        str, typer.Option(help="Scaling of numeric columns: per-domain, joint, none or unit.")
    ] = "per-domain",
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
    from transferable.diagnostics import MethodOutcome, compare_methods, source_only_methods

    messages = Messages(quiet=quiet)
    with reporting():
        chosen = _chosen(methods, seed)
        choice = Choice(label, target_label, ids, drop, features)
        (pair,) = read_pair((source, target), choice, (scale,), messages)
        alone = source_only_methods()
        too_large = _too_large(chosen, len(pair.Xs) + len(pair.Xt))
        todo = alone | {name: m for name, m in chosen.items() if name not in too_large}
        outcomes = compare_methods(
            todo,
            pair.Xs,
            pair.ys,
            pair.Xt,
            track=lambda steps: messages.through(steps, "Comparing methods"),
        )
        outcomes += [MethodOutcome(name, None, 0.0, why) for name, why in too_large.items()]
        lines = _lines(outcomes, pair, set(alone))
        if as_json:
            record = {"n_source": len(pair.Xs), "n_target": len(pair.Xt), "scale": scale}
            record |= {"seed": seed, "results": [vars(line) for line in lines]}
            typer.echo(json.dumps(record | {"notes": messages.notes}))
        else:
            stdout().print(_table(lines, evaluated=pair.true is not None))
        for line in lines:
            if line.failure:
                messages.say(f"Failed: {line.method}: {line.failure}")
    if any(line.failure for line in lines):
        raise typer.Exit(FAILURE)


def _chosen(names: str, seed: int) -> dict[str, Any]:
    from transferable.cli._methods import all_methods, configured

    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted or "all" in wanted:
        wanted = list(all_methods())
    methods = (configured(name, seed=seed) for name in wanted)
    return {type(method).__name__: method for method in methods}


def _too_large(methods: dict[str, Any], n_rows: int) -> dict[str, str]:
    """Methods that need more memory than there is, with what they need."""
    from transferable.cli._adaptation import check_size

    reasons = {}
    for name, method in methods.items():
        try:
            check_size(method, n_rows)
        except ValueError as error:
            reasons[name] = str(error)
    return reasons


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
