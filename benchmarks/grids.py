"""Whether a choice of settings without labels survives another grid: docs/selection.md.

TFDF-V is searched over several grids on 21 tasks of at most 900 rows a domain, with all scorers
that need no held-out rows; beside each setting's scores stand its target accuracy and that of the
mean of the best by one or two scores. Finished searches are kept in ``build/grids/records.jsonl``,
so that a run that was stopped goes on. The tables replace what stands between the marks.

    python benchmarks/grids.py [--grids coarse,fine] [--jobs 8]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from cases import GROUPS, Case
from transferable import TFDFV
from transferable._store import LineStore, parse_line
from transferable.model_selection import SCORERS, LabelFreeSearch
from transferable.model_selection._trials import DEFAULT_GRID

ROOT = Path(__file__).parents[1]
MAX_ROWS = 900
GRIDS = {
    "coarse": {"alignment": [0.1, 1, 10], "manifold": [0.01, 0.1, 1], "ridge": [0.01, 0.1, 1]},
    "default": DEFAULT_GRID,
    "bad corners": {
        "alignment": [0.001, 1, 1000],
        "manifold": [0.0001, 0.1, 100],
        "ridge": [0.0001, 0.1, 100],
    },
    "off-centre": {
        "alignment": [0.001, 0.01, 0.1],
        "manifold": [1, 10, 100],
        "ridge": [0.001, 0.01, 0.1],
    },
    "fine": {
        "alignment": [1, 2, 5, 10, 20],
        "manifold": [0.05, 0.1, 0.2, 0.5, 1],
        "ridge": [0.05, 0.2],
    },
}
TASKS = [(name, task) for name in GROUPS for task in GROUPS[name].tasks]
TASKS = [pair for pair in TASKS if pair[0] != "efficientnet"] + [
    ("efficientnet", task) for task in ("C->W", "A->C", "W->C", "D->A")
]
NAMES = [name for name in SCORERS if name not in ("importance_weighted", "dev")]
CHOICES = [c for k in (1, 2) for c in itertools.combinations(NAMES, k)]
TOGETHER = (1, 3, 5, 9)  # settings whose mean answers

Records = list[dict[str, Any]]


class Truth:
    """Target accuracy as a scorer that decides nothing, and the probabilities it came from."""

    def __init__(self, task: Any) -> None:
        self.task, self.tables = task, {}

    def __call__(self, model: Any, X: Any, y: Any, sample_domain: Any = None) -> float:
        """Share of target rows that are predicted right."""
        table = model.predict_proba(self.task.Xt)
        self.tables[_place(model.get_params())] = table
        return float(np.mean(model.classes_[table.argmax(axis=1)] == self.task.yt))


def _place(parameters: dict[str, Any]) -> tuple[float, ...]:
    """Where a setting is in any of the grids."""
    return tuple(parameters[name] for name in DEFAULT_GRID)


def measure(group: str, task: str, grid: str) -> dict[str, Any]:
    """Search one task over one grid."""
    problem = Case(group, task, max_rows=MAX_ROWS).load()
    truth = Truth(problem)
    scoring = {name: name for name in NAMES} | {"truth": truth}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = LabelFreeSearch(TFDFV(), GRIDS[grid], scoring=scoring, refit="truth")
        results = search.adapt(problem.Xs, problem.ys, problem.Xt).cv_results_
        default = TFDFV().adapt(problem.Xs, problem.ys, problem.Xt)
    settings = results["params"]
    places = [_place(TFDFV(**setting).get_params()) for setting in settings]
    tables = np.array([truth.tables[place] for place in places])
    codes = np.searchsorted(search.classes_, problem.yt)
    means = {}
    for choice in CHOICES:
        total = sum(rankdata(results[f"mean_test_{name}"]) for name in choice)
        order = np.argsort(-total, kind="stable")
        labels = (tables[order[:k]].mean(axis=0).argmax(axis=1) for k in TOGETHER)
        means[" + ".join(choice)] = [float(np.mean(found == codes)) for found in labels]
    return {
        **{"group": group, "task": task, "grid": grid},
        "best": float(results["mean_test_truth"].max()),
        "random": float(results["mean_test_truth"].mean()),
        "default": default.score(problem.Xt, problem.yt),
        "means": means,
    }


def keyed(line: bytes) -> tuple[str, dict[str, Any]]:
    record = parse_line(line)
    return " ".join(record[name] for name in ("group", "task", "grid")), record


def collect(grids: list[str], path: Path, jobs: int) -> Records:
    """What is known of the searches, and what is missing, measured now."""
    store = LineStore(path, keyed)
    known = store.load()
    wanted = [(*task, grid) for grid in grids for task in TASKS]
    missing = [delayed(measure)(*each) for each in wanted if " ".join(each) not in known]
    for record in Parallel(jobs, return_as="generator_unordered")(missing):
        store.append(json.dumps(record))
        known[" ".join(record[name] for name in ("group", "task", "grid"))] = record
        print(record["grid"], record["group"], record["task"], flush=True)
    return [known[" ".join(each)] for each in wanted]


def regret(record: dict[str, Any], choice: str, together: int) -> float:
    return 100 * (record["best"] - record["means"][choice][TOGETHER.index(together)])


def by_group(records: Records, choice: str, together: int) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for record in records:
        groups.setdefault(record["group"], []).append(regret(record, choice, together))
    return {name: float(np.mean(values)) for name, values in groups.items()}


def judged(records: Records, choice: str, together: int) -> tuple[float, float]:
    """Mean over grids and groups, and the worst task of all grids."""
    means = [
        np.mean(
            list(by_group([r for r in records if r["grid"] == grid], choice, together).values())
        )
        for grid in {r["grid"] for r in records}
    ]
    return float(np.mean(means)), max(regret(r, choice, together) for r in records)


def best(records: Records) -> tuple[str, int]:
    """The choice with the least mean regret plus a fifth of the worst."""
    every = [(c, k) for c in records[0]["means"] for k in TOGETHER]
    return min(every, key=lambda each: np.dot(judged(records, *each), (1.0, 0.2)))


def row(cells: Any) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def report(records: Records, grids: list[str]) -> str:
    shown = dict.fromkeys(
        [("circular + neighbors", 1), ("neighbors", 1), ("neighbors", 5), best(records)]
    )
    heads = [f"{grid}: mean" for grid in grids] + [f"{grid}: worst" for grid in grids]
    lines = [row(["picked by", "settings", *heads]), row(["---"] * (2 + len(heads)))]
    for choice, together in shown:
        found = [judged([r for r in records if r["grid"] == g], choice, together) for g in grids]
        cells = [f"{mean:.1f}" for mean, _ in found] + [f"{worst:.1f}" for _, worst in found]
        lines.append(row([choice, together, *cells]))
    lines += ["", row(["left out", "chosen on the others", "settings", "mean regret", "worst"])]
    lines.append(row(["---"] * 5))
    for group in dict.fromkeys(r["group"] for r in records):
        choice, together = best([r for r in records if r["group"] != group])
        mean, worst = judged([r for r in records if r["group"] == group], choice, together)
        lines.append(row([group, choice, together, f"{mean:.1f}", f"{worst:.1f}"]))
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grids", default=",".join(GRIDS))
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--records", type=Path, default=ROOT / "build/grids/records.jsonl")
    arguments = parser.parse_args()
    grids = arguments.grids.split(",")
    text = report(collect(grids, arguments.records, arguments.jobs), grids)
    print(text)
    if grids == list(GRIDS):
        page = ROOT / "docs/selection.md"
        marks = r"(<!-- measured grids -->\n).*(<!-- /measured grids -->)"
        before = page.read_text(encoding="utf-8")
        after = re.sub(marks, lambda m: m[1] + text + m[2], before, flags=re.DOTALL)
        page.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
