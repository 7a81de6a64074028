"""Systems that are positive definite, perhaps but for rounding errors."""

import numpy as np
import pytest

from transferable._linalg.systems import (
    effective_ridge,
    eliminated,
    factored,
    inverse,
    solve_factored,
    solve_positive,
)


def positive(seed=0, n=7):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    return root @ root.T + np.eye(n), rng.normal(size=(n, 3))


def test_solutions_are_those_of_the_matrix():
    A, R = positive()
    expected = np.linalg.solve(A, R)
    np.testing.assert_allclose(inverse(A.copy()) @ R, expected, atol=1e-12)
    np.testing.assert_allclose(inverse(A.copy()), np.linalg.inv(A), atol=1e-12)
    np.testing.assert_allclose(solve_positive(A.copy(), R), expected, atol=1e-12)


def test_rounding_errors_in_place_of_small_eigenvalues_are_left_out():
    """A matrix with an eigenvalue just below zero has a solution all the same."""
    basis = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    A = (basis * np.array([3.0, 1.0, 0.5, 0.2, -1e-12])) @ basis.T
    A = (A + A.T) / 2
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(A)
    R = A @ np.ones((5, 1))
    np.testing.assert_allclose(A @ solve_positive(A.copy(), R), R, atol=1e-9)
    assert np.isfinite(inverse(A.copy())).all()


def test_numbers_too_large_to_compute_with_are_refused():
    A = np.array([[1.0, np.inf], [np.inf, 1.0]])
    with pytest.raises(ValueError, match="bring them closer to 1"):
        solve_positive(A, np.ones((2, 1)))


def test_a_ridge_of_zero_is_taken_to_its_limit():
    K = np.diag([1.0, 3.0])
    assert effective_ridge(0.1, K) == 0.1
    assert 0 < effective_ridge(0.0, K) < 1e-8
    weighted = effective_ridge(0.0, K, np.array([3.0, 1.0]))
    assert weighted == pytest.approx(effective_ridge(0.0, np.diag([1.0, 1.0, 1.0, 3.0])))


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize(("n", "k"), [(7, 0), (7, 3), (40, 15)])
def test_rows_that_change_are_factored_alone(library, n, k):
    """Px = R for a P whose first rows are a weighted sum, from the LU of its last k rows."""
    table = np.asarray if library == "numpy" else pytest.importorskip("torch").as_tensor
    rng = np.random.default_rng(n + k)
    P, more, R = rng.normal(size=(n, n)), rng.normal(size=(n - k, n)), rng.normal(size=(n, 3))
    P[n - k :, : n // 2] *= 1e-12  # pivots have to come from other columns
    factor, order, V = factored(table(P[n - k :].copy()))
    weights = rng.normal(size=(n - k, 1))
    both = (eliminated(table(rows), order, V) for rows in (P[: n - k], more))
    B, S = (one + table(weights) * other for one, other in zip(*both, strict=True))
    last, last_order, _ = factored(1.0 * S)
    y = solve_factored(factor, table(R[n - k :]))
    z = np.empty((n - k, 3))
    z[last_order] = solve_factored(last, table(R[: n - k]) - B @ y)
    x = np.empty((n, 3))
    x[order] = np.concatenate([np.asarray(y) - np.asarray(V) @ z, z])
    P[: n - k] += weights * more
    np.testing.assert_allclose(P @ x, R, atol=1e-9)


def test_a_singular_matrix_has_finite_factors():
    factor, order, V = factored(np.zeros((2, 3)))
    assert np.isfinite(solve_factored(factor, np.ones((2, 1)))).all()
    assert sorted(order) == [0, 1, 2]
    assert V.shape == (2, 1)
