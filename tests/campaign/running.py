"""Trials in a process of their own, so that a crash or a hang ends the trial and not the run."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil

from campaign import Violation

CPU_SECONDS = 20  # of one trial; a machine may be busy, so wall time is not what counts
WALL_SECONDS = 300


def trial(area, seed):
    """Run one trial; the outcome and what there is to tell."""
    module = importlib.import_module(f"campaign.{area}")
    with tempfile.TemporaryDirectory() as folder:
        try:
            return "passed", module.trial(seed, Path(folder))
        except Violation as violation:
            return "failed", str(violation)
        except BaseException:
            return "failed", traceback.format_exc()


def _work(area, seeds, pipe):
    for seed in seeds:
        pipe.send(("began", seed, ""))
        pipe.send((*trial(area, seed), seed))
    pipe.send(("ended", None, None))


def run(wanted, out, workers):
    """Run the seeds of each area by several processes; trials, failures and seconds by area.

    A trial is the same whichever process runs it. Seconds are those of all processes together.
    """
    parts = [part for area, seeds in wanted.items() for part in _parts(area, seeds, workers)]

    def timed(part):
        begun = time.monotonic()
        count, failures = run_area(*part, out)
        return part[0], count, len(failures), time.monotonic() - begun

    totals = {area: np.zeros(3) for area in wanted}
    with ThreadPoolExecutor(workers) as pool:
        for area, *numbers in pool.map(timed, parts):
            totals[area] += numbers
    return totals


def _parts(area, seeds, workers):
    """The seeds of an area for each process, those together that an area calls kin."""
    kin = getattr(importlib.import_module(f"campaign.{area}"), "kin", None)
    ordered = sorted(seeds, key=kin) if workers > 1 else list(seeds)
    shares = np.array_split(np.array(ordered, dtype=int), workers)
    return [(area, share.tolist()) for share in shares if len(share)]


def run_area(area, seeds, out):
    """Run trials one after the other in a worker process; their number, and the failures kept."""
    waiting, failures, first = list(seeds), [], min(seeds)
    allowed = getattr(importlib.import_module(f"campaign.{area}"), "CPU_SECONDS", CPU_SECONDS)
    count = 0
    while waiting:
        ours, theirs = multiprocessing.get_context("spawn").Pipe(duplex=False)
        worker = multiprocessing.get_context("spawn").Process(
            target=_work, args=(area, waiting, theirs)
        )
        worker.start()
        theirs.close()
        seed, since, cpu = waiting[0], time.monotonic(), None
        while True:
            if ours.poll(1.0):
                try:
                    outcome, told, done = ours.recv()
                except EOFError:
                    worker.join()
                    outcome, told, done = "failed", f"crashed with code {worker.exitcode}", seed
            else:
                used = _cpu(worker.pid)
                cpu = used if cpu is None else cpu
                if used - cpu < allowed and time.monotonic() - since < WALL_SECONDS:
                    continue
                outcome, told, done = "failed", f"hung: {used - cpu:.0f} s of CPU", seed
            if outcome == "began":
                seed, since, cpu = told, time.monotonic(), _cpu(worker.pid)
                continue
            if outcome == "ended":
                waiting = []
                break
            count += 1
            waiting = waiting[1:]
            if outcome == "failed":
                failures.append(_keep(area, done, told, out))
                if told.startswith(("crashed", "hung")):
                    break
            if count % 100 == 0:
                _tell(area, first, count, failures)
        worker.kill()
        worker.join()
    _tell(area, first, count, failures)
    return count, failures


def _tell(area, first, count, failures):
    print(f"{area} from {first}: {count} trials, {len(failures)} failures", flush=True)


def _cpu(pid):
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system + times.children_user + times.children_system


def _keep(area, seed, told, out):
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{area}-{seed}.json"
    path.write_text(json.dumps({"area": area, "seed": seed, "told": told}, indent=2))
    print(f"{path}: {told.strip().splitlines()[-1][:300]}", flush=True)
    return path
