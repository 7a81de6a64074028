"""The proxy A-distance."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from transferable.metrics import proxy_a_distance


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
