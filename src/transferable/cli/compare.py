"""``transferable compare``: all methods on the same two files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import monotonic
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from transferable.cli import _options as opt
from transferable.cli._console import (
    FAILURE,
    Messages,
    print_lines,
    print_table,
    reporting,
)
from transferable.cli._inputs import Inputs, read_tables
from transferable.cli.methods import (
    all_methods,
    configured,
    for_numbers,
    method_named,
    require,
    takes,
)
from transferable.diagnostics import (
    MethodOutcome,
    assess_trust,
    compare_methods,
    source_only_methods,
)
from transferable.metrics import consistency_along, neighbor_edges
from transferable.regressors import AdaptedRegressor
from transferable.tables import TableEncoder
from transferable.wrapping import unwrap

_ALIKE = 0.9  # share of rows that methods of a group label as its first does


def run(
    source: opt.Source,
    target: opt.Target,
    *,
    columns: opt.Columns,
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Methods with commas between them, or all: tfdf,jda,coral.",
            autocompletion=opt.complete_methods,
        ),
    ] = "all",
    n_landmarks: opt.Landmarks = None,
    device: opt.Device = None,
    form: opt.Format,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="Time for all methods; those that are not done by then are left out.",
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Methods that are fitted at a time.")
    ] = 1,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Label TARGET by every method and show how far they agree, how good they are, and their time.

    Agreement is the share of target rows to which a method gives AutoAdapter's label, on which the
    verdict is; consistency, how far neighbouring rows get the same label, beyond chance. Neither is
    an accuracy, which needs true target labels. Methods of one group agree with its first on at
    least 90 % of the rows. Two models of the source alone are there for comparison; nothing they
    learn, not even a scale, is of the target. All methods have their default parameters.
    Labels that are numbers are predicted by the methods for these; the difference from
    AutoRegressor's is root mean squared.
    Ends with status 0, with 1 if a method failed, and with 2 if the input cannot be used.
    """
    messages = Messages(quiet=quiet)
    with reporting():
        inputs = read_tables((source, target), columns, form, messages)
        if inputs.numbers:
            chosen = _for_numbers(methods, inputs.label, seed)
        else:
            chosen = _chosen(methods, seed, n_landmarks, device)
        with messages.hearing():
            encoder = inputs.encoder().adapt(inputs.source, None, inputs.target)
        alone = source_only_methods(numbers=inputs.numbers)
        with messages.bar("Comparing methods") as bar:
            steps = iter(bar.through([*alone, *chosen], str))
            outcomes, end = [], None if max_seconds is None else monotonic() + max_seconds
            for group, rows in (
                (alone, inputs.rows(encoder.of_source_alone(inputs.source))),
                *_encoded(chosen, inputs, encoder),
            ):
                limit = None if end is None or group is alone else max(0.0, end - monotonic())
                outcomes += compare_methods(
                    *(group, rows[0], inputs.labels, rows[1]),
                    track=lambda found: ((m, next(steps))[0] for m in found),
                    max_seconds=limit,
                    n_jobs=jobs,
                )
            next(steps, None)
        with messages.bar("Judging the labels"):
            judge = "AutoRegressor" if inputs.numbers else None
            inputs.model.set_params(estimator=configured(judge, seed=seed))
            if inputs.numbers:
                inputs.model.adapt(*inputs.pair)
            verdict = assess_trust(inputs.model, *inputs.pair, random_state=seed)
        Xt = inputs.rows(encoder)[1]
        if inputs.numbers:
            results = _results_of_numbers(outcomes, verdict.labels, inputs, set(alone), messages)
        else:
            results = _results(outcomes, verdict.labels, inputs, Xt, set(alone), messages)
        if not any(r["adapts"] and not r["failure"] for r in results):
            messages.note("No method was done; only models of the source alone are compared.")
        if as_json:
            record = {
                "n_source": len(inputs.source),
                "n_target": len(inputs.target),
                "scale": encoder.scale_,
                "seed": seed,
                "results": results,
                "trust": verdict.record,
                "notes": messages.notes,
            }
            typer.echo(json.dumps(record))
        else:
            if inputs.numbers:
                _print_numbers(results)
            else:
                _print(results, evaluated=inputs.true is not None)
            if not inputs.numbers:
                print_lines(
                    "Agreement with AutoAdapter's labels is not accuracy; methods of one group "
                    "label nine in ten rows alike."
                )
            name = type(unwrap(verdict.pool)).__name__
            print_lines(f"{name}: {verdict.trust.lines[0]}", *verdict.trust.lines[1:])
        reasons: dict[tuple[str, str], list[str]] = {}
        for r in results:
            if r["failure"]:
                what = "Left out" if r["left_out"] else "Failed"
                reasons.setdefault((what, r["failure"]), []).append(r["method"])
        for (what, why), names in reasons.items():
            messages.say(f"{what}: {', '.join(names)}: {why}")
    if any(r["failure"] and not r["left_out"] for r in results):
        raise typer.Exit(FAILURE)


