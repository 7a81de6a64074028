"""Where people wait: processor seconds of fits and commands, beside floors and another checkout.

Every row runs in a process of its own with one thread of BLAS, this source and that in ``--before``
by turns, and the least of a few runs counts. A floor is the number of operations that a fit cannot
do without (one factorisation, solves, products with the kernel matrix or the landmarks), over the
rate of a large matrix product measured in the same run. For AutoAdapter and the command it is the
time of one fit of TFDF at the time that the goals were set, at the same rate: goals are in ratios
to the floor, or in seconds where there is none. Rows without data or a peer are left out.
A fit of a million rows on a GPU is measured by ``benchmarks/scale_gpu.py``. All rows beside another
checkout are ``records/scaling/speed.csv``.

    python benchmarks/speed.py [--before PATH/src] [--only WORD] [--repeats 3]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from recording import tabulate

OWN = Path(__file__).resolve().parents[1] / "src"
TURNS = 30  # of fits that take milliseconds, of which the fastest counts
SIZES = ((1000, 64), (2000, 256), (5000, 64))
COLUMNS = ("what", "floor", "before", "now", "ratio", "goal")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    title : str
        What is measured.
    seconds : callable
        Measures it once.
    operations : float
        Operations of the floor, in 1e9; 0 where none is counted.
    goal : float
        Goal for the ratio to the floor, or for the value where there is none; 0 without one.
    """

    title: str
    seconds: Callable[[], float]
    operations: float = 0.0
    goal: float = 0.0


def timed(function: Callable[[], Any]) -> float:
    """Processor seconds of a call."""
    start = process_time()
    function()
    return process_time() - start


def task(name: str) -> tuple[Any, Any, Any]:
    """Xs, ys and Xt."""
    from transferable import datasets

    if name == "printed":
        found = datasets.load_printed_to_handwritten()
    elif name == "coil":
        found = datasets.fetch_coil20(download=False).task("COIL1", "COIL2")
    elif name == "adult":
        from transferable.tables import TableEncoder

        pair = datasets.fetch_tables(["adult"])["adult"]
        ys, Xs, Xt = pair.source["label"].to_numpy(), pair.source.drop(columns="label"), pair.target
        encoder = TableEncoder().adapt(Xs, ys, Xt)
        return np.asarray(encoder.transform(Xs)), ys, np.asarray(encoder.transform(Xt))
    elif name == "shifted":
        rng = np.random.default_rng(0)
        means = rng.normal(size=(5, 20))
        ys = rng.integers(5, size=3000)
        yt = rng.choice(5, size=3000, p=[0.5, 0.25, 0.15, 0.07, 0.03])
        Xs, Xt = (means[y] + rng.normal(size=(3000, 20)) for y in (ys, yt))
        return Xs, ys, Xt + 0.3
    else:
        from shift import synthetic_shift

        return synthetic_shift(int(name)).parts[:3]
    return found.Xs, found.ys, found.Xt


def fit(method: str, name: str) -> float:
    """Processor seconds of a fit with the defaults, after one of few rows."""
    from transferable import TFDF, AutoAdapter

    kind, (Xs, ys, Xt) = {"TFDF": TFDF, "AutoAdapter": AutoAdapter}[method], task(name)
    few = np.unique(ys, return_index=True)[1]
    few = np.unique(np.concatenate([few, np.arange(100)]))
    TFDF().adapt(Xs[few], ys[few], Xt[:100])
    return timed(lambda: kind().adapt(Xs, ys, Xt))


def command() -> float:
    """Processor seconds of ``transferable adapt`` on adult, imports included."""
    from transferable.datasets import get_data_home
    from transferable.datasets._files import TABLES

    files = [str(file.locate(get_data_home(), download=False)) for file in TABLES["adult"]]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = [*files, "--label", "label", "--quiet"]
    subprocess.run(  # noqa: S603 (the library itself)
        [sys.executable, "-m", "transferable", "adapt", *arguments],
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def setting() -> float:
    """Processor seconds of each of 20 settings of a search, in those of one fit of these rows."""
    from transferable import TFDF
    from transferable.model_selection import LabelFreeSearch

    Xs, ys, Xt = task("printed")
    rng = np.random.default_rng(0)
    s, t = rng.permutation(len(ys))[:1000], rng.permutation(len(Xt))[:1000]
    Xs, ys, Xt = Xs[s], ys[s], Xt[t]
    grid = {"alignment": [1.0, 3.0, 10.0, 30.0, 100.0], "manifold": [0.1, 0.3, 1.0, 3.0]}
    TFDF().adapt(Xs[:200], ys[:200], Xt[:200])
    one = min(timed(lambda: TFDF().adapt(Xs, ys, Xt)) for _ in range(3))
    search = LabelFreeSearch(TFDF(), grid, anchor=None)
    return timed(lambda: search.adapt(Xs, ys, Xt)) / (20 * one)


def transformer(name: str, n: int, d: int) -> float:
    """Processor seconds of a fit with its transformation, in those of skada's."""
    import skada

    from peers import K, rows
    from transferable.transformers import CORAL, LinearOTMapping, SubspaceAlignment

    makers: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "CORAL": (CORAL, lambda: skada.CORALAdapter(reg=None)),
        "SA": (
            lambda: SubspaceAlignment(K),
            lambda: skada.SubspaceAlignmentAdapter(n_components=K),
        ),
        "LinOT": (LinearOTMapping, skada.LinearOTMappingAdapter),
    }
    X, y, marks = rows(n, d)
    best = [np.inf, np.inf]
    for _ in range(TURNS):
        for i, make in enumerate(makers[name]):
            seconds = timed(lambda make=make: make().fit_transform(X, y, sample_domain=marks))
            best[i] = min(best[i], seconds)
    return best[0] / best[1]


