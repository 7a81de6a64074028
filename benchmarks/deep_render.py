"""Tables of docs/deep.md from the records of benchmarks/deep.py."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, median
from typing import Any

from deep_jobs import DIRECTIONS, FEATURES, FRAMINGS, GRID, HALVES, TRIALS

PAGE = Path(__file__).parents[1] / "docs" / "deep.md"
# skada-bench's own results on these two tasks, best setting by target labels (supervised scorer).
SKADA = {
    "SourceOnly": (94.2, 73.4),
    "DeepCORAL": (97.1, 89.9),
    "MCC": (98.2, 90.4),
    "DAN": (95.0, 86.3),
    "DANN": (92.6, 86.8),
}
CELLS = "Median of the runs (lowest to highest)."
Record = dict[str, Any]


def render(file: Path) -> None:
    """Replace what stands between the marks of the page."""
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    text = PAGE.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        measured = any(record["table"] == name for record in records)
        mine = [record for record in records if record["table"] in (name, "full")]
        lines = "\n".join(table(mine)) if measured else "Not measured yet."
        marks = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        text = re.sub(marks, lambda m, lines=lines: f"{m[1]}{lines}\n{m[2]}", text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")


def _full(records: list[Record]) -> Iterable[str]:
    yield from (CELLS, "")
    yield "| method | M->U adapted | M->U test | U->M adapted | U->M test | runs |"
    yield "|---|---|---|---|---|---|"
    found = [r for r in records if r["table"] == "full"]
    names = list(dict.fromkeys(r["method"] for r in found))
    names.sort(key=lambda name: (name != "SourceOnly", name == "DeepTFDF", name))
    for name in names:
        mine = [r for r in found if r["method"] == name]
        yield _row(name, mine, ("adapted", "test"))
        if name == "SourceOnly":
            yield _row("TFDF-V on its features", mine, ("tfdf adapted", "tfdf test"))


def _target(records: list[Record]) -> Iterable[str]:
    mine = [r for r in records if r["table"] == "target"]
    yield from (CELLS, "")
    yield "| | M->U adapted | M->U test | U->M adapted | U->M test | runs |"
    yield "|---|---|---|---|---|---|"
    yield _row("trained on the target's labels", mine, ("adapted", "test"))


def _row(name: str, records: list[Record], fields: tuple[str, ...]) -> str:
    cells, runs = [], 0
    for task in DIRECTIONS:
        mine = [r for r in records if r["task"] == task]
        runs = max(runs, len(mine))
        cells += [_spread([r[field] for r in mine if field in r]) for field in fields]
    return f"| {name} | {' | '.join(cells)} | {runs} |"


def _spread(values: list[float]) -> str:
    if not values:
        return "-"
    text = f"{median(values):.2f}"
    return f"{text} ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else text


def _half(records: list[Record]) -> Iterable[str]:
    yield f"| method | task | {' | '.join(HALVES)} | mean |"
    yield "|---" * (len(HALVES) + 3) + "|"
    source = [r for r in records if r["table"] == "full" and r["method"] == "SourceOnly"]
    for task in DIRECTIONS:
        first = [r for r in source if r["task"] == task and r["seed"] == 0]
        rows = {"source only": {h: r[f"half {h}"] for r in first for h in HALVES}}
        for r in records:
            if r["table"] == "half" and r["task"] == task:
                rows.setdefault(r["method"], {})[r["half"]] = r["adapted"]
        for name, values in rows.items():
            cells = [f"{values[h]:.1f}" if h in values else "-" for h in HALVES]
            average = f"{mean(values.values()):.1f}" if len(values) == len(HALVES) else "-"
            yield f"| {name} | {task} | {' | '.join(cells)} | {average} |"


def _framing(records: list[Record]) -> Iterable[str]:
    names = ["SourceOnly", "TFDF-V on its features", "DeepCORAL", "MCC", "DeepTFDF"]
    yield f"| framing | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for framing in FRAMINGS:
        mine = [r for r in records if r["table"] == "framing" and r["framing"] == framing]
        cells = []
        for name in names:
            field = "tfdf adapted" if name.startswith("TFDF") else "adapted"
            method = "SourceOnly" if name.startswith("TFDF") else name
            got = {r["task"]: r[field] for r in mine if r["method"] == method}
            cells.append(" / ".join(f"{got[t]:.1f}" if t in got else "-" for t in DIRECTIONS))
        yield f"| {framing} | {' | '.join(cells)} |"


def _skada(records: list[Record]) -> Iterable[str]:
    yield "| method | M->U held out | U->M held out | skada-bench M->U | skada-bench U->M |"
    yield "|---|---|---|---|---|"
    mine = [r for r in records if r["table"] == "skada"]
    for name in dict.fromkeys(r["method"] for r in mine):
        got = {r["task"]: r["test"] for r in mine if r["method"] == name}
        ours = [f"{got[t]:.1f}" if t in got else "-" for t in DIRECTIONS]
        theirs = [f"{value:.1f}" for value in SKADA[name]] if name in SKADA else ["-", "-"]
        yield f"| {name} | {' | '.join(ours + theirs)} |"


def _choice(records: list[Record]) -> Iterable[str]:
    yield "| task | chosen | adapted | test | worst and best of the grid |"
    yield "|---|---|---|---|---|"
    for task in DIRECTIONS:
        mine = [r for r in records if r["table"] == "choice" and r["task"] == task]
        if mine:
            best = max(mine, key=lambda r: r["neighbors"])
            setting = _told(GRID[best["setting"]])
            ends = [f"{pick(r['adapted'] for r in mine):.2f}" for pick in (min, max)]
            yield (
                f"| {task} | {setting} | {best['adapted']:.2f} | {best['test']:.2f} "
                f"| {' and '.join(ends)} |"
            )


def _search(records: list[Record]) -> Iterable[str]:
    yield "| task | chosen | adapted | test |"
    yield "|---|---|---|---|"
    for task in DIRECTIONS:
        for r in (r for r in records if r["table"] == "search" and r["task"] == task):
            yield f"| {task} | {_told(r['chosen'])} | {r['adapted']:.2f} | {r['test']:.2f} |"


def _trial(records: list[Record]) -> Iterable[str]:
    yield from (CELLS, "")
    yield "| method | setting | M->U adapted | M->U test | U->M adapted | U->M test | runs |"
    yield "|---|---|---|---|---|---|---|"
    for name, settings in TRIALS.items():
        for k, setting in enumerate(settings):
            mine = [
                r
                for r in records
                if r["table"] == "trial" and r["method"] == name and r["setting"] == k
            ]
            yield _row(f"{name} | {_told(setting)}", mine, ("adapted", "test"))


def _told(setting: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in setting.items())


def _features(records: list[Record]) -> Iterable[str]:
    found = [r for r in records if r["table"] == "features"]
    names = list(dict.fromkeys(r["method"] for r in found))
    yield f"| features | tasks | {' | '.join(names)} |"
    yield "|---" * (len(names) + 2) + "|"
    for data in FEATURES:
        mine = [r for r in found if r["data"] == data]
        have = {n: {r["task"] for r in mine if r["method"] == n} for n in names}
        mine = [r for r in mine if all(r["task"] in tasks for tasks in have.values())]
        if mine:
            cells = [f"{mean(r['adapted'] for r in mine if r['method'] == n):.1f}" for n in names]
            tasks = len({r["task"] for r in mine})
            yield f"| {data} | {tasks} | {' | '.join(cells)} |"


def _speed(records: list[Record]) -> Iterable[str]:
    yield "| DeepCORAL, seconds an epoch | a bare loop | ratio |"
    yield "|---|---|---|"
    for r in records:
        if r["table"] == "speed":
            yield f"| {r['ours']:.2f} | {r['bare']:.2f} | {r['ratio']:.2f} |"


def _pictures(records: list[Record]) -> Iterable[str]:
    yield "| DeepCORAL, pictures a second | a bare loop | ratio | GPU memory, MiB |"
    yield "|---|---|---|---|"
    for r in records:
        if r["table"] == "pictures":
            rates = f"{r['ours']:.0f} | {r['bare']:.0f} | {r['ratio']:.2f}"
            yield f"| {rates} | {r['bytes'] / 2**20:.0f} |"


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
