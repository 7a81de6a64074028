"""Tables say what records say."""

import pytest

from paper.plans import cells_of
from paper.tables import ablation_table, accuracy_table, published, timing_tables
from toys import METHODS, record_of
from transferable import TFDF

pytestmark = pytest.mark.usefixtures("toy")


def records(cells, accuracy=lambda cell: 0.5, **values):
    return {cell.key: record_of(cell, accuracy=accuracy(cell), **values) for cell in cells}


def test_averages_are_recomputed_from_the_cells():
    cells = cells_of("surf")
    order = {cell.task: i for i, cell in enumerate(cells)}
    table = accuracy_table("surf", "fixed", cells, records(cells, lambda c: order[c.task] / 100))
    assert table.columns[-1] == "Average"
    assert table.ours["JDA", "Average"] == pytest.approx(sum(order.values()) / 12)
    # The paper prints 41.1 for cells whose mean is 41.7.
    assert table.published["SVM", "Average"] == pytest.approx(41.717, abs=1e-3)
    assert any("prints an average of 41.1 for SVM" in note for note in table.notes)


def test_a_method_without_all_tasks_has_no_average():
    cells = cells_of("coil")
    some = records(c for c in cells if (c.method, c.task) != ("JDA", "COIL1->COIL2"))
    table = accuracy_table("coil", "fixed", cells, some)
    assert ("JDA", "Average") not in table.ours
    assert ("TFDF", "Average") in table.ours


def test_tasks_that_were_not_run_are_left_out_of_published_averages_and_named():
    cells = [cell for cell in cells_of("decaf6") if {cell.source, cell.target} == {"W", "D"}]
    table = accuracy_table("decaf6", "fixed", cells, records(cells))
    assert table.columns == ("W->D", "D->W", "Average")
    assert table.published["TFDF", "Average"] == pytest.approx((98.7 + 98.0) / 2)
    assert any("not run: C->A, " in note for note in table.notes)


def test_what_is_published_stands_beside_the_best_setting_and_beside_the_papers(monkeypatch):
    monkeypatch.setitem(METHODS, "TFDF as published", TFDF.as_published)
    cells = cells_of("coil")
    table = accuracy_table("coil", "fixed", cells, records(cells))
    assert table.rows[-1] == "TFDF"
    for column in table.columns:
        assert table.published["TFDF", column] == table.published["TFDF as published", column]
    assert any("as published they have the one that the paper" in note for note in table.notes)
    for protocol in ("oracle", "label-free"):
        assert "TFDF as published" not in {cell.method for cell in cells_of("coil", protocol)}


@pytest.mark.parametrize(
    ("own", "note"),
    [
        (0.9, "TFDF (90.0) is ahead of every other method; next is"),
        (0.4, "TFDF (40.0) is not ahead"),
    ],
)
def test_the_table_says_whether_tfdf_is_ahead(own, note):
    cells = cells_of("efficientnet")
    found = records(cells, lambda cell: own if cell.method == "TFDF" else 0.5)
    table = accuracy_table("efficientnet", "fixed", cells, found)
    assert any(note in text for text in table.notes)
    assert table.published == {}


def test_beating_the_published_value_is_judged_as_shown():
    cells = cells_of("coil")
    printed = published("accuracy", "coil")["JDA", "COIL1->COIL2"]
    for gain, beats in ((0.04, False), (0.06, True), (-1.0, False)):
        found = records(cells, lambda cell, gain=gain: (printed + gain) / 100)
        table = accuracy_table("coil", "fixed", cells, found)
        assert table.beats("JDA", "COIL1->COIL2") is beats


def test_winners_share_a_value_as_shown():
    cells = cells_of("coil")
    values = {"JDA": 0.9001, "MEDA": 0.9003}
    table = accuracy_table(
        "coil", "fixed", cells, records(cells, lambda c: values.get(c.method, 0.1))
    )
    assert table.winners(table.ours, "Average") == {"JDA", "MEDA"}


def test_the_oracle_shows_the_best_of_the_grid_and_says_so():
    cells = cells_of("coil", "oracle")
    found = records(cells, lambda cell: 0.8 if cell.changes else 0.7)
    table = accuracy_table("coil", "oracle", cells, found)
    assert table.ours["TFDF", "COIL1->COIL2"] == pytest.approx(80)
    assert table.ours["1NN", "COIL1->COIL2"] == pytest.approx(70)
    assert "oracle" in table.title
    assert "target labels choose" in table.notes[0]


def test_protocols_do_not_mix():
    fixed = cells_of("coil")
    oracle = records(cells_of("coil", "oracle"))
    assert accuracy_table("coil", "fixed", fixed, oracle).ours == {}


def test_the_ablation_names_components_that_lower_an_average():
    cells = cells_of("ablation")
    table = ablation_table(cells, records(cells))
    assert "No added component lowers the average of any dataset." in table.notes
    found = records(cells, lambda c: 0.4 if (c.method, c.dataset) == ("SRM+LD", "coil") else 0.5)
    table = ablation_table(cells, found)
    assert "On coil, SRM+LD (40.00) is below SRM (50.00)." in table.notes
    assert table.ours["SRM+DA+LD+GD", "digits"] == pytest.approx(50)
    assert table.published["SRM+DA+LD+GD", "digits"] == 85.22


def test_times_are_added_up_and_compared_within_the_run():
    cells = cells_of("timing")
    found = {c.key: record_of(c, seconds=10.0 if c.method == "TFDF" else 5.0) for c in cells}
    minutes, ratios = timing_tables(cells, found)
    assert minutes.ours["JDA", "surf"] == pytest.approx(12 * 5 / 60)
    assert minutes.published["TFDF", "surf"] == 33.1
    assert minutes.beats("TFDF", "surf")
    assert ratios.ours["TFDF / MEDA", "coil"] == pytest.approx(2)
    assert ratios.published["TFDF / MEDA", "surf"] == pytest.approx(33.1 / 3.51)
    assert ratios.winners(ratios.ours, "surf") == set()
