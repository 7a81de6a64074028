"""The updated system against a dense solve."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from transferable.linalg.systems import LU, Inverse, Update, UpdatedSystem, symmetric_times


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rank=st.integers(2, 14),
    columns=st.integers(1, 5),
    log_scale=st.floats(-3, 4),
)
def test_solution_is_that_of_the_dense_system(seed, rank, columns, log_scale):
    rng = np.random.default_rng(seed)
    n = 14
    factor, root = rng.normal(size=(n, rank)), rng.normal(size=(n, n))
    K, S = factor @ factor.T / n, root @ root.T / n
    P = S @ K + 0.1 * np.eye(n)
    system = UpdatedSystem(LU(P.copy()), K)
    for _ in range(2):  # one factorisation serves many updates
        E = 10**log_scale * rng.normal(size=(n, columns))
        R = rng.normal(size=(n, 3))
        x = system.solve(R, E)
        scale = np.abs(P + E @ E.T @ K).max() * np.abs(x).max() + np.abs(R).max()
        np.testing.assert_allclose((P + E @ E.T @ K) @ x, R, atol=1e-9 * scale)


def test_an_update_of_zero_columns_changes_nothing():
    rng = np.random.default_rng(0)
    P = rng.normal(size=(6, 6)) + 6 * np.eye(6)
    R = rng.normal(size=(6, 2))
    x = UpdatedSystem(LU(P.copy()), np.eye(6)).solve(R, np.zeros((6, 3)))
    np.testing.assert_allclose(P @ x, R, atol=1e-12)


def test_a_symmetric_system_needs_no_kernel():
    rng = np.random.default_rng(1)
    root, E, R = rng.normal(size=(7, 7)), rng.normal(size=(7, 2)), rng.normal(size=(7, 3))
    P = root @ root.T + np.eye(7)
    x = UpdatedSystem(Inverse(P)).solve(R, E)
    np.testing.assert_allclose((P + E @ E.T) @ x, R, atol=1e-12)


def test_a_weight_counts_as_the_square_of_a_scale():
    rng = np.random.default_rng(2)
    root, E, R = rng.normal(size=(7, 7)), rng.normal(size=(7, 2)), rng.normal(size=(7, 3))
    system = UpdatedSystem(Inverse(root @ root.T + np.eye(7)))
    update = Update(system, E)
    for weight in (0.0, 0.3, 9.0):
        x = update.apply(system.P.solve(R), weight)
        np.testing.assert_allclose(x, system.solve(R, weight**0.5 * E), atol=1e-12)


def test_a_symmetric_matrix_times_a_table():
    rng = np.random.default_rng(3)
    root, T = rng.normal(size=(6, 6)), rng.normal(size=(6, 2))
    K = root + root.T
    np.testing.assert_allclose(symmetric_times(K, T), K @ T, atol=1e-12)
