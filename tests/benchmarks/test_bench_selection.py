"""What the benchmark of selection makes of its records."""

import numpy as np
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
    rows = selection.scorer_table(RECORDS, ["surf", "coil"])
    assert len(rows) == 3 + len(selection.SCORERS) + 1
    assert rows[0]["regret surf"] == pytest.approx(20.0)


ONE, FIVE = (grids.Choice(("neighbors",), n, anchored=False) for n in (1, 5))


def regrets(**found):
    """Regrets of picks by neighbours, of one setting and of five, by group and grid."""
    choices = {*grids.SHOWN, ONE, FIVE}
    return {
        grids.Search(*name.split("_"), max_rows=500): dict.fromkeys(choices, 50.0)
        | {ONE: one, FIVE: five}
        for name, (one, five) in found.items()
    }


def test_choices_over_grids_are_judged_by_group_and_by_the_worst_task():
    coarse = {"surf_a_coarse": (10, 0), "surf_b_coarse": (0, 2), "coil_a_coarse": (0, 2)}
    found = regrets(**coarse, surf_a_fine=(0, 3), coil_a_fine=(0, 3))
    assert grids.judged(found, ONE, "coarse") == (2.5, 10)
    assert grids.judged(found, FIVE, "coarse") == (1.5, 2)
    assert grids.best(found) == FIVE
    assert grids.best({s: f for s, f in found.items() if s.grid == "fine"}) == ONE
    shown = {
        row.pop("picked by"): [*row.values()] for row in grids.table(found, ["coarse", "fine"])
    }
    assert shown["neighbors, mean of 5"] == [1.5, 2, 3.0, 3]
    assert shown["the default setting"] == [50.0] * 4
    left_out = grids.left_out_table(found, ["coarse", "fine"])
    assert [row["left out"] for row in left_out] == ["surf", "coil"]


def test_an_anchor_counts_half_in_what_is_tried_offline(tmp_path):
    """Of two settings the first looks better by every score, and is wrong on both rows."""
    search = grids.Search("surf", "C->A", "fine", 500)
    sure = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.4, 0.6], [0.6, 0.4]]], dtype=np.float32)
    kept = {name: np.array([2.0, 1.0]) for name in grids.NAMES}
    kept |= {"accuracy": np.array([0.0, 1.0]), "tables": sure, "truth": np.array([1, 0])}
    np.savez(search.file(tmp_path), default=0.5, anchor=sure[1], **kept)
    found = search.regrets(tmp_path)
    assert found[ONE] == 100
    assert found[grids.DEFAULT] == 50
    assert found[grids.ANCHOR] == 0
    assert found[ONE._replace(anchored=True)] == 100  # (1, 0) and (0.4, 0.6): the first still
    assert len(found) == 2 + 2 * len(grids.SUMS) * len(grids.TOGETHER)
