"""Time the neighbour graph of many rows, stage by stage, on a CPU or a GPU.

Rows are those of ten Gaussian classes. Their noise is either as strong in every direction, the
hardest case for a search by clusters, or falls off as in real features ("decaying"). One line of
JSON for each number of rows: seconds of the stages, recall, peak memory. With ``--faiss`` the
same neighbours are searched by an inverted file of faiss-cpu too, in the same process, and both are
``records/scaling/graph.csv``.

    python benchmarks/scale_graph.py --rows 20000 80000 320000
    python benchmarks/scale_graph.py --rows 1000000 --device cuda
"""

from __future__ import annotations

import argparse
import json
import resource
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from time import perf_counter, process_time
from typing import Any

import numpy as np

from recording import tabulate
from transferable._linalg import search
from transferable._linalg.arrays import Arrays, unit_rows
from transferable._linalg.search import exact_search

_STAGES = {
    "_centers": "k-means",
    "exact_search": "exact sample",
    "_probes": "choice of clusters",
    "_search": "search",
}


def classes(n: int, d: int, noise: str, seed: int = 0) -> np.ndarray:
    """n rows of ten classes, as float32."""
    rng = np.random.default_rng(seed)
    spread = np.ones(d) if noise == "isotropic" else (1.0 + np.arange(d)) ** -0.5
    means = rng.normal(size=(10, d)) * spread * (1.0 if noise == "isotropic" else 2.0)
    return (means[rng.integers(10, size=n)] + rng.normal(size=(n, d)) * spread).astype(np.float32)


class Clock:
    """Seconds by stage; on a GPU until its work is done."""

    def __init__(self, arrays: Arrays) -> None:
        self.on_gpu = arrays.on_gpu
        self.seconds: dict[str, float] = defaultdict(float)

    def now(self) -> float:
        """Seconds since some moment."""
        if self.on_gpu:
            import torch

            torch.cuda.synchronize()
        return perf_counter()

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its time added to the stage's."""

        def run(*arguments: Any, **options: Any) -> Any:
            began = self.now()
            result = function(*arguments, **options)
            self.seconds[stage] += self.now() - began
            return result

        return run


def measure(X: Any, k: int, clock: Clock) -> dict[str, Any]:
    """The graph and its normalised adjacency, once, with the time of each stage."""
    plain = {name: getattr(search, name) for name in _STAGES}
    for name, stage in _STAGES.items():
        setattr(search, name, clock.timed(stage, plain[name]))
    try:
        began, cpu = clock.now(), process_time()
        graph = clock.timed("graph", search.neighbor_graph)(X, k)
        clock.timed("normalised", search.normalised_adjacency)(graph.weights)
        total, cpu = clock.now() - began, process_time() - cpu
    finally:
        for name, function in plain.items():
            setattr(search, name, function)
    seconds = {stage: round(value, 3) for stage, value in clock.seconds.items()}
    return {
        "recall": round(graph.recall, 4),
        "seconds": {"total": round(total, 3), "processor": round(cpu, 3)} | seconds,
    }


def faiss_search(X: np.ndarray, k: int, checked: int = 500) -> dict[str, Any]:
    """The same neighbours by an inverted file, with nprobe doubled up to a recall of 0.95."""
    import faiss

    began, cpu = perf_counter(), process_time()
    X = unit_rows(X)
    n, d = X.shape
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, n // 100, faiss.METRIC_INNER_PRODUCT)
    index.cp.niter, index.cp.min_points_per_centroid = 5, 32
    index.cp.max_points_per_centroid, index.cp.seed = 32, 0
    index.train(X)
    index.add(X)
    picked = np.random.default_rng(0).choice(n, checked, replace=False)
    lowest = exact_search(X[picked], X, k, picked)[1].min(axis=1)
    recall = 0.0
    index.nprobe = 2
    while recall < 0.95:
        index.nprobe *= 2
        # The row itself is among those found.
        found = index.search(X[picked], k + 1)[0]
        recall = float((np.sum(found >= lowest[:, None] - 1e-6, axis=1) - 1).clip(0, k).mean() / k)
    index.search(X, k + 1)
    return {
        "method": f"faiss IVF, nprobe {index.nprobe}",
        "recall": round(recall, 4),
        "seconds": {
            "total": round(perf_counter() - began, 3),
            "processor": round(process_time() - cpu, 3),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 80_000, 320_000])
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--neighbors", type=int, default=10)
    kinds = ["decaying", "isotropic"]
    parser.add_argument("--noise", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--device", default="cpu", help='"cpu" is numpy; "torch", "cuda"')
    parser.add_argument("--faiss", action="store_true", help="compare with faiss-cpu")
    options = parser.parse_args()
    arrays = Arrays.on(options.device)
    if arrays.on_gpu:
        warm = arrays.table(classes(50_000, options.features, options.noise[0]))
        measure(warm, options.neighbors, Clock(arrays))
    table = []
    for noise, n in product(options.noise, options.rows):
        rows = classes(n, options.features, noise)
        given = {"n": n, "d": options.features, "k": options.neighbors, "noise": noise}
        runs = [measure(arrays.table(rows), options.neighbors, Clock(arrays))]
        if options.faiss:
            runs.append(faiss_search(rows, options.neighbors))
        for result in runs:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(json.dumps(given | {"device": options.device} | result | {"peak_mb": peak}))
            table.append({
                "rows": n,
                "noise": noise,
                "who": "faiss-cpu, inverted file" if "method" in result else "clusters",
                "processor seconds": result["seconds"]["processor"],
                "recall": f"{result['recall']:.3f}",
            })  # fmt: skip
    tabulate("scaling/graph", table, keep=options.faiss and options.device == "cpu")


if __name__ == "__main__":
    main()
