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


def value(term, F):
    return term.value(F.T @ F)


def gradient(term, F):
    return term.gradient(F, F.T @ F)


def test_images_of_scores_have_the_images_of_slopes_and_columns():
    """What is linear in the scores may be asked of P'F instead."""
    F, P = scores(7), np.random.default_rng(8).normal(size=(9, 4))
    for form in FORMS:
        term, B = ClassConfusion(0.4, form), F.T @ F
        np.testing.assert_allclose(term.gradient(P.T @ F, B), P.T @ gradient(term, F))
        for image, whole in zip(term.around(P.T @ F, B), term.around(F, B), strict=True):
            np.testing.assert_allclose(image, P.T @ whole)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_gradient_against_finite_differences(form, seed):
    term, F = ClassConfusion(0.4, form), scores(seed)
    numeric = approx_fprime(F.ravel(), lambda x: value(term, x.reshape(F.shape)), 1e-7)
    scale = 1 + np.abs(numeric).max()
    np.testing.assert_allclose(gradient(term, F).ravel(), numeric, atol=1e-5 * scale)


def test_the_printed_gradient_is_half_the_derivative():
    term, F = ClassConfusion(0.4, "printed"), scores(1)
    half = term.gradient(F, F.T @ F, as_printed=True)
    np.testing.assert_allclose(2 * half, gradient(term, F))


def test_printed_value_is_the_distance_of_the_inner_products_from_identity():
    F = scores(2)
    expected = 0.4 * np.linalg.norm(F.T @ F - np.eye(3)) ** 2
    assert value(ClassConfusion(0.4, "printed"), F) == pytest.approx(expected)


@pytest.mark.parametrize("form", FORMS)
def test_confusion_vanishes_where_classes_do_not_overlap(form):
    one_hot = np.repeat(np.eye(3), [2, 3, 4], axis=0)
    F = one_hot / np.linalg.norm(one_hot, axis=0)
    term = ClassConfusion(1.0, form)
    assert value(term, F) == pytest.approx(0.0)
    np.testing.assert_allclose(gradient(term, F), 0.0, atol=1e-12)


def test_normalised_form_ignores_the_length_of_columns():
    term, F = ClassConfusion(1.0, "normalised"), scores(3)
    assert value(term, F * [0.1, 5.0, 70.0]) == pytest.approx(value(term, F))


@pytest.mark.parametrize("form", FORMS)
def test_a_column_of_zeros_gives_no_nan(form):
    term, F = ClassConfusion(1.0, form), scores(4)
    F[:, 1] = 0.0
    for values in (value(term, F), gradient(term, F), *term.around(F, F.T @ F)):
        assert np.isfinite(values).all()


def test_quadratic_has_the_slope_of_the_printed_term_where_it_is_built():
    term, F = ClassConfusion(0.4, "printed"), scores(5)
    E, pull = term.around(F, F.T @ F)
    np.testing.assert_allclose(2 * (E @ (E.T @ F) - pull), gradient(term, F))


def test_quadratic_has_the_slope_of_the_normalised_term_but_for_lengths():
    """Cosines ignore lengths, which the quadratic holds; here all columns have the same."""
    term, F = ClassConfusion(0.4, "normalised"), scores(6)
    F = 3.0 * F / np.linalg.norm(F, axis=0)
    E, pull = term.around(F, F.T @ F)
    slope = 2 * (E @ (E.T @ F) - pull)
    along = F * np.sum(F * slope, axis=0) / 9.0
    np.testing.assert_allclose(slope - along, gradient(term, F), atol=1e-12)
