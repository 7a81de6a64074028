"""Transformers on many rows: landmarks, blocks, memory."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from problems import small_problem
from transferable import all_estimators
from transferable._linalg import memory
from transferable.limits import LIMITS
from transferable.transformers import (
    BDA,
    JDA,
    JGSA,
    LPJT,
    SCA,
    TCA,
    TJM,
    LandmarkFeatures,
    McDA,
)
from transferable.transformers._spectral import SpectralSizes

TRANSFORMERS = [cls() for _, cls in all_estimators("transformer")]
WITH_KERNEL = [model(3) for model in (BDA, JDA, JGSA, LPJT, McDA, SCA, TCA, TJM)]


def named(models):
    return pytest.mark.parametrize("model", models, ids=lambda model: type(model).__name__)


@pytest.fixture(scope="module")
def task():
    return small_problem(seed=4, n_source=120, n_target=90, n_features=6)


def embedded(model, task, dtype=np.float64):
    """All rows in the shared space."""
    X = task.X.astype(dtype)
    marks = np.repeat([1, -1], [len(task.ys), len(task.yt)])
    return model.fit_transform(X, np.r_[task.ys, task.yt], sample_domain=marks)


def assert_same_distances(Z, reference, tolerance):
    """Embedded rows agree up to a rotation, by a share of the largest distance."""
    distances, expected = euclidean_distances(Z), euclidean_distances(reference)
    np.testing.assert_allclose(distances, expected, atol=tolerance * expected.max())


@named(WITH_KERNEL)
def test_with_all_rows_as_landmarks_the_solution_is_exact(model, task):
    exact = clone(model).set_params(kernel="rbf", n_landmarks=None)
    every = clone(model).set_params(kernel="rbf", n_landmarks=len(task.X))
    assert_same_distances(embedded(every, task), embedded(exact, task), 1e-6)
    np.testing.assert_allclose(every.eigenvalues_, exact.eigenvalues_, rtol=1e-6)
    assert (every.n_landmarks_, exact.n_landmarks_) == (len(task.X), None)


@named([TCA(3), JDA(3)])
def test_more_landmarks_come_closer_to_the_exact_solution(model, task):
    model = clone(model).set_params(kernel="rbf", gamma=0.02)
    reference = euclidean_distances(embedded(clone(model).set_params(n_landmarks=None), task))

    def error(m):
        Z = embedded(clone(model).set_params(n_landmarks=m), task)
        return np.linalg.norm(euclidean_distances(Z) - reference) / np.linalg.norm(reference)

    assert error(150) < error(20) < 0.5
    assert error(150) < 0.02


@named(WITH_KERNEL)
def test_single_precision_agrees_with_double_to_a_thousandth(model, task):
    model = clone(model).set_params(kernel="rbf", n_landmarks=40)
    single = embedded(clone(model), task, np.float32)
    rounded = small_problem(seed=4, n_source=120, n_target=90, n_features=6)
    rounded.X = task.X.astype(np.float32).astype(np.float64)
    assert single.dtype == np.float32
    assert_same_distances(single, embedded(clone(model), rounded), 1e-3)


@named(TRANSFORMERS)
def test_size_of_blocks_changes_nothing_beyond_rounding(model, task, monkeypatch):
    whole = embedded(clone(model), task)
    monkeypatch.setattr(LIMITS, "block_values", 7 * 6)
    parts = embedded(clone(model), task)
    assert_same_distances(parts, whole, 1e-7)


def in_least_memory(model, task):
    """All rows in the shared space, by a fit with hardly more memory than is refused."""
    for n_bytes in np.geomspace(2**15, 2**21, 200).astype(int):
        try:
            return embedded(clone(model).set_params(max_memory=int(n_bytes)), task)
        except MemoryError:
            continue
    raise AssertionError("no amount of memory was enough")


@named(WITH_KERNEL)
def test_features_that_are_not_held_change_nothing_beyond_rounding(model, task, monkeypatch):
    asked = []

    def kernel(A, B):
        asked.append(len(A))
        return rbf_kernel(A, B, gamma=0.02)

    model = clone(model).set_params(kernel=kernel, n_landmarks=40)
    held = embedded(clone(model), task)
    once = sum(asked)
    asked.clear()
    monkeypatch.setattr(LIMITS, "block_values", 7 * 40)
    assert_same_distances(in_least_memory(model, task), held, 1e-8)
    assert sum(asked) >= once + len(task.X), "features are computed again when they are needed"


@named(TRANSFORMERS)
def test_rows_that_are_read_where_they_lie_give_the_same(model, task, monkeypatch):
    copied = embedded(clone(model), task)
    monkeypatch.setattr(LIMITS, "copied_bytes", 0)
    np.testing.assert_allclose(embedded(clone(model), task), copied, atol=1e-9)


@named(TRANSFORMERS)
def test_precision_of_the_rows_is_kept(model, task):
    single = embedded(clone(model), task, np.float32)
    assert single.dtype == np.float32
    assert embedded(clone(model), task).dtype == np.float64


@named([TCA(kernel="rbf"), JDA(kernel="poly"), McDA(kernel="rbf")])
def test_too_little_memory_is_an_error_before_anything_is_allocated(model, task):
    model = clone(model).set_params(n_landmarks=None, max_memory="1GB")
    embedded(model, task)
    before = dict(vars(model))
    model.max_memory = "1MB"
    with pytest.raises(MemoryError, match=r"exact solve of 210 rows .* max_memory allows"):
        embedded(model, task)
    assert vars(model) == {**before, "max_memory": "1MB"}


def test_the_refusal_names_landmarks_that_fit():
    sizes = SpectralSizes(50_000, 10, 30, itemsize=4, factored=False)
    with pytest.raises(MemoryError, match=r"about .* GB .* n_landmarks=\d+ would fit") as error:
        memory.Plan.make(sizes, None, 2**32)
    m = int(str(error.value).split("n_landmarks=")[1].split()[0])
    assert memory.Plan.make(sizes, m, 2**32).n_landmarks == m > 1000


def test_auto_takes_landmarks_once_all_rows_are_too_many_and_says_so(task, monkeypatch):
    model = TCA(3, kernel="rbf")
    embedded(model, task)
    assert model.n_landmarks_ is None
    monkeypatch.setattr(LIMITS, "exact_rows", 200)
    monkeypatch.setattr(LIMITS, "landmarks", 50)
    with pytest.warns(UserWarning, match=r"takes 50 landmarks: .* square of the rows") as told:
        embedded(model, task)
    assert len(told) == 1
    assert model.n_landmarks_ == 50
    assert embedded(TCA(3), task).shape == (210, 3)  # linear maps need none: no warning


def test_the_seed_draws_the_landmarks(task):
    one, same, other = (
        embedded(TCA(3, kernel="rbf", n_landmarks=20, random_state=seed), task)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)


def test_landmark_features_span_the_kernel(task):
    X = task.X
    Z = embedded(LandmarkFeatures(len(X), gamma=0.3), task)
    np.testing.assert_allclose(Z @ Z.T, rbf_kernel(X, gamma=0.3), atol=1e-8)
    model = LandmarkFeatures(30, gamma=0.3)
    Z = embedded(model, task)
    L = model.landmarks_
    C = rbf_kernel(X, L, gamma=0.3)
    nystrom = C @ np.linalg.solve(rbf_kernel(L, gamma=0.3), C.T)
    np.testing.assert_allclose(Z @ Z.T, nystrom, atol=1e-8)
    np.testing.assert_allclose(
        model.transform(L) @ model.transform(L).T, rbf_kernel(L, gamma=0.3), atol=1e-8
    )


def test_landmarks_come_from_both_domains_alike(task):
    model = LandmarkFeatures(40)
    embedded(model, task)
    rows = {row.tobytes(): i for i, row in enumerate(task.X)}
    places = np.array([rows[row.tobytes()] for row in model.landmarks_])
    assert np.sum(places < len(task.ys)) == 20
    assert len(np.unique(places)) == 40
