"""Labels that are numbers: ``adapt``, ``predict``, ``inspect`` and ``audit`` of files."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from transferable.cli import app

ADAPT = ["adapt", "source.csv", "target.csv", "--label", "price", "--id", "who", "--out", "p.csv"]


def flats(seed, n, moved=0.0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "who": [f"r{k}" for k in range(n)],
            "size": (60 + 20 * rng.normal(size=n) + moved).round(1),
            "side": rng.choice(["sun", "yard"], n),
            "age": rng.integers(0, 80, n),
        }
    )
    price = 3 * table["size"] + 40 * (table.side == "sun") - table.age + 5 * rng.normal(size=n)
    return table.assign(price=(price + 2 * moved).round(2))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with both files, predictions and their model; made once."""
    folder = tmp_path_factory.mktemp("numbers")
    target = flats(1, 60, 15.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        flats(0, 90).to_csv("source.csv", index=False)
        target.drop(columns="price").to_csv("target.csv", index=False)
        target.to_csv("known.csv", index=False)
        result = CliRunner().invoke(app, [*ADAPT, "--model", "m.tfm"])
    assert result.exit_code == 0, result.stderr
    folder.joinpath("said").write_text(result.stdout + result.stderr, encoding="utf-8")
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """A copy of that folder, which is the current one."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def truth():
    return pd.read_csv("known.csv").price.to_numpy()


def test_fractions_are_numbers_and_are_predicted(folder):
    said = " ".join(folder.joinpath("said").read_text(encoding="utf-8").split())
    assert "the label 'price' is a number, such as" in said
    assert "cannot be known without labels; measure 20 rows" in said
    assert "measure 20 rows: transferable audit target.csv p.csv --rows 20" in said
    lines = pd.read_csv("p.csv")
    assert list(lines) == ["who", "prediction", "spread", "source_only", "unfamiliar"]
    assert np.corrcoef(lines.prediction, truth())[0, 1] > 0.9


def test_a_record_for_programs(folder, invoke):
    arguments = "adapt source.csv known.csv --label price --id who --target-label price --json"
    record = json.loads(invoke(*arguments.split()).stdout)
    assert record["method"] == "AutoRegressor"
    assert list(record["numbers"]) == ["source", "target, predicted", "target, by the source alone"]
    assert record["evaluation"]["r2"] < 1
    assert record["trust"]["rows"] == len(record["predictions"]) == 60


def test_saved_models_predict_and_are_described(folder, invoke):
    result = invoke("predict", "m.tfm", "known.csv", "--out", "q.csv", "--target-label", "price")
    assert result.exit_code == 0, result.stderr
    assert "Errors on the 60 rows with a value in 'price': median" in result.stdout
    expected = pd.read_csv("p.csv").prediction
    np.testing.assert_allclose(pd.read_csv("q.csv").prediction, expected, rtol=1e-9)
    shown = invoke("inspect", "m.tfm", "--json")
    assert json.loads(shown.stdout)["method"] == "AutoRegressor"
    refused = invoke("predict", "m.tfm", "target.csv", "--probabilities")
    assert refused.exit_code == 2
    assert "m.tfm predicts numbers, which have no --probabilities" in refused.stderr


def test_an_audit_measures_and_corrects(folder, invoke):
    assert invoke("audit", "target.csv", "p.csv").exit_code == 0
    rows = pd.read_csv("to-label.csv")
    assert len(rows) == 20
    rows.label = truth()[rows.row - 1]
    rows.to_csv("to-label.csv", index=False)
    alone = invoke("audit", "target.csv", "p.csv", "--labelled", "to-label.csv")
    assert "Half of the predictions are off by less than" in alone.stdout
    command = "audit target.csv p.csv --labelled to-label.csv --model m.tfm --json"
    record = json.loads(invoke(*command.split()).stdout)
    assert record["low"] <= record["error"] <= record["high"]
    assert record["corrected"][0] < record["error"]
    lines = pd.read_csv("audited.csv")
    assert list(lines) == ["row", "who", "prediction", "low", "high", "audited"]
    assert lines.audited.sum() == 20
    np.testing.assert_allclose(lines.prediction[lines.audited], truth()[lines.audited])
    assert np.mean((lines.low <= truth()) & (truth() <= lines.high)) > 0.75
    assert invoke("predict", "audited.tfm", "target.csv", "--out", "q.csv").exit_code == 0
    assert list(pd.read_csv("q.csv")) == ["who", "prediction", "spread", "low", "high"]


def test_files_with_a_decimal_comma(folder, invoke):
    commas = {"index": False, "sep": ";", "decimal": ","}
    for name in ("source", "target"):
        pd.read_csv(f"{name}.csv").to_csv(f"{name}.csv", **commas)
    options = ["--sep", ";", "--decimal", ","]
    before = pd.read_csv("p.csv").prediction
    assert invoke(*ADAPT, *options).exit_code == 0
    np.testing.assert_allclose(pd.read_csv("p.csv").prediction, before)
    assert invoke("audit", "target.csv", "p.csv", *options).exit_code == 0
    rows = pd.read_csv("to-label.csv", sep=";", decimal=",", encoding="utf-8-sig")
    rows.label = truth()[rows.row - 1]
    rows.to_csv("to-label.csv", **commas)
    command = ["audit", "target.csv", "p.csv", "--labelled", "to-label.csv", "--json", *options]
    assert json.loads(invoke(*command).stdout)["audited"] == 20


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"price": ["1,200.50", "950.25"] * 45}, "'1,200.50' is not a number; write numbers"),
        ({"price": ["3 %", "4.5 %"] * 45}, "'3 %' is not a number"),
        ({"price": [np.inf, *range(89)]}, "infinity"),
    ],
)
def test_texts_that_look_like_numbers_are_refused_with_the_remedy(folder, invoke, changes, said):
    pd.read_csv("source.csv").assign(**changes).to_csv("source.csv", index=False)
    result = invoke(*ADAPT, "--task", "numbers")
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_integers_of_few_values_are_classes_unless_told(folder, invoke):
    table = pd.read_csv("source.csv")
    table.assign(price=(table["size"] > 60) + 1).to_csv("source.csv", index=False)
    assert "confidence" in invoke(*ADAPT[:-2]).stdout
    forced = invoke(*ADAPT, "--task", "numbers")
    assert forced.exit_code == 0
    assert "has 2 different values only; are these classes?" in " ".join(forced.stderr.split())
    assert "spread" in pd.read_csv("p.csv")


def test_fractions_are_classes_if_told(folder, invoke):
    table = pd.read_csv("source.csv")
    labels = np.where(table["size"] > 60, "1.5", "2.5")
    table.assign(price=labels).to_csv("source.csv", index=False)
    assert "spread" in invoke(*ADAPT[:-2]).stdout
    assert "confidence" in invoke(*ADAPT[:-2], "--task", "classes").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*ADAPT, "--tune"], "--tune is for classes, and 'price' is a number"),
        ([*ADAPT, "--method", "tfdf"], "TFDF is for classes, and 'price' is a number; take auto"),
        ([*ADAPT, "--probabilities"], "--probabilities is for classes"),
        (["diagnose", "source.csv", "target.csv", "--label", "price"], "is for classes"),
        (
            ["audit", "target.csv", "p.csv", "--page", "x.html"],
            "--page is for classes, and p.csv holds numbers",
        ),
    ],
)
def test_what_is_for_classes_says_so_in_a_line(folder, invoke, arguments, said):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_methods_for_numbers_are_compared(folder, invoke):
    command = "compare source.csv known.csv --label price --id who --target-label price"
    methods = ["--methods", "autoregressor,importanceweightedregressor,coral", "--json"]
    record = json.loads(invoke(*command.split(), *methods).stdout)
    results = {r["method"]: r for r in record["results"]}
    assert set(results) >= {"AutoRegressor", "ridge", "forest", "boosting"}
    assert results["AutoRegressor"]["difference"] == pytest.approx(0)
    assert not results["forest"]["adapts"]
    found = [r["rmse"] for r in record["results"]]
    assert found == sorted(found)
    assert record["trust"]["of"] == "AutoRegressor"
    shown = " ".join(invoke(*command.split(), "--methods", "coral").stdout.split())
    assert "CORAL" in shown
    assert "cannot be known without labels" in shown


def test_other_methods_and_known_labels(folder, invoke):
    for method in ("importanceweightedregressor", "coral"):
        result = invoke(*ADAPT, "--method", method)
        assert result.exit_code == 0, result.stderr
        assert list(pd.read_csv("p.csv")) == ["who", "prediction"]
    known = pd.read_csv("known.csv")
    known.loc[20:, "price"] = np.nan
    known.to_csv("known.csv", index=False)
    command = "adapt source.csv known.csv --label price --target-label price --use-target-labels"
    result = invoke(*command.split(), "--out", "p.csv", "--id", "who")
    assert result.exit_code == 0, result.stderr
    assert "The 20 values in 'price' were learnt from" in " ".join(result.stdout.split())
    assert list(pd.read_csv("p.csv"))[-2:] == ["low", "high"]
