"""AutoAdapter beside logistic regression and TFDF where nobody tunes.

Every method labels the 127 development cases of cases.py, at most 600 rows of each domain and 800
of tables. Results are kept as JSON lines in ``build/auto/records.jsonl``, so that a run that was
stopped goes on; code that changed is run again. A whole run writes the tables of ``records/auto``.

    python benchmarks/auto.py [--groups coil,tables] [--methods "AutoAdapter()"]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from cases import GROUPS, development_cases
from recording import tabulate
from safety import COLUMNS, LINEAR, ROOT, collect, mean_of_groups, select

FIXED, AUTO = "TFDF()", "AutoAdapter()"
METHODS = (LINEAR, FIXED, AUTO, "AutoAdapter(effort='fast')")
KINDS = {
    "as it is": "as is",
    "partial": "partial",
    "geometric": "geometric",
    "merged 2, as is": "2 classes",
    "merged 3, partial": "3, partial",
    "merged 2, geometric": "2, geometric",
}

Records = list[dict[str, Any]]


def kind(record: dict[str, Any]) -> str:
    """The column that a record belongs to."""
    return "tables" if record["group"] == "tables" else KINDS[record["shift"]]


def accuracies(records: Records, method: str) -> dict[tuple, float]:
    """Per cent by case."""
    return {
        tuple(r[name] for name in COLUMNS[:5]): 100 * r["accuracy"]
        for r in select(records, method=method)
    }


def mean_table(records: Records, methods: list[str]) -> Records:
    """Means over tasks and draws inside each group, then over groups; losses to the linear."""
    rows, linear = [], accuracies(records, LINEAR)
    for method in methods:
        own, found = select(records, method=method), accuracies(records, method)
        gains = np.array([found[case] - linear[case] for case in found if case in linear])
        rows.append(
            {"method": method}
            | {
                name: mean_of_groups([r for r in own if kind(r) == name])
                for name in (*KINDS.values(), "tables")
            }
            | {
                f"more than {most} below linear": f"{100 * np.mean(gains < -most):.0f}"
                for most in (1, 5)
                if len(gains)
            }
            | {"worst": float(gains.min(initial=0.0))}
        )
    return rows


def table_table(records: Records, methods: list[str]) -> Records:
    """Every pair of tables."""
    own = select(records, group="tables")
    return [
        {"pair": task}
        | {
            r["method"]: 100 * r["accuracy"]
            for m in methods
            for r in select(own, task=task, method=m)
        }
        for task in dict.fromkeys(r["task"] for r in own)
    ]


def draw(records: Records, folder: Path) -> None:
    """What each candidate counts in each group."""
    from matplotlib.figure import Figure

    own = [r for r in select(records, method=AUTO) if "candidates" in r]
    groups = list(dict.fromkeys(r["group"] for r in own))
    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    axes, left = figure.subplots(), np.zeros(len(groups))
    for name in dict.fromkeys(name for r in own for name in r["candidates"]):
        weights = [
            np.mean([r["candidates"].get(name, 0.0) for r in select(own, group=group)])
            for group in groups
        ]
        axes.barh(groups, weights, left=left, label=name)
        left += weights
    axes.set_xlabel("weight in the consensus, mean over cases")
    axes.set_xlim(0, 1)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small")
    figure.savefig(folder / "safety-candidates.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", default=",".join([*GROUPS, "tables"]))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--records", type=Path, default=ROOT / "build/auto/records.jsonl")
    arguments = parser.parse_args()
    groups = arguments.groups.split(",")
    pairs = [
        (case, method)
        for case in development_cases()
        if case.group in groups
        for method in arguments.methods
    ]
    records = collect(pairs, arguments.records, arguments.jobs)
    keep = (tuple(groups), tuple(arguments.methods)) == ((*GROUPS, "tables"), METHODS)
    tabulate("auto/accuracy", mean_table(records, arguments.methods), keep=keep)
    tabulate("auto/tables", table_table(records, arguments.methods), keep=keep)
    print(f"Processor time of the fits: {sum(r['seconds'] for r in records) / 60:.0f} minutes.")
    if keep:
        draw(records, ROOT / "docs/figures")


if __name__ == "__main__":
    main()
