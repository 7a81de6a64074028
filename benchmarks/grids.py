"""Whether a choice of settings without labels survives another grid.

TFDF-V is searched over five grids, three on 21 tasks of at most 500 rows a domain and two on 11,
with all scorers that need no held-out rows. Of every setting the scores, the probabilities of the
target rows and its accuracy are kept, one file for each search in ``build/grids``, so that a run
that was stopped goes on and further choices can be tried without a fit. A choice is a rank sum of
up to three scores, how many of the best settings answer together, and whether an anchor,
AutoAdapter, counts half beside them. A run of all grids writes ``records/selection/grids*.csv``.

    python benchmarks/grids.py [--grids coarse,fine] [--rows 900] [--jobs 8]
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from cases import GROUPS, Case
from recording import tabulate
from transferable import TFDFV, AutoAdapter
from transferable.model_selection import SCORERS, LabelFreeSearch
from transferable.model_selection.scorers import BESIDE_ANCHOR, RECOMMENDED
from transferable.model_selection.search import DEFAULT_GRID

ROOT = Path(__file__).parents[1]
GRIDS = {
    "coarse": {"alignment": [0.1, 1, 10], "manifold": [0.01, 0.1, 1], "ridge": [0.01, 0.1, 1]},
    "off-centre": {
        "alignment": [0.001, 0.01, 0.1],
        "manifold": [1, 10, 100],
        "ridge": [0.001, 0.01, 0.1],
    },
    "bad corners": {
        "alignment": [0.001, 1, 1000],
        "manifold": [0.0001, 0.1, 100],
        "ridge": [0.0001, 0.1, 100],
    },
    "default": DEFAULT_GRID,
    "fine": {
        "alignment": [1, 2, 5, 10, 20],
        "manifold": [0.05, 0.1, 0.2, 0.5, 1],
        "ridge": [0.05, 0.2],
    },
}
TASKS = [(name, task) for name in GROUPS for task in GROUPS[name].tasks if name != "efficientnet"]
TASKS += [("efficientnet", task) for task in ("C->W", "A->C", "W->C", "D->A")]
LARGE = ("default", "fine")  # of which some tasks of the groups with many must do
SOME = {"surf": ("C->A", "A->W", "W->D", "D->C"), "efficientnet": ("C->W", "D->A")}
NAMES = [name for name in SCORERS if name not in ("importance_weighted", "dev")]
SUMS = [parts for k in (1, 2, 3) for parts in itertools.combinations(NAMES, k)]
TOGETHER = (1, 3, 5)  # settings whose mean probabilities answer


class Choice(NamedTuple):
    """How an answer is chosen; without parts, and no settings, it is not chosen from the grid."""

    parts: tuple[str, ...]
    together: int
    anchored: bool

    @property
    def name(self) -> str:
        """In words."""
        if not self.parts:
            return "the anchor alone" if self.anchored else "the default setting"
        settings = f", mean of {self.together}" if self.together > 1 else ""
        return " + ".join(self.parts) + settings + (", anchored" if self.anchored else "")


ANCHOR, DEFAULT = Choice((), 0, anchored=True), Choice((), 0, anchored=False)
ANCHORED = Choice((BESIDE_ANCHOR,), 5, anchored=True)  # what `anchor=` of the search does
SHOWN = (
    Choice(RECOMMENDED.parts, 1, anchored=False),
    Choice(("neighbors",), 1, anchored=False),
    Choice(("neighbors",), 5, anchored=False),
    Choice(("silhouette", "neighbors"), 3, anchored=False),
    DEFAULT,
    ANCHOR,
    ANCHORED,
)


class Kept:
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


@dataclass(frozen=True)
class Search:
    """One task over one grid, and the file that keeps what became of every setting."""

    group: str
    task: str
    grid: str
    max_rows: int

    def file(self, folder: Path) -> Path:
        """Where it is kept."""
        name = "_".join([self.group, self.task.replace("->", "-to-"), self.grid.replace(" ", "-")])
        return folder / f"{name}_{self.max_rows}.npz"

    def measure(self, folder: Path) -> Search:
        """Scores, probabilities and accuracies of all settings, and those of the default one."""
        problem = Case(self.group, self.task, max_rows=self.max_rows).load()
        kept = Kept(problem)
        scoring = {name: name for name in NAMES} | {"truth": kept}
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = problem.Xs, problem.ys, problem.Xt
            search = LabelFreeSearch(
                TFDFV(), GRIDS[self.grid], scoring=scoring, refit="truth", anchor=None
            )
            results = search.adapt(*given).cv_results_
            default = TFDFV().adapt(*given)
            anchor = AutoAdapter(effort="fast").adapt(*given)
        places = [_place(TFDFV(**setting).get_params()) for setting in results["params"]]
        arrays = {
            "accuracy": results["mean_test_truth"],
            "tables": np.array([kept.tables[place] for place in places], dtype=np.float32),
            "anchor": anchor.predict_proba(problem.Xt).astype(np.float32),
            "default": np.array(default.score(problem.Xt, problem.yt)),
            "truth": np.searchsorted(search.classes_, problem.yt),
            **{name: results[f"mean_test_{name}"] for name in NAMES},
        }
        path = self.file(folder)
        np.savez_compressed(path.with_suffix(".part.npz"), **arrays)
        path.with_suffix(".part.npz").rename(path)
        return self

    def regrets(self, folder: Path) -> dict[Choice, float]:
        """Points that every choice loses to the best setting of the grid."""
        with np.load(self.file(folder)) as kept:
            arrays = dict(kept)

        def accuracy(table: Any) -> float:
            return float(np.mean(table.argmax(axis=1) == arrays["truth"]))

        found = {DEFAULT: float(arrays["default"]), ANCHOR: accuracy(arrays["anchor"])}
        ranks = {name: rankdata(arrays[name]) for name in NAMES}
        for parts, together in itertools.product(SUMS, TOGETHER):
            order = np.argsort(-sum(ranks[name] for name in parts), kind="stable")
            mean = arrays["tables"][order[:together]].mean(axis=0)
            found[Choice(parts, together, anchored=False)] = accuracy(mean)
            found[Choice(parts, together, anchored=True)] = accuracy(mean + arrays["anchor"])
        best = arrays["accuracy"].max()
        return {choice: 100 * (best - value) for choice, value in found.items()}


Regrets = dict[Search, dict[Choice, float]]


def searches(grids: list[str], max_rows: int) -> list[Search]:
    """All searches of the benchmark."""
    return [
        Search(group, task, grid, max_rows)
        for grid in grids
        for group, task in TASKS
        if grid not in LARGE or task in SOME.get(group, (task,))
    ]


def collect(wanted: list[Search], folder: Path, jobs: int) -> Regrets:
    """The regrets of all searches; what is missing is measured now."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [delayed(s.measure)(folder) for s in wanted if not s.file(folder).exists()]
    for done in Parallel(jobs, return_as="generator_unordered")(missing):
        print(done.grid, done.group, done.task, flush=True)
    return {search: search.regrets(folder) for search in wanted}


