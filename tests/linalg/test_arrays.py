"""Tables of numpy and of torch."""

from importlib.util import find_spec

import numpy as np
import pytest

from transferable._linalg import arrays as module
from transferable._linalg.arrays import CPU, Arrays, namespace, to_numpy
from transferable._linalg.memory import memory_budget
from transferable._linalg.systems import effective_ridge, inverse, solve_positive

has_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def test_the_default_is_numpy_and_imports_no_torch():
    assert Arrays.on("cpu") is CPU
    assert type(CPU.table([[1, 2]], "float32")) is np.ndarray


def test_a_device_without_torch_says_what_to_install(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"'\.\[gpu\]'"):
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
    both = place.table(A), place.table(B)
    assert float(namespace(*both).sum(both[0] * both[1])) == pytest.approx(np.vdot(A, B))
    positive = A @ A.T + np.eye(5)
    expected, table = np.linalg.solve(positive, R), place.table
    for x in (
        solve_positive(table(positive.copy()), table(R)),
        inverse(table(positive.copy())) @ table(R),
    ):
        assert Arrays.of(x) == place
        np.testing.assert_allclose(to_numpy(x), expected, atol=1e-10)
    assert effective_ridge(0.0, table(positive)) == effective_ridge(0.0, positive)


@has_torch
def test_rounding_errors_are_left_out_of_tensors_too():
    basis = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    A = (basis * np.array([3.0, 1.0, 0.5, 0.2, -1e-12])) @ basis.T
    A = (A + A.T) / 2
    R, table = A @ np.ones((5, 1)), Arrays("cpu").table
    x = to_numpy(solve_positive(table(A.copy()), table(R)))
    np.testing.assert_allclose(A @ x, R, atol=1e-9)
    assert np.isfinite(to_numpy(inverse(table(A.copy())))).all()


def test_free_memory_is_a_number_of_bytes():
    assert memory_budget(None, CPU) > 2**20
