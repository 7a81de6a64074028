"""Landmarks beside the exact solve, on every task of at least 2,000 rows.

TFDF and AutoAdapter as they come, and with every fit exact: accuracy at the last iterate, seconds
of one thread, what was taken. Digits of the full MNIST and USPS are drawn four times. A whole run
writes ``records/scaling/auto-landmarks.csv``.

    python benchmarks/landmarks.py [--jobs 2]
"""

from __future__ import annotations

import argparse
import os
import warnings
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed

from cases import GROUPS, Case
from recording import tabulate
from safety import label_arrays, label_tables
from steady import DIGITS, fresh_digits
from transferable._kernel import choose
from transferable.datasets._files import TABLES

FRESH = 4
METHODS = "TFDF()", "AutoAdapter()"


def problems() -> list[tuple[str, Any]]:
    """Names of tasks, and what loads each."""
    arrays = [(group, task) for group in GROUPS for task in GROUPS[group].tasks]
    cases = [Case(*named) for named in (*arrays, *(("tables", name) for name in TABLES))]
    fresh = [(task, draw) for task in DIGITS for draw in range(FRESH)]
    return [(f"{case.group} {case.task}", case.load) for case in cases] + [
        (f"fresh digits {task} {draw}", lambda task=task, draw=draw: fresh_digits(task, draw))
        for task, draw in fresh
    ]


def measure(name: str, load: Any) -> dict[str, Any] | None:
    """One row of the record; None for a small task."""
    problem = load()
    tables = "source" in problem
    n_rows = len(problem.source if tables else problem.Xs) + len(problem.yt)
    if n_rows < choose._FEWEST_ROWS:
        return None
    row: dict[str, Any] = {"task": name, "rows": n_rows}
    fewest, label = choose._FEWEST_ROWS, label_tables if tables else label_arrays
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in METHODS:
            short = method.removesuffix("()")
            for how, least in (("exact", n_rows + 1), ("as it comes", fewest)):
                choose._FEWEST_ROWS = least
                start = process_time()
                model, found = label(method, problem)
                row[f"{short}, {how}"] = 100 * float(np.mean(found == problem.yt))
                row[f"{short}, {how}, seconds"] = process_time() - start
                if how == "as it comes" and short == "TFDF":
                    row["landmarks"] = model.n_landmarks_
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    every = Parallel(arguments.jobs)(delayed(measure)(*problem) for problem in problems())
    rows = [row for row in every if row is not None]
    changes = {"task": "mean", "rows": None}
    columns = [c for c in rows[0] if c not in (*changes, "landmarks")]
    changes |= {column: float(np.mean([row[column] for row in rows])) for column in columns}
    tabulate("scaling/auto-landmarks", [*rows, changes])


if __name__ == "__main__":
    main()
