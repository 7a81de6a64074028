"""Every method with its defaults on the same real tasks: docs/field.md.

Images come as their loaders give them, rows brought to unit length; tables as ``TableClassifier``
takes them. A transformer is followed by one nearest neighbour. Accuracy is that of the last
iterate. Target labels are looked at after the fit only. Finished fits are kept in
``build/methods/records.jsonl``, so that a run that was stopped goes on.

The row "chosen without labels" takes, on each task, the method whose labels agree most between
neighbouring target rows, among those of the table; it is a choice that a user could have made.

    python benchmarks/methods.py [--datasets surf,coil] [--methods SPL,EasyTL] [--tables FOLDER]

FOLDER has a folder for each pair of tables, with source.csv and target.csv, label column ``label``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.preprocessing import normalize

from transferable import TFDF, TFDFV, all_estimators
from transferable.classifiers import AdaptedClassifier
from transferable.diagnostics import source_only_methods
from transferable.experiments.benchmarks import BENCHMARKS
from transferable.metrics import neighbor_consistency
from transferable.tables import TableClassifier

DATASETS = ("surf", "efficientnet", "digits", "coil")
TABLES = "tables"
PARTS = ("AdaptedClassifier", "LandmarkFeatures")  # of methods; by themselves they do not adapt
ROOT = Path(__file__).parents[1]


def methods() -> dict[str, Any]:
    """Models of the source alone, then every method, unfitted."""
    own = {name: cls() for name, cls in all_estimators() if name not in PARTS}
    published = {f"{cls.__name__} as published": cls.as_published() for cls in (TFDF, TFDFV)}
    return source_only_methods() | own | published


def classifier(method: Any) -> Any:
    return AdaptedClassifier(method) if hasattr(method, "transform") else clone(method)


def tasks(dataset: str, folder: Path | None) -> Iterator[tuple[str, Any]]:
    """Names of a dataset's tasks, and what loads them."""
    if dataset != TABLES:
        collection = BENCHMARKS[dataset].fetch()
        for source, target in collection.tasks():
            yield f"{source}->{target}", lambda s=source, t=target: collection.task(s, t)
    elif folder is not None:
        for path in sorted(path.parent for path in folder.glob("*/source.csv")):
            yield (
                path.name,
                lambda path=path: [
                    pd.read_csv(path / f"{side}.csv") for side in ("source", "target")
                ],
            )


