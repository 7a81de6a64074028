"""Pairs of tables through `transferable adapt`, files as they are.

Every pair of files, all rows, is labelled by the command without options, by the command with
``--method tfdf``, and by logistic regression, which gets columns encoded alike and standardised by
the source. Results are kept in ``build/tables/records.jsonl``, so that a run that was stopped goes
on; code that changed is run again. A whole run writes ``records/tables/adapt.csv``.

    python benchmarks/tables.py [--names gas,heart]
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from cases import Case, table_cases
from paper.records import code_version
from recording import tabulate
from safety import LINEAR, ROOT, collect, select
from safety import measure as measure_in_python
from transferable.datasets import get_data_home
from transferable.datasets._files import TABLES

COMMAND = "transferable adapt"
METHODS = {
    LINEAR: "logistic regression",
    f"{COMMAND} --method tfdf": f"{COMMAND} --method tfdf",
    COMMAND: COMMAND,
}
FEWEST_CUTS = 5  # pairs that are no further cuts of another one come first

Records = list[dict[str, Any]]


def measure(case: Case, method: str) -> dict[str, Any]:
    """One line of the records."""
    if method == LINEAR:
        return measure_in_python(case, method)
    home = get_data_home()
    source, target = (file.locate(home, download=False) for file in TABLES[case.task])
    _, subcommand, *options = method.split()
    command = [sys.executable, "-m", "transferable", subcommand, source, target]
    start = perf_counter()
    done = subprocess.run(  # noqa: S603 (the library itself)
        [*map(str, command), "--label", "label", "--quiet", *options],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )
    seconds = perf_counter() - start
    found = pd.read_csv(io.BytesIO(done.stdout))["prediction"].astype(str).to_numpy()
    truth = case.load().yt.astype(str)
    return {
        **case.__dict__,
        "method": method,
        "version": code_version(),
        "accuracy": float(np.mean(found == truth)),
        "n_target": len(found),
        "seconds": round(seconds, 2),
    }


def report(records: Records, names: list[str]) -> Records:
    """Every pair, means, and how often each is far below logistic regression."""
    found = {
        title: {r["task"]: 100 * r["accuracy"] for r in select(records, method=method)}
        for method, title in METHODS.items()
    }
    linear = found[METHODS[LINEAR]]
    rows: Records = [{"pair": name} | {m: f[name] for m, f in found.items()} for name in names]
    for some in (names[:FEWEST_CUTS], names):
        means = {m: float(np.mean([f[name] for name in some])) for m, f in found.items()}
        rows.append({"pair": f"mean of {len(some)}"} | means)
    for most in (1, 5):
        below = {m: sum(linear[n] - f[n] > most for n in names) for m, f in found.items()}
        rows.append({"pair": f"pairs more than {most} below logistic regression"} | below)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", default=",".join(TABLES))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--records", type=Path, default=ROOT / "build/tables/records.jsonl")
    arguments = parser.parse_args()
    names = arguments.names.split(",")
    pairs = [(case, method) for case in table_cases() if case.task in names for method in METHODS]
    records = collect(pairs, arguments.records, arguments.jobs, measure)
    tabulate("tables/adapt", report(records, names), keep=names == list(TABLES))


if __name__ == "__main__":
    main()
