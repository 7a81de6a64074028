"""``transferable demo``: the gain by adaptation on the task that needs no download."""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import pandas as pd
import typer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import SVC
from sklearn.utils import Bunch

from transferable import TFDF, AutoAdapter, datasets
from transferable._files import replacing
from transferable.cli import _options as opt
from transferable.cli._console import Messages, print_lines, print_table, reporting

_PICTURES = (".png", ".svg", ".pdf")
_SHOWN = 10  # digits of each domain in the picture


def _check_picture(path: Path) -> Path:
    """Refuse an unusable path for the picture before anything is computed."""
    if path.suffix.lower() not in _PICTURES:
        raise typer.BadParameter(f"{path.name!r} must end in one of {', '.join(_PICTURES)}.")
    if not os.access(path.parent, os.W_OK):
        raise typer.BadParameter(f"the folder {path.parent} does not exist or is read-only.")
    return path


def run(
    out: Annotated[
        Path,
        typer.Option(
            help="Where to save the picture: a .png, .svg or .pdf file.",
            dir_okay=False,
            writable=True,
            resolve_path=True,
            callback=_check_picture,
        ),
    ] = Path("transferable-demo.png"),
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of the printed digits.")
    ] = 0,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Write the task as source.csv and target.csv into this folder, and do no more.",
        ),
    ] = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Adapt printed digits to handwritten ones and show what it gains.

    Labelled digits drawn from fonts are the source, 1,797 handwritten digits the target. A model
    of the source alone and two that adapt label the same target rows. The true labels of the
    handwritten digits are used to score them, and for nothing else: AutoAdapter estimates its
    accuracy without them.
    """
    with reporting():
        task = datasets.load_printed_to_handwritten(random_state=seed)
        if export is not None:
            _export(task, export, as_json)
        else:
            _compare(task, seed, out, Messages(quiet=quiet), as_json)


def _export(task: Bunch, folder: Path, as_json: bool) -> None:
    """Write the task as two tables, the target's without labels."""
    pixels = [f"pixel_{i}" for i in range(task.Xs.shape[1])]
    source = pd.DataFrame(task.Xs, columns=pixels)
    source.insert(0, "digit", task.ys)
    target = pd.DataFrame(task.Xt, columns=pixels)
    target.insert(0, "image", [f"handwritten-{i + 1}" for i in range(len(target))])
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.csv" for name in ("source", "target")}
    for table, path in zip((source, target), paths.values(), strict=True):
        with replacing(path) as stream:
            table.to_csv(stream, index=False, lineterminator="\n")
    if as_json:
        typer.echo(json.dumps({name: str(path) for name, path in paths.items()}))
    else:
        print_lines(*(f"Written: {path}" for path in paths.values()))


def _compare(task: Bunch, seed: int, out: Path, messages: Messages, as_json: bool) -> None:
    """Label the target rows by each method, score the labels and show them.

    The model of the source alone gets rows of unit length, as TFDF does.
    """
    alone = make_pipeline(Normalizer(), SVC())
    models: dict[str, Any] = {"SVM": alone, "TFDF": TFDF(), "AutoAdapter": AutoAdapter()}
    results: list[dict[str, Any]] = []
    with messages.bar("Comparing methods") as bar:
        for name, model in bar.through(models.items(), lambda step: step[0]):
            start = perf_counter()
            if model is alone:
                model.fit(task.Xs, task.ys)
            else:
                model.adapt(task.Xs, task.ys, task.Xt)
            accuracy = float((model.predict(task.Xt) == task.yt).mean())
            trust = getattr(model, "trust_", None)
            results.append(
                {
                    "method": name,
                    "adapts": model is not alone,
                    "accuracy": accuracy,
                    "estimate": [trust.low, trust.high] if trust and trust.shown else None,
                    "seconds": round(perf_counter() - start, 3),
                }
            )
    _save_picture(task, results, out)
    n, m = len(task.Xs), len(task.Xt)
    if as_json:
        record = {"task": task.name, "n_source": n, "n_target": m, "seed": seed}
        typer.echo(json.dumps(record | {"results": results, "picture": str(out)}))
        return
    print_lines(f"Printed to handwritten digits: {n:,} labelled source rows, {m:,} target rows")
    best = max(r["accuracy"] for r in results)
    print_table(
        ["method", "learns from"],
        ["estimated without labels", "true accuracy", "seconds"],
        [
            (
                r["method"],
                "source and target" if r["adapts"] else "source alone",
                "" if r["estimate"] is None else "{:.0%} to {:.0%}".format(*r["estimate"]),
                f"{r['accuracy']:.1%}",
                f"{r['seconds']:.1f}",
            )
            for r in results
        ],
        bold=[i for i, r in enumerate(results) if r["accuracy"] == best],
    )
    print_lines(
        f"AutoAdapter's verdict without labels: {models['AutoAdapter'].trust_.title}",
        f"Picture saved to {out}",
        "Next, with files: transferable demo --export digits && cd digits",
        "                  transferable adapt source.csv target.csv --label digit --id image "
        "--out predictions.csv --report report.html",
    )


def _save_picture(task: Bunch, results: list[dict[str, Any]], path: Path) -> None:
    """Draw digits of both domains, and the accuracy of each method beside its estimate."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False).flat
    titles = ("Source: printed, with labels", "Target: handwritten, without labels")
    parts = left.subfigures(2, 1)
    for part, title, X in zip(parts, titles, (task.Xs, task.Xt), strict=True):
        part.suptitle(title, fontsize="medium")
        for axes, row in zip(part.subplots(2, _SHOWN // 2).flat, X, strict=False):
            axes.imshow(row.reshape(8, 8), cmap="gray_r")
            axes.set_axis_off()
    axes = right.subplots()
    names = [f"{r['method']}\n{'adapted' if r['adapts'] else 'source alone'}" for r in results]
    bars = axes.barh(names, [100 * r["accuracy"] for r in results], color="tab:blue", alpha=0.6)
    axes.bar_label(bars, fmt="%.1f %%", label_type="center")
    for place, r in enumerate(results):
        if r["estimate"] is not None:
            low, high = (100 * end for end in r["estimate"])
            label = f"estimated without labels: {low:.0f} to {high:.0f} %"
            axes.plot([low, high], [place - 0.3] * 2, "|-k", ms=12, label=label)
    axes.invert_yaxis()
    axes.set(xlim=(0, 100), xlabel="accuracy on the target, %")
    if any(r["estimate"] for r in results):
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    figure.savefig(path, dpi=150)
