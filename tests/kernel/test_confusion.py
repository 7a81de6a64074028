"""Class confusion: both forms, their gradients, and the quadratic that stands for them."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from transferable._kernel.objective import ClassConfusion, Objective
from transferable.classifiers.published import Adam, PrintedConfusion

FORMS = {"printed": PrintedConfusion, "normalised": ClassConfusion}
# Adam's slope is the printed one: half the derivative where the form is the printed one.
FACTORS = {"printed": 2.0, "normalised": 1.0}
both_forms = pytest.mark.parametrize("form", FORMS)


def scores(seed, n=9, n_classes=3):
    return np.random.default_rng(seed).normal(size=(n, n_classes))


def value(term, F):
    return term.value(F.T @ F)


def printed_gradient(term, w, gram=None):
    """The slope in w of an objective that is the term alone, of F'F = w'Gw."""
    nothing = SimpleNamespace(ridge=0.0, image=0.0, fixed=[], extra=[])
    nothing.loss, nothing.dual = np.zeros_like, np.asarray
    nothing.weighted = np.asarray if gram is None else gram.__matmul__
    objective = Objective(0.5, confusion=[term])
    rounds = SimpleNamespace(solver=nothing, objective=objective, aligned={}, w=w, x=w)
    return Adam.gradient(rounds)


def gradient(form, F, weight=0.4):
    """The derivative of the term in F."""
    return FACTORS[form] * printed_gradient(FORMS[form](weight), F)


@both_forms
def test_images_of_scores_have_the_images_of_slopes_and_columns(form):
    """What is linear in the scores may be asked of Phi'F, with F = Phi w, instead."""
    rng = np.random.default_rng(8)
    Phi, w = rng.normal(size=(9, 4)), rng.normal(size=(4, 3))
    F, term = Phi @ w, FORMS[form](0.4)
    of_features = printed_gradient(term, w, Phi.T @ Phi)
    np.testing.assert_allclose(of_features, Phi.T @ printed_gradient(term, F))
    (E, pull), (image, same) = term.around(F, F.T @ F), term.around(Phi.T @ F, F.T @ F)
    np.testing.assert_allclose(image, Phi.T @ E)
    np.testing.assert_array_equal(same, pull)


@both_forms
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_gradient_against_finite_differences(form, seed):
    term, F = FORMS[form](0.4), scores(seed)
    numeric = approx_fprime(F.ravel(), lambda x: value(term, x.reshape(F.shape)), 1e-7)
    scale = 1 + np.abs(numeric).max()
    np.testing.assert_allclose(gradient(form, F).ravel(), numeric, atol=1e-5 * scale)


def test_the_printed_gradient_is_half_the_derivative():
    """Eq. 22 has 2 xi F (F'F - I) where the derivative has 4."""
    F = scores(1)
    expected = 2 * 0.4 * F @ (F.T @ F - np.eye(3))
    np.testing.assert_allclose(printed_gradient(PrintedConfusion(0.4), F), expected)


def test_printed_value_is_the_distance_of_the_inner_products_from_identity():
    F = scores(2)
    expected = 0.4 * np.linalg.norm(F.T @ F - np.eye(3)) ** 2
    assert value(PrintedConfusion(0.4), F) == pytest.approx(expected)


def test_normalised_value_is_the_distance_of_the_cosines_from_identity():
    F = scores(2)
    G = F / np.linalg.norm(F, axis=0)
    expected = 0.4 * np.linalg.norm(G.T @ G - np.eye(3)) ** 2
    assert value(ClassConfusion(0.4), F) == pytest.approx(expected)


@both_forms
def test_confusion_vanishes_where_classes_do_not_overlap(form):
    one_hot = np.repeat(np.eye(3), [2, 3, 4], axis=0)
    F = one_hot / np.linalg.norm(one_hot, axis=0)
    assert value(FORMS[form](1.0), F) == pytest.approx(0.0)
    np.testing.assert_allclose(gradient(form, F, 1.0), 0.0, atol=1e-12)


def test_normalised_form_ignores_the_length_of_columns():
    term, F = ClassConfusion(1.0), scores(3)
    assert value(term, F * [0.1, 5.0, 70.0]) == pytest.approx(value(term, F))


@both_forms
def test_a_column_of_zeros_gives_no_nan(form):
    term, F = FORMS[form](1.0), scores(4)
    F[:, 1] = 0.0
    for values in (value(term, F), gradient(form, F), *term.around(F, F.T @ F)):
        assert np.isfinite(values).all()


def test_quadratic_has_the_slope_of_the_printed_term_where_it_is_built():
    term, F = PrintedConfusion(0.4), scores(5)
    E, pull = term.around(F, F.T @ F)
    np.testing.assert_allclose(2 * (E @ (E.T @ F) - E * pull), gradient("printed", F))


def test_quadratic_has_the_slope_of_the_normalised_term_but_for_lengths():
    """Cosines ignore lengths, which the quadratic holds; here all columns have the same."""
    term, F = ClassConfusion(0.4), scores(6)
    F = 3.0 * F / np.linalg.norm(F, axis=0)
    E, pull = term.around(F, F.T @ F)
    slope = 2 * (E @ (E.T @ F) - E * pull)
    along = F * np.sum(F * slope, axis=0) / 9.0
    np.testing.assert_allclose(slope - along, gradient("normalised", F), atol=1e-12)
