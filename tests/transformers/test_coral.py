"""CORAL against its closed form."""

import numpy as np
import pytest
from scipy.linalg import fractional_matrix_power

from problems import small_problem
from transferable.limits import LIMITS
from transferable.transformers import CORAL


@pytest.fixture(scope="module")
def task():
    return small_problem(n_source=60, n_target=50, n_features=5)


def marks(task):
    return np.ones(len(task.Xs))


def test_covariances_become_equal(task):
    Zs = (
        CORAL(regularization=0.0)
        .adapt(task.Xs, task.ys, task.Xt)
        .transform(task.Xs, sample_domain=marks(task))
    )
    np.testing.assert_allclose(np.cov(Zs.T), np.cov(task.Xt.T), atol=1e-9)
    np.testing.assert_allclose(Zs.mean(axis=0), task.Xt.mean(axis=0), atol=1e-9)


@pytest.mark.parametrize("n_features", [5, 90])
def test_agrees_with_the_printed_form(n_features):
    task = small_problem(n_source=60, n_target=50, n_features=n_features)
    identity = np.eye(n_features)
    whiten = fractional_matrix_power(np.cov(task.Xs.T) + identity, -0.5)
    colour = fractional_matrix_power(np.cov(task.Xt.T) + identity, 0.5)
    model = CORAL(align_means=False).adapt(task.Xs, task.ys, task.Xt)
    Zs = model.transform(task.Xs, sample_domain=marks(task))
    np.testing.assert_allclose(Zs, task.Xs @ whiten @ colour, atol=1e-7)


def test_target_rows_are_left_alone(task):
    model = CORAL().adapt(task.Xs, task.ys, task.Xt)
    np.testing.assert_array_equal(model.transform(task.Xt), task.Xt)


@pytest.mark.parametrize("n_features", [30, 110, 200])
@pytest.mark.parametrize("regularization", [0.0, 1.0])
def test_one_matrix_and_the_directions_one_after_the_other_agree(n_features, regularization):
    """The former where features are few, the latter where a square of them would be large."""
    task = small_problem(n_source=80, n_target=70, n_features=n_features)
    model = CORAL(regularization=regularization).adapt(task.Xs, task.ys, task.Xt)
    Zs = model.transform(task.Xs, sample_domain=marks(task))
    centred = task.Xs - task.Xs.mean(axis=0)
    [source], target = model._map.sources, model._map.target
    by_directions = target.times(source.times(centred, -0.5), 0.5)
    np.testing.assert_allclose(Zs, by_directions + task.Xt.mean(axis=0), atol=1e-10)


def test_covariance_is_exact_far_from_the_origin_and_over_many_blocks(task, monkeypatch):
    model = CORAL().adapt(task.Xs, task.ys, task.Xt)
    expected = model.transform(task.Xs, sample_domain=marks(task))
    monkeypatch.setattr(LIMITS, "block_values", 35)
    far = CORAL().adapt(task.Xs + 1e6, task.ys, task.Xt - 1e6)
    moved = far.transform(task.Xs + 1e6, sample_domain=marks(task))
    np.testing.assert_allclose(moved + 1e6, expected, atol=1e-7)
