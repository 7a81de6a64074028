"""One process beside others: writers of one file, forks and pools after a fit, event loops."""

import asyncio
import os
import subprocess
import sys
import time

import pytest
from joblib import Parallel, delayed
from sklearn.base import clone

import transferable
from problems import small_problem
from transferable.classifiers import TFDFV, AdaptedClassifier

P = small_problem()
WRITER = """
import sys, transferable
from problems import small_problem
p = small_problem()
model = transferable.TFDFV(ridge=float(sys.argv[1])).adapt(p.Xs, p.ys, p.Xt)
print("ready", flush=True)
for _ in range(15):
    transferable.save(model, "model.tfm")
"""


@pytest.mark.processes
def test_two_processes_write_one_output(tmp_path):
    """Whoever reads meets one of the two models, whole, and nothing else is left."""
    path = tmp_path / "model.tfm"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WRITER]
    writers = [
        subprocess.Popen(
            [*command, ridge], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
        )
        for ridge in ("0.1", "1.0")
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            seen.add(transferable.load(path).ridge)
        time.sleep(0.01)
    assert [writer.wait() for writer in writers] == [0, 0]
    assert seen <= {0.1, 1.0}
    assert seen
    assert os.listdir(tmp_path) == ["model.tfm"]
    for writer in writers:
        writer.stdout.close()


def scores(method):
    return clone(method).adapt(P.Xs, P.ys, P.Xt).predict_proba(P.Xt).tobytes()


METHODS = [TFDFV(), AdaptedClassifier(), transferable.AutoAdapter(effort="fast")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_after_a_fit_fits_the_same(method):
    expected = scores(method)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(theirs, scores(method))
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as stream:
        assert stream.read() == expected
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.processes
def test_loky_after_a_fit_fits_the_same():
    expected = [scores(method) for method in METHODS]
    assert Parallel(n_jobs=2)(delayed(scores)(method) for method in METHODS) == expected


def test_fits_in_an_event_loop_are_the_same():
    expected = [scores(method) for method in METHODS]

    async def together():
        return await asyncio.gather(*(asyncio.to_thread(scores, method) for method in METHODS * 2))

    async def inside():
        return [scores(method) for method in METHODS]

    assert asyncio.run(together()) == expected * 2
    assert asyncio.run(inside()) == expected


def loaded(code):
    """Packages that are loaded once the code has run."""
    told = f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stderr.split()}


def test_imports_load_nothing_that_is_used_elsewhere():
    """What a fit needs and no more; help needs no array."""
    heavy = {"torch", "matplotlib", "dask", "typer", "pooch", "PIL"}
    assert loaded("from transferable import TFDF") & heavy == set()
    command = "sys.argv[1:] = ['--help']\nfrom transferable.cli import main\n"
    command += "try:\n    main()\nexcept SystemExit:\n    pass"
    assert loaded(command) & {"numpy", "scipy", "sklearn", "pandas", "torch"} == set()
