"""Weights in [0, 1] with given sums in groups."""

import numpy as np
import pytest
from scipy.optimize import minimize

from transferable._linalg.simplex import minimise_on_simplices, project_on_simplices

GROUPS = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
SUMS = np.array([2.0, 1.5])


def test_projection_satisfies_the_constraints_and_is_nearest():
    rng = np.random.default_rng(0)
    w = rng.normal(size=9) * 2
    p = project_on_simplices(w, GROUPS, SUMS)
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_allclose(np.bincount(GROUPS, p), SUMS)
    for seed in range(20):
        other = project_on_simplices(np.random.default_rng(seed).normal(size=9), GROUPS, SUMS)
        assert (w - p) @ (other - p) <= 1e-9  # the angle that characterises a projection
    np.testing.assert_allclose(project_on_simplices(p, GROUPS, SUMS), p, atol=1e-9)


def test_quadratic_program_agrees_with_a_general_solver():
    A = np.random.default_rng(1).normal(size=(9, 9))
    Q = A @ A.T
    w = minimise_on_simplices(
        lambda x: Q @ x, np.full(9, 0.4), GROUPS, SUMS, max_iter=5000, tolerance=1e-10
    )
    constraints = [
        {"type": "eq", "fun": lambda x, g=g: x[g == GROUPS].sum() - SUMS[g]} for g in (0, 1)
    ]
    reference = minimize(
        lambda x: x @ Q @ x,
        np.full(9, 0.4),
        jac=lambda x: 2 * Q @ x,
        bounds=[(0, 1)] * 9,
        constraints=constraints,
        options={"ftol": 1e-14, "maxiter": 500},
    ).x
    np.testing.assert_allclose(w @ Q @ w, reference @ Q @ reference, rtol=1e-6)


def test_nothing_to_minimise_keeps_the_weights():
    start = project_on_simplices(np.linspace(0, 1, 9), GROUPS, SUMS)
    w = minimise_on_simplices(np.zeros_like, start, GROUPS, SUMS)
    np.testing.assert_allclose(w, start, atol=1e-9)


@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e6])
def test_projection_keeps_the_sums_whatever_the_spread(spread):
    rng = np.random.default_rng(0)
    for share in (0.1, 0.5, 1.0):
        groups = np.r_[np.arange(4), rng.integers(4, size=30)]
        sums = share * np.bincount(groups)
        p = project_on_simplices(spread * rng.normal(size=34), groups, sums)
        np.testing.assert_allclose(np.bincount(groups, p), sums, rtol=1e-9)
