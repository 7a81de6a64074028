"""``transferable demo`` on fewer rows of its task."""

import json
import re
import struct

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch
from typer.testing import CliRunner

from transferable import datasets
from transferable.cli import app

METHODS = ["SVM", "TFDF", "AutoAdapter"]


@pytest.fixture(scope="module")
def small_task():
    task = datasets.load_printed_to_handwritten()
    return Bunch(
        Xs=task.Xs[:420], ys=task.ys[:420], Xt=task.Xt[:200], yt=task.yt[:200], name=task.name
    )


@pytest.fixture
def demo(small_task, monkeypatch, tmp_path):
    """The command, run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    seeds = []

    def load(*, random_state):
        seeds.append(random_state)
        return small_task

    monkeypatch.setattr(datasets, "load_printed_to_handwritten", load)

    def run(*arguments):
        result = CliRunner().invoke(app, ["demo", *map(str, arguments)])
        result.seeds = seeds
        return result

    return run


def test_table_and_picture(demo, tmp_path):
    result = demo()
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    rows = [line for line in result.stdout.splitlines() if "│" in line]
    assert [row.split("│")[1].strip() for row in rows] == METHODS
    estimates = [row.split("│")[3].strip() for row in rows]
    assert estimates[:2] == ["", ""]
    low, high = map(int, re.fullmatch(r"(\d+)% to (\d+)%", estimates[2]).groups())
    assert 0 < low < high <= 100
    assert "verdict without labels" in result.stdout
    assert "transferable demo --export digits" in result.stdout
    picture = tmp_path / "transferable-demo.png"
    assert str(picture) in result.stdout
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert width > 2 * height > 800


def test_json_is_one_object_and_nothing_else(demo, tmp_path, small_task):
    result = demo("--json", "--seed", 7, "--out", tmp_path / "demo.svg")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert [r["method"] for r in record["results"]] == METHODS
    assert [r["adapts"] for r in record["results"]] == [False, True, True]
    assert all(0 <= r["accuracy"] <= 1 and r["seconds"] >= 0 for r in record["results"])
    assert (record["n_source"], record["n_target"]) == (len(small_task.Xs), len(small_task.Xt))
    assert record["seed"] == 7
    assert result.seeds == [7]
    assert "<svg" in (tmp_path / "demo.svg").read_text(encoding="utf-8")
    assert record["picture"] == str(tmp_path / "demo.svg")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--out", "demo.txt"], ".png"),
        (["--out", "nowhere/demo.png"], "nowhere"),
        (["--out", "."], "directory"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "many"], "--seed"),
    ],
)
def test_wrong_use_fails_before_anything_is_computed(demo, tmp_path, arguments, told):
    result = demo(*arguments)
    assert result.exit_code == 2
    assert told in re.sub(r"\s*│\s*", "", result.stderr), "whatever line the frame breaks it at"
    assert result.stdout == ""
    assert result.seeds == []
    assert list(tmp_path.iterdir()) == []


def test_export_writes_what_adapt_takes(demo, tmp_path, small_task):
    result = demo("--export", "digits", "--json")
    assert result.exit_code == 0, result.stderr
    paths = json.loads(result.stdout)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digits"]
    source, target = pd.read_csv(paths["source"]), pd.read_csv(paths["target"])
    np.testing.assert_array_equal(source["digit"], small_task.ys)
    np.testing.assert_allclose(source.drop(columns="digit"), small_task.Xs)
    np.testing.assert_allclose(target.drop(columns="image"), small_task.Xt)
    arguments = ["adapt", paths["source"], paths["target"], "--label", "digit", "--id", "image"]
    adapted = CliRunner().invoke(app, [*arguments, "--method", "coral", "--json"])
    assert adapted.exit_code == 0, adapted.stderr
    assert len(json.loads(adapted.stdout)["predictions"]) == len(small_task.Xt)
    assert demo("--export", paths["source"]).exit_code == 2
