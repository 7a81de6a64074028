"""MMD and MMCD against the matrices as the paper prints them."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from transferable.metrics import mmcd_distance, mmd_distance


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    Xs, Xt = rng.normal(size=(13, 4)), rng.normal(size=(9, 4)) + 0.3
    return Xs, Xt, rng.integers(0, 3, 13), rng.integers(0, 3, 9)


def printed_matrices(source, target):
    """M and Z of the two groups, rows that belong to neither being zero."""
    n = len(source)
    M, Z = np.zeros((n, n)), np.zeros((n, n))
    for sign, rows in ((1, np.flatnonzero(source)), (-1, np.flatnonzero(target))):
        Z[np.ix_(rows, rows)] = sign * (np.eye(len(rows)) / len(rows) - 1 / len(rows) ** 2)
    e = source / max(source.sum(), 1) - target / max(target.sum(), 1)
    M += np.outer(e, e)
    return M, Z


def dense_squares(K, Xs, ys, yt, balance):
    """(first order, second order), each (1 - mu) marginal + mu sum over classes."""
    side = np.arange(len(K)) < len(Xs)
    y = np.concatenate([ys, yt])
    groups = [(1 - balance, side, ~side)]
    groups += [(balance, side & (y == c), ~side & (y == c)) for c in np.unique(y)]
    first = second = 0.0
    for weight, source, target in groups:
        M, Z = printed_matrices(source, target)
        first += weight * np.trace(K @ M)
        second += weight * np.trace(K @ Z @ K @ Z)
    return first, second


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_distances_agree_with_the_printed_matrices(samples, kernel):
    Xs, Xt, ys, yt = samples
    X = np.vstack([Xs, Xt])
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.5)
    first, second = dense_squares(K, Xs, ys, yt, balance=0.3)
    options = {"balance": 0.3, "kernel": kernel, "gamma": 0.5}
    assert mmd_distance(Xs, Xt, ys, yt, **options) == pytest.approx(np.sqrt(first))
    both = mmcd_distance(Xs, Xt, ys, yt, second_order=2.0, **options)
    assert both == pytest.approx(np.sqrt(first + 2.0 * second))


def test_more_features_than_rows_changes_nothing(samples):
    Xs, Xt, ys, yt = samples
    wide = [np.hstack([X, np.zeros((len(X), 50))]) for X in (Xs, Xt)]
    assert mmcd_distance(*wide, ys, yt) == pytest.approx(mmcd_distance(Xs, Xt, ys, yt))


def test_a_class_that_one_sample_lacks_is_left_out(samples):
    Xs, Xt, _, _ = samples
    alone = mmcd_distance(Xs, Xt, ["a"] * 13, ["b"] * 9, balance=0.5)
    assert alone**2 == pytest.approx(mmcd_distance(Xs, Xt) ** 2 / 2)


@pytest.mark.parametrize("distance", [mmd_distance, mmcd_distance])
def test_order_of_rows_and_of_samples_does_not_matter(samples, distance):
    Xs, Xt, ys, yt = samples
    expected = distance(Xs, Xt, ys, yt, kernel="rbf")
    assert distance(Xt, Xs, yt, ys, kernel="rbf") == pytest.approx(expected)
    assert distance(Xs[::-1], Xt, ys[::-1], yt, kernel="rbf") == pytest.approx(expected)
    assert distance(Xs, Xs[::-1], ys, ys[::-1], kernel="rbf") == pytest.approx(0, abs=1e-7)


def test_what_cannot_be_compared_is_refused(samples):
    Xs, Xt, ys, _ = samples
    with pytest.raises(ValueError, match="Xt has 3 features, but Xs has 4"):
        mmd_distance(Xs, Xt[:, :3])
    with pytest.raises(ValueError, match="both samples, ys and yt, or of neither"):
        mmcd_distance(Xs, Xt, ys)


@pytest.mark.parametrize("seed", range(20))
def test_equal_samples_have_no_distance_whatever_rounding_does(seed):
    X = np.random.default_rng(seed).normal(size=(31, 4)) + 100
    assert mmd_distance(X, X[::-1]) < 1e-10
