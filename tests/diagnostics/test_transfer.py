"""Estimated accuracies of an adapted and of a source-only model, and the warning they give."""

import numpy as np
import pytest

from problems import small_problem
from transferable.datasets import load_printed_to_handwritten
from transferable.diagnostics import TransferEstimate, diagnose, estimate_transfer
from transferable.diagnostics.transfer import _MOST_ROWS, draw_rows
from transferable.model_selection import AccuracyEstimate


def estimate(accuracy):
    return AccuracyEstimate(accuracy, accuracy - 0.1, min(1.0, accuracy + 0.1))


@pytest.mark.parametrize("adapted", [0.9, 0.72, 0.6])
def test_warns_unless_the_adapted_model_seems_better(adapted):
    found = TransferEstimate(estimate(adapted), estimate(0.72))
    assert bool(found.warning) == (adapted <= 0.72)
    if found.warning:
        assert str(found.adapted) in found.warning
        assert str(found.source_only) in found.warning


def test_printed_digits_gain_and_the_intervals_hold_the_truth():
    """There adaptation is known to gain, see the demo."""
    task = load_printed_to_handwritten()
    found = estimate_transfer(task.Xs[::3], task.ys[::3], task.Xt[::3])
    assert found.warning == ""
    assert found.gain > 0


def test_target_labels_have_no_say():
    task = small_problem(n_source=40, n_target=30)
    blind, told = (diagnose(task.Xs, task.ys, task.Xt, y) for y in (None, task.yt))
    assert blind.transfer == told.transfer


def test_of_many_rows_some_of_each_class_are_drawn():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [5000, 2990, 10])
    rows = draw_rows(labels, rng)
    assert len(rows) == _MOST_ROWS
    assert np.bincount(labels[rows]).tolist() == [625, 374, 1]
    assert draw_rows(labels[:50], rng).tolist() == list(range(50))
