"""What shifted class shares cost, and what `class_shares` does about it.

Every method labels every case of cases.py. Results are kept as JSON lines in
``build/safety/records.jsonl``, so that a run that was stopped goes on; code that changed is run
again. A run of all groups and shifts writes the tables of ``records/shares``.

    python benchmarks/safety.py [--groups surf,tables] [--shifts partial] [--methods "TFDF()"]

A method is written as it is called: ``TFDF()``, ``MEDA(class_shares='source')``. Where a value is
the word ``known``, it is the truth of each case: ``TFDF(class_shares=known)``. A transformer such
as ``JDA()`` is judged by its last pseudo-labels.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import warnings
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

import transferable
from cases import GROUPS, SHIFTS, Case, cases, table_cases
from paper.records import code_version
from recording import tabulate

ROOT = Path(__file__).parents[1]
SOURCE, AUTO, KNOWN = (
    "TFDF(class_shares='source')",
    "TFDF(class_shares='auto')",
    "TFDF(class_shares=known)",
)
LINEAR = "LogisticRegression()"
METHODS = (LINEAR, SOURCE, AUTO, KNOWN)
PROTOCOL = tuple(shift for shift in SHIFTS if shift != "merged 2, geometric")
COLUMNS = ("group", "task", "shift", "seed", "max_rows", "method", "version")


def estimator(method: str, truth: dict[Any, float]) -> Any:
    """The estimator that a text such as ``TFDF(alignment=3)`` calls for; nothing is evaluated."""
    call = ast.parse(method, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise ValueError(f"{method!r} is not of the form Name(parameter=value, ...).")
    parameters = {
        str(keyword.arg): truth
        if isinstance(keyword.value, ast.Name) and keyword.value.id == "known"
        else ast.literal_eval(keyword.value)
        for keyword in call.keywords
    }
    if call.func.id == "LogisticRegression":
        return LogisticRegression(max_iter=1000, **parameters)
    return getattr(transferable, call.func.id)(**parameters)


def true_shares(labels: Any, classes: Any) -> dict[Any, float]:
    """Shares of the target's labels for the classes of the source."""
    known = np.asarray(labels)[np.isin(labels, classes)]
    return {label: float(np.mean(known == label)) for label in np.asarray(classes).tolist()}


def moved_share(problem: Bunch) -> float:
    """What share of target rows would have to change their class to have the source's shares."""
    ys = problem.source["label"] if "source" in problem else problem.ys
    classes, counts = np.unique(ys, return_counts=True)
    truth = np.array(list(true_shares(problem.yt, classes).values()))
    return float(np.abs(truth - counts / counts.sum()).sum() / 2)


def label_arrays(method: str, problem: Bunch) -> tuple[Any, Any]:
    truth = true_shares(problem.yt, np.unique(problem.ys))
    model = estimator(method, truth)
    if isinstance(model, LogisticRegression):
        return model, model.fit(problem.Xs, problem.ys).predict(problem.Xt)
    model.adapt(problem.Xs, problem.ys, problem.Xt)
    return model, model.transduction_[len(problem.ys) :]


def label_tables(method: str, problem: Bunch) -> tuple[Any, Any]:
    """Label a table as `transferable adapt` does; logistic regression scales by the source."""
    from transferable.tables import TableClassifier, TableEncoder

    truth = true_shares(problem.yt, np.unique(problem.source["label"]))
    model = estimator(method, truth)
    source, target = problem.source.drop(columns="label"), problem.target
    if isinstance(model, LogisticRegression):
        encoder = TableEncoder(scale="none").adapt(source, None, target)
        Xs, Xt = encoder.transform(source, np.ones(len(source))), encoder.transform(target)
        scaler = StandardScaler().fit(Xs)
        model.fit(scaler.transform(Xs), problem.source["label"])
        return model, model.predict(scaler.transform(Xt))
    table = TableClassifier(model).adapt(source, problem.source["label"], target)
    return table.estimator_, table.predict(target)


def measure(case: Case, method: str) -> dict[str, Any]:
    """One line of the records."""
    problem = case.load()
    label = label_tables if case.group == "tables" else label_arrays
    start = process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, found = label(method, problem)
        balanced = balanced_accuracy_score(problem.yt, found)
    record = {
        **case.__dict__,
        "method": method,
        "version": code_version(),
        "accuracy": float(np.mean(found == problem.yt)),
        "balanced": float(balanced),
        "n_target": len(found),
        "moved": moved_share(problem),
        "seconds": round(process_time() - start, 2),
    }
    if hasattr(model, "class_shares_"):
        truth = true_shares(problem.yt, model.classes_)
        record["shares_error"] = float(np.abs(model.class_shares_ - list(truth.values())).sum())
    if hasattr(model, "candidates_"):
        record["candidates"] = dict(model.candidates_.set_index("name").weight)
    return record


def key(record: dict[str, Any]) -> tuple:
    return tuple(record[name] for name in COLUMNS)


