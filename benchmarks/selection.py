"""How well scores without target labels choose settings, on 28 real tasks.

Every task is searched over a grid of TFDF-V with all scorers, target accuracy beside them.
Finished tasks are kept in ``build/selection/records.jsonl``, so that a run that was stopped goes
on. A run of all datasets writes tables of ``records/selection``.

    python benchmarks/selection.py [--datasets surf,coil] [--jobs 8]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from pathlib import Path
from time import process_time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata, spearmanr

from paper.benchmarks import BENCHMARKS
from paper.lines import LineStore, parse_line
from recording import tabulate
from transferable import TFDFV
from transferable.model_selection import SCORERS, LabelFreeSearch
from transferable.model_selection.scorers import RECOMMENDED
from transferable.model_selection.search import DEFAULT_GRID

DATASETS = ("surf", "coil", "digits", "efficientnet")
HELD_OUT = ("importance_weighted", "dev")  # one more fit for each setting: not on digits
# What a recommendation is chosen from: scorers that were computed everywhere, up to three at once.
PARTS = [name for name in SCORERS if name not in HELD_OUT]
COMBINATIONS = [c for k in (1, 2, 3) for c in itertools.combinations(PARTS, k)]
RATIO_GRID = {
    "alignment": [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0],
    "manifold": [0.01, 0.1, 0.5, 1.0, 5.0],
    "n_neighbors": [5, 10, 15, 20],
}
ROOT = Path(__file__).parents[1]


class Truth:
    """Target accuracy as a scorer that decides nothing."""

    def __init__(self, task):
        self.task = task

    def __call__(self, model, X, y, sample_domain=None):
        """Share of target rows that are predicted right."""
        return float(np.mean(model.predict(self.task.Xt) == self.task.yt))


def measure(dataset: str, source: str, target: str) -> dict:
    """Search one task."""
    task = BENCHMARKS[dataset].fetch().task(source, target)
    start = process_time()
    names = [name for name in SCORERS if dataset != "digits" or name not in HELD_OUT]
    search = LabelFreeSearch(
        TFDFV(),
        DEFAULT_GRID,
        scoring={name: name for name in names} | {"truth": Truth(task)},
        refit="truth",
        anchor=None,
    ).adapt(task.Xs, task.ys, task.Xt)
    results = search.cv_results_
    nothing = TFDFV(alignment=0.0, manifold=0.0, variance=0.0)
    return {
        "dataset": dataset,
        "task": f"{source}->{target}",
        "accuracy": results["mean_test_truth"].tolist(),
        "scores": {name: results[f"mean_test_{name}"].tolist() for name in names},
        "default": TFDFV().adapt(task.Xs, task.ys, task.Xt).score(task.Xt, task.yt),
        "source_only": nothing.adapt(task.Xs, task.ys, task.Xt).score(task.Xt, task.yt),
        "seconds": round(process_time() - start, 1),
    }


def keyed(line: bytes) -> tuple[str, dict]:
    record = parse_line(line)
    return f"{record['dataset']} {record['task']}", record


def collect(datasets, path: Path, jobs: int) -> list[dict]:
    """What is known of the tasks, and what is missing, measured now."""
    store = LineStore(path, keyed)
    known = store.load()
    pairs = [(name, *pair) for name in datasets for pair in BENCHMARKS[name].fetch().tasks()]
    wanted = {
        f"{name} {source}->{target}": (name, source, target) for name, source, target in pairs
    }
    missing = [delayed(measure)(*task) for key, task in wanted.items() if key not in known]
    for record in Parallel(jobs, return_as="generator_unordered")(missing):
        store.append(json.dumps(record))
        known[f"{record['dataset']} {record['task']}"] = record
        print(record["dataset"], record["task"], record["seconds"], "s", flush=True)
    return [known[key] for key in wanted]


def pick(record: dict, parts) -> float | None:
    """Accuracy of the setting that a rank sum picks; None where a part is missing."""
    if any(part not in record["scores"] for part in parts):
        return None
    total = sum(rankdata(record["scores"][part]) for part in parts)
    return record["accuracy"][int(np.argmax(total))]


def regrets(records, parts) -> dict[str, float]:
    """Mean regret in points for each dataset."""
    out: dict[str, list[float]] = {}
    for record in records:
        picked = pick(record, parts)
        if picked is not None:
            out.setdefault(record["dataset"], []).append(100 * (max(record["accuracy"]) - picked))
    return {dataset: float(np.mean(values)) for dataset, values in out.items()}


def mean_regret(records, parts) -> float:
    return float(np.mean(list(regrets(records, parts).values())))


def worst_regret(records, parts) -> float:
    return max(regrets(records, parts).values())


def relative_regret(records, parts) -> float:
    """Mean over datasets of the regret as a share of that of a random setting."""
    chance = chance_regrets(records)
    return float(np.mean([v / chance[d] for d, v in regrets(records, parts).items()]))


def chance_regrets(records) -> dict[str, float]:
    return by_dataset(records, lambda r: 100 * (max(r["accuracy"]) - np.mean(r["accuracy"])))


# Ways to choose a combination on some datasets: what is made small, and of how many parts at least.
RULES = {
    "mean, any": (mean_regret, 1),
    "worst dataset, sums": (worst_regret, 2),
    "relative, sums": (relative_regret, 2),
}


def best_combination(records, criterion=mean_regret, fewest=1) -> tuple[str, ...]:
    """The least by a criterion; of equals, the one of fewer parts."""
    value = {c: criterion(records, c) for c in COMBINATIONS if len(c) >= fewest}
    return min(value, key=lambda c: (round(value[c], 6), len(c)))


def by_dataset(records, value) -> dict[str, float]:
    """Mean over the tasks of each dataset of what is not None."""
    out: dict[str, list[float]] = {}
    for record in records:
        if (one := value(record)) is not None:
            out.setdefault(record["dataset"], []).append(one)
    return {dataset: float(np.mean(values)) for dataset, values in out.items()}


def correlation(record, parts) -> float | None:
    if any(part not in record["scores"] for part in parts):
        return None
    total = sum(rankdata(record["scores"][part]) for part in parts)
    return 0.0 if np.ptp(total) == 0 else float(spearmanr(total, record["accuracy"])[0])


def worse(record, parts) -> float | None:
    picked = pick(record, parts)
    return None if picked is None else float(picked < record["source_only"])


def scorer_table(records, datasets) -> list[dict]:
    """Regrets and correlations by dataset, and how often the pick is worse than source-only."""

    def line(name, regret, correlations, below):
        return (
            {"picked by": name}
            | {f"regret {d}": regret.get(d) for d in datasets}
            | {f"corr. {d}": f"{c[d]:.2f}" if d in (c := correlations) else None for d in datasets}
            | {"worse than source-only": f"{100 * np.mean(below):.0f}" if below else None}
        )

    rows = []
    for name, key in (("default setting", "default"), ("source only", "source_only")):
        regret = by_dataset(records, lambda r, key=key: 100 * (max(r["accuracy"]) - r[key]))
        rows.append(line(name, regret, {}, [r[key] < r["source_only"] for r in records]))
    rows.append(line("random setting", chance_regrets(records), {}, []))
    for parts in (*((name,) for name in SCORERS), RECOMMENDED.parts):
        below = [b for r in records if (b := worse(r, parts)) is not None]
        correlations = by_dataset(records, lambda r, parts=parts: correlation(r, parts))
        rows.append(line(" + ".join(parts), regrets(records, parts), correlations, below))
    return rows


def left_out_table(records, datasets) -> list[dict]:
    """What would have been chosen without each dataset, and its regret there."""
    default = by_dataset(records, lambda r: 100 * (max(r["accuracy"]) - r["default"]))
    rows = []
    for (rule, how), dataset in itertools.product(RULES.items(), datasets):
        others = [r for r in records if r["dataset"] != dataset]
        if not others:
            continue
        parts = best_combination(others, *how)
        rows.append({
            "rule": rule,
            "left out": dataset,
            "chosen on the others": " + ".join(parts),
            "regret of the chosen": regrets(records, parts).get(dataset),
            "regret of the recommended": regrets(records, RECOMMENDED.parts).get(dataset),
            "regret of the default": default[dataset],
        })  # fmt: skip
    return rows


def cost_of_a_grid() -> list[dict]:
    """Processor time of 200 settings against that of single fits on SURF C->A, in one run."""
    task = BENCHMARKS["surf"].fetch().task("C", "A")
    singles = []
    for _ in range(3):
        start = process_time()
        TFDFV().adapt(task.Xs, task.ys, task.Xt)
        singles.append(process_time() - start)
    single, rows = float(np.median(singles)), []
    for scoring in ("neighbors", "recommended"):
        start = process_time()
        search = LabelFreeSearch(TFDFV(), RATIO_GRID, scoring=scoring, anchor=None)
        search.adapt(task.Xs, task.ys, task.Xt)
        seconds = process_time() - start
        rows.append({
            "scoring": scoring,
            "settings": 200,
            "seconds": seconds,
            "single fits": seconds / single,
            "seconds of a single fit": f"{single:.2f}",
        })  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--records", type=Path, default=ROOT / "build/selection/records.jsonl")
    arguments = parser.parse_args()
    datasets = arguments.datasets.split(",")
    records = collect(datasets, arguments.records, arguments.jobs)
    keep = datasets == list(DATASETS)
    tabulate("selection/picks", scorer_table(records, datasets), keep=keep)
    tabulate("selection/left-out", left_out_table(records, datasets), keep=keep)
    tabulate("selection/cost", cost_of_a_grid(), keep=keep)
    minutes = sum(r["seconds"] for r in records) / 60
    print(f"Processor time of the searches: {minutes:.0f} minutes.")


if __name__ == "__main__":
    main()