def fit_images(method: Any, task: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the target, their labels as predicted, and as they are."""
    Xs, Xt = normalize(task.Xs), normalize(task.Xt)
    model = classifier(method).adapt(Xs, task.ys, Xt)
    return Xt, model.transduction_[len(task.ys) :], task.yt


def fit_tables(method: Any, frames: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    source, target = frames
    features = target.drop(columns="label")
    model = TableClassifier(classifier(method)).adapt(source, "label", features)
    numbers = features.select_dtypes("number").fillna(0.0).to_numpy(dtype=float)
    standard = (numbers - numbers.mean(axis=0)) / np.maximum(numbers.std(axis=0), 1e-12)
    return standard, model.predict(features), target["label"].to_numpy()


def measure(dataset: str, method: Any, task: Any) -> dict[str, Any]:
    fit = fit_tables if dataset == TABLES else fit_images
    start = process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X, predicted, true = fit(method, task)
    except (ValueError, MemoryError, np.linalg.LinAlgError) as error:
        return {"accuracy": None, "failure": f"{type(error).__name__}: {error}"}
    return {
        "accuracy": float(np.mean(predicted == true)),
        "consistency": neighbor_consistency(X, np.unique(predicted, return_inverse=True)[1]),
        "seconds": round(process_time() - start, 2),
    }


def render(records: list[dict[str, Any]]) -> str:
    """A table for each dataset: mean accuracy, spread over tasks, seconds; the best first."""
    parts = []
    for dataset in dict.fromkeys(record["dataset"] for record in records):
        own = [record for record in records if record["dataset"] == dataset]
        fits = Counter(record["task"] for record in own)
        tasks = [task for task in fits if fits[task] == max(fits.values())]  # done by now
        grid = {(r["method"], r["task"]): r for r in own if r["accuracy"] is not None}
        names = [n for n in dict.fromkeys(r["method"] for r in own) if _complete(n, tasks, grid)]
        rows = {name: [grid[name, task]["accuracy"] for task in tasks] for name in names}
        rows["*chosen without labels*"] = [
            grid[max(names, key=lambda n: grid[n, task]["consistency"]), task]["accuracy"]
            for task in tasks
        ]
        lines = [f"### {_title(dataset)}, {len(tasks)} tasks", ""]
        lines += ["| method | " + " | ".join(tasks) + " | mean | seconds |"]
        lines += ["| --- |" + " ---: |" * (len(tasks) + 2)]
        for name in sorted(rows, key=lambda n: -np.mean(rows[n])):
            seconds = [grid[name, task]["seconds"] for task in tasks] if name in names else []
            cells = [f"{100 * accuracy:.1f}" for accuracy in rows[name]]
            time = f"{np.mean(seconds):.1f}" if seconds else ""
            lines.append(
                f"| {name} | {' | '.join(cells)} | {100 * np.mean(rows[name]):.1f} | {time} |"
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def render_confusion(records: list[dict[str, Any]]) -> str:
    """What class confusion gains, task by task: TFDF minus TFDF-V, in points, in both forms."""
    grid = {(r["dataset"], r["task"], r["method"]): r["accuracy"] for r in records}
    lines = ["| dataset | task | TFDF-V | gain | TFDF-V as published | gain |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: |"]
    for dataset, task in dict.fromkeys((r["dataset"], r["task"]) for r in records):
        forms = [
            [grid.get((dataset, task, name + form)) for name in ("TFDFV", "TFDF")]
            for form in ("", " as published")
        ]
        if all(None not in form for form in forms):
            cells = [f"{100 * v:.1f} | {100 * (f - v):+.1f}" for v, f in forms]
            lines.append(f"| {_title(dataset)} | {task} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _complete(name: str, tasks: list[str], grid: dict[tuple[str, str], Any]) -> bool:
    return all((name, task) in grid for task in tasks)


def _title(dataset: str) -> str:
    return BENCHMARKS[dataset].title if dataset in BENCHMARKS else "Tables"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", default=",".join([*DATASETS, TABLES]))
    parser.add_argument("--methods", default="all")
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--records", type=Path, default=ROOT / "build/methods/records.jsonl")
    options = parser.parse_args()
    options.records.parent.mkdir(parents=True, exist_ok=True)
    known = methods()
    wanted = list(known) if options.methods == "all" else options.methods.split(",")
    lines = options.records.read_text().splitlines() if options.records.exists() else []
    records = [json.loads(line) for line in lines]
    done = {(r["dataset"], r["task"], r["method"]) for r in records}
    with options.records.open("a") as file:
        for dataset in options.datasets.split(","):
            for task, load in tasks(dataset, options.tables):
                left = [name for name in wanted if (dataset, task, name) not in done]
                loaded = load() if left else None
                for name in left:
                    record = {"dataset": dataset, "task": task, "method": name}
                    record |= measure(dataset, known[name], loaded)
                    print(record, flush=True)
                    file.write(json.dumps(record) + "\n")
                    file.flush()
                    records.append(record)
    write(ROOT / "docs/field.md", {"measured": render, "confusion": render_confusion}, records)


def write(page: Path, parts: dict[str, Callable[[list], str]], records: list) -> None:
    """Put each part between its marks on the page."""
    text = page.read_text()
    for name, part in parts.items():
        between = rf"(<!-- {name} -->\n).*(\n<!-- end {name} -->)"
        made = part(records)
        text = re.sub(between, lambda m, made=made: m[1] + made + m[2], text, flags=re.DOTALL)
    page.write_text(text)


if __name__ == "__main__":
    main()
