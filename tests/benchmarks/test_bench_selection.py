"""What the benchmark of selection makes of its records."""

import pytest

import grids
import selection

RECORDS = [
    {
        "dataset": name,
        "task": "a->b",
        "accuracy": [0.5, 0.9, 0.8],
        "scores": {"circular": [1.0, 2.0, 3.0], "neighbors": neighbors},
        "default": 0.7,
        "source_only": 0.6,
        "tfdf": 0.8,
        "estimates": {"estimate_accuracy": 0.7, "low": 0.5, "high": 0.9},
    }
    for name, neighbors in (("surf", [1.0, 3.0, 2.0]), ("coil", [3.0, 1.0, 2.0]))
]


def test_regret_is_what_the_pick_loses_to_the_best():
    assert selection.regrets(RECORDS, ["circular"]) == pytest.approx({"surf": 10.0, "coil": 10.0})
    assert selection.regrets(RECORDS, ["neighbors"]) == pytest.approx({"surf": 0.0, "coil": 40.0})
    assert selection.regrets(RECORDS, ["density"]) == {}


def test_the_combination_is_chosen_on_what_it_is_given(monkeypatch):
    combinations = [("circular",), ("neighbors",), ("circular", "neighbors")]
    monkeypatch.setattr(selection, "COMBINATIONS", combinations)
    assert selection.best_combination(RECORDS[:1]) == ("neighbors",)
    assert selection.best_combination(RECORDS[1:]) == ("circular",)
    for criterion, fewest in selection.RULES.values():
        chosen = selection.best_combination(RECORDS, criterion, fewest)
        assert len(chosen) >= fewest


def test_criteria_of_a_combination():
    assert selection.mean_regret(RECORDS, ["neighbors"]) == pytest.approx(20.0)
    assert selection.worst_regret(RECORDS, ["neighbors"]) == pytest.approx(40.0)
    chance = 100 * (0.9 - 2.2 / 3)  # a random setting's regret, on both
    assert selection.relative_regret(RECORDS, ["neighbors"]) == pytest.approx(20.0 / chance)


def test_tables_have_a_row_for_every_scorer():
    lines = selection.scorer_table(RECORDS, ["surf", "coil"])
    assert len(lines) == 2 + 3 + len(selection.SCORERS) + 1
    assert "10.0" in selection.estimate_table(RECORDS, ["surf", "coil"])[2]


def grid_record(group, grid, single, mean):
    """A search whose best setting gets 90 %, the picked one `single`, the mean of five `mean`."""
    means = {"neighbors": [single, single, mean, mean], "circular + neighbors": [0.5] * 4}
    return {"group": group, "task": "a", "grid": grid, "best": 0.9, "means": means}


def test_choices_over_grids_are_judged_by_group_and_by_the_worst_task():
    records = [
        grid_record("surf", "coarse", 0.8, 0.9),
        grid_record("coil", "coarse", 0.9, 0.88),
        grid_record("surf", "fine", 0.9, 0.86),
    ]
    assert grids.judged(records, "neighbors", 1) == pytest.approx((2.5, 10.0))
    assert grids.judged(records, "neighbors", 5) == pytest.approx((2.5, 4.0))
    assert grids.best(records) == ("neighbors", 5)
    assert grids.best(records[1:]) == ("neighbors", 1)
    text = grids.report(records, ["coarse", "fine"])
    assert "| neighbors | 5 | 1.0 | 4.0 | 2.0 | 4.0 |" in text


def test_searches_over_grids_are_kept_by_task_and_grid():
    line = b'{"group": "surf", "task": "C->A", "grid": "fine", "means": {}}'
    assert grids.keyed(line)[0] == "surf C->A fine"
