"""Networks that adapt: every method on full digits, and DeepTFDF where it is hard.

Runs are independent jobs that several processes take from a queue, the most important first. Each
finished one is appended to ``records.jsonl`` in the folder --out, and a run that was stopped goes
on there. ``--render`` writes the tables of ``records/deep``.

    python benchmarks/deep.py --out build/deep --workers 6 --minutes 9
    python benchmarks/deep.py --out build/deep --render
"""

from __future__ import annotations

import argparse
import json
import os
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch.nn import functional

import deep_jobs
from deep_pictures import pictures
from transferable import deep
from transferable.deep.networks import lenet
from transferable.deep.penalties import covariance_distance


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/deep"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--workers", type=int, default=4, help="processes on the device")
    parser.add_argument("--cpu-workers", type=int, default=0, help="processes beside it")
    parser.add_argument("--minutes", type=float, default=60.0, help="no job begins later")
    parser.add_argument("--only", default="", help="tables or methods, by commas")
    parser.add_argument("--steps", type=int, help="steps of an epoch, to try things out")
    parser.add_argument("--render", action="store_true")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.render:
        from deep_render import render

        render(arguments.out / "records.jsonl")
        return
    run(arguments)


def run(arguments: argparse.Namespace) -> None:
    """Measure what is not there yet, until all is or the time is up."""
    began = perf_counter()
    file = arguments.out / "records.jsonl"
    done = {record["key"] for record in read(file)}
    chosen = set(filter(None, arguments.only.split(",")))
    waiting = [job for job in deep_jobs.jobs() if deep_jobs.key(job) not in done]
    if chosen:
        waiting = [job for job in waiting if {job["table"], job["method"]} & chosen]
    on_cpu = [job for job in waiting if job.get("device") == "cpu"]
    on_device = [job for job in waiting if job.get("device") != "cpu"]
    if not arguments.cpu_workers:
        on_device, on_cpu = on_device + on_cpu, []
    spawn = get_context("spawn")
    total = len(waiting)
    with (
        ProcessPoolExecutor(arguments.workers, mp_context=spawn) as device_pool,
        ProcessPoolExecutor(max(arguments.cpu_workers, 1), mp_context=spawn) as cpu_pool,
    ):
        queues = [
            (device_pool, arguments.workers, on_device),
            (cpu_pool, arguments.cpu_workers, on_cpu),
        ]
        running: dict[Future[Any], tuple[int, dict[str, Any]]] = {}
        finished = 0
        while True:
            in_time = perf_counter() - began < 60 * arguments.minutes
            for k, (pool, size, queue) in enumerate(queues):
                busy = sum(owner == k for owner, _ in running.values())
                while in_time and queue and busy < size:
                    job = queue.pop(0)
                    future = pool.submit(attempt, job, arguments.device, arguments.steps)
                    running[future] = (k, job)
                    busy += 1
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                running.pop(future)
                record = future.result()
                finished += 1
                if "error" not in record:
                    write(file, record)
                at = f"{perf_counter() - began:6.0f} s  {finished}/{total}"
                print(at, record["key"], told(record), flush=True)
    for table, rates in (("speed", speed), ("pictures", pictures)):  # with the machine to itself
        if table not in done and (not chosen or table in chosen):
            record = {"key": table, "table": table, **rates(arguments.device, arguments.steps)}
            write(file, record)
            print(record, flush=True)


def attempt(job: dict[str, Any], device: str, steps: int | None) -> dict[str, Any]:
    """One job in a worker; a failed one says why and stops nothing."""
    try:
        return deep_jobs.measure(job, device, steps) | {"key": deep_jobs.key(job)}
    except Exception:
        return {"key": deep_jobs.key(job), "error": traceback.format_exc()}


def told(record: dict[str, Any]) -> str:
    if "error" in record:
        return f"failed:\n{record['error']}"
    names = ("adapted", "test", "tfdf adapted", "tfdf test", "class_shares", "exact", "seconds")
    return ", ".join(f"{name} {record[name]}" for name in names if name in record)


def read(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def write(file: Path, record: dict[str, Any]) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(record) + "\n")


def speed(device: str, steps: int | None, epochs: int = 3) -> dict[str, float]:
    """Seconds of an epoch of DeepCORAL over 60,000 + 9,298 digits, and of a bare loop's."""
    source, target, test = deep_jobs.task("M->U", "resized")
    both = torch.cat([torch.from_numpy(target[0]), torch.from_numpy(test[0])])
    model = deep.DeepCORAL(
        network="lenet", batch_size=256, epochs=epochs, epoch_steps=steps, weight=100.0,
        device=device,
    ).adapt(*source, both.numpy())  # fmt: skip
    ours = min(entry["seconds"] for entry in model.history_)
    bare = min(bare_epochs(source, both, device, epochs, steps))
    return {"ours": ours, "bare": bare, "ratio": ours / bare}


def bare_epochs(
    source: Any, both: torch.Tensor, device: str, epochs: int, steps: int | None
) -> list[float]:
    """The same loss as somebody writes it by hand, rows on the device."""
    xs = torch.from_numpy(source[0]).to(device)
    ys = torch.from_numpy(source[1]).long().to(device)
    xt = both.to(device)
    network = lenet((1, 28, 28), 10).to(device).train()
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, weight_decay=5e-4)
    seconds = []
    for _ in range(epochs):
        started = perf_counter()
        order = torch.randperm(len(xs), device=device)
        for rows in order.split(256)[:steps]:
            other = torch.randint(len(xt), (len(rows),), device=device)
            x = torch.cat([xs[rows], xt[other]])[:, None].float() / 255
            features = network.features(x)
            fs, ft = features.split(len(rows))
            scores = network.head(features)[: len(rows)]
            loss = functional.cross_entropy(scores, ys[rows]) + 100 * covariance_distance(fs, ft)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        loss.item()
        seconds.append(perf_counter() - started)
    return seconds


if __name__ == "__main__":
    main()
