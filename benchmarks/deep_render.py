"""Tables of ``records/deep`` from the records of benchmarks/deep.py."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, median
from typing import Any

from deep_jobs import DIRECTIONS, FEATURES, FRAMINGS, GRID, HALVES, TRIALS
from recording import tabulate

# skada-bench's own results on these two tasks, best setting by target labels (supervised scorer).
SKADA = {
    "SourceOnly": (94.2, 73.4),
    "DeepCORAL": (97.1, 89.9),
    "MCC": (98.2, 90.4),
    "DAN": (95.0, 86.3),
    "DANN": (92.6, 86.8),
}
Record = dict[str, Any]


def render(file: Path) -> None:
    """Write the tables of which there are records."""
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for name, table in TABLES.items():
        if own := [record for record in records if record["table"] == name]:
            also = [r for r in records if r["table"] == "full"] if name == "half" else []
            tabulate(f"deep/{name}", table(own + also))


def _full(records: list[Record]) -> list[Record]:
    names = list(dict.fromkeys(r["method"] for r in records))
    names.sort(key=lambda name: (name != "SourceOnly", name == "DeepTFDF", name))
    rows = []
    for name in names:
        mine = [r for r in records if r["method"] == name]
        rows.append({"method": name} | _spread(mine))
        if name == "SourceOnly":
            rows.append({"method": "TFDF-V on its features"} | _spread(mine, "tfdf "))
    return rows


def _target(records: list[Record]) -> list[Record]:
    return [{"method": "trained on the target's labels"} | _spread(records)]


def _spread(records: list[Record], prefix: str = "") -> Record:
    """Median, lowest and highest of the runs, for both directions, on adapted and on test rows."""
    runs = max(sum(r["task"] == task for r in records) for task in DIRECTIONS)
    row: Record = {"statistic": "median, lowest to highest", "runs": runs}
    for task in DIRECTIONS:
        for part in ("adapted", "test"):
            field = prefix + part
            values = [r[field] for r in records if r["task"] == task and field in r]
            ends = f"{min(values):.2f} to {max(values):.2f}" if len(values) > 1 else None
            row[f"{task} {part}"] = f"{median(values):.2f}" if values else None
            row[f"{task} {part}, spread"] = ends
    return row


def _half(records: list[Record]) -> list[Record]:
    rows = []
    for task in DIRECTIONS:
        mine = [r for r in records if r["task"] == task]
        found: dict[str, Record] = {}
        for r in mine:
            if r["table"] == "full" and (r["method"], r["seed"]) == ("SourceOnly", 0):
                found["source only"] = {half: r[f"half {half}"] for half in HALVES}
        for r in mine:
            if r["table"] == "half":
                found.setdefault(r["method"], {})[r["half"]] = r["adapted"]
        for name, values in found.items():
            cells = {half: values.get(half) for half in HALVES}
            whole = len(values) == len(HALVES)
            average = {"mean": mean(values.values()) if whole else None}
            rows.append({"method": name, "task": task} | cells | average)
    return rows


def _framing(records: list[Record]) -> list[Record]:
    rows = []
    for framing in FRAMINGS:
        mine = [r for r in records if r["framing"] == framing]
        for name in ("SourceOnly", "TFDF-V on its features", "DeepCORAL", "MCC", "DeepTFDF"):
            method, field = name, "adapted"
            if name.startswith("TFDF"):
                method, field = "SourceOnly", "tfdf adapted"
            got = {r["task"]: r[field] for r in mine if r["method"] == method}
            cells = {task: got.get(task) for task in DIRECTIONS}
            rows.append({"framing": framing, "method": name} | cells)
    return rows


def _skada(records: list[Record]) -> list[Record]:
    rows = []
    for name in dict.fromkeys(r["method"] for r in records):
        got = {r["task"]: r["test"] for r in records if r["method"] == name}
        theirs = dict(zip(DIRECTIONS, SKADA.get(name, ()), strict=False))
        rows.append(
            {"method": name}
            | {f"{task} held out": got.get(task) for task in DIRECTIONS}
            | {f"skada-bench {task}": theirs.get(task) for task in DIRECTIONS}
        )
    return rows


def _choice(records: list[Record]) -> list[Record]:
    rows = []
    for task in DIRECTIONS:
        mine = [r for r in records if r["task"] == task]
        if mine:
            best = max(mine, key=lambda r: r["neighbors"])
            ends = {
                "worst of the grid": f"{min(r['adapted'] for r in mine):.2f}",
                "best of the grid": f"{max(r['adapted'] for r in mine):.2f}",
            }
            rows.append(_chosen(best, GRID[best["setting"]]) | ends)
    return rows


def _search(records: list[Record]) -> list[Record]:
    return [_chosen(r, r["chosen"]) for task in DIRECTIONS for r in records if r["task"] == task]


def _chosen(record: Record, setting: Record) -> Record:
    scores = {part: f"{record[part]:.2f}" for part in ("adapted", "test")}
    return {"task": record["task"], "chosen": _told(setting)} | scores


def _trial(records: list[Record]) -> list[Record]:
    rows = []
    for name, settings in TRIALS.items():
        for k, setting in enumerate(settings):
            mine = [r for r in records if (r["method"], r["setting"]) == (name, k)]
            if mine:
                rows.append({"method": name, "setting": _told(setting)} | _spread(mine))
    return rows


def _told(setting: Record) -> str:
    return ", ".join(f"{name} {value}" for name, value in setting.items())


def _features(records: list[Record]) -> list[Record]:
    names = list(dict.fromkeys(r["method"] for r in records))
    rows = []
    for data in FEATURES:
        mine = [r for r in records if r["data"] == data]
        have = {n: {r["task"] for r in mine if r["method"] == n} for n in names}
        mine = [r for r in mine if all(r["task"] in tasks for tasks in have.values())]
        if mine:
            tasks = {"features": data, "tasks": len({r["task"] for r in mine})}
            means = {n: mean(r["adapted"] for r in mine if r["method"] == n) for n in names}
            rows.append(tasks | means)
    return rows


def _speed(records: list[Record]) -> list[Record]:
    return [
        {"method": "DeepCORAL", "seconds an epoch": f"{r['ours']:.2f}"}
        | {"bare loop": f"{r['bare']:.2f}", "ratio": f"{r['ratio']:.2f}"}
        for r in records
    ]


def _pictures(records: list[Record]) -> list[Record]:
    return [
        {"method": "DeepCORAL", "pictures a second": f"{r['ours']:.0f}"}
        | {"bare loop": f"{r['bare']:.0f}", "ratio": f"{r['ratio']:.2f}"}
        | {"GPU MiB": f"{r['bytes'] / 2**20:.0f}"}
        for r in records
    ]


TABLES = {
    "full": _full,
    "target": _target,
    "half": _half,
    "framing": _framing,
    "skada": _skada,
    "choice": _choice,
    "search": _search,
    "trial": _trial,
    "features": _features,
    "speed": _speed,
    "pictures": _pictures,
}
