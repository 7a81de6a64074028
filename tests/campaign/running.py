"""Trials in a process of their own, so that a crash or a hang ends the trial and not the run."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import tempfile
import time
import traceback
from pathlib import Path

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


def run_area(area, seeds, out):
    """Run trials in worker processes; the number of trials and of failures by kind."""
    waiting, failures = list(seeds), []
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
                print(f"{area}: {count} trials, {len(failures)} failures", flush=True)
        worker.kill()
        worker.join()
    return count, failures


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
