"""``transferable adapt`` as somebody with two files meets it."""

import io
import json
import re
import sys

import numpy as np
import pandas as pd
import pytest

import transferable
from transferable import TFDF, AutoAdapter
from transferable.cli._console import Messages
from transferable.cli.methods import configured, for_rows
from transferable.tables import read_table

GIVEN = ("adapt", "source.csv", "target.csv", "--label", "kind", "--id", "who", "--no-estimate")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_predictions_go_to_standard_output(folder, invoke):
    before = names(folder)
    result = invoke(*GIVEN)
    assert result.exit_code == 0, result.stderr
    lines = pd.read_csv(io.StringIO(result.stdout))
    assert lines.columns.tolist() == ["who", "prediction", "confidence", "runner_up"]
    assert lines["who"].tolist() == [f"t{i}" for i in range(24)]
    assert lines["confidence"].between(0, 1).all()
    assert (lines["runner_up"] != lines["prediction"]).all()
    assert "AutoAdapter learnt from 30 source and 24 target rows" in result.stderr
    assert "accuracy is unknown" in result.stderr
    assert names(folder) == before


def test_files_are_written_and_summed_up(folder, invoke):
    result = invoke(*GIVEN, "--out", "p.tsv", "--model", "m.tfm")
    assert result.exit_code == 0, result.stderr
    assert "target rows, predicted" in result.stdout
    assert "Predictions saved to p.tsv" in result.stdout
    assert "Model saved to m.tfm" in result.stdout
    lines = pd.read_csv("p.tsv", sep="\t")
    model = transferable.load("m.tfm")
    raw = pd.read_csv("target.csv")
    np.testing.assert_array_equal(model.predict(raw), lines["prediction"])
    np.testing.assert_allclose(model.predict_proba(raw).max(axis=1), lines["confidence"], atol=1e-6)


