"""``transferable predict`` and ``inspect`` on a saved model, and ``methods``, which needs none."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import transferable
from transferable import TFDFV, all_estimators
from transferable.tables import TableClassifier

ROOT = Path(__file__).parents[2]


@pytest.fixture
def saved(folder, invoke):
    """The folder with a saved model and the predictions of the fit."""
    result = invoke(
        "adapt", "source.csv", "target.csv", "--label", "kind", "--id", "who",
        "--method", "tfdfv", "--model", "m.tfm", "--out", "p.csv", "--quiet", "--no-estimate",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    return folder


def test_the_raw_file_is_all_it_needs(saved, invoke):
    result = invoke("predict", "m.tfm", "target.csv")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (saved / "p.csv").read_text()
    turned = pd.read_csv("target.csv").iloc[::-1, ::-1].assign(more="x")
    turned.to_parquet("turned.parquet")
    assert invoke("predict", "m.tfm", "turned.parquet", "--out", "q.csv.gz").exit_code == 0
    pd.testing.assert_frame_equal(
        pd.read_csv("q.csv.gz").iloc[::-1].reset_index(drop=True), pd.read_csv("p.csv")
    )


def test_one_row_without_ids(saved, invoke):
    pd.read_csv("target.csv").drop(columns="who").head(1).to_csv("one.csv", index=False)
    result = invoke("predict", "m.tfm", "one.csv")
    assert result.stdout.splitlines()[0] == "prediction,confidence,runner_up"
    assert len(result.stdout.splitlines()) == 2


def test_json(saved, invoke):
    lines = invoke("predict", "m.tfm", "target.csv", "--json").stdout.splitlines()
    assert [json.loads(line)["who"] for line in lines] == [f"t{i}" for i in range(24)]
    result = invoke("predict", "m.tfm", "target.csv", "--json", "--out", "q.csv")
    record = json.loads(result.stdout)
    assert record["n_rows"] == 24 == sum(record["predicted"].values())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nothing.tfm", "target.csv"), "no file nothing.tfm"),
        (("source.csv", "target.csv"), "not a saved model"),
        (("cut.tfm", "target.csv"), "cut.tfm"),
        (("arrays.tfm", "target.csv"), "holds a TFDFV, which takes arrays"),
        (("unfitted.tfm", "target.csv"), "holds a TableClassifier that is not fitted"),
        (("m.tfm", "nothing.csv"), "no file nothing.csv"),
        (("m.tfm", "narrow.csv"), "no column 'f1'"),
        (
            ("m.tfm", "target.csv", "--id", "whom"),
            "target.csv has no column 'whom'; did you mean 'who'?",
        ),
        (("m.tfm", "./q.csv"), "q.csv would be overwritten"),
    ],
)
def test_bad_input_is_one_clear_line_and_status_2(saved, invoke, arguments, told):
    (saved / "cut.tfm").write_bytes((saved / "m.tfm").read_bytes()[:999])
    transferable.save(TFDFV(), "arrays.tfm")
    transferable.save(TableClassifier(), "unfitted.tfm")
    pd.read_csv("target.csv").drop(columns="f1").to_csv("narrow.csv", index=False)
    result = invoke("predict", *arguments, "--out", "q.csv")
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stdout == ""
    assert not (saved / "q.csv").exists()


def test_a_late_error_leaves_no_file(saved, invoke):
    table = pd.read_csv("target.csv")
    long = pd.concat([table] * 2000, ignore_index=True).astype({"f0": object})
    long.loc[len(long) - 1, "f0"] = "tall"
    long.to_csv("long.csv", index=False)
    before = sorted(saved.iterdir())
    result = invoke("predict", "m.tfm", "long.csv", "--out", "q.csv")
    assert result.exit_code == 2
    assert "'f0' must hold numbers, but it holds 'tall'" in result.stderr
    assert sorted(saved.iterdir()) == before


def test_a_large_file_is_labelled_in_bounded_memory(saved):
    table = pd.read_csv("target.csv")
    block = table.to_csv(index=False, header=False)
    with open("big.csv", "w") as stream:
        stream.write(",".join(table.columns) + "\n")
        for _ in range(-(-20_000_000 // len(block))):
            stream.write(block)
    code = (
        "import sys\n"
        "from paper.running import peak_memory_mib\n"
        "from transferable.cli import app\n"
        "app(sys.argv[1:], standalone_mode=False)\n"
        "print(peak_memory_mib(), file=sys.stderr)"
    )

    def peak(name):
        files = [str(saved / file) for file in ("m.tfm", name, "q.csv")]
        done = subprocess.run(
            [sys.executable, "-c", code, "predict", *files[:2], "--out", files[2], "--quiet"],
            capture_output=True, text=True, check=True, cwd=ROOT,
        )  # fmt: skip
        return float(done.stderr.split()[-1])

    small = peak("target.csv")
    assert peak("big.csv") - small < 80
    expected = pd.read_csv("p.csv")["prediction"]
    got = pd.read_csv("q.csv")["prediction"]
    np.testing.assert_array_equal(got, np.tile(expected, len(got) // len(expected)))


def test_inspect(saved, invoke):
    record = json.loads(invoke("inspect", "m.tfm", "--json").stdout)
    assert record["method"] == "TFDFV"
    assert record["classes"] == ["ant", "bee", "cat"]
    assert record["numeric columns"] == [f"f{i}" for i in range(5)]
    assert record["versions"]["transferable"] == transferable.__version__
    shown = invoke("inspect", "m.tfm").stdout
    assert "TFDFV" in shown
    assert "habitat" in shown
    transferable.save(TableClassifier(), "unfitted.tfm")
    record = json.loads(invoke("inspect", "unfitted.tfm", "--json").stdout)
    assert record["class"] == "TableClassifier"
    transferable.save(TFDFV(ridge=0.25), "arrays.tfm")
    assert json.loads(invoke("inspect", "arrays.tfm", "--json").stdout)["class"] == "TFDFV"
    assert invoke("inspect", "p.csv").exit_code == 2
    assert invoke("inspect", "nothing.tfm").exit_code == 2


def test_methods(invoke):
    records = json.loads(invoke("methods", "--json").stdout)
    parts = {"adaptedclassifier", "landmarkfeatures"}
    expected = {name.lower() for name, _ in all_estimators()} - parts
    assert {record["method"] for record in records} == expected
    assert all(record["summary"] for record in records)
    families = [record["family"] for record in records]
    assert families == sorted(families)
    taken = {record["method"]: record["takes"] for record in records}
    assert (taken["tfdf"], taken["easytl"]) == (["sparse rows", "landmarks"], ["sparse rows"])
    listed = invoke("methods").stdout
    assert all(name in listed for name in expected)
    told = invoke("methods", "tfdf-v").stdout
    assert "alignment" in told
    assert invoke("methods", "tdfd").exit_code == 2


@pytest.mark.parametrize(("options", "expected"), [((), "=1+1"), (["--escape-formulas"], "'=1+1")])
def test_formulas_in_labels_can_be_escaped(folder, invoke, options, expected):
    source = pd.read_csv("source.csv").replace({"kind": {"ant": "=1+1"}})
    source.to_csv("formulas.csv", index=False)
    files = ("formulas.csv", "target.csv", "--out", "out.csv")
    done = invoke("adapt", *files, "--label", "kind", "--id", "who", *options)
    assert done.exit_code == 0, done.output
    found = set(pd.read_csv("out.csv")["prediction"])
    assert expected in found
    assert found <= {expected, "bee", "cat"}


def test_rows_that_drifted_are_warned_of(saved, invoke):
    same = invoke("predict", "m.tfm", "target.csv", "--out", "q.csv", "--json")
    assert json.loads(same.stdout)["drift"]["likely"] is False
    other = pd.read_csv("target.csv")
    other.select_dtypes("number").add(3).join(other[["who", "habitat"]]).to_csv("other.csv")
    drifted = invoke("predict", "m.tfm", "other.csv", "--out", "q.csv")
    assert "Warning: the rows differ from the target" in drifted.stderr
    record = json.loads(invoke("predict", "m.tfm", "other.csv", "--out", "q.csv", "--json").stdout)
    assert record["drift"]["likely"] is True


def test_a_model_without_a_sample_says_so(saved, invoke):
    model = transferable.load("m.tfm")
    model.estimator_._target_sample = None
    transferable.save(model, "old.tfm")
    result = invoke("predict", "old.tfm", "target.csv", "--out", "q.csv")
    assert result.exit_code == 0
    assert "Note: the model keeps no sample of its target" in result.stderr
