"""How far answers move with the rows: leaving out 2 % of the source, and fresh draws of digits.

Each task is fitted to all source rows, then to 20 random draws of 98 % of them. Digits of the full
MNIST and USPS are drawn eight times, 1,800 and 2,000 of them, as many as in the published task. A
run writes ``records/steady``; of another checkout, the table "before" beside it.

    python benchmarks/steady.py
    PYTHONPATH=../other/src python benchmarks/steady.py --name before
"""

from __future__ import annotations

import argparse
import os
import warnings
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed

from cases import GROUPS, Case
from paper.benchmarks import full_digits
from recording import tabulate
from safety import label_arrays, label_tables

DRAWS, FRESH, SHARE = 20, 8, 0.98
SIZES = {"U": 1800, "M": 2000}
DIGITS = ("U->M", "M->U")
TASKS = (
    *(Case("tables", name, max_rows=800) for name in ("wine", "adult", "gas", "heart")),
    *(Case("surf", name) for name in ("W->C", "D->A", "C->W")),
    *(Case("coil", "COIL1->COIL2"), Case("digits", "U->M")),
    *(Case("printed", GROUPS["printed"].tasks[0]), Case("efficientnet", "A->C")),
)


def accuracy(case: Case, draw: int) -> float:
    """Per cent of the target, of a fit to a draw of the source; 0 takes every row."""
    problem = case.load()
    tables = case.group == "tables"
    n = len(problem.source if tables else problem.Xs)
    size = n if draw == 0 else round(SHARE * n)
    kept = np.sort(np.random.default_rng(1000 + draw).choice(n, size, replace=False))
    if tables:
        problem.source = problem.source.iloc[kept].reset_index(drop=True)
    else:
        problem.Xs, problem.ys = problem.Xs[kept], problem.ys[kept]
    return _right(label_tables if tables else label_arrays, problem)


def fresh_digits(task: str, draw: int) -> Any:
    """A draw of the full sets, rows of unit length."""
    problem, rng = full_digits().task(*task.split("->")), np.random.default_rng(draw)
    sides = {task[0]: ("Xs", "ys"), task[-1]: ("Xt", "yt")}
    for domain, size in SIZES.items():
        X, y = sides[domain]
        rows = rng.choice(len(problem[y]), size, replace=False)
        pixels = problem[X][rows].reshape(len(rows), -1).astype(np.float64)
        problem[X] = pixels / np.linalg.norm(pixels, axis=1, keepdims=True)
        problem[y] = problem[y][rows]
    return problem


def fresh(task: str, draw: int) -> float:
    """Per cent of the target on a fresh draw."""
    return _right(label_arrays, fresh_digits(task, draw))


def _right(label: Any, problem: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return 100 * float(np.mean(label("TFDF()", problem)[1] == problem.yt))


def measure(jobs: int) -> list[dict[str, Any]]:
    """Every row of the record, with the library that is imported."""
    kinds = {
        f"{case.group} {case.task}": [(accuracy, case, draw) for draw in range(DRAWS + 1)]
        for case in TASKS
    } | {f"fresh digits {task}": [(fresh, task, draw) for draw in range(FRESH)] for task in DIGITS}
    every = [asked for some in kinds.values() for asked in some]
    found = iter(Parallel(jobs)(delayed(work)(*asked) for work, *asked in every))
    rows = []
    for task, some in kinds.items():
        values = [next(found) for _ in some]
        whole = {"all rows": values.pop(0)} if some[0][0] is accuracy else {}
        spread = {"mean": float(np.mean(values)), "deviation": float(np.std(values))}
        ends = {"least": min(values), "most": max(values)}
        rows.append({"task": task} | whole | spread | ends)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="draws")
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    tabulate(f"steady/{arguments.name}", measure(arguments.jobs))


if __name__ == "__main__":
    main()
