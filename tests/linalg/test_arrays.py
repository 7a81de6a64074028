"""Tables of numpy and of torch."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from transferable.linalg import arrays as module
from transferable.linalg.arrays import CPU, Arrays, inner, to_numpy
from transferable.linalg.systems import LU, Cholesky, Inverse

has_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def test_the_default_is_numpy_and_imports_no_torch():
    assert Arrays.on("cpu") is CPU
    assert type(CPU.table([[1, 2]], "float32")) is np.ndarray


def test_a_device_without_torch_says_what_to_install(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"transferable\[gpu\]"):
        Arrays.on("cuda")
    assert Arrays.on("auto") is CPU


@has_torch
def test_a_device_that_is_not_there_says_what_to_do(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r'device="cuda:1" .* no CUDA GPU'):
        Arrays.on("cuda:1")
    assert Arrays.on("auto") is CPU
    assert Arrays.on("torch") == Arrays("cpu")


@has_torch
def test_tensors_and_arrays_have_the_same_algebra():
    rng = np.random.default_rng(0)
    A, B, R = rng.normal(size=(5, 5)), rng.normal(size=(5, 5)), rng.normal(size=(5, 2))
    place = Arrays("cpu")
    assert Arrays.of(place.table(A)) == place
    assert inner(place.table(A), place.table(B)) == pytest.approx(np.vdot(A, B))
    positive = A @ A.T + np.eye(5)
    for Factored, matrix in ((LU, A), (Cholesky, positive), (Inverse, positive)):
        x = Factored(place.table(matrix.copy())).solve(place.table(R))
        np.testing.assert_allclose(to_numpy(x), np.linalg.solve(matrix, R), atol=1e-10)


def test_free_memory_is_a_number_of_bytes():
    assert CPU.free_bytes() > 2**20


def test_importing_the_library_imports_neither_torch_nor_faiss():
    import subprocess

    code = "import sys, transferable; print('torch' in sys.modules, 'faiss' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
