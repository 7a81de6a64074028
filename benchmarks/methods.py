"""Every method on the same real tasks, with its defaults and chosen settings.

Images come as their loaders give them, rows brought to unit length; tables as ``TableClassifier``
takes them. A transformer is followed by one nearest neighbour. Accuracy is that of the last
iterate. Target labels are looked at after the fit only. Finished fits are kept in
``build/methods/records.jsonl``, so that a run that was stopped goes on; those of all methods make
the tables of ``records/field``.

The row "chosen without labels" takes, on each task, the method whose labels agree most between
neighbouring target rows, among those of the table; it is a choice that a user could have made. A
method "with chosen settings" is a ``LabelFreeSearch`` over some of its own.

    python benchmarks/methods.py [--datasets surf,coil] [--methods SPL,EasyTL] [--tables FOLDER]
                                 [--jobs 8] [--minutes 9]

FOLDER has a folder for each pair of tables, with source.csv and target.csv, label column ``label``.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time, time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.preprocessing import normalize

from paper.benchmarks import BENCHMARKS
from recording import tabulate
from transferable import TFDF, TFDFV, all_estimators
from transferable.classifiers import AdaptedClassifier
from transferable.diagnostics import source_only_methods
from transferable.metrics import neighbor_consistency
from transferable.model_selection import LabelFreeSearch

DATASETS = ("surf", "efficientnet", "digits", "coil")
TABLES = "tables"
PARTS = ("AdaptedClassifier", "LandmarkFeatures")  # of methods; by themselves they do not adapt
LAST = ("AutoAdapter",)  # a pool of methods, which takes the time of all of them
ROOT = Path(__file__).parents[1]
# What is searched without target labels; None is the grid that the search has for TFDF.
GRIDS: dict[str, dict[str, list[Any]] | None] = {
    "TFDF": None,
    "MEDA": {"alignment": [1.0, 10.0], "manifold": [0.1, 1.0], "ridge": [0.1, 1.0]},
    "ARTL": {"alignment": [1.0, 10.0], "manifold": [0.1, 1.0], "ridge": [0.1, 1.0]},
    "GFK": {"n_components": [5, 10, 20, 40]},
    "CORAL": {"regularization": [0.1, 1.0, 10.0]},
    "JDA": {"n_components": [10, 30, 100], "regularization": [0.1, 1.0]},
    "LDML": {"weight_share": [0.3, 0.5, 0.8], "regularization": [0.1, 1.0]},
    "SPL": {"pca_components": [64, 128, 256], "ridge": [0.1, 1.0, 10.0]},
    "DASVM": {"C": [1.0, 10.0, 100.0]},
    "LabelPropagation": {"n_neighbors": [5, 10, 20], "spread": [0.5, 0.9, 0.99]},
    "ImportanceWeighted": {"ratio": ["logistic", "nearest", "kmm", "kliep", "rulsif"]},
    "OTMapping": {"class_weight": [0.01, 0.1, 1.0]},
    "JDOTClassifier": {"distance_weight": [0.1, 1.0, 10.0]},
}


def methods() -> dict[str, Any]:
    """Models of the source alone, then every method, unfitted; what takes longest comes last."""
    own = {name: cls() for name, cls in all_estimators() if name not in PARTS}
    published = {f"{cls.__name__} as published": cls.as_published() for cls in (TFDF, TFDFV)}
    late = {name: own.pop(name) for name in LAST}
    searches = {f"{name} with chosen settings": searched(own[name], GRIDS[name]) for name in GRIDS}
    return source_only_methods() | own | published | searches | late


def searched(method: Any, grid: dict[str, list[Any]] | None) -> LabelFreeSearch:
    model = classifier(method)
    prefix = "transformer__" if model.__class__ is AdaptedClassifier else ""
    settings = grid and {prefix + name: grid[name] for name in grid}
    return LabelFreeSearch(model, settings, anchor=None)  # a pool would answer for every method


def classifier(method: Any) -> Any:
    adapts = hasattr(method, "transform") and not isinstance(method, LabelFreeSearch)
    return AdaptedClassifier(method) if adapts else clone(method)


def tasks(dataset: str, folder: Path | None) -> Iterator[str]:
    """Names of a dataset's tasks."""
    if dataset != TABLES:
        yield from (f"{s}->{t}" for s, t in BENCHMARKS[dataset].fetch().tasks())
    elif folder is not None:
        yield from sorted(path.parent.name for path in folder.glob("*/source.csv"))


def load(dataset: str, task: str, folder: Path | None) -> Any:
    """A task of pictures, or the tables of source and target."""
    if dataset != TABLES:
        return BENCHMARKS[dataset].fetch().task(*task.split("->"))
    import pandas as pd

    return [pd.read_csv(folder / task / f"{side}.csv") for side in ("source", "target")]


