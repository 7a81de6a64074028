"""Signals at random moments: what was being written is there whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np

from campaign import Violation
from problems import small_problem

KINDS = {"INT": signal.SIGINT, "TERM": signal.SIGTERM, "KILL": signal.SIGKILL}
CPU_SECONDS = 120  # a trial is several whole commands, each of which has its own limit


def trial(seed, folder):
    """Start something, end it at some moment, look at what it left and let it go on."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(list(TASKS)))
    kind = str(rng.choice(list(KINDS)))
    process, wait, folder = _stopped(name, kind, folder, rng)
    try:
        _, said = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Violation(f"{name} goes on 60 s after SIG{kind}") from None
    _check_ending(name, kind, said, process.returncode)
    _check_files(name, kind, folder)
    _finished(TASKS[name], folder)
    _check_files(name, kind, folder, ended=True)
    return f"{name}: SIG{kind} after {wait:.2f} s, code {process.returncode}"


def _stopped(name, kind, parent, rng):
    """Start a task and signal it; one that had ended is run again, for less than it took."""
    longest = 4.0
    for attempt in range(20):
        folder = _prepared(name, parent / str(attempt))
        wait = rng.uniform(0.0, longest)
        begun = time.monotonic()
        process = _started(TASKS[name], folder)
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            process.send_signal(KINDS[kind])
            return process, wait, folder
        longest = time.monotonic() - begun
        process.communicate()
    raise Violation(f"{name} ends before any signal")


def _prepared(name, folder):
    folder.mkdir()
    p = small_problem(n_source=120, n_target=90, n_features=6)
    np.savez(folder / "rows.npz", Xs=p.Xs, ys=p.ys, Xt=p.Xt)
    _csv(folder / "source.csv", p.Xs, p.ys)
    _csv(folder / "target.csv", p.Xt)
    if name == "predict":
        _finished(TASKS["adapt"], folder)
        (folder / "out.csv").unlink()
    return folder


def _command(*arguments):
    return [sys.executable, "-c", "from transferable.cli import main; main()", *arguments]


TASKS = {
    "adapt": _command(
        *("adapt", "source.csv", "target.csv", "--label", "label"),
        *("--out", "out.csv", "--model", "model.tfm", "--report", "report.html"),
    ),
    "predict": _command("predict", "model.tfm", "target.csv", "--out", "out.csv"),
    "paper": [
        *(sys.executable, "-m", "paper", "surf", "--methods", "1NN", "--tasks", "D-W,W-D,A-D"),
        *("--jobs", "1", "--out", "records"),
    ],
}
if "TRANSFERABLE_DATA" not in os.environ:
    del TASKS["paper"]


def _started(command, folder):
    return subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # of the clone
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_interrupts,
    )


def _hear_interrupts():
    """A campaign run in the background ignores SIGINT, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _finished(command, folder):
    process = _started(command, folder)
    _, said = process.communicate(timeout=280)
    if process.returncode:
        raise Violation(f"{command[3:]} ended with {process.returncode}: {said[-300:]}")


def _csv(path, X, y=None):
    header = ",".join([f"c{i}" for i in range(X.shape[1])] + (["label"] if y is not None else []))
    table = X if y is None else np.c_[X, y]
    lines = [",".join(map(str, row)) for row in table.tolist()]
    path.write_text("\n".join([header, *lines]) + "\n")


# A shell's code for each signal. What ended just before it has 0; what Python itself was ended in,
# before the command had begun, has the signal's own.
CODES = {"INT": 130, "TERM": 143, "KILL": -9}


def _check_ending(name, kind, said, code):
    if code not in (0, CODES[kind], -KINDS[kind]):
        raise Violation(f"{name}: SIG{kind} ended it with {code}: {said[-300:]}")
    if "Traceback" in said and code != -KINDS[kind]:
        raise Violation(f"{name}: a traceback at SIG{kind}: {said[-300:]}")


def _check_files(name, kind, folder, *, ended=False):
    if kind != "KILL" and not ended:
        left = [path.name for path in folder.rglob("*.part")]
        if left:
            raise Violation(f"{name}: SIG{kind} left {left}")
    out = folder / "out.csv"
    if out.exists() and len(out.read_text().splitlines()) != 91:
        raise Violation(f"{name}: out.csv has {len(out.read_text().splitlines())} lines")
    report = folder / "report.html"
    if report.exists() and not report.read_text().rstrip().endswith("</html>"):
        raise Violation(f"{name}: report.html is not whole")
    if (folder / "model.tfm").exists():
        from transferable.persistence import about

        about(folder / "model.tfm")