def test_target_labels_serve_evaluation_only(folder, invoke):
    blind = pd.read_csv(io.StringIO(invoke(*GIVEN).stdout))
    result = invoke(*GIVEN[:2], "known.csv", *GIVEN[3:], "--target-label", "truth", "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    lines = pd.DataFrame(record["predictions"])
    np.testing.assert_array_equal(lines["confidence"], blind["confidence"])
    right = lines["prediction"] == pd.read_csv("known.csv")["truth"]
    assert record["evaluation"] == {"column": "truth", "rows": 24, "accuracy": right.mean()}
    assert "truth" not in record["features"]
    told = invoke(*GIVEN[:2], "known.csv", *GIVEN[3:], "--target-label", "truth", "--out", "p.csv")
    assert f"{right.mean():.1%} (used for this evaluation only)" in told.stdout


def test_some_target_labels_will_do(folder, invoke):
    known = pd.read_csv("known.csv")
    known.loc[:9, "truth"] = None
    known.to_csv("some.csv", index=False)
    result = invoke(*GIVEN[:2], "some.csv", *GIVEN[3:], "--target-label", "truth", "--json")
    assert json.loads(result.stdout)["evaluation"]["rows"] == 14


def test_json_is_one_object_and_complete(folder, invoke):
    result = invoke(*GIVEN, "--json", "--method", "tfdf-v", "--set", "alignment=3", "--seed", 5)
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["method"] == "TFDFV"
    assert record["parameters"]["alignment"] == 3
    assert (record["n_source"], record["n_target"], record["seed"]) == (30, 24, 5)
    assert record["features"][-2:] == ["habitat=dry", "habitat=wet"]
    assert sum(c["predicted"] for c in record["classes"].values()) == 24
    assert record["versions"]["transferable"] == transferable.__version__
    assert len(record["predictions"]) == 24
    record = json.loads(invoke(*GIVEN, "--json", "--out", "p.csv").stdout)
    assert "predictions" not in record
    assert record["files"] == {"predictions": "p.csv", "model": None, "report": None}


@pytest.mark.parametrize(
    "name",
    [
        n
        for n, _ in transferable.all_estimators()
        if n not in ("AdaptedClassifier", "LandmarkFeatures")
    ],
)
def test_every_method_by_name(folder, invoke, name):
    result = invoke(*GIVEN, "--method", name.lower(), "--model", "m.tfm", "--quiet")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    again = invoke("predict", "m.tfm", "target.csv", "--quiet")
    assert again.stdout == result.stdout


def test_ids_that_do_not_name_each_row_and_copies_of_the_label_are_noted(folder, invoke):
    source, target = pd.read_csv("source.csv"), pd.read_csv("target.csv")
    codes = {"ant": 7, "bee": 8, "cat": 9}
    source.assign(code=source["kind"].map(codes)).to_csv("source.csv", index=False)
    target["who"] = ["a", "a", None, *target["who"][3:]]
    target.assign(code=[7, 8] * 12).to_csv("target.csv", index=False)
    result = invoke(*GIVEN)
    assert result.exit_code == 0, result.stderr
    assert "target.csv: 1 of 24 rows have no id in 'who'." in result.stderr
    assert "the id column 'who' has 22 different values in 23 rows" in result.stderr
    assert "if it is one, leave it out: --drop code" in result.stderr


def test_notes_tell_what_was_left_out(folder, invoke):
    pd.read_csv("target.csv").assign(weather=1.0).to_csv("target.csv", index=False)
    result = invoke(*GIVEN)
    assert "Note: only the target has column 'weather'; left out." in result.stderr
    assert "Note" not in invoke(*GIVEN, "--quiet").stderr
    assert "weather" in json.loads(invoke(*GIVEN, "--json").stdout)["notes"][0]


def test_columns_are_chosen(folder, invoke):
    record = json.loads(invoke(*GIVEN, "--json", "--features", "f0,f1", "--scale", "none").stdout)
    assert record["features"] == ["f0", "f1"]
    record = json.loads(invoke(*GIVEN, "--json", "--drop", "f0", "--drop", "habitat").stdout)
    assert record["features"] == ["f1", "f2", "f3", "f4"]


def test_other_formats(folder, invoke):
    expected = invoke(*GIVEN, "--quiet").stdout
    read_table("source.csv").to_parquet("source.parquet")
    read_table("target.csv").to_csv("target.tsv.gz", sep="\t", index=False)
    result = invoke("adapt", "source.parquet", "target.tsv.gz", *GIVEN[3:], "--quiet")
    assert result.stdout == expected, result.stderr


def test_report_is_written(folder, invoke):
    result = invoke(
        *GIVEN[:2], "known.csv", *GIVEN[3:], "--method", "tfdfv", "--target-label", "truth",
        "--report", "r.html", "--out", "p.csv",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "Report saved to r.html" in result.stdout
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html")
    assert "TFDFV" in page


def test_target_that_is_the_source(folder, invoke):
    result = invoke("adapt", "source.csv", "./source.csv", *GIVEN[3:], "--out", "p.csv")
    assert result.exit_code == 0, result.stderr
    assert "same file" in result.stderr
    assert "'kind' is not looked at" in result.stderr
    right = pd.read_csv("p.csv")["prediction"] == pd.read_csv("source.csv")["kind"]
    assert right.mean() > 0.9


def test_integer_labels_with_names_like_numbers(folder, invoke):
    source, known = pd.read_csv("source.csv"), pd.read_csv("known.csv")
    codes = {"ant": 3, "bee": 10, "cat": -1}
    source.assign(kind=source["kind"].map(codes)).to_csv("source.csv", index=False)
    known.assign(truth=known["truth"].map(codes)).to_csv("known.csv", index=False)
    result = invoke(*GIVEN[:2], "known.csv", *GIVEN[3:], "--target-label", "truth", "--json")
    record = json.loads(result.stdout)
    assert {line["prediction"] for line in record["predictions"]} <= {"3", "10", "-1"}
    assert record["evaluation"]["accuracy"] > 0.5


def write(name, text):
    def prepare():
        with open(name, "wb") as stream:
            stream.write(text if isinstance(text, bytes) else text.encode())

    return prepare


def change(name, **columns):
    return lambda: pd.read_csv(name).assign(**columns).to_csv(name, index=False)


def nothing():
    pass


@pytest.mark.parametrize(
    ("prepare", "arguments", "told"),
    [
        (nothing, ("nowhere.csv", "target.csv", "--label", "kind"), "there is no file nowhere.csv"),
        (nothing, ("source.csv", "target.csv", "--label", "sort"), "no column 'sort'"),
        (
            nothing,
            ("target.csv", "source.csv", "--label", "kind"),
            "target.csv has no column 'kind', but source.csv has; name the labelled file first",
        ),
        (nothing, ("source.csv", "target.csv", "--label", "kind", "--id", "kind"), "also id"),
        (nothing, ("source.csv", "target.csv", "--label", "who", "--id", "who"), "also id"),
        (nothing, (*GIVEN[1:], "--features", "f9"), "no column 'f9'"),
        (
            nothing,
            (*GIVEN[1:], "--id", "whom"),
            "target.csv has no column 'whom'; did you mean 'who'?",
        ),
        (nothing, (*GIVEN[1:], "--method", "tdfd"), "did you mean tfdf?"),
        (nothing, (*GIVEN[1:], "--set", "alignement=3"), "one of alignment"),
        (nothing, (*GIVEN[1:], "--set", "alignment"), "write NAME=VALUE"),
        (nothing, (*GIVEN[1:], "--set", "alignment=-3"), "alignment"),
        (nothing, (*GIVEN[1:], "--method", "gfk", "--n-landmarks", "9"), "GFK has no option"),
        (nothing, (*GIVEN[1:], "--method", "coral", "--device", "auto"), "have it: artl, meda"),
        (nothing, (*GIVEN[1:], "--target-label", "truth"), "no column 'truth'"),
        (write("source.csv", ""), GIVEN[1:], "source.csv is empty"),
        (write("target.csv", ""), GIVEN[1:], "target.csv is empty"),
        (write("target.csv", "who,f0\n"), GIVEN[1:], "has no rows"),
        (write("source.csv", "who,f0,kind\na,1,ant\n"), GIVEN[1:], "all have the label 'ant'"),
        (write("target.csv", "who,g0\nt1,1\n"), GIVEN[1:], "no feature in common"),
        (write("source.csv", bytes(range(256)) * 20), GIVEN[1:], "not a text file"),
        (
            write("target.csv", b"\xff\xfe\x80junk" * 99),
            GIVEN[1:],
            "is text in UTF-16; say so: --encoding utf-16",
        ),
        (change("target.csv", f0="tall"), GIVEN[1:], "'f0' holds numbers in source.csv, but text"),
        (change("source.csv", kind=None), GIVEN[1:], "30 of the 30 source rows have no value"),
        (change("target.csv", f0="2024-01-31"), GIVEN[1:], "'f0' holds dates"),
        (nothing, ("source.csv", "target.csv", "--label", "who"), "30 different values in 30"),
        (
            nothing,
            ("source.csv", "target.csv", "--label", "f0", "--id", "who", "--task", "classes"),
            "name rows or to",
        ),
        (nothing, (*GIVEN[1:], "--report", "target.csv"), "target.csv would be overwritten"),
        (nothing, (*GIVEN[1:], "--report", "p.csv"), "p.csv would be overwritten"),
    ],
)
def test_bad_input_is_one_clear_line_and_status_2(folder, invoke, prepare, arguments, told):
    prepare()
    before = names(folder)
    result = invoke("adapt", *arguments, "--out", "p.csv", "--model", "m.tfm")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert told in result.stderr
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr
    assert names(folder) == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--out", "p.xlsx"), ".csv"),
        (("--out", "nowhere/p.csv"), "nowhere"),
        (("--model", "nowhere/m.tfm"), "nowhere"),
        (("--model", "."), "is a folder"),
        (("--model", f"{241 * 'm'}"), "cannot be the name of a file: File name too long"),
        (("--report", "nowhere/r.html"), "nowhere"),
        (("--seed", "-1"), "--seed"),
        (("--scale", "huge"), "'huge' is not one of 'auto', 'per-domain'"),
        (("--device", "tpu"), "'tpu' is not one of 'cpu', 'cuda', 'auto'"),
        (("--n-landmarks", "some"), "a float in the range (0.0, 1.0) or None. Got 'some' instead"),
        (("--n-landmarks", "0"), "a float in the range (0.0, 1.0) or None. Got 0 instead"),
    ],
)
def test_wrong_use_fails_before_anything_is_read(folder, invoke, arguments, told):
    result = invoke("adapt", "no.csv", "no.csv", "--label", "kind", *arguments)
    assert result.exit_code == 2
    assert told in re.sub(r"[\s│]+", " ", result.stderr)