def fit_images(method: Any, task: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the target, their labels as predicted, and as they are."""
    Xs, Xt = normalize(task.Xs), normalize(task.Xt)
    model = classifier(method).adapt(Xs, task.ys, Xt)
    return Xt, model.transduction_[len(task.ys) :], task.yt


def fit_tables(method: Any, frames: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from transferable.tables import TableClassifier

    source, target = frames
    features = target.drop(columns="label")
    model = TableClassifier(classifier(method)).adapt(source, "label", features)
    numbers = features.select_dtypes("number").fillna(0.0).to_numpy(dtype=float)
    standard = (numbers - numbers.mean(axis=0)) / np.maximum(numbers.std(axis=0), 1e-12)
    return standard, model.predict(features), target["label"].to_numpy()


def measure(
    dataset: str, task: str, name: str, folder: Path | None, until: float
) -> dict[str, Any] | None:
    """The record of one fit; None if it is too late, or a package that it needs is absent."""
    if time() > until:
        return None
    rows = load(dataset, task, folder)
    fit = fit_tables if dataset == TABLES else fit_images
    record: dict[str, Any] = {"dataset": dataset, "task": task, "method": name}
    start = process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X, predicted, true = fit(methods()[name], rows)
    except ImportError:
        return None
    except (ValueError, MemoryError, np.linalg.LinAlgError) as error:
        return record | {"accuracy": None, "failure": f"{type(error).__name__}: {error}"}
    return record | {
        "accuracy": float(np.mean(predicted == true)),
        "consistency": neighbor_consistency(X, np.unique(predicted, return_inverse=True)[1]),
        "seconds": round(process_time() - start, 2),
    }


def table(dataset: str, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Accuracy by task, mean and seconds of each method; the best mean first.

    Tasks on which fewer than half of the methods have run are left out. A method without a result
    on each of the others has no mean and comes last.
    """
    own = [r for r in records if r["dataset"] == dataset and r["accuracy"] is not None]
    fits = Counter(record["task"] for record in own)
    done = [task for task in fits if 2 * fits[task] > max(fits.values())]
    tasks = sorted(done, key=lambda task: _place(dataset, task))
    found: dict[str, dict[str, Any]] = {r["method"]: {} for r in own if r["task"] in tasks}
    for r in own:
        if r["task"] in tasks:
            found[r["method"]][r["task"]] = r
    chosen = {
        task: max((f[task] for f in found.values() if task in f), key=lambda r: r["consistency"])
        for task in tasks
    }
    found["chosen without labels"] = {t: r | {"seconds": None} for t, r in chosen.items()}
    rows = []
    for name, of_task in found.items():
        cells = {t: 100 * of_task[t]["accuracy"] if t in of_task else None for t in tasks}
        seconds = [r["seconds"] for r in of_task.values() if r["seconds"] is not None]
        rows.append(
            {"method": name}
            | cells
            | {
                "mean": None if None in cells.values() else float(np.mean(list(cells.values()))),
                "seconds": float(np.mean(seconds)) if seconds else None,
            }
        )
    return sorted(rows, key=lambda row: -1 if row["mean"] is None else row["mean"], reverse=True)


def means(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean of each method on each dataset; the best by their mean first."""
    datasets = dict.fromkeys(record["dataset"] for record in records)
    found: dict[str, dict[str, Any]] = {}
    for dataset in datasets:
        for row in table(dataset, records):
            found.setdefault(row["method"], {"method": row["method"]})[dataset] = row["mean"]
    whole = [row for row in found.values() if None not in [row.get(name) for name in datasets]]
    return sorted(whole, key=lambda row: sum(row[name] for name in datasets), reverse=True)


def confusion(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What class confusion gains, task by task: TFDF minus TFDF-V, in points, in both forms."""
    grid = {(r["dataset"], r["task"], r["method"]): r["accuracy"] for r in records}
    rows = []
    for dataset in (*DATASETS, TABLES):
        found = {task for other, task, _ in grid if other == dataset}
        of_task = {}
        for task in sorted(found, key=lambda task: _place(dataset, task)):
            cells = [
                grid.get((dataset, task, name + form))
                for form in ("", " as published")
                for name in ("TFDFV", "TFDF")
            ]
            if None not in cells:
                of_task[task] = [100 * cell for cell in cells]
        if of_task:
            of_task["mean"] = np.mean(list(of_task.values()), axis=0).tolist()
        for task, (v, f, v_published, f_published) in of_task.items():
            rows.append({
                "dataset": _title(dataset),
                "task": task,
                "TFDF-V": v,
                "gain": f"{f - v:+.1f}",
                "TFDF-V as published": v_published,
                "gain as published": f"{f_published - v_published:+.1f}",
            })  # fmt: skip
    return rows


def _place(dataset: str, task: str) -> tuple[int, int, str]:
    """Where a task comes among all of them."""
    names = list(tasks(dataset, None))
    order = names.index(task) if task in names else len(names)
    return (*DATASETS, TABLES).index(dataset), order, task


def _title(dataset: str) -> str:
    return BENCHMARKS[dataset].title if dataset in BENCHMARKS else "Tables"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", default=",".join([*DATASETS, TABLES]))
    parser.add_argument("--methods", default="all")
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--records", type=Path, default=ROOT / "build/methods/records.jsonl")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=600.0, help="no fit begins later")
    options = parser.parse_args()
    options.records.parent.mkdir(parents=True, exist_ok=True)
    wanted = list(methods()) if options.methods == "all" else options.methods.split(",")
    lines = options.records.read_text().splitlines() if options.records.exists() else []
    records = [json.loads(line) for line in lines]
    done = {(r["dataset"], r["task"], r["method"]) for r in records}
    cells = [
        (dataset, task, name)
        for name in wanted
        for dataset in options.datasets.split(",")
        for task in tasks(dataset, options.tables)
        if (dataset, task, name) not in done
    ]
    until = time() + 60 * options.minutes
    made = Parallel(n_jobs=options.jobs, batch_size=1, return_as="generator_unordered")(
        delayed(measure)(*cell, options.tables, until) for cell in cells
    )
    with options.records.open("a") as file:
        for record in filter(None, made):
            print(record, flush=True)
            file.write(json.dumps(record) + "\n")
            file.flush()
            records.append(record)
    whole = options.methods == "all"
    for dataset in dict.fromkeys(record["dataset"] for record in records):
        tabulate(f"field/{dataset}", table(dataset, records), keep=whole)
    whole = whole and options.datasets == parser.get_default("datasets")
    tabulate("field/means", means(records), keep=whole)
    tabulate("field/confusion", confusion(records), keep=whole)


if __name__ == "__main__":
    main()
