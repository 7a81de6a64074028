"""The experiments as lists of cells."""

import json

import pytest

from paper.plans import ABLATION, EXPERIMENTS, GRID, cells_of, plan_study

pytestmark = pytest.mark.usefixtures("toy")


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_has_cells_that_json_can_hold(experiment):
    cells = cells_of(experiment)
    assert cells
    assert len({cell.key for cell in cells}) == len(cells)
    for cell in cells:
        assert json.loads(json.dumps(cell.parameters)) == cell.parameters


def test_tables_have_every_task_and_method_once():
    cells = cells_of("surf")
    assert len(cells) == 12 * 5
    assert {cell.protocol for cell in cells} == {"fixed"}
    assert not any(cell.changes for cell in cells)


def test_the_ablation_switches_off_what_its_name_lacks():
    assert ABLATION["SRM"] == {"alignment": 0, "variance": 0, "manifold": 0, "confusion": 0}
    assert ABLATION["SRM+DA+LD"] == {"confusion": 0}
    assert ABLATION["SRM+DA+LD+GD"] == {}
    full = {cell.key for cell in cells_of("ablation") if cell.method == "TFDF"}
    assert full < {cell.key for name in ("surf", "coil", "digits") for cell in cells_of(name)}


def test_the_oracle_leaves_the_setting_along_one_axis_at_a_time():
    cells = [cell for cell in cells_of("coil", "oracle") if cell.task == "COIL1->COIL2"]
    for cell in cells:
        assert len(cell.changes) <= 1
        for path, value in cell.changes.items():
            assert value in GRID[path.split("__")[-1]]
            assert cell.parameters[path] == value
    tfdf = [cell for cell in cells if cell.method == "TFDF"]
    # The setting itself, 5 values of p and 9 of each of four weights, less the setting's own.
    own = sum(tfdf[0].parameters[name] in GRID[name] for name in GRID if name != "regularization")
    assert len(tfdf) == 1 + 5 + 4 * 9 - own
    assert {len(c.changes) for c in cells if c.method == "1NN"} == {0}


def test_the_label_free_search_starts_from_defaults_and_needs_a_grid():
    cells = [cell for cell in cells_of("coil", "label-free") if cell.task == "COIL1->COIL2"]
    by_method = {cell.method: cell for cell in cells}
    assert len(by_method) == len(cells)
    (fixed,) = [c for c in cells_of("coil") if c.method == "1NN" and c.task == "COIL1->COIL2"]
    assert by_method["1NN"].key == fixed.key
    search = by_method["TFDF"].estimator
    assert {path.split("__")[-1] for axis in search.param_grid for path in axis} == {
        *("n_neighbors", "alignment", "manifold", "ridge", "variance")
    }
    assert by_method["TFDF"].protocol == "label-free"


def test_every_random_state_is_the_seed():
    pca = next(cell for cell in cells_of("coil") if cell.method == "PCA")
    assert pca.parameters["transformer__random_state"] == 0


def test_protocols_and_figures_share_no_record_by_accident():
    fixed = {cell.key for cell in cells_of("coil")}
    oracle = {cell.key for cell in cells_of("coil", "oracle")}
    assert not fixed & oracle
    assert {cell.key for cell in cells_of("fig-sensitivity") if cell.dataset == "coil"} < oracle


def test_a_study_is_restricted_by_method_and_task():
    study = plan_study(["surf", "timing"], methods=["JDA"], tasks=["C->A", "D->W"])
    assert {cell.method for cell in study.cells} == {"JDA"}
    assert {cell.task for cell in study.cells} == {"C->A", "D->W"}
    assert len(study.cells) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"experiments": ["surfing"]}, "experiment 'surfing'; choose from surf, decaf6"),
        ({"protocol": "lucky"}, "protocol 'lucky'; choose from fixed, oracle, label-free"),
        ({"experiments": ["surf"], "methods": ["jda"]}, "method 'jda'; choose from 1NN, PCA, JDA"),
        ({"experiments": ["surf"], "tasks": ["U->M"]}, "task 'U->M'; choose from C->A"),
        ({"experiments": ["ablation"], "protocol": "oracle"}, "Nothing is left of ablation"),
    ],
)
def test_unknown_names_are_refused_with_what_there_is(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan_study(**arguments)