def collect(
    wanted: Iterable[tuple[Case, str]],
    path: Path,
    jobs: int,
    measure: Callable[[Case, str], dict[str, Any]] = measure,
) -> list[dict[str, Any]]:
    """The records of all pairs of case and method, those that are missing computed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    known = {key(record): record for record in map(json.loads, lines)}
    pairs = {
        key({**case.__dict__, "method": method, "version": code_version()}): (case, method)
        for case, method in wanted
    }
    missing = [delayed(measure)(*pair) for at, pair in pairs.items() if at not in known]
    with path.open("a", encoding="utf-8") as file:
        for record in Parallel(jobs, return_as="generator_unordered")(missing):
            file.write(json.dumps(record) + "\n")
            file.flush()
            known[key(record)] = record
            print(*(record[name] for name in ("group", "task", "shift", "seed", "method")),
                  f"{100 * record['accuracy']:.1f}", flush=True)  # fmt: skip
    return [known[at] for at in pairs]


def mean_of_groups(records: list[dict[str, Any]], value: str = "accuracy") -> float:
    """In per cent: mean inside each group, then over groups; NaN without records."""
    groups: dict[str, list[float]] = {}
    for record in records:
        groups.setdefault(record["group"], []).append(record[value])
    means = [np.mean(values) for values in groups.values()]
    return 100 * float(np.mean(means)) if means else float("nan")


def select(records: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    return [r for r in records if all(r[name] == value for name, value in wanted.items())]


Rows = list[dict[str, Any]]


def mean_table(records, methods, shifts) -> Rows:
    return [
        {"method": method}
        | {s: mean_of_groups(select(records, method=method, shift=s)) for s in shifts}
        for method in methods
    ]


def group_table(records, methods, shifts, groups) -> Rows:
    return [
        {"shift": shift, "method": method}
        | {
            group: mean_of_groups(select(records, method=method, shift=shift, group=group))
            for group in groups
        }
        for shift in shifts
        for method in methods
    ]


def differences(records, method: str, base: str) -> dict[str, list[float]]:
    """Points that a method gains on another, case by case, for each shift."""
    case = COLUMNS[:5]
    before = {tuple(r[c] for c in case): r["accuracy"] for r in select(records, method=base)}
    gains: dict[str, list[float]] = {}
    for record in select(records, method=method):
        at = tuple(record[c] for c in case)
        if at in before:
            gain = 100 * (record["accuracy"] - before[at])
            gains.setdefault(record["shift"], []).append(gain)
    return gains


def harm_table(records, method: str, base: str) -> Rows:
    gains = differences(records, method, base)
    gains["all"] = [gain for values in gains.values() for gain in values]
    return [
        {
            "method": method,
            "shift": shift,
            "cases": len(values),
            "gain more than a point": f"{100 * np.mean(np.array(values) > 1):.0f}",
            "lose more than a point": f"{100 * np.mean(np.array(values) < -1):.0f}",
            "worst": f"{min(values):+.1f}",
        }
        for shift, values in gains.items()
        if values
    ]


def tables_table(records, methods) -> Rows:
    rows = []
    for method in methods:
        own = select(records, method=method, group="tables")
        found = {case.task: select(own, task=case.task) for case in table_cases()}
        if all(found.values()):
            means = {
                f"mean {name}": 100 * float(np.mean([r[value] for r in own]))
                for name, value in (("accuracy", "accuracy"), ("balanced accuracy", "balanced"))
            }
            cells = {task: 100 * some[0]["accuracy"] for task, some in found.items()}
            rows.append({"method": method} | cells | means)
    return rows


def draw(records, path: Path) -> None:
    """Accuracy against the shift of shares, a line for each way to take them."""
    from matplotlib.figure import Figure

    edges = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.51])
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    lines = {KNOWN: "known", AUTO: '"auto"', SOURCE: '"source"', LINEAR: "logistic regression"}
    for method, label in lines.items():
        found = [r for r in select(records, method=method) if r["group"] != "tables"]
        bins = [[r for r in found if a <= r["moved"] < b] for a, b in pairwise(edges)]
        points = [
            (100 * np.mean([r["moved"] for r in some]), mean_of_groups(some))
            for some in bins
            if some
        ]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", label=label)
    axes.set_xlabel("rows that would have to change their class, %")
    axes.set_ylabel("target accuracy, %")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def report(records, methods, groups, shifts) -> dict[str, Rows]:
    """The tables by name."""
    pictures = [r for r in records if r["group"] != "tables"]
    rivals = [m for m in methods if m not in (SOURCE, LINEAR)] if SOURCE in methods else []
    return {
        "means": mean_table(pictures, methods, shifts),
        "groups": group_table(pictures, methods, shifts, [g for g in groups if g != "tables"]),
        "gains": [row for method in rivals for row in harm_table(pictures, method, SOURCE)],
        "tables": tables_table(records, methods),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", default=",".join([*GROUPS, "tables"]))
    parser.add_argument("--shifts", default=";".join(PROTOCOL), help="separated by semicolons")
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--seeds", type=int, help="draws of each shift; the protocol's by default")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--records", type=Path, default=ROOT / "build/safety/records.jsonl")
    arguments = parser.parse_args()
    groups, shifts = arguments.groups.split(","), arguments.shifts.split(";")
    wanted = list(cases([g for g in groups if g in GROUPS], shifts, seeds=arguments.seeds))
    if "tables" in groups:
        wanted += table_cases()
    pairs = [(case, method) for case in wanted for method in arguments.methods]
    records = collect(pairs, arguments.records, arguments.jobs)
    whole = (*GROUPS, "tables"), PROTOCOL, METHODS
    keep = (tuple(groups), tuple(shifts), tuple(arguments.methods)) == whole and not arguments.seeds
    for name, rows in report(records, arguments.methods, groups, shifts).items():
        tabulate(f"shares/{name}", rows, keep=keep)
    print(f"Processor time of the fits: {sum(r['seconds'] for r in records) / 60:.0f} minutes.")
    if keep:
        draw(records, ROOT / "docs/figures/safety-shares.png")


if __name__ == "__main__":
    main()
