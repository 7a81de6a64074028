"""The worked examples run from beginning to end in an empty folder."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
LEAVES = {
    "own_data": {"predictions.csv", "model.skops", "report.html"},
    "choosing_a_method": {"before-and-after.png"},
    "reproducing_a_figure": {"convergence.png", "confusion.png", "sensitivity.png"},
}


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(LEAVES)


@pytest.mark.parametrize("name", LEAVES)
def test_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"))
    assert {path.name for path in tmp_path.iterdir()} == LEAVES[name]
    assert capsys.readouterr().out
