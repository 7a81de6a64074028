"""Adam's printed formula, and L-BFGS on a function whose minimum is known."""

import numpy as np
import pytest

from transferable.linalg.optimizers import Adam, lbfgs


def test_first_step_of_adam_is_the_learning_rate_against_the_sign():
    gradient = np.array([[3.0, -0.5], [20.0, -1e4]])
    step = Adam(0.1).update(np.zeros((2, 2)), gradient)
    np.testing.assert_allclose(step, -0.1 * np.sign(gradient), rtol=1e-6)


def test_epsilon_stands_inside_the_root():
    """A gradient far below sqrt(epsilon) = 1e-4 hardly moves; outside the root it would."""
    step = Adam(1.0).update(np.zeros((1, 1)), np.array([[1e-6]]))
    assert step[0, 0] == pytest.approx(-1e-6 / np.sqrt(1e-12 + 1e-8))


def test_later_steps_of_adam_follow_algorithm_2():
    rng = np.random.default_rng(0)
    optimizer, x = Adam(0.01), rng.normal(size=(3, 2))
    m = v = np.zeros((3, 2))
    for t in range(1, 8):
        g = rng.normal(size=(3, 2))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        expected = x - 0.01 * (m / (1 - 0.9**t)) / np.sqrt(v / (1 - 0.999**t) + 1e-8)
        x = optimizer.update(x, g)
        np.testing.assert_allclose(x, expected, rtol=1e-12)


def test_lbfgs_reaches_the_minimum_of_a_quadratic():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(5, 5))
    Q, minimum = root @ root.T + np.eye(5), rng.normal(size=(5, 3))

    def function(x):
        slope = Q @ (x - minimum)
        return float(np.vdot(x - minimum, slope)), 2 * slope

    found = lbfgs(function, np.zeros((5, 3)), 200)
    assert found.shape == (5, 3)
    np.testing.assert_allclose(found, minimum, atol=1e-3)
    few = lbfgs(function, np.zeros((5, 3)), 2)
    assert function(found)[0] < function(few)[0] < function(np.zeros((5, 3)))[0]
