"""Offsets give labels the shares that were asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from transferable._kernel.class_shares import (
    exact_offsets,
    least_costs,
    scattered_offsets,
    soft_offsets,
    weighted_offsets,
    whole_counts,
)

SEEDS = st.integers(0, 10**6)
CLASSES = st.integers(2, 8)


def problem(seed, n_classes, n_rows=60):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(n_classes))
    if n_classes > 2:
        shares[rng.integers(n_classes)] = 0.0
    return rng.normal(size=(n_rows, n_classes)), shares / shares.sum()


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, n_classes=CLASSES)
def test_labels_have_the_shares_to_within_a_row(seed, n_classes):
    F, shares = problem(seed, n_classes)
    v = exact_offsets(F, shares)
    counts = np.bincount((F + v).argmax(axis=1), minlength=n_classes)
    assert np.abs(counts - shares * len(F)).max() < 1
    assert np.array_equal(np.isneginf(v), shares == 0)


def test_scores_that_are_tied_have_offsets():
    """Whole numbers: moving a row costs nothing at many places, which must not look like no way."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        F = np.round(rng.normal(size=(rng.integers(20, 90), rng.integers(4, 12))))
        assert np.isfinite(exact_offsets(F, rng.dirichlet(np.full(F.shape[1], 0.3)))).all()


class Elsewhere:
    """Scores that somebody else holds, of which few are asked for."""

    def __init__(self, F):
        self.F, self.brought = F, 0

    def counts(self, v):
        return np.bincount((self.F + v).argmax(axis=1), minlength=len(v))

    def near(self, v, margin):
        second, first = np.sort(self.F + v, axis=1)[:, -2:].T
        found = self.F[first - second <= margin]
        self.brought += len(found)
        return found

    def costs(self, v):
        return least_costs(self.F, (self.F + v).argmax(axis=1))


@settings(max_examples=8, deadline=None)
@given(seed=SEEDS, n_classes=CLASSES)
def test_rows_that_others_hold_get_the_labels_of_all_together(seed, n_classes):
    F, shares = problem(seed, n_classes, n_rows=6000)
    shares = np.where(shares > 0, np.maximum(shares, 0.02), 0.0)
    shares /= shares.sum()
    v = scattered_offsets(F[:500], Elsewhere(F), shares)
    counts = np.bincount((F + v).argmax(axis=1), minlength=n_classes)
    assert np.abs(counts - shares * len(F)).max() < 1
    np.testing.assert_allclose(v, exact_offsets(F, shares), atol=1e-9)


def test_few_rows_are_brought_for_it():
    F, shares = problem(0, 4, n_rows=30_000)
    others = Elsewhere(F)
    v = scattered_offsets(F[:3000], others, shares)
    counts = others.counts(v)
    assert np.abs(counts - shares * len(F)).max() < 1
    assert 0 < others.brought < 0.05 * len(F)


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, n_classes=CLASSES)
def test_no_other_labels_with_these_counts_score_higher(seed, n_classes):
    """Labels by offsets solve the transport problem: no swap of two rows gains anything."""
    F, shares = problem(seed, n_classes)
    labels = (F + exact_offsets(F, shares)).argmax(axis=1)
    chosen = F[np.arange(len(F)), labels]
    swapped = F[:, labels] + F[:, labels].T  # row i with j's label, and j with i's
    assert (swapped <= chosen[:, None] + chosen + 1e-9).all()


@pytest.mark.parametrize("softness", [0.05, 0.2, 1.0])
def test_probabilities_have_the_shares_on_average(softness):
    F, shares = problem(3, 5)
    even = softmax((F + soft_offsets(F, shares, softness, np.ones(60))) / softness, axis=1)
    np.testing.assert_allclose(even.mean(axis=0), shares, atol=1e-5)
    weights = np.random.default_rng(0).uniform(0.2, 2.0, 60)
    P = softmax((F + soft_offsets(F, shares, softness, weights)) / softness, axis=1)
    np.testing.assert_allclose(weights @ P / weights.sum(), shares, atol=1e-5)


def test_one_class_is_all_there_is():
    F, _ = problem(0, 3)
    assert ((F + exact_offsets(F, np.array([0.0, 1.0, 0.0]))).argmax(axis=1) == 1).all()


def test_counts_are_whole_and_near():
    shares = np.array([0.5, 0.3, 0.2])
    for n in range(1, 30):
        counts = whole_counts(shares, n)
        assert counts.sum() == n
        assert np.abs(counts - shares * n).max() < 1


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, n_classes=CLASSES)
def test_weighted_labels_have_the_shares_but_for_rows_at_borders(seed, n_classes):
    F, _ = problem(seed, n_classes, 300)
    rng = np.random.default_rng(seed)
    shares, weights = rng.dirichlet(5 * np.ones(n_classes)), rng.uniform(0.2, 2.0, 300)
    labels = (F + weighted_offsets(F, shares, weights, float(F.std()))).argmax(axis=1)
    found = np.bincount(labels, weights, n_classes) / weights.sum()
    assert np.abs(found - shares).max() < 2 * weights.max() / weights.sum()
