"""The gap between domains whose relation is known."""

import numpy as np
import pytest

from problems import small_problem
from transferable.datasets import load_printed_to_handwritten
from transferable.diagnostics import column_shifts, diagnose
from transferable.diagnostics.diagnosis import _beyond_chance


def halves(n=160, seed=0):
    """One domain cut in two."""
    task = small_problem(seed, n_source=2 * n, n_target=6)
    order = np.random.default_rng(seed).permutation(2 * n)
    return task.Xs[order[:n]], task.ys[order[:n]], task.Xs[order[n:]]


def test_halves_of_one_domain_do_not_differ():
    found = diagnose(*halves())
    assert not found.differ
    assert "as close as random parts" in found.lines[0]
    assert found.home_accuracy > 0.8


def test_printed_and_handwritten_digits_do():
    task = load_printed_to_handwritten()
    found = diagnose(task.Xs[:400], task.ys[:400], task.Xt[:400])
    assert found.gap.overall["A-distance"] > found.chance
    assert found.differ
    assert "The domains differ" in found.lines[0]


def test_classes_that_move_apart_are_found_where_the_domains_as_wholes_agree():
    """As after scaling each domain by itself: equal means, but a column that tells the opposite."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    side = 2 * y[:, None] - 1
    Xs = np.hstack([3 * side, 3 * side]) + rng.normal(size=(300, 2))
    Xt = np.hstack([3 * side, -3 * side]) + rng.normal(size=(300, 2))
    pooled = np.concatenate([Xs, Xt])
    source = np.repeat([True, False], 300)
    overall, chance = _beyond_chance(pooled, np.zeros(600), source, rng)
    assert overall <= chance + 0.1
    within, within_chance = _beyond_chance(pooled, np.r_[y, y], source, rng)
    assert within > 1.5 > within_chance


def test_columns_that_do_not_predict_the_label_are_named():
    rng = np.random.default_rng(0)
    Xs, Xt = rng.normal(size=(120, 5)), rng.normal(size=(120, 5)) + 2
    found = diagnose(Xs, np.repeat([0, 1], [90, 30]), Xt)
    assert found.majority == 0.75
    assert "do not predict the label" in found.lines[1]
    assert found.moved == 1


def test_true_target_labels_change_the_gap_per_class_and_nothing_else():
    task = small_problem(n_source=60, n_target=48)
    blind, told = (diagnose(task.Xs, task.ys, task.Xt, y) for y in (None, task.yt))
    assert blind.gap.overall == told.gap.overall
    assert blind.gap.by_class != told.gap.by_class
    assert blind.lines == told.lines


def test_few_rows_and_a_class_with_a_single_one():
    task = small_problem(n_source=7, n_target=6)
    found = diagnose(task.Xs, np.array([0, 0, 0, 1, 1, 1, 2]), task.Xt)
    assert np.isnan(found.home_accuracy)
    assert len(found.lines) == 2


def test_columns_are_ranked_by_how_much_their_values_differ():
    rng = np.random.default_rng(0)
    Xs = rng.normal(size=(200, 3))
    Xt = rng.normal(size=(200, 3)) * [1, 6, 1] + [0, 0, 9]
    shifts = column_shifts(Xs, Xt, ["same", "wider", "moved"])
    assert [shift.name for shift in shifts] == ["moved", "wider", "same"]
    assert shifts[0].distance > 0.99
    assert shifts[0].target_mean == pytest.approx(Xt[:, 2].mean())
    with pytest.raises(ValueError, match="Xt has 2 features, but Xs has 3"):
        column_shifts(Xs, Xt[:, :2])
