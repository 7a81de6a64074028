"""The graph of anchors beside that of nearest neighbours: accuracy on every kind of data.

Fits `TFDFV` over landmarks, 500 or half of the rows, with the graph's weight chosen ("auto") and
fixed at 1; anchors by k-means, as drawn (k-means++ rows, as landmarks are), and with Gaussian
weights; one for so many rows, rows tied to 3 or 5 of them. Full digits take 1,000 landmarks.
Each draw has a seed of its own. Writes one line of JSON for each fit; means by group over all of
them, or those of ``--render``, are ``records/scaling/anchors.csv``.

    python benchmarks/anchors.py --out build/anchors.jsonl --processes 2
    python benchmarks/anchors.py --groups full --device cuda
    python benchmarks/anchors.py --render build/anchors.jsonl
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from cases import GROUPS
from paper.benchmarks import BENCHMARKS
from recording import tabulate
from shift import synthetic_shift
from transferable import TFDFV
from transferable._kernel import choose
from transferable._linalg import search
from transferable._linalg.search import spherical_means
from transferable.datasets import fetch_mnist_usps, fetch_tables, load_printed_to_handwritten
from transferable.datasets._files import TABLES
from transferable.model_selection.scorers import Store

Record = dict[str, Any]
Loader = Callable[[str], Bunch]


def _pair(name: str) -> Loader:
    return lambda task: BENCHMARKS[name].fetch().task(*task.split("->"))


def _printed(task: str) -> Bunch:
    there = load_printed_to_handwritten()
    if task.startswith("printed"):
        return there
    return Bunch(Xs=there.Xt, ys=there.yt, Xt=there.Xs, yt=there.ys)


def _table(task: str) -> Bunch:
    from transferable.tables import TableEncoder  # needs pandas

    pair = fetch_tables([task])[task]
    encoder = TableEncoder().adapt(pair.source, "label", pair.target)
    rows = (encoder.transform(table) for table in (pair.source, pair.target))
    Xs, Xt = (np.asarray(table, dtype=np.float64) for table in rows)
    return Bunch(Xs=Xs, ys=pair.source["label"].to_numpy(), Xt=Xt, yt=pair.yt)


def _full(task: str) -> Bunch:
    if task == "shift":
        parts = synthetic_shift(80_000).parts
        return Bunch(**dict(zip(("Xs", "ys", "Xt", "yt"), parts, strict=True)))
    return fetch_mnist_usps(full=True, download=False).task(*task.split("->"))


TASKS: dict[str, tuple[tuple[str, ...], Loader]] = {
    "surf": (GROUPS["surf"].tasks, _pair("surf")),
    "efficientnet": (GROUPS["surf"].tasks, _pair("efficientnet")),
    "decaf6": (("W->D", "D->W"), _pair("decaf6")),
    "coil": (GROUPS["coil"].tasks, _pair("coil")),
    "digits": (GROUPS["digits"].tasks, _pair("digits")),
    "printed": (("printed->handwritten", "handwritten->printed"), _printed),
    "tables": (tuple(TABLES), _table),
    "full": (("U->M", "M->U", "shift"), _full),
}


def settings(group: str) -> Iterator[tuple[str, Record, str]]:
    """A name, parameters with one anchor for so many rows, and how anchors are made."""
    yield "none", {"manifold": 0.0}, ""
    shares = (80, 20, 10) if group == "full" else (20, 10, 5)
    for weight in ("auto", 1.0):
        yield f"neighbors, weight {weight}", {"manifold": weight, "graph": "neighbors"}, ""
        for s, share in product((3, 5), shares):
            chosen = {"manifold": weight, "ties": s, "share": share}
            for kind in KINDS if weight == "auto" else ("k-means",):
                yield f"{kind}, 1/{share}, s {s}, weight {weight}", chosen, kind
    if group != "full":
        yield "exact: neighbors", {"n_landmarks": None, "graph": "neighbors"}, ""
        for s, share in product((3, 5), (10, 5)):
            chosen = {"n_landmarks": None, "ties": s, "share": share}
            yield f"exact: k-means, 1/{share}, s {s}", chosen, "k-means"


def _as_drawn(_: Any, centers: Any) -> Any:
    """No k-means: anchors stay the rows that were drawn."""
    return centers


def _gaussian(cosines: Any) -> Any:
    """Weights by a Gaussian of the distance to all but the farthest."""
    weights = np.exp(cosines) * (cosines > cosines.min(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


# Where anchors are placed, and how rows are tied to them.
KINDS: dict[str, tuple[Any, Any]] = {
    "k-means": (spherical_means, search._weights),
    "drawn": (_as_drawn, search._weights),
    "gaussian": (spherical_means, _gaussian),
}


def measure(job: tuple[str, str, int, str]) -> list[Record]:
    """Accuracy of every setting on one task and draw."""
    group, name, draw, device = job
    task = TASKS[group][1](name)
    task.Xs, task.Xt = (np.asarray(X, dtype=np.float32) for X in (task.Xs, task.Xt))
    records = []
    for kind, how in KINDS.items():
        if kind == "gaussian" and device != "cpu":
            continue
        choose.spherical_means, search._weights = how
        stores = defaultdict(lambda: Store(labels_only=True))  # by ties, which no key names
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for setting, given, of_kind in settings(group):
                if (of_kind or "k-means") == kind:
                    model = {"device": device, "random_state": draw} | given
                    store = stores[given.get("ties")]
                    records.append({"setting": setting} | _fitted(task, group, model, store))
    where = {"group": group, "task": name, "draw": draw}
    return [where | record for record in records]


def _fitted(task: Bunch, group: str, parameters: Record, store: Store) -> Record:
    n = len(task.Xs) + len(task.Xt)
    parameters = {"n_landmarks": 1000 if group == "full" else min(500, n // 2)} | parameters
    if share := parameters.pop("share", None):
        parameters["graph"] = max(n // share, 2)
    choose.N_TIES = parameters.pop("ties", choose.N_TIES)
    model = TFDFV(**parameters)
    model._store = store
    try:
        model.adapt(task.Xs, task.ys, task.Xt)
    except ValueError as error:
        return {"refused": str(error)}
    accuracy = 100 * float(np.mean(model.transduction_[len(task.Xs) :] == task.yt))
    found = {"accuracy": accuracy, "weight": model.manifold_, "anchors": model.n_anchors_}
    return {"rows": n} | found


def table(records: list[Record]) -> list[Record]:
    """Mean accuracy by setting and group, over tasks and draws."""
    cells: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if "accuracy" in record:
            cells[record["setting"]][record["group"]].append(record["accuracy"])
    return [
        {"setting": setting}
        | {name: float(np.mean(found[name])) for name in TASKS if name in found}
        for setting, found in cells.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", nargs="+", default=[name for name in TASKS if name != "full"])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("build/anchors.jsonl"))
    parser.add_argument("--render", type=Path, help="show what a run wrote")
    options = parser.parse_args()
    if options.render:
        lines = options.render.read_text().splitlines()
        tabulate("scaling/anchors", table([json.loads(line) for line in lines]))
        return
    jobs = [
        (group, task, draw, options.device)
        for draw in range(options.draws)
        for group in options.groups
        for task in TASKS[group][0]
    ]
    records: list[Record] = []
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with get_context("spawn").Pool(options.processes) as pool, options.out.open("a") as out:
        for found in pool.imap_unordered(measure, jobs):
            records += found
            out.writelines(json.dumps(record) + "\n" for record in found)
            out.flush()
    whole = all(getattr(options, name) == parser.get_default(name) for name in ("groups", "draws"))
    tabulate("scaling/anchors", table(records), keep=whole)


if __name__ == "__main__":
    main()
