"""``transferable demo``: the gain by adaptation on the task that needs no download."""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transferable.cli import _options as opt
from transferable.cli._console import Messages, print_lines, print_table, reporting

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.utils import Bunch

_PICTURES = (".png", ".svg", ".pdf")
_PICTURED = ("1-NN", "TFDF", "AutoAdapter")


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

    Labelled digits drawn from fonts are the source, 1,797 handwritten digits the target. Two
    classifiers trained on the source alone and two that adapt label the same target rows; the
    handwritten digits' true labels serve to score them, and for nothing else.
    """
    with reporting():
        from transferable.datasets import load_printed_to_handwritten

        task = load_printed_to_handwritten(random_state=seed)
        if export is not None:
            _export(task, export, as_json)
        else:
            _compare(task, seed, out, Messages(quiet=quiet), as_json)


def _export(task: Bunch, folder: Path, as_json: bool) -> None:
    """Write the task as two tables, the target's without labels."""
    import pandas as pd

    from transferable._files import replacing

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
    """Label the target rows by each method, score the labels and show them."""
    models = _models()
    results: list[dict[str, Any]] = []
    predicted = {}
    with messages.bar("Comparing methods") as bar:
        for name, model in bar.through(models.items(), lambda step: step[0]):
            adapts = hasattr(model, "adapt")
            start = perf_counter()
            if adapts:
                model.adapt(task.Xs, task.ys, task.Xt)
            else:
                model.fit(task.Xs, task.ys)
            predicted[name] = model.predict(task.Xt)
            seconds = round(perf_counter() - start, 3)
            accuracy = float((predicted[name] == task.yt).mean())
            results.append(
                {"method": name, "adapts": adapts, "accuracy": accuracy, "seconds": seconds}
            )
    _save_picture(task, models["1-NN"], predicted, out)
    n, m = len(task.Xs), len(task.Xt)
    if as_json:
        record = {"task": task.name, "n_source": n, "n_target": m, "seed": seed}
        typer.echo(json.dumps(record | {"results": results, "picture": str(out)}))
        return
    print_lines(f"Printed to handwritten digits: {n:,} labelled source rows, {m:,} target rows")
    best = max(r["accuracy"] for r in results)
    learns_from = {True: "source and target", False: "source alone"}
    rows = [
        (r["method"], learns_from[r["adapts"]], f"{r['accuracy']:.1%}", f"{r['seconds']:.1f}")
        for r in results
    ]
    print_table(
        ["method", "learns from"],
        ["target accuracy", "seconds"],
        rows,
        bold=[i for i, r in enumerate(results) if r["accuracy"] == best],
    )
    print_lines(f"Confusion matrices saved to {out}")


def _models() -> dict[str, Any]:
    """Return the classifiers; those of the source alone get unit rows, as TFDF does."""
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer
    from sklearn.svm import SVC

    from transferable import TFDF, AutoAdapter

    return {
        "1-NN": make_pipeline(Normalizer(), KNeighborsClassifier(n_neighbors=1)),
        "SVM": make_pipeline(Normalizer(), SVC()),
        "TFDF": TFDF(),
        "AutoAdapter": AutoAdapter(),
    }


def _save_picture(
    task: Bunch, neighbour: Any, predicted: dict[str, NDArray[Any]], path: Path
) -> None:
    """Draw Fig. 1 of the paper: the source-only model on both domains, then the adapted ones."""
    from sklearn.model_selection import cross_val_predict

    from transferable.plots import ConfusionDisplay

    source = "Source by 1-NN, left out"
    shown = {source: cross_val_predict(neighbour, task.Xs, task.ys)}
    shown |= {f"Target by {name}": predicted[name] for name in _PICTURED}
    true = {name: task.ys if name == source else task.yt for name in shown}
    ConfusionDisplay.from_predictions(true, shown).figure_.savefig(path, dpi=150)
