"""SIGKILL at any moment of `save` and of `adapt`: what was being written is whole, or as before."""

from __future__ import annotations

import functools
import io
import os
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import transferable
from campaign import Violation, signals
from problems import small_problem
from transferable.cli import app

P = small_problem(n_source=120, n_target=90, n_features=6)
MODELS = [transferable.TFDFV(ridge=ridge).adapt(P.Xs, P.ys, P.Xt) for ridge in (0.1, 1.0)]
ADAPT = signals.TASKS["adapt"][3:]


def save():
    """Save two models over each other."""
    for model in MODELS:
        transferable.save(model, "model.tfm")


def adapt():
    """Run the command."""
    app(ADAPT, standalone_mode=False)


def trial(seed, folder):
    """Start one of them in a process of its own, kill it, look, and run it to its end."""
    rng = np.random.default_rng(seed)
    task = (save, adapt)[seed % 2]
    signals._csv(folder / "source.csv", P.Xs, P.ys)
    signals._csv(folder / "target.csv", P.Xt)
    wait = rng.uniform(0, 1.5 * duration(task))
    child = started(task, folder, endless=True)
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    told = f"{task.__name__} killed after {wait:.3f} s"
    if os.waitpid(child, 0)[1] != signal.SIGKILL:
        raise Violation(f"{told}: had ended by itself")
    check(folder, told)
    if os.waitpid(started(task, folder), 0)[1]:
        raise Violation(f"{told}: does not run again")
    check(folder, told)
    if left := [path.name for path in folder.glob(".*.part")]:
        raise Violation(f"{told}: left {left}")
    return told


def check(folder, told):
    """Every file is there as a whole, or is not there."""
    if (folder / "model.tfm").exists():
        model = transferable.load(folder / "model.tfm")
        if "save" in told and model.ridge not in (0.1, 1.0):
            raise Violation(f"{told}: a model of ridge {model.ridge}")
    signals._check_files("adapt", "KILL", folder)


@functools.cache
def duration(task):
    """Seconds that a task takes, in a folder that is not needed any more."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        signals._csv(folder / "source.csv", P.Xs, P.ys)
        signals._csv(folder / "target.csv", P.Xt)
        os.waitpid(started(task, folder), 0)
        began = time.monotonic()
        os.waitpid(started(task, folder), 0)
        return time.monotonic() - began


def started(task, folder, endless=False):
    """Start a task in a fork of this process, in a folder, once or again and again."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.chdir(folder)
        sys.stdout = sys.stderr = io.StringIO()
        warnings.simplefilter("ignore")
        task()
        while endless:
            task()
        code = 0
    finally:
        os._exit(code)