def table_rows() -> list[Row]:
    """All of them."""
    found = [
        Row("TFDF, printed digits", lambda: fit("TFDF", "printed"), 60, 1.5),
        Row("TFDF, COIL", lambda: fit("TFDF", "coil"), 17, 1.6),
        Row("TFDF, 3,000 + 3,000 rows, shifted shares", lambda: fit("TFDF", "shifted"), 248, 2.0),
        Row("TFDF, adult", lambda: fit("TFDF", "adult")),
        Row("landmarks, 100,000 rows", lambda: fit("TFDF", "100000"), 248, 1.35),
        Row("landmarks, 300,000 rows", lambda: fit("TFDF", "300000"), 707, 1.35),
        Row("AutoAdapter, printed digits", lambda: fit("AutoAdapter", "printed"), 136, 3.5),
        Row("AutoAdapter, COIL", lambda: fit("AutoAdapter", "coil"), 41, 3.5),
        Row("AutoAdapter, shifted shares", lambda: fit("AutoAdapter", "shifted"), 1361, 1.2),
        Row("AutoAdapter, adult", lambda: fit("AutoAdapter", "adult")),
        Row("transferable adapt, adult", command, goal=15.0),
        Row("a setting of a search, in fits", setting, goal=0.25),
    ]
    for n, d in SIZES:
        for name in ("CORAL", "SA", "LinOT"):
            title = f"{name}, {n:,} x {d}, in skada's"
            measure = partial(transformer, name, n, d)
            found.append(Row(title, measure, goal=1.0))
    return found


def rate() -> float:
    """Operations of a large matrix product in a second, in 1e9, in processor time."""
    A = np.random.default_rng(0).random((3000, 3000))
    return 2 * 3000**3 / min(timed(lambda: A @ A) for _ in range(3)) / 1e9


def measured(row: str, tree: Path) -> float | None:
    """What a process with the library of a tree prints; None if it lacks data or a peer."""
    one = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    run = subprocess.run(  # noqa: S603 (this script)
        [sys.executable, __file__, "--row", row],
        env=os.environ | one | {"PYTHONPATH": str(tree.resolve())},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        print(f"{row}: {run.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return float(run.stdout.split()[-1])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder that holds the other transferable")
    parser.add_argument("--only", default="", help="rows with this word in their title")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    rows = [*table_rows(), Row("rate", rate)]
    if asked.row is not None:
        warnings.simplefilter("ignore")
        print(next(row for row in rows if row.title == asked.row).seconds())
        return 0
    if asked.before is not None and not (asked.before / "transferable").is_dir():
        parser.error(f"{asked.before} holds no transferable")
    trees = [OWN] if asked.before is None else [asked.before, OWN]
    speed, now, table = float(measured("rate", OWN) or 1.0), {}, []
    print(f"a product: {speed:.0f} GFLOP/s; processor seconds of one thread")
    for row in rows[:-1]:
        if asked.only not in row.title:
            continue
        runs = [[measured(row.title, tree) for tree in trees] for _ in range(asked.repeats)]
        if any(None in run for run in runs):
            continue
        *before, now[row.title] = np.min(runs, axis=0).tolist()
        floor = row.operations / speed
        ratio = now[row.title] / floor if floor else 0.0
        cells = [floor, *(before or [0.0]), now[row.title], ratio, row.goal]
        shown = [f"{cell:.2f}" if cell else None for cell in cells]
        table.append(dict(zip(COLUMNS, [row.title, *shown], strict=True)))
        print(row.title, flush=True)
    tabulate("scaling/speed", table, keep=asked.before is not None and not asked.only)
    return 0 if now else 1


if __name__ == "__main__":
    sys.exit(main())