def judged(regrets: Regrets, choice: Choice, grid: str) -> tuple[float, float]:
    """Of a grid, the mean over tasks of each group, then over groups; and the worst task."""
    groups: dict[str, list[float]] = {}
    for search, found in regrets.items():
        if search.grid == grid:
            groups.setdefault(search.group, []).append(found[choice])
    means = [np.mean(values) for values in groups.values()]
    return float(np.mean(means)), max(map(max, groups.values()))


def best(regrets: Regrets) -> Choice:
    """The choice with the least mean regret over all grids plus a fifth of the worst."""

    def value(choice: Choice) -> float:
        found = [judged(regrets, choice, grid) for grid in {s.grid for s in regrets}]
        return float(np.mean([mean for mean, _ in found]) + max(worst for _, worst in found) / 5)

    return min((c for c in next(iter(regrets.values())) if c.parts), key=value)


def table(regrets: Regrets, grids: list[str]) -> list[dict[str, Any]]:
    """Mean and worst regret of some choices on every grid."""
    shown = dict.fromkeys((*SHOWN[:-1], best(regrets), ANCHORED))
    return [{"picked by": choice.name} | _cells(regrets, choice, grids) for choice in shown]


def left_out_table(regrets: Regrets, grids: list[str]) -> list[dict[str, Any]]:
    """What would have been chosen without each group, and its regrets there."""
    rows = []
    for group in dict.fromkeys(search.group for search in regrets):
        choice = best({s: found for s, found in regrets.items() if s.group != group})
        own = {s: found for s, found in regrets.items() if s.group == group}
        names = {"left out": group, "chosen on the others": choice.name}
        rows.append(names | _cells(own, choice, grids))
    return rows


def _cells(regrets: Regrets, choice: Choice, grids: list[str]) -> dict[str, float]:
    cells: dict[str, float] = {}
    for grid in grids:
        cells[grid], cells[f"{grid}, worst"] = judged(regrets, choice, grid)
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grids", default=",".join(GRIDS))
    parser.add_argument("--rows", type=int, default=500, help="of each domain, at most")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/grids")
    arguments = parser.parse_args()
    grids = arguments.grids.split(",")
    wanted = searches(grids, arguments.rows)
    regrets, keep = collect(wanted, arguments.folder, arguments.jobs), grids == list(GRIDS)
    tabulate("selection/grids", table(regrets, grids), keep=keep)
    tabulate("selection/grids-left-out", left_out_table(regrets, grids), keep=keep)


if __name__ == "__main__":
    main()
