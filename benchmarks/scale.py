"""What fits take in time and memory as rows grow, and what peers take of the same rows.

Each measurement runs in a process of its own, so that its peak memory is its own, with as many
threads as there are cores unless OMP_NUM_THREADS says otherwise. Prints JSON of every part, keeps
it in ``build/scale/results.json``, and writes a picture of time and memory against rows and, once
all parts are there, tables of ``records/scaling``.

    python benchmarks/scale.py                        # everything
    python benchmarks/scale.py growth million         # some parts only
    python benchmarks/scale.py peers --limit 600      # seconds after which a peer is stopped

The parts: ``digits`` (all of USPS and MNIST), ``growth``, ``million``, ``small`` (the 3,800 digits
of the literature, landmarks against the exact solve), ``solve`` (the exact solve against LAPACK's
factorisation alone) and ``peers`` (skada and POT, of the extra ``bench``).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from recording import RECORDS, tabulate
from shift import synthetic_shift

OUT = Path("build/scale")
GROWTH = (20_000, 80_000, 320_000)
MEMORY_LIMIT = 16 * 2**30  # of a peer
Record = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--one", nargs=2, metavar=("NAME", "JSON"), help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=int, default=300, help="seconds that a peer may take")
    arguments = parser.parse_args()
    if arguments.one:
        name, parameters = arguments.one
        print(json.dumps(measured(WORK[name], json.loads(parameters))))
        return
    OUT.mkdir(parents=True, exist_ok=True)
    file = OUT / "results.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    for part in arguments.parts:
        results[part] = PARTS[part](arguments.limit)
        file.write_text(json.dumps(results, indent=1))
        print(json.dumps({part: results[part]}))
    for name, rows in tables(results).items():
        tabulate(f"scaling/{name}", rows, keep=results.keys() >= PARTS.keys())
    if "growth" in results:
        plot(results)


def measured(work: Callable[..., Record], parameters: Record) -> Record:
    """What a piece of work reports, with the peak memory of this process."""
    record = work(**parameters)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return parameters | record | {"peak_gb": peak / 2**30}


def run(work: str, limit: int | None = None, **parameters: Any) -> Record:
    """A measurement in a process of its own."""
    command = [sys.executable, __file__, "--one", work, json.dumps(parameters)]
    try:
        done = subprocess.run(  # noqa: S603 (our own script)
            command, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return parameters | {"stopped": f"after {limit} s"}
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "killed"
        return parameters | {"stopped": reason[:100]}
    return json.loads(done.stdout.splitlines()[-1])


def tables(results: dict[str, list[Record]]) -> dict[str, list[Record]]:
    """The tables of ``records/scaling`` that the parts make."""
    found: dict[str, list[Record]] = {"fits": [], "exact": [], "solve": [], "peers": []}
    for part in ("digits", "growth", "million"):
        for r in results.get(part, ()):
            graph = "auto" if r.get("graph", True) else "none"
            given = {"rows": r["n"], "graph": graph, "landmarks": r["n_landmarks"]}
            found["fits"].append({"task": _task(r)} | given | _cost(r))
    for r in results.get("peers", ()):
        found["peers"].append({"who": r["name"], "rows": r["n"]} | _cost(r))
    for r in results.get("small", ()):
        row: Record = {"task": _task(r)}
        for name, key in (("exact", "exact"), ("landmarks", "landmark")):
            row[f"{name} accuracy"] = r[f"{key}_accuracy"]
            row[f"{name} seconds"] = f"{r[f'{key}_seconds']:.2f}"
        found["exact"].append(row | {"faster": r["faster"]})
    for r in results.get("solve", ()):
        row = {"second order": str(r["second_order"]), "rounds": r["rounds"]}
        row |= {"factorisation seconds": f"{r['factorisation']:.2f}", "ratio": f"{r['ratio']:.2f}"}
        found["solve"].append(row)
    return {name: rows for name, rows in found.items() if rows}


def _task(record: Record) -> str:
    digits = {"U": "USPS", "M": "MNIST"}
    if "source" not in record:
        return "synthetic shift"
    return f"{digits[record['source']]} to {digits[record['target']]}"


def _cost(record: Record) -> Record:
    if "stopped" in record:
        return {"stopped": record["stopped"]}
    peak = f"{record['peak_gb']:.2f}"
    return {"seconds": record["seconds"], "peak GB": peak, "accuracy": record["accuracy"]}


# What is measured, each called in a process of its own ------------------------------------------


def _fitted(estimator: Any, Xs: Any, ys: Any, Xt: Any, yt: Any) -> Record:
    """Seconds of a fit by stage, and the accuracy on the target."""
    from transferable.events import Event, Progress, listen

    moments: list[tuple[str, float]] = []

    def note(event: Event) -> None:
        if isinstance(event, Progress):
            moments.append((event.what, perf_counter()))

    with warnings.catch_warnings(), listen(note):
        warnings.simplefilter("ignore")
        start = perf_counter()
        estimator.adapt(Xs, ys, Xt)
        end = perf_counter()
    stages: dict[str, float] = {}
    for (what, begun), (_, ended) in zip(moments, [*moments[1:], ("", end)], strict=True):
        stages[what] = stages.get(what, 0.0) + ended - begun
    accuracy = float(np.mean(estimator.transduction_[len(ys) :] == yt))
    found = {"seconds": end - start, "accuracy": 100 * accuracy}
    return found | {"stages": {name: round(value, 2) for name, value in stages.items()}}


def fit_shift(n: int, n_landmarks: int, graph: bool) -> Record:
    from transferable import TFDF

    model = TFDF(n_landmarks=n_landmarks, **({} if graph else {"manifold": 0.0}))
    return _fitted(model, *synthetic_shift(n).parts)


def fit_digits(source: str, target: str, n_landmarks: int) -> Record:
    from transferable import TFDF
    from transferable.datasets import fetch_mnist_usps

    task = fetch_mnist_usps(full=True, download=False).task(source, target)
    Xs, Xt = (X.astype(np.float32, copy=False) for X in (task.Xs, task.Xt))
    found = _fitted(TFDF(n_landmarks=n_landmarks), Xs, task.ys, Xt, task.yt)
    return found | {"n": len(Xs) + len(Xt)}


def fit_small(source: str, target: str) -> Record:
    """Landmarks against the exact solve on the same rows, in turn in one process."""
    from transferable import TFDF
    from transferable.datasets import fetch_mnist_usps

    task = fetch_mnist_usps(download=False).task(source, target)
    Xs, Xt = (X.astype(np.float32) for X in (task.Xs, task.Xt))
    settings = {"manifold_dim": 20, "manifold": 1.0, "n_neighbors": 10}
    found: dict[str, list[Record]] = {"exact": [], "landmarks": []}
    for _ in range(3):
        for name, n_landmarks in (("exact", None), ("landmarks", 1000)):
            model = TFDF(n_landmarks=n_landmarks, **settings)
            found[name].append(_fitted(model, Xs, task.ys, Xt, task.yt))
    exact, landmarks = (min(found[name], key=lambda r: r["seconds"]) for name in found)
    return {
        "exact_seconds": exact["seconds"],
        "landmark_seconds": landmarks["seconds"],
        "faster": exact["seconds"] / landmarks["seconds"],
        "exact_accuracy": exact["accuracy"],
        "landmark_accuracy": landmarks["accuracy"],
    }


def solve_exactly(second_order: float) -> Record:
    """The rounds of an exact fit against as many factorisations of its system by LAPACK."""
    from scipy.linalg import lu_factor

    from transferable import TFDFV
    from transferable.datasets import fetch_mnist_usps

    task = fetch_mnist_usps(download=False).task("U", "M")
    fixed = {"manifold_dim": 20, "manifold": 1.0, "balance": 0.5, "class_shares": "source"}
    model = TFDFV(n_landmarks=None, second_order=second_order, **fixed)
    record = _fitted(model, task.Xs, task.ys, task.Xt, task.yt)
    P = np.random.default_rng(0).normal(size=(3800, 3800))
    times = []
    for _ in range(3):
        start = perf_counter()
        lu_factor(P, check_finite=False)
        times.append(perf_counter() - start)
    rounds = record["stages"]["Adapting"]
    return {
        "rounds": model.n_iter_,
        "seconds": rounds,
        "factorisation": min(times),
        "ratio": rounds / (model.n_iter_ * min(times)),
    }


def peer(name: str, n: int) -> Record:
    """A peer's own adaptation of the rows, and the label of the nearest adapted source row."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    warnings.simplefilter("ignore")
    Xs, ys, Xt, yt = synthetic_shift(n).parts
    start = perf_counter()
    Zs, Zt = PEERS[name](Xs.astype(np.float64), ys, Xt.astype(np.float64))
    seconds = perf_counter() - start
    from sklearn.neighbors import KNeighborsClassifier

    few = slice(0, 2000)
    accuracy = KNeighborsClassifier(1).fit(Zs, ys).score(Zt[few], yt[few])
    return {"seconds": seconds, "accuracy": 100 * accuracy}


