"""EasyTL: its assignment against the printed linear program."""

import numpy as np
import pytest
from scipy.optimize import linprog

from problems import small_problem
from transferable.classifiers import EasyTL


def printed_program(distances):
    """Total cost and labels of the linear program as the paper writes it."""
    n, n_classes = distances.shape
    each_row = np.kron(np.eye(n), np.ones(n_classes))
    each_class = -np.kron(np.ones(n), np.eye(n_classes))
    solved = linprog(
        distances.ravel(),
        A_ub=each_class,
        b_ub=-np.ones(n_classes),
        A_eq=each_row,
        b_eq=np.ones(n),
        bounds=(0, 1),
    )
    return solved.fun, solved.x.reshape(n, n_classes).argmax(axis=1)


def fitted(Xs, ys, Xt):
    model = EasyTL().adapt(Xs, ys, Xt)
    means = np.array([Xs[ys == c].mean(axis=0) for c in np.unique(ys)])
    return model, np.linalg.norm(Xt[:, None] - means, axis=2)


@pytest.mark.parametrize("seed", range(6))
def test_no_class_is_left_out_and_the_program_is_solved(seed):
    """All target rows lie about one mean, so that the nearest mean leaves classes out."""
    rng = np.random.default_rng(seed)
    ys = np.arange(40) % 4
    Xs = 3 * rng.normal(size=(4, 5))[ys] + rng.normal(size=(40, 5))
    Xt = Xs[ys == 0].mean(axis=0) + 0.7 * rng.normal(size=(25, 5))
    model, distances = fitted(Xs, ys, Xt)
    assert len(np.unique(distances.argmin(axis=1))) < 4
    labels = model.predict(Xt)
    cost, expected = printed_program(distances)
    assert set(labels) == {0, 1, 2, 3}
    assert distances[np.arange(25), labels].sum() == pytest.approx(cost)
    np.testing.assert_array_equal(labels, expected)


def test_prices_are_zero_where_the_nearest_means_leave_no_class_out():
    p = small_problem(shift=0.0)
    model, distances = fitted(p.Xs, p.ys, p.Xt)
    assert not model.prices_.any()
    np.testing.assert_array_equal(model.predict(p.Xt), distances.argmin(axis=1))
    assert distances[np.arange(18), model.predict(p.Xt)].sum() == pytest.approx(
        printed_program(distances)[0]
    )


def test_fewer_rows_than_classes_take_the_nearest_means():
    p = small_problem()
    model, distances = fitted(p.Xs, p.ys, p.Xt[:2])
    np.testing.assert_array_equal(model.predict(p.Xt[:2]), distances.argmin(axis=1))