def test_one_target_row_and_an_empty_column(folder, invoke):
    pd.read_csv("target.csv").head(1).to_csv("target.csv", index=False)
    change("source.csv", f4=None)()
    result = invoke(*GIVEN, "--method", "tfdfv", "--scale", "joint")
    assert result.exit_code == 0, result.stderr
    assert "'f4' without any value" in result.stderr
    assert len(result.stdout.splitlines()) == 2


def test_landmarks_and_device_reach_the_method(folder, invoke):
    for given, meant in (("9", 9), ("auto", "auto"), ("none", None)):
        result = invoke(*GIVEN, "--n-landmarks", given, "--device", "cpu", "--json")
        assert result.exit_code == 0, result.stderr
        parameters = json.loads(result.stdout)["parameters"]
        assert (parameters["n_landmarks"], parameters["device"]) == (meant, "cpu")


def test_too_little_memory_is_one_clear_line_and_status_1(folder, invoke):
    before = names(folder)
    result = invoke(*GIVEN, "--method", "tfdf", "--set", "max_memory=1000", "--out", "p.csv")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: not enough memory. ")
    assert "54 rows" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert names(folder) == before


def test_methods_that_end_in_a_nearest_neighbour_know_how_sure_they_are(folder, invoke):
    lines = pd.read_csv(io.StringIO(invoke(*GIVEN, "--method", "coral").stdout))
    assert lines["confidence"].between(1 / 3, 1).all()
    assert lines["confidence"].nunique() > 10
    assert lines["runner_up"].isin(["ant", "bee", "cat"]).all()
    assert (lines["runner_up"] != lines["prediction"]).all()


