"""Workers of Dask that are killed or late at any moment of a fit: no bit of the model changes."""

from __future__ import annotations

import atexit
import functools
import os
import signal
import time
from contextlib import suppress
from threading import Timer

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

import transferable.dask as over_dask
from campaign import Violation
from problems import small_problem
from transferable.events import Progress, listen

CPU_SECONDS = 120  # of two workers that start again and again
P = small_problem(3, n_source=120, n_target=100, n_features=6)
FLOW = {"n_landmarks": 30, "graph": "anchors", "max_iter": 3, "manifold_dim": 3}
FITS = {
    "TFDF": FLOW,
    "TFDFV": FLOW | {"second_order": 0.5},
    "MEDA": FLOW,
    "CORAL": {},
}


@functools.cache
def client():
    """Two worker processes, for all trials."""
    dask.config.set({"distributed.scheduler.work-stealing": False, "logging.distributed": "error"})
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
    )
    atexit.register(cluster.close)
    return Client(cluster)


def workers():
    """The two processes, once those that were killed have successors, or else of a new cluster."""
    for _ in range(200):
        with suppress(OSError):  # of a worker that has just gone
            pids = sorted(client().run(os.getpid, on_error="ignore").values())
            if len(pids) == 2:
                return pids
        time.sleep(0.2)
    client().cluster.close()
    client.cache_clear()
    return workers()


def slowly(block):
    """Make time for something to happen while blocks are read."""
    time.sleep(0.01)
    return block


def rows():
    """The problem in blocks of 20 rows."""
    parts = (da.from_array(X, chunks=(20, *X.shape[1:])) for X in (P.Xs, P.ys, P.Xt))
    return tuple(part.map_blocks(slowly, dtype=part.dtype) for part in parts)


def fitted(name, hear):
    """What a fit learns, as bytes, and how long it takes."""
    began = time.monotonic()
    with listen(hear):
        model = getattr(over_dask, name)(**FITS[name]).adapt(*rows()).to_local()
    method = "transform" if hasattr(model, "transform") else "decision_function"
    return getattr(model, method)(P.Xt).tobytes(), time.monotonic() - began


@functools.cache
def calm(name):
    """What an undisturbed fit learns, its time, and what it tells on the way."""
    told = []
    client()
    fitted(name, told.append)  # modules that workers import are not part of the time
    told.clear()
    return *fitted(name, told.append), len(told)


def trial(seed, folder):
    """Hurt one or both workers of a fit at an event of it, and compare."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(list(FITS)))
    expected, seconds, events = calm(name)
    pids = workers()
    moment, delay = int(rng.integers(events)), float(rng.uniform(0, seconds / events))
    harm = (killed, killed, late)[rng.integers(3)]
    deaths = int(rng.integers(1, 3))
    heard, timers = [], []

    def hear(event):
        heard.append(event)
        if len(heard) == moment + 1:
            for pid in pids[:deaths]:
                timers.append(Timer(delay, harm, (pid,)))
                timers[-1].start()

    got, _ = fitted(name, hear)
    for timer in timers:
        timer.join()
    what = heard[moment].what if isinstance(heard[moment], Progress) else "a stage"
    told = f"{name}: {deaths} {harm.__name__} {delay:.2f} s after event {moment} ({what})"
    if got != expected:
        raise Violation(f"{told}: another model")
    return told


def killed(pid):
    """End a worker; its nanny starts another."""
    os.kill(pid, signal.SIGKILL)


def late(pid):
    """Stop a worker for a while."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(pid, signal.SIGCONT)
