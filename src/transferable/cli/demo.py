"""``transferable demo``: what adaptation gains on the task that needs no download."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transferable.cli._console import Messages, reporting, stdout
from transferable.cli._options import Json, Quiet

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.table import Table
    from sklearn.utils import Bunch

_PICTURES = (".png", ".svg", ".pdf")
_PICTURED = ("1-NN", "TFDF", "AutoAdapter")


@dataclass(frozen=True)
class Outcome:
    """What one method made of the target rows."""

    method: str
    adapts: bool
    predicted: NDArray[Any]
    accuracy: float
    seconds: float


def _check_picture(path: Path) -> Path:
    """Refuse a path that cannot take the picture before anything is computed."""
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
    as_json: Json = False,
    quiet: Quiet = False,
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


def _compare(task: Bunch, seed: int, out: Path, messages: Messages, as_json: bool) -> None:
    """Label the target rows by each method, score the labels and show them."""
    models = _models()
    with messages.bar("Comparing methods") as bar:
        steps = bar.through(models.items(), lambda step: step[0])
        outcomes = [_outcome(name, model, task) for name, model in steps]
    _save_picture(task, models, outcomes, out)
    if as_json:
        typer.echo(json.dumps(_record(task, outcomes, seed, out)))
        return
    console = stdout()
    console.print(
        f"Printed to handwritten digits: {len(task.Xs):,} labelled source rows, "
        f"{len(task.Xt):,} target rows"
    )
    console.print(_table(outcomes))
    console.print(f"Confusion matrices saved to {out}", soft_wrap=True, markup=False)


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
        for path in paths.values():
            stdout().print(f"Written: {path}", soft_wrap=True, markup=False)


def _models() -> dict[str, Any]:
    """The classifiers to compare; those that know the source alone get unit rows, as TFDF does."""
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


def _outcome(name: str, model: Any, task: Bunch) -> Outcome:
    """Fit a classifier, label the target rows and score the labels."""
    adapts = hasattr(model, "adapt")
    start = perf_counter()
    if adapts:
        model.adapt(task.Xs, task.ys, task.Xt)
    else:
        model.fit(task.Xs, task.ys)
    predicted = model.predict(task.Xt)
    seconds = perf_counter() - start
    return Outcome(name, adapts, predicted, float((predicted == task.yt).mean()), seconds)


def _save_picture(task: Bunch, models: dict[str, Any], outcomes: list[Outcome], path: Path) -> None:
    """Fig. 1 of the paper: the source-only model at home and abroad, then the adapted ones."""
    from sklearn.model_selection import cross_val_predict

    from transferable.plots import ConfusionDisplay

    source = "Source by 1-NN, left out"
    predicted = {source: cross_val_predict(models[_PICTURED[0]], task.Xs, task.ys)}
    predicted |= {f"Target by {o.method}": o.predicted for o in outcomes if o.method in _PICTURED}
    true = {name: task.ys if name == source else task.yt for name in predicted}
    ConfusionDisplay.from_predictions(true, predicted).figure_.savefig(path, dpi=150)


def _record(task: Bunch, outcomes: list[Outcome], seed: int, picture: Path) -> dict[str, Any]:
    return {
        "task": task.name,
        "n_source": len(task.Xs),
        "n_target": len(task.Xt),
        "seed": seed,
        "results": [
            {
                "method": o.method,
                "adapts": o.adapts,
                "accuracy": o.accuracy,
                "seconds": round(o.seconds, 3),
            }
            for o in outcomes
        ],
        "picture": str(picture),
    }


def _table(outcomes: list[Outcome]) -> Table:
    from rich.table import Table

    table = Table("method", "learns from")
    table.add_column("target accuracy", justify="right")
    table.add_column("seconds", justify="right")
    best = max(o.accuracy for o in outcomes)
    for o in outcomes:
        table.add_row(
            o.method,
            "source and target" if o.adapts else "source alone",
            f"{o.accuracy:.1%}",
            f"{o.seconds:.1f}",
            style="bold" if o.accuracy == best else None,
        )
    return table
