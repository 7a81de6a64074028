"""Distances between samples, and the agreement of neighbours."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from transferable.metrics import (
    mmcd_distance,
    mmd_distance,
    neighbor_consistency,
    proxy_a_distance,
)


def samples(seed, n_source=60, n_target=40, d=4, shift=0.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_source, d)), rng.normal(size=(n_target, d)) + shift


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), shift=st.floats(0, 5), d=st.integers(1, 70))
def test_distance_lies_between_0_and_2(seed, shift, d):
    assert 0.0 <= proxy_a_distance(*samples(seed, d=d, shift=shift)) <= 2.0


def test_distance_grows_with_the_shift():
    distances = [proxy_a_distance(*samples(0, 400, 400, shift=s)) for s in (0.0, 0.5, 1.0, 5.0)]
    assert distances == sorted(distances)
    assert distances[0] < 0.3
    assert distances[-1] == 2.0


def test_it_does_not_matter_which_sample_comes_first():
    Xs, Xt = samples(1, shift=0.6)
    assert proxy_a_distance(Xs, Xt) == pytest.approx(proxy_a_distance(Xt, Xs))


def test_shift_and_scale_of_both_samples_do_not_matter():
    Xs, Xt = samples(2, shift=0.6)
    moved = proxy_a_distance(100.0 * Xs + 7.0, 100.0 * Xt + 7.0)
    assert moved == pytest.approx(proxy_a_distance(Xs, Xt))


def test_sizes_alone_make_no_distance():
    """A majority vote would tell 10 from 500 rows with an error of 2 %."""
    distances = [proxy_a_distance(*samples(seed, 500, 10)) for seed in range(20)]
    assert np.mean(distances) < 0.6


def test_narrow_and_wide_tables_take_the_same_discriminant():
    """Columns of zeros change which Gram matrix is inverted, and with the ridge's scale nothing."""
    Xs, Xt = samples(3, 12, 12, d=3, shift=1.0)
    wide = [np.hstack([X, np.zeros((12, 57))]) for X in (Xs, Xt)]
    assert proxy_a_distance(*wide, shrinkage=0.1 * 20) == pytest.approx(proxy_a_distance(Xs, Xt))


def test_sparse_rows_have_the_distance_of_dense_ones():
    Xs, Xt = samples(4, shift=0.6)
    assert proxy_a_distance(sp.csr_array(Xs), sp.csr_array(Xt)) == proxy_a_distance(Xs, Xt)


def test_constant_rows_work():
    assert proxy_a_distance(np.zeros((4, 2)), np.zeros((4, 2))) == 0.0
    assert proxy_a_distance(np.zeros((4, 2)), np.ones((4, 2))) == 2.0


def test_a_sample_of_one_row_is_refused():
    with pytest.raises(ValueError, match="1 and 5 rows"):
        proxy_a_distance(np.zeros((1, 2)), np.zeros((5, 2)))


def clusters(n=60):
    rng = np.random.default_rng(0)
    codes = np.arange(n) % 3
    return np.eye(3)[codes] + 0.05 * rng.normal(size=(n, 3)), codes


def test_one_for_clusters_and_zero_for_constant_labels():
    X, codes = clusters()
    assert neighbor_consistency(X, codes) == 1.0
    assert neighbor_consistency(X, np.zeros_like(codes)) == 0.0


def test_random_labels_are_near_zero_whatever_their_frequencies():
    X, _ = clusters(3000)
    rng = np.random.default_rng(1)
    for p in ([0.5, 0.5], [0.95, 0.05]):
        assert neighbor_consistency(X, rng.choice(2, 3000, p=p)) == pytest.approx(0.0, abs=0.05)


def test_few_rows():
    X, codes = clusters(3)
    assert neighbor_consistency(X[:1], codes[:1]) == 0.0
    assert np.isfinite(neighbor_consistency(X, codes, n_neighbors=50))


@pytest.fixture
def labelled():
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
def test_distances_agree_with_the_printed_matrices(labelled, kernel):
    Xs, Xt, ys, yt = labelled
    X = np.vstack([Xs, Xt])
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.5)
    first, second = dense_squares(K, Xs, ys, yt, balance=0.3)
    options = {"balance": 0.3, "kernel": kernel, "gamma": 0.5}
    assert mmd_distance(Xs, Xt, ys, yt, **options) == pytest.approx(np.sqrt(first))
    both = mmcd_distance(Xs, Xt, ys, yt, second_order=2.0, **options)
    assert both == pytest.approx(np.sqrt(first + 2.0 * second))


def test_more_features_than_rows_changes_nothing(labelled):
    Xs, Xt, ys, yt = labelled
    wide = [np.hstack([X, np.zeros((len(X), 50))]) for X in (Xs, Xt)]
    assert mmcd_distance(*wide, ys, yt) == pytest.approx(mmcd_distance(Xs, Xt, ys, yt))


def test_a_class_that_one_sample_lacks_is_left_out(labelled):
    Xs, Xt, _, _ = labelled
    alone = mmcd_distance(Xs, Xt, ["a"] * 13, ["b"] * 9, balance=0.5)
    assert alone**2 == pytest.approx(mmcd_distance(Xs, Xt) ** 2 / 2)


@pytest.mark.parametrize("distance", [mmd_distance, mmcd_distance])
def test_order_of_rows_and_of_samples_does_not_matter(labelled, distance):
    Xs, Xt, ys, yt = labelled
    expected = distance(Xs, Xt, ys, yt, kernel="rbf")
    assert distance(Xt, Xs, yt, ys, kernel="rbf") == pytest.approx(expected)
    assert distance(Xs[::-1], Xt, ys[::-1], yt, kernel="rbf") == pytest.approx(expected)
    assert distance(Xs, Xs[::-1], ys, ys[::-1], kernel="rbf") == pytest.approx(0, abs=1e-7)


def test_what_cannot_be_compared_is_refused(labelled):
    Xs, Xt, ys, _ = labelled
    with pytest.raises(ValueError, match="Xt has 3 features, but Xs has 4"):
        mmd_distance(Xs, Xt[:, :3])
    with pytest.raises(ValueError, match="both samples, ys and yt, or of neither"):
        mmcd_distance(Xs, Xt, ys)


@pytest.mark.parametrize("seed", range(20))
def test_equal_samples_have_no_distance_whatever_rounding_does(seed):
    X = np.random.default_rng(seed).normal(size=(31, 4)) + 100
    assert mmd_distance(X, X[::-1]) < 1e-10
