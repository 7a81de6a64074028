"""A fit that is killed by the system goes on when the same command runs again."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(os.name != "posix", reason="SIGKILL"),
]

COMMAND = """
import os, signal, sys
import numpy as np, torch
torch.set_num_threads(1)
from transferable import _files, deep
from transferable.deep import _training, tfdf

where, when, checkpoint, result = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
left = {"calls": when}

def die(place):
    if place == where:
        left["calls"] -= 1
        if left["calls"] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

class Noise:
    def __call__(self, x, generator):
        die("epoch")
        return x + 0.01 * torch.randn(x.shape, generator=generator)

replace = _files.os.replace
def replacing(*names):  # the file is written, and not yet under its name
    die("checkpoint")
    replace(*names)

solve = tfdf._FeatureProblem._scores
def solving(*arguments, **more):
    die("closed form")
    return solve(*arguments, **more)

_files.os.replace, tfdf._FeatureProblem._scores = replacing, solving
rng = np.random.default_rng(0)
y = np.arange(40) % 2
X = rng.integers(0, 60, size=(40, 16, 16), dtype=np.uint8)
X[y == 0, :8] += 150
model = deep.DeepTFDF(
    network="lenet", epochs=2, epoch_steps=3, batch_size=8, n_rounds=2, augment=Noise(),
    checkpoint=checkpoint or None,
).adapt(X, y, 255 - X)
np.save(result, model.predict_proba(X))
print([entry["epoch"] for entry in model.history_])
"""


def run(*arguments):
    return subprocess.run([sys.executable, "-c", COMMAND, *arguments], capture_output=True)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = tmp_path_factory.mktemp("fit") / "expected.npy"
    done = run("nowhere", "1", "", str(path))
    assert done.returncode == 0, done.stderr
    return np.load(path)


@pytest.mark.parametrize(
    ("where", "when"), [("epoch", "8"), ("checkpoint", "3"), ("closed form", "2")]
)
def test_the_same_command_goes_on(where, when, expected, tmp_path):
    checkpoint, result = tmp_path / "fit.safetensors", tmp_path / "result.npy"
    killed = run(where, when, str(checkpoint), str(result))
    assert killed.returncode == -signal.SIGKILL
    assert checkpoint.exists()
    done = run("nowhere", when, str(checkpoint), str(result))
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"[1, 2, 3, 4]\n"
    assert (np.load(result) == expected).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["result.npy"]
