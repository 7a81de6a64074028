"""Class confusion: both forms, their gradients, and the quadratic that stands for them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from transferable.terms.confusion import ClassConfusion

FORMS = ["printed", "normalised"]


def scores(seed, n=9, n_classes=3):
    return np.random.default_rng(seed).normal(size=(n, n_classes))


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_gradient_against_finite_differences(form, seed):
    term, F = ClassConfusion(0.4, form), scores(seed)
    numeric = approx_fprime(F.ravel(), lambda x: term.value(x.reshape(F.shape)), 1e-7)
    scale = 1 + np.abs(numeric).max()
    np.testing.assert_allclose(term.gradient(F).ravel(), numeric, atol=1e-5 * scale)


def test_the_printed_gradient_is_half_the_derivative():
    term, F = ClassConfusion(0.4, "printed"), scores(1)
    np.testing.assert_allclose(2 * term.gradient(F, as_printed=True), term.gradient(F))


def test_printed_value_is_the_distance_of_the_inner_products_from_identity():
    F = scores(2)
    expected = 0.4 * np.linalg.norm(F.T @ F - np.eye(3)) ** 2
    assert ClassConfusion(0.4, "printed").value(F) == pytest.approx(expected)


@pytest.mark.parametrize("form", FORMS)
def test_confusion_vanishes_where_classes_do_not_overlap(form):
    one_hot = np.repeat(np.eye(3), [2, 3, 4], axis=0)
    F = one_hot / np.linalg.norm(one_hot, axis=0)
    term = ClassConfusion(1.0, form)
    assert term.value(F) == pytest.approx(0.0)
    np.testing.assert_allclose(term.gradient(F), 0.0, atol=1e-12)


def test_normalised_form_ignores_the_length_of_columns():
    term, F = ClassConfusion(1.0, "normalised"), scores(3)
    assert term.value(F * [0.1, 5.0, 70.0]) == pytest.approx(term.value(F))


@pytest.mark.parametrize("form", FORMS)
def test_a_column_of_zeros_gives_no_nan(form):
    term, F = ClassConfusion(1.0, form), scores(4)
    F[:, 1] = 0.0
    bound, pull = term.around(F)
    for values in (term.value(F), term.gradient(F), bound.columns, pull):
        assert np.isfinite(values).all()


def test_quadratic_has_the_slope_of_the_printed_term_where_it_is_built():
    term, F = ClassConfusion(0.4, "printed"), scores(5)
    quadratic, pull = term.around(F)
    np.testing.assert_allclose(2 * (quadratic.apply(F) - pull), term.gradient(F))


def test_quadratic_has_the_slope_of_the_normalised_term_but_for_lengths():
    """Cosines ignore lengths, which the quadratic holds; here all columns have the same."""
    term, F = ClassConfusion(0.4, "normalised"), scores(6)
    F = 3.0 * F / np.linalg.norm(F, axis=0)
    quadratic, pull = term.around(F)
    slope = 2 * (quadratic.apply(F) - pull)
    along = F * np.sum(F * slope, axis=0) / 9.0
    np.testing.assert_allclose(slope - along, term.gradient(F), atol=1e-12)
