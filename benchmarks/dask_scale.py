"""What a fit over Dask takes on two worker processes, beside the same fit in memory.

Rows of the synthetic shift lie in Parquet files. Each fit runs in processes of its own, of one
thread each. Writes ``build/dask/results.json`` and ``records/dask/fits.csv``.

    python benchmarks/dask_scale.py                      # a million rows, then ten
    python benchmarks/dask_scale.py --rows 100000
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd

from recording import tabulate
from shift import shift_parts

OUT = Path("build/dask")
LANDMARKS = 1000
PART = 31_250  # rows
LOCAL_ROWS = 2_000_000  # beyond, only the cluster fits
MEMORY = "3GB"  # of a worker
# Dask has workers give memory back at once, and fresh pages would cost them a tenth of the fit.
CLUSTER = {
    "distributed.scheduler.work-stealing": False,
    "distributed.nanny.pre-spawn-environ": {
        f"{library}_NUM_THREADS": 1 for library in ("OMP", "MKL", "OPENBLAS")
    },
}
Record = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--method", default="TFDFV")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        where, n, method, graph = arguments.one
        settings = {} if graph == "anchors" else {"manifold": 0.0}
        print(json.dumps(WHERE[where](int(n), method, settings)))
        return
    records = []
    for n in arguments.rows:
        write_rows(n)
        for where in ("memory", "dask") if n <= LOCAL_ROWS else ("dask",):
            for graph in ("anchors", "none"):
                records.append(run(where, n, arguments.method, graph))
                print(json.dumps(records[-1]), flush=True)
                (OUT / "results.json").write_text(json.dumps(records, indent=1))
    keep = arguments.rows == parser.get_default("rows")
    tabulate("dask/fits", [row(record) for record in records], keep=keep)


def row(record: Record) -> Record:
    """The columns of the table; a fit that failed has its reason alone."""
    given = {"rows": record["rows"], "where": record["where"], "graph": record["graph"]}
    if "failed" in record:
        return given | {"failed": record["failed"]}
    *workers, client = record["peak_gb"]
    return given | {
        "processor seconds": record["processor_seconds"],
        "processor seconds of the client": record.get("client_seconds"),
        "seconds": record["seconds"],
        "peak GiB of a worker": f"{max(workers):.2f}" if workers else None,
        "peak GiB of the client": f"{client:.2f}",
        "accuracy": f"{record['accuracy']:.2f}",
        "rounds": record["rounds"],
    }


def run(where: str, n: int, method: str, graph: str) -> Record:
    """A fit in a process of its own."""
    command = [sys.executable, __file__, "--one", where, str(n), method, graph]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    given = {"where": where, "rows": n, "method": method, "graph": graph}
    if done.returncode:
        return given | {"failed": (done.stderr.strip().splitlines() or ["killed"])[-1][:200]}
    return given | json.loads(done.stdout.splitlines()[-1])


def write_rows(n: int) -> None:
    """Parquet files of both domains, once."""
    rows = min(PART, n // 8)
    for number, (domain, X, y) in enumerate(shift_parts(n // rows, rows)):
        file = OUT / str(n) / domain / f"{number:05}.parquet"
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(label=y)
        frame.to_parquet(file)


def in_memory(n: int, method: str, settings: Record) -> Record:
    """The fit in this process; reading the files is told apart."""
    import transferable

    reading = process_time()
    tables = [pd.read_parquet(OUT / str(n) / domain) for domain in ("source", "target")]
    ys, yt = (table.pop("label").to_numpy() for table in tables)
    Xs, Xt = (table.to_numpy(dtype=np.float32) for table in tables)
    reading = process_time() - reading
    model = getattr(transferable, method)(n_landmarks=LANDMARKS, graph="anchors", **settings)
    wall, used = perf_counter(), process_time()
    model.adapt(Xs, ys, Xt)
    wall, used = perf_counter() - wall, process_time() - used
    return {
        "seconds": wall,
        "processor_seconds": used,
        "reading_seconds": reading,
        "peak_gb": [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20],
        "accuracy": 100 * float(np.mean(model.predict(Xt) == yt)),
        "rounds": model.n_iter_,
    }


def over_dask(n: int, method: str, settings: Record) -> Record:
    """The same on two worker processes, which read the files, once they have imported all."""
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from transferable import dask as kinds
    from transferable.dask._rows import Workers

    received: list[int] = []
    compute = Workers.compute

    def measured(self: Workers, task: Any) -> Any:
        result = compute(self, task)
        received.append(len(pickle.dumps(result)))
        return result

    Workers.compute = measured  # type: ignore[method-assign]
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": MEMORY}
    with (
        dask.config.set(CLUSTER),
        LocalCluster(n_workers=2, **options) as cluster,
        Client(cluster) as client,
    ):
        source, target = (dd.read_parquet(OUT / str(n) / name) for name in ("source", "target"))
        client.run(warm_up)
        begun, used, wall = client.run(processor_seconds), process_time(), perf_counter()
        model = getattr(kinds, method)(n_landmarks=LANDMARKS, **settings)
        model.adapt(source, "label", target)
        wall, used = perf_counter() - wall, process_time() - used
        ended = client.run(processor_seconds)
        workers = [ended[name] - begun.get(name, 0.0) for name in ended]
        peaks = list(client.run(peak_gb).values())
        sent = sum(client.run(bytes_sent).values())
        right = (model.predict(target) == target["label"]).mean().compute()
    return {
        "seconds": wall,
        "processor_seconds": used + sum(workers),
        "peak_gb": [*peaks, peak_gb()],
        "accuracy": 100 * float(right),
        "rounds": model.n_iter_,
        "client_seconds": used,
        "client_received_mb": sum(received) / 1e6,
        "workers_sent_mb": sent / 1e6,
        "mb_of_a_round": received[-1] / 1e6,
    }


def warm_up() -> None:
    import pyarrow.dataset
    import pyarrow.parquet  # noqa: F401

    import transferable.dask  # noqa: F401


def processor_seconds() -> float:
    times = os.times()
    return times.user + times.system


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def bytes_sent(dask_worker: Any) -> int:
    return sum(entry["total"] for entry in dask_worker.transfer_outgoing_log)


WHERE = {"memory": in_memory, "dask": over_dask}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