def _skada(make: Callable[[Any], Any]) -> Callable[..., tuple[Any, Any]]:
    def adapted(Xs: Any, ys: Any, Xt: Any) -> tuple[Any, Any]:
        import skada

        X = np.concatenate([Xs, Xt])
        marks = np.repeat([1, -2], [len(Xs), len(Xt)])
        y = np.concatenate([ys, np.full(len(Xt), -1)])
        adapter = make(skada)
        Z = adapter.fit_transform(X, y, sample_domain=marks)
        Z = Z[0] if isinstance(Z, tuple) else Z
        return Z[: len(Xs)], Z[len(Xs) :]

    return adapted


def _pot(make: Callable[[Any], Any]) -> Callable[..., tuple[Any, Any]]:
    def adapted(Xs: Any, ys: Any, Xt: Any) -> tuple[Any, Any]:
        import ot.da

        return make(ot.da).fit(Xs=Xs, Xt=Xt).transform(Xs=Xs), Xt

    return adapted


PEERS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "skada CORAL": _skada(lambda skada: skada.CORALAdapter()),
    "skada TCA": _skada(lambda skada: skada.TransferComponentAnalysisAdapter(n_components=30)),
    "skada OT mapping": _skada(lambda skada: skada.OTMappingAdapter()),
    "POT EMD": _pot(lambda da: da.EMDTransport()),
    "POT Sinkhorn": _pot(lambda da: da.SinkhornTransport(reg_e=1.0)),
}
WORK: dict[str, Callable[..., Record]] = {
    "fit_shift": fit_shift,
    "fit_digits": fit_digits,
    "fit_small": fit_small,
    "solve_exactly": solve_exactly,
    "peer": peer,
}

