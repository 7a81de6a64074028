"""AutoAdapter beside logistic regression and TFDF where nobody tunes: docs/safety.md.

Every method labels the 127 development cases of cases.py, at most 600 rows of each domain and 800
of tables. Results are kept as JSON lines in ``build/auto/records.jsonl``, so that a run that was
stopped goes on; code that changed is run again. A whole run replaces what stands between the marks
of docs/safety.md.

    python benchmarks/auto.py [--groups coil,tables] [--methods "AutoAdapter()"]
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np

from cases import GROUPS, development_cases
from safety import COLUMNS, LINEAR, ROOT, collect, number, row, select

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


def mean_table(records: Records, methods: list[str]) -> list[str]:
    """Means over tasks and draws inside each group, then over groups; losses to the linear."""
    kinds = [*KINDS.values(), "tables"]
    titles = ["", *kinds, "> 1 below linear", "> 5", "worst"]
    lines = [row(titles), row(["---"] * len(titles))]
    linear = accuracies(records, LINEAR)
    for method in methods:
        own, cells = select(records, method=method), []
        for name in kinds:
            groups: dict[str, list[float]] = {}
            for record in own:
                if kind(record) == name:
                    groups.setdefault(record["group"], []).append(record["accuracy"])
            means = [np.mean(values) for values in groups.values()]
            cells.append(number(100 * float(np.mean(means))) if means else "-")
        found = accuracies(records, method)
        gains = np.array([found[case] - linear[case] for case in found if case in linear])
        losses = [f"{100 * np.mean(gains < -most):.0f} %" for most in (1, 5)] if len(gains) else []
        lines.append(row([f"`{method}`", *cells, *losses, number(gains.min(initial=0.0))]))
    return lines


def table_table(records: Records, methods: list[str]) -> list[str]:
    """Every pair of tables."""
    tasks = list(dict.fromkeys(r["task"] for r in records if r["group"] == "tables"))
    lines = [row(["", *(f"`{m}`" for m in methods)]), row(["---"] * (1 + len(methods)))]
    for task in tasks:
        found = [select(records, group="tables", task=task, method=m) for m in methods]
        lines.append(row([task, *(number(100 * f[0]["accuracy"]) if f else "-" for f in found)]))
    return lines


def report(records: Records, methods: list[str]) -> str:
    n_cases = len({tuple(r[name] for name in COLUMNS[:5]) for r in records})
    minutes = sum(r["seconds"] for r in records) / 60
    parts = [f"{n_cases} cases; processor time of the fits: {minutes:.0f} minutes.", ""]
    parts += mean_table(records, methods)
    if any(r["group"] == "tables" for r in records):
        parts += ["", *table_table(records, methods)]
    return "\n".join([*parts, ""])


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
    text = report(records, arguments.methods)
    print(text)
    if (tuple(groups), tuple(arguments.methods)) == ((*GROUPS, "tables"), METHODS):
        draw(records, ROOT / "docs/figures")
        page = ROOT / "docs/safety.md"
        marks = r"(<!-- measured auto -->\n).*(<!-- /measured auto -->)"
        before = page.read_text(encoding="utf-8")
        after = re.sub(marks, lambda m: m[1] + text + m[2], before, flags=re.DOTALL)
        page.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
