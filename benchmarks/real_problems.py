"""Several sources, and a few labelled target rows, against doing without.

Sources: every domain of Office-Caltech10 in turn is the target of the other three, which are given
as three sources, pooled into one, and one by one. Labels: one, three and five target rows of each
class are labelled, drawn three times, and used or ignored; rows that were labelled do not count in
the accuracy. Methods have their defaults, and every accuracy is that of the last iterate.

Results are kept as JSON lines, so that a run that was stopped goes on; `--render` writes the tables
of ``records/problems`` and the picture of docs/figures from them.

    python benchmarks/real_problems.py [--parts sources,labels] [--groups surf] [--jobs 8]
    python benchmarks/real_problems.py --render
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cases import GROUPS, Case
from paper.benchmarks import BENCHMARKS
from recording import tabulate
from transferable import MEDA, TFDF, TFDFV
from transferable.classifiers import AdaptedClassifier
from transferable.transformers import JDA

ROOT = Path(__file__).parents[1]
METHODS = {
    "TFDF": TFDF,
    "TFDF-V": TFDFV,
    "MEDA": MEDA,
    "JDA": lambda: AdaptedClassifier(JDA(normalize=True)),
}
LABELLED_METHODS = ("TFDF", "TFDF-V", "MEDA")
DATASETS = {"surf": "SURF", "efficientnet": "EfficientNet-Lite0", "digits": "MNIST-USPS"}
DOMAINS = "CAWD"
COUNTS, DRAWS = (1, 3, 5), 3
SEVERAL, POOLED = "three sources", "pooled"

Record = dict[str, Any]


@dataclass(frozen=True)
class SourcesJob:
    """One target, its sources given in one way, one method."""

    group: str
    target: str
    given: str  # SEVERAL, POOLED or the one domain that is given
    method: str

    def run(self) -> list[Record]:
        """One record with the accuracy."""
        collection = BENCHMARKS[self.group].fetch()
        names = [name for name in DOMAINS if name != self.target]
        if self.given in names:
            names = [self.given]
        parts = [collection.domain(name) for name in names]
        target = collection.domain(self.target)
        sizes = [len(part.y) for part in parts]
        ids = range(1, len(parts) + 1) if self.given == SEVERAL else [1] * len(parts)
        marks = np.repeat([*ids, -1], [*sizes, len(target.y)])
        X = np.concatenate([*(part.X for part in parts), target.X])
        y = np.concatenate([*(part.y for part in parts), target.y])
        model = METHODS[self.method]().fit(X, y, sample_domain=marks)
        hits = model.transduction_[marks < 0] == target.y
        return [asdict(self) | {"accuracy": float(np.mean(hits))}]


@dataclass(frozen=True)
class LabelsJob:
    """One task and method with all numbers and draws of labels."""

    group: str
    task: str
    method: str

    def run(self) -> list[Record]:
        """A record for each number and draw: accuracy with the labels, and without."""
        task = Case(self.group, self.task, max_rows=GROUPS[self.group].max_rows).load()
        X, marks = np.vstack([task.Xs, task.Xt]), np.repeat([1, -1], [len(task.ys), len(task.yt)])
        ignoring = self._labels(X, task.ys, np.full(len(task.yt), -1), marks)
        records = []
        for draw in range(DRAWS):
            for count in COUNTS:
                given = drawn(task.yt, count, draw)
                using = self._labels(X, task.ys, np.where(given, task.yt, -1), marks)
                used, ignored = (
                    float(np.mean(labels[~given] == task.yt[~given]))
                    for labels in (using, ignoring)
                )
                entry = {"count": count, "draw": draw, "used": used, "ignored": ignored}
                records.append(asdict(self) | entry)
        return records

    def _labels(self, X: NDArray, ys: NDArray, yt: NDArray, marks: NDArray) -> NDArray:
        """Labels of the target rows, those given in place of -1 known."""
        model = METHODS[self.method]().set_params(target_labels="use")
        return model.fit(X, np.concatenate([ys, yt]), sample_domain=marks).transduction_[marks < 0]


def drawn(y: NDArray, count: int, seed: int) -> NDArray[np.bool_]:
    """Rows of which the label is given, so many of each class; the first of fewer come again."""
    order = np.random.default_rng(seed).permutation(len(y))
    given = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        given[order[y[order] == label][:count]] = True
    return given


def jobs(parts: Iterable[str], groups: Iterable[str]) -> Iterator[SourcesJob | LabelsJob]:
    """All jobs of the parts and groups."""
    for group in groups:
        if "sources" in parts and group != "digits":
            for target in DOMAINS:
                for given in (SEVERAL, POOLED, *DOMAINS.replace(target, "")):
                    yield from (SourcesJob(group, target, given, method) for method in METHODS)
        if "labels" in parts:
            for task in GROUPS[group].tasks:
                yield from (LabelsJob(group, task, method) for method in LABELLED_METHODS)


def measured(job: SourcesJob | LabelsJob, path: Path) -> None:
    """Run a job and append its records, all at once."""
    start = perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = job.run()
    seconds = (perf_counter() - start) / len(records)
    lines = [json.dumps(r | {"kind": type(job).__name__, "seconds": seconds}) for r in records]
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))


def done(record: Record) -> SourcesJob | LabelsJob:
    """The job that a record is of."""
    kind = {"SourcesJob": SourcesJob, "LabelsJob": LabelsJob}[record["kind"]]
    return kind(**{name: record[name] for name in kind.__dataclass_fields__})


def read(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def sources_table(records: list[Record]) -> list[Record]:
    """Accuracy by target, and its mean: three sources, pooled, and the best of them alone."""
    rows = []
    for group in dict.fromkeys(r["group"] for r in records):
        for method in METHODS:
            own = [r for r in records if (r["group"], r["method"]) == (group, method)]
            if len(own) < len(DOMAINS) * (len(DOMAINS) + 1):
                continue
            found = {(r["target"], r["given"]): 100 * r["accuracy"] for r in own}
            ways = {
                SEVERAL: [found[t, SEVERAL] for t in DOMAINS],
                POOLED: [found[t, POOLED] for t in DOMAINS],
                "best single": [max(found[t, s] for s in DOMAINS if s != t) for t in DOMAINS],
            }
            means = {way: float(np.mean(values)) for way, values in ways.items()}
            names = {"dataset": DATASETS[group], "method": method}
            rows.append(names | {"target": "mean"} | means)
            for k, target in enumerate(DOMAINS):
                rows.append(names | {"target": target} | {way: ways[way][k] for way in ways})
    return rows


def gains(records: list[Record], group: str, method: str, count: int) -> list[tuple[float, float]]:
    """For each task and draw the accuracy with labels and without."""
    wanted = group, method, count
    own = [r for r in records if (r["group"], r["method"], r["count"]) == wanted]
    return [(100 * r["used"], 100 * r["ignored"]) for r in own]


def labels_table(records: list[Record]) -> list[Record]:
    """Mean accuracy with labels and without, and on how many tasks and draws they helped."""
    rows = []
    for group in dict.fromkeys(r["group"] for r in records):
        for method in LABELLED_METHODS:
            pairs = {count: gains(records, group, method, count) for count in COUNTS}
            if not all(pairs.values()):
                continue
            every = [pair for some in pairs.values() for pair in some]
            row = {"dataset": DATASETS[group], "method": method}
            row["ignored"] = float(np.mean([i for _, i in every]))
            for count, some in pairs.items():
                row[f"{count} a class"] = float(np.mean([u for u, _ in some]))
                row[f"gain of {count}"] = f"{np.mean([u - i for u, i in some]):+.1f}"
            row["ahead"] = sum(u > i for u, i in every)
            row["differ"] = sum(u != i for u, i in every)
            rows.append(row)
    return rows


def picture(records: list[Record], path: Path) -> None:
    """Mean gain over ignoring the labels by their number, a line for each method."""
    import matplotlib.pyplot as plt

    groups = list(dict.fromkeys(r["group"] for r in records))
    figure, axes = plt.subplots(1, len(groups), figsize=(3.2 * len(groups), 2.8), sharey=True)
    for axis, group in zip(np.atleast_1d(axes), groups, strict=True):
        for method in LABELLED_METHODS:
            pairs = [gains(records, group, method, count) for count in COUNTS]
            if all(pairs):
                means = [0.0, *(float(np.mean([u - i for u, i in p])) for p in pairs)]
                axis.plot([0, *COUNTS], means, marker="o", label=method)
        axis.axhline(0, color="grey", linewidth=0.8)
        axis.set(title=DATASETS[group], xlabel="labels of each class", xticks=[0, *COUNTS])
    np.atleast_1d(axes)[0].set_ylabel("points over ignoring them")
    np.atleast_1d(axes)[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def render(records: list[Record]) -> None:
    """Write the tables and the picture."""
    sources, labels = (
        [r for r in records if r["kind"] == kind.__name__] for kind in (SourcesJob, LabelsJob)
    )
    tabulate("problems/sources", sources_table(sources))
    tabulate("problems/labels", labels_table(labels))
    picture(labels, ROOT / "docs/figures/target_labels.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default="sources,labels")
    parser.add_argument("--groups", default=",".join(DATASETS))
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--records", type=Path, default=ROOT / "build/problems/records.jsonl")
    parser.add_argument("--most", type=int, default=None, help="run so many jobs only")
    parser.add_argument("--render", action="store_true")
    arguments = parser.parse_args()
    arguments.records.parent.mkdir(parents=True, exist_ok=True)
    if not arguments.render:
        kept = {done(record) for record in read(arguments.records)}
        wanted = jobs(arguments.parts.split(","), arguments.groups.split(","))
        left = [job for job in wanted if job not in kept][: arguments.most]
        Parallel(arguments.jobs)(delayed(measured)(job, arguments.records) for job in left)
        return
    render(read(arguments.records))


if __name__ == "__main__":
    main()