# The parts ---------------------------------------------------------------------------------------


def digits(_: int) -> list[Record]:
    return [
        run("fit_digits", source=source, target=target, n_landmarks=m)
        for source, target in (("U", "M"), ("M", "U"))
        for m in (1000, 2000)
    ]


def growth(_: int) -> list[Record]:
    records = [
        run("fit_shift", n=n, n_landmarks=1000, graph=graph)
        for graph in (False, True)
        for n in GROWTH
    ]
    for graph in (False, True):
        times = [record["seconds"] for record in records if record["graph"] == graph]
        slope = np.polyfit(np.log(GROWTH), np.log(times), 1)[0]
        for record in records:
            if record["graph"] == graph:
                record["exponent"] = float(slope)
    return records


def million(_: int) -> list[Record]:
    return [run("fit_shift", n=1_000_000, n_landmarks=1000, graph=True)]


def small(_: int) -> list[Record]:
    return [run("fit_small", source=s, target=t) for s, t in (("U", "M"), ("M", "U"))]


def solve(_: int) -> list[Record]:
    return [run("solve_exactly", second_order=weight) for weight in (0.0, 0.05)]


def peers(limit: int) -> list[Record]:
    records = []
    for n in GROWTH[:2]:
        ours = run("fit_shift", n=n, n_landmarks=1000, graph=True)
        records.append({"name": "transferable TFDF"} | ours)
        records += [run("peer", limit, name=name, n=n) for name in PEERS]
    return records


PARTS: dict[str, Callable[[int], list[Record]]] = {
    "small": small,
    "solve": solve,
    "digits": digits,
    "growth": growth,
    "million": million,
    "peers": peers,
}


def plot(results: dict[str, list[Record]]) -> None:
    """Time and peak memory against rows, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    records = results["growth"] + results.get("million", [])
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for graph, label, marker in ((False, "without the graph", "o"), (True, "with the graph", "s")):
        of_kind = [record for record in records if record["graph"] == graph]
        n = [record["n"] for record in of_kind]
        for axis, key in zip(axes, ("seconds", "peak_gb"), strict=True):
            axis.loglog(n, [record[key] for record in of_kind], marker=marker, label=label)
    axes[0].set(title="Time of a fit", xlabel="rows", ylabel="seconds")
    axes[1].set(title="Peak memory of the process", xlabel="rows", ylabel="GB")
    for axis in axes:
        axis.grid(alpha=0.3, which="both")
        axis.legend()
    path = RECORDS / "scaling/fits.png"
    figure.savefig(path, dpi=150)
    print(f"wrote {path} ({os.path.getsize(path) // 1024} KB)")


if __name__ == "__main__":
    main()