def _chosen(names: str, seed: int, n_landmarks: str | None, device: str | None) -> dict[str, Any]:
    """Return the methods by name; refuse options that none of them takes."""
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


def _encoded(
    chosen: dict[str, Any], inputs: Inputs, encoder: TableEncoder
) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield methods with the rows that ``adapt`` would give them: a pool scales domains itself."""
    pools = {n: m for n, m in chosen.items() if getattr(m, "_scales_domains", False)}
    for pool in [*pools.values()][:1]:
        own = inputs.encoder()._learn(inputs.source, inputs.target, classifier=pool)
        yield pools, inputs.rows(own)
    yield {n: m for n, m in chosen.items() if n not in pools}, inputs.rows(encoder)


def _results(
    outcomes: list[MethodOutcome],
    judged: NDArray[Any],
    inputs: Inputs,
    Xt: Any,
    alone: set[str],
    messages: Messages,
) -> list[dict[str, Any]]:
    """Return a record of each method, whose shares are None where unknown.

    The best comes first: by accuracy where it is known, by agreement with the labels that are
    judged otherwise; failures last.
    """
    edges = neighbor_edges(Xt) if len(judged) > 1 else None
    results, groups = [], [judged]
    for o in outcomes:
        agreement = consistency = accuracy = group = None
        if o.predicted is not None:
            alike = [float(np.mean(o.predicted == labels)) for labels in groups]
            agreement, group = alike[0], int(np.argmax(alike)) + 1
            if max(alike) < _ALIKE:
                groups.append(o.predicted)
                group = len(groups)
            codes = np.unique(o.predicted, return_inverse=True)[1]
            consistency = 0.0 if edges is None else consistency_along(edges, codes)
            if inputs.true is not None:
                accuracy = inputs.evaluate(o.predicted, messages)["accuracy"]
        results.append(
            {
                "method": o.name,
                "adapts": o.name not in alone,
                "agreement": agreement,
                "group": group,
                "consistency": consistency,
                "accuracy": accuracy,
                "seconds": round(o.seconds, 3),
                "failure": o.failure,
                "left_out": o.left_out,
            }
        )
    return sorted(results, key=lambda r: (-(r["accuracy"] or 0), -(r["agreement"] or 0)))


def _for_numbers(names: str, label: str | None, seed: int) -> dict[str, Any]:
    """Return the methods for numbers by name; ridge follows a transformer."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted or "all" in wanted:
        able = [name for name, method in all_methods().items() if method().takes.no_labels]
        wanted = ["AutoRegressor", "ImportanceWeightedRegressor", *able]
    made = [for_numbers(name, (), label, seed) for name in wanted]
    return {
        type(one).__name__: AdaptedRegressor(one) if hasattr(one, "transform") else one
        for one in made
    }


def _results_of_numbers(
    outcomes: list[MethodOutcome],
    judged: NDArray[Any],
    inputs: Inputs,
    alone: set[str],
    messages: Messages,
) -> list[dict[str, Any]]:
    """Return a record of each method, the one of the least error first, or nearest to the judged.

    `difference` is the root mean squared one from the numbers that are judged.
    """
    results: list[dict[str, Any]] = []
    for o in outcomes:
        record: dict[str, Any] = {"method": o.name, "adapts": o.name not in alone}
        if o.predicted is not None:
            record["difference"] = float(np.sqrt(np.mean((o.predicted - judged) ** 2)))
            record |= inputs.evaluate(o.predicted, messages) or {}
        record |= {"seconds": round(o.seconds, 3), "failure": o.failure, "left_out": o.left_out}
        results.append(record)
    worst = np.inf
    return sorted(results, key=lambda r: (r.get("rmse", worst), r.get("difference", worst)))


def _print_numbers(results: list[dict[str, Any]]) -> None:
    headings = {"difference": "difference", "median_absolute_error": "median error"}
    headings |= {"rmse": "RMSE", "r2": "R2"}
    shown = {key: name for key, name in headings.items() if any(key in r for r in results)}
    rows = []
    for r in results:
        missing = "left out" if r["left_out"] else "failed"
        known = [f"{r[key]:.4g}" if key in r else missing for key in shown]
        learnt_from = "both" if r["adapts"] else "source"
        rows.append([r["method"], learnt_from, *known, f"{r['seconds']:.1f}"])
    print_table(("method", "from"), [*shown.values(), "seconds"], rows, unwrapped=["method"])


def _print(results: list[dict[str, Any]], *, evaluated: bool) -> None:
    shares = {"agreement": "agreement", "consistency": "consistency"}
    shares |= {"accuracy": "target accuracy"} if evaluated else {}
    rows = []
    for r in results:
        missing = "left out" if r["left_out"] else "failed"
        known = [missing if r[share] is None else f"{r[share]:.1%}" for share in shares]
        learnt_from = "both" if r["adapts"] else "source"
        rows.append(
            [r["method"], learnt_from, str(r["group"] or ""), *known, f"{r['seconds']:.1f}"]
        )
    names = ("method", "from", "group")
    print_table(names, [*shares.values(), "seconds"], rows, unwrapped=["method"])
