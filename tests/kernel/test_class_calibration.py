"""Scores as probabilities, class by class."""

import numpy as np
import pytest
from scipy.special import softmax

from transferable._kernel.class_shares import class_log_probabilities


def drawn(n, temperature, offsets, seed=0):
    """Scores, and classes drawn from what the scores say by these parameters."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, len(offsets)))
    probabilities = softmax(scores / temperature + offsets, axis=1)
    codes = (probabilities.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return scores, codes, np.ones(n)


def test_temperature_and_offsets_are_found_again():
    offsets = np.array([1.0, 0.0, -1.0])
    # Log-odds are linear in the scores: at none they are the offsets, a unit's gain is the factor.
    rows = np.vstack([np.zeros(3), np.eye(3)])
    logs = class_log_probabilities(*drawn(20_000, 0.4, offsets), rows)
    found = logs - logs.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found[0], offsets, atol=0.15)
    gains = np.diag(found[1:] - found[0]) * 3 / 2
    np.testing.assert_allclose(gains, gains[0])
    assert 1 / gains[0] == pytest.approx(0.4, rel=0.05)


def test_mean_probabilities_are_the_shares_of_the_classes():
    """A temperature alone would give the rare class less than it has."""
    scores, codes, weights = drawn(2_000, 0.5, np.array([0.0, 0.0, -3.0]))
    found = np.exp(class_log_probabilities(scores, codes, weights, scores))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.mean(axis=0), np.bincount(codes) / 2_000, atol=0.03)


def test_the_unit_of_the_scores_does_not_matter():
    scores, codes, weights = drawn(500, 0.5, np.array([0.5, -0.5]))
    first, second = (
        class_log_probabilities(unit * scores, codes, weights, unit * scores)
        for unit in (1.0, 20.0)
    )
    np.testing.assert_allclose(first, second, atol=1e-3)


def test_classes_that_are_never_mistaken_stay_finite():
    codes = np.arange(30) % 3
    rows = np.vstack([np.zeros(3), np.eye(3)])
    found = class_log_probabilities(np.eye(3)[codes], codes, np.ones(30), rows)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[1:].argmax(axis=1), [0, 1, 2])