def test_pixels_are_taken_as_they_are_unless_told_otherwise(folder, invoke):
    rng = np.random.default_rng(0)
    for name in ("source.csv", "target.csv"):
        table = pd.read_csv(name).drop(columns="habitat")
        pixels = {f"p{i}": rng.integers(0, 256, len(table)) for i in range(20)}
        table.filter(["who", "kind"]).assign(**pixels).to_csv(name, index=False)
    arguments = (*GIVEN, "--method", "coral", "--model", "m.tfm", "--json")
    record = json.loads(invoke(*arguments).stdout)
    assert record["scale"] == "none"
    assert "similar ranges" in record["notes"][-1]
    assert json.loads(invoke("inspect", "m.tfm", "--json").stdout)["scale"] == "none"
    assert json.loads(invoke(*arguments, "--scale", "joint").stdout)["scale"] == "joint"


def test_an_interruption_leaves_no_file(folder, invoke, monkeypatch):
    before = names(folder)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    result = invoke(*GIVEN, "--out", "p.csv", "--model", "m.tfm")
    assert result.exit_code == 130
    assert "Interrupted" in result.stderr
    assert names(folder) == before


def test_a_disk_that_fails_is_status_1(folder, invoke, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.replace", full)
    result = invoke(*GIVEN, "--out", "p.csv")
    assert result.exit_code == 1
    assert "No space left" in result.stderr


@pytest.mark.parametrize(
    ("n_rows", "settings", "landmarks"),
    [
        (600_000, (), 666),
        (300_000, (), "auto"),
        (600_000, ("max_memory=8GB",), "auto"),
    ],
)
def test_many_rows_take_fewer_landmarks_unless_told_otherwise(n_rows, settings, landmarks):
    notes = Messages(quiet=True)
    method = configured("tfdf", settings)
    for_rows(method, n_rows, settings, notes, named=True)
    assert method.n_landmarks == landmarks
    assert bool(notes.notes) == (landmarks != "auto")
    own = configured("tfdf", n_landmarks="1000")
    for_rows(own, n_rows, (), notes, named=True)
    assert own.n_landmarks == 1000


def test_settings_of_the_default_keep_it_and_others_take_tfdf():
    assert isinstance(configured(None, ["effort=fast"]), AutoAdapter)
    assert isinstance(configured(None, ["class_shares=source"]), AutoAdapter)
    assert isinstance(configured(None, ["alignment=3"]), TFDF)
    assert isinstance(configured(None, one_model=True), TFDF)
    notes = Messages(quiet=True)
    pool = configured(None, ["effort=fast"])
    assert for_rows(pool, 30_000, ["effort=fast"], notes, named=False) is pool
    shared = configured(None, ["class_shares=source"], seed=3)
    found = for_rows(shared, 30_000, ["class_shares=source"], notes, named=False)
    assert isinstance(found, TFDF)
    assert (found.class_shares, found.random_state) == ("source", 3)


def test_many_rows_get_one_model_and_a_note(folder, invoke, monkeypatch):
    monkeypatch.setattr("transferable.tables.classifier._POOL_ROWS", 50)
    given = ("adapt", "source.csv", "target.csv", "--label", "kind", "--id", "who", "--no-estimate")
    result = invoke(*given)
    assert result.exit_code == 0, result.stderr
    assert "the method is TFDF: AutoAdapter fits several models" in result.stderr
    assert "TFDF learnt from 30 source and 24 target rows" in result.stderr


@pytest.mark.parametrize("method", ["OTMapping", "LinearOTMapping", "JDOTClassifier"])
def test_a_missing_package_is_one_line_that_names_the_extra(method, folder, invoke, monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    result = invoke(*GIVEN, "--method", method, "--out", "p.csv")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert result.stderr.endswith("needs POT: pip install '.[ot]' in a clone of the source\n")
    assert "p.csv" not in names(folder)
