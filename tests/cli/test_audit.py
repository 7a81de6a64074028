"""``transferable audit``: rows for a person to label, and what their labels tell and correct."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import transferable
from problems import small_problem
from transferable import TFDFV, AutoAdapter
from transferable.cli import app
from transferable.tables import TableClassifier

KINDS = np.array(["ant", "bee", "cat"])
FILES = ("target.csv", "predictions.csv")
LABELLED = (*FILES, "--labelled", "to-label.csv")
CORRECTED = (*LABELLED, "--model", "model.tfm")


def tables(classes=KINDS):
    """Return a labelled source and a target with its true labels."""
    problem = small_problem(seed=3, n_source=60, n_target=60, n_features=4)
    both = []
    for X, codes, prefix in ((problem.Xs, problem.ys, "s"), (problem.Xt, problem.yt, "t")):
        table = pd.DataFrame(X, columns=[f"f{i}" for i in range(4)])
        table.insert(0, "who", [f"{prefix}{i:03}" for i in range(len(X))])
        table["habitat"] = np.where(X[:, 0] > 0, "wet", "dry")
        both.append(table.assign(kind=classes[codes]))
    return both


def write(source, target):
    """Write the target, its truth, and its predictions and model by ``adapt``."""
    source.to_csv("source.csv", index=False)
    target[["who", "kind"]].to_csv("truth.csv", index=False)
    target.drop(columns="kind").to_csv("target.csv", index=False)
    command = "adapt source.csv target.csv --label kind --id who --method autoadapter --quiet"
    command += " --set effort=fast --out predictions.csv --model model.tfm"
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 0, result.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a target, its predictions and their model, and the truth; made once."""
    folder = tmp_path_factory.mktemp("audit")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write(*tables())
    return folder


@pytest.fixture
def adapted(made, tmp_path, monkeypatch):
    """A copy of that folder, which is the current one."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fill(change=None, path="to-label.csv", **reading):
    """Fill in the true labels, and change some cells."""
    table = pd.read_csv(path, dtype=str, **reading).astype({"row": int})
    truth = pd.read_csv("truth.csv", dtype=str)["kind"].to_numpy()
    table["label"] = truth[table["row"] - 1]
    table = table if change is None else change(table)
    table.to_csv(path, index=False)
    return table


@pytest.fixture
def filled(adapted, invoke):
    """The same with twenty rows to label, filled in."""
    result = invoke("audit", *FILES, "--rows", 20)
    assert result.exit_code == 0, result.stderr
    fill()
    return adapted


def test_rows_to_label_show_no_prediction_and_are_shuffled(adapted, invoke):
    result = invoke("audit", *FILES, "--rows", 20)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[-1] == f"transferable audit {' '.join(CORRECTED)}"
    shown, target = pd.read_csv("to-label.csv"), pd.read_csv("target.csv")
    assert list(shown) == ["row", *target, "label"]
    assert shown["label"].isna().all()
    assert shown["row"].is_unique
    assert not shown["row"].is_monotonic_increasing
    own = target.iloc[shown["row"] - 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(shown[list(target)], own)
    assert b"\r" not in (adapted / "to-label.csv").read_bytes()


def test_strata_and_weights_come_from_the_files(adapted, invoke):
    lines = pd.read_csv("predictions.csv").assign(unfamiliar=False)
    lines["source_only"] = lines["prediction"]
    lines.loc[:11, "source_only"] = "other"
    lines.loc[12:29, "unfamiliar"] = True
    lines.to_csv("predictions.csv", index=False)
    record = json.loads(invoke("audit", *FILES, "--rows", 12, "--json").stdout)
    part = np.digitize(np.array(record["rows"]) - 1, [12, 30])
    assert np.bincount(part).tolist() == [6, 2, 4]
    assert record["weights"] == np.array([12 / 6, 18 / 2, 30 / 4])[part].tolist()
    assert record["n_target"] == 60


def test_round_trip(filled, invoke):
    result = invoke("audit", *CORRECTED)
    assert result.exit_code == 0, result.stderr
    truth = pd.read_csv("truth.csv")["kind"]
    right = (pd.read_csv("predictions.csv")["prediction"] == truth).mean()
    record = json.loads(invoke("audit", *CORRECTED, "--json").stdout)
    assert record["low"] <= right <= record["high"]
    assert f"{100 * record['accuracy']:.0f} %" in result.stdout.splitlines()[0]
    corrected = record["corrected"]
    assert 0 <= corrected["low"] <= corrected["accuracy"] <= corrected["high"] <= 1
    made = {"predictions": "audited.csv", "model": "audited.tfm", "report": None}
    assert record["files"] == made
    lines, rows = pd.read_csv("audited.csv"), pd.read_csv("to-label.csv")["row"] - 1
    assert list(lines) == [
        *("row", "who", "prediction", "confidence", "runner_up"),
        "audited",
        "near_unknown",
    ]
    assert np.flatnonzero(lines["audited"]).tolist() == sorted(rows)
    assert (lines["prediction"] == truth)[rows].all()
    assert lines["near_unknown"].isna().all()
    assert (lines["prediction"] == truth).mean() >= right
    again = invoke("predict", "audited.tfm", "target.csv", "--out", "again.csv")
    assert again.exit_code == 0, again.stderr
    others = ~lines["audited"]
    assert (pd.read_csv("again.csv")["prediction"] == lines["prediction"])[others].all()


def test_the_files_alone_measure_the_same(filled, invoke):
    alone, by_model = invoke("audit", *LABELLED), invoke("audit", *CORRECTED)
    assert alone.exit_code == 0, alone.stderr
    assert alone.stdout.splitlines() == by_model.stdout.splitlines()[:2]
    assert "--model corrects the other labels too" in alone.stderr
    assert invoke("audit", *LABELLED, "--quiet").stderr == ""


def test_a_model_of_another_method_is_measured_only(filled, invoke):
    source, target = tables()
    model = TableClassifier(TFDFV(), ids=["who"]).adapt(source, "kind", target)
    transferable.save(model, "model.tfm")
    before = sorted(filled.iterdir())
    result = invoke("audit", *CORRECTED)
    assert result.exit_code == 0, result.stderr
    assert "holds a TFDFV; only models of AutoAdapter can be corrected" in result.stderr
    assert result.stdout.startswith("Accuracy by 20 audited rows")
    assert sorted(filled.iterdir()) == before


@pytest.mark.parametrize(
    ("alone", "told"),
    [("truth", "The source-only labels are better"), ("wrong", "The adapted labels are better")],
)
def test_the_better_labels_are_named(alone, told, adapted, invoke):
    truth = pd.read_csv("truth.csv")["kind"]
    lines = pd.read_csv("predictions.csv").assign(prediction=truth, source_only=truth)
    wrong = truth.replace({"ant": "bee", "bee": "cat", "cat": "ant"})
    lines.loc[:29, "prediction" if alone == "truth" else "source_only"] = wrong
    lines.to_csv("predictions.csv", index=False)
    assert invoke("audit", *FILES).exit_code == 0
    fill()
    assert told in invoke("audit", *LABELLED).stdout


def test_unknown_classes_are_reported_and_marked(filled, invoke):
    table = fill(lambda t: t.assign(label=t["label"].where(t.index > 1, " moth ")))
    alone = invoke("audit", *LABELLED)
    assert "Class 'moth' (2 of the audited rows) is predicted nowhere" in alone.stdout
    result = invoke("audit", *CORRECTED)
    assert result.exit_code == 0, result.stderr
    assert "Class 'moth' is not in the source" in result.stdout
    lines = pd.read_csv("audited.csv").set_index("row")
    assert (lines.loc[table["row"][:2], "prediction"] == "moth").all()
    near = json.loads(invoke("audit", *CORRECTED, "--json").stdout)["unknown"]["moth"]
    marked = lines.index[lines["near_unknown"] == "moth"]
    assert set(marked) == set(near) - set(table["row"])
    assert len(marked) > 0


def test_numbers_and_spaces_of_a_spreadsheet(adapted, invoke):
    write(*tables(np.array(["1", "2", "3"])))
    assert invoke("audit", *FILES).exit_code == 0

    def as_shown(table):
        values = {f"f{i}": table[f"f{i}"].astype(float).map("{:.9g}".format) for i in range(4)}
        return table.assign(label=table["label"] + ".0", row=table["row"] + 0.0, **values)

    table = fill(as_shown)
    table.to_excel("filled.xlsx", index=False)
    empty = "," * (table.shape[1] - 1)
    with (adapted / "to-label.csv").open("a") as file:
        file.write(f"{empty}\n{empty}\n")  # rows that were cleared
    expected = invoke("audit", *CORRECTED, "--json")
    assert expected.exit_code == 0, expected.stderr
    record = json.loads(expected.stdout)
    assert (record["unknown"], record["audited"]) == ({}, 30)
    book = invoke("audit", *FILES, "--labelled", "filled.xlsx", "--model", "model.tfm", "--json")
    assert json.loads(book.stdout) == record


def test_the_dialect_of_the_target_is_kept(adapted, invoke):
    target = pd.read_csv("target.csv").assign(place="Köln")
    target.to_csv("target.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    options = ("--sep", ";", "--decimal", ",", "--encoding", "cp1252", "--label", "art")
    result = invoke("audit", *FILES, *options)
    assert result.exit_code == 0, result.stderr
    assert "--label art --sep ';' --decimal , --encoding cp1252" in result.stdout
    table = pd.read_csv("to-label.csv", sep=";", decimal=",", encoding="cp1252")
    assert (table["f0"].dtype, table["place"][0]) == (np.float64, "Köln")
    table["art"] = "ant"
    table.to_csv("to-label.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    result = invoke("audit", *CORRECTED, *options)
    assert result.exit_code == 0, result.stderr


def test_letters_beyond_ascii_are_marked_for_spreadsheets(adapted, invoke):
    pd.read_csv("target.csv").assign(place="Köln").to_csv("target.csv", index=False)
    assert invoke("audit", *FILES).exit_code == 0
    assert (adapted / "to-label.csv").read_bytes().startswith(b"\xef\xbb\xbfrow,")
    fill()
    assert invoke("audit", *LABELLED).exit_code == 0


def test_formulas_are_escaped_and_recognised(adapted, invoke):
    target = pd.read_csv("target.csv").assign(note="=1+1").rename(columns={"f0": "-f0"})
    target.to_csv("target.csv", index=False)
    assert invoke("audit", *FILES, "--escape-formulas").exit_code == 0
    table = fill()
    assert {"'-f0", "note"} <= set(table)
    assert (table["note"] == "'=1+1").all()
    result = invoke("audit", *LABELLED)
    assert result.exit_code == 0, result.stderr


def test_columns_of_the_same_names(adapted, invoke):
    target = pd.read_csv("target.csv").assign(row=7, label="ant")
    target.to_csv("target.csv", index=False)
    result = invoke("audit", *FILES)
    assert "column 'label' of target.csv is left out" in result.stderr
    table = pd.read_csv("to-label.csv")
    assert list(table) == ["row_", *target.columns.drop("label"), "label"]
    assert table["label"].isna().all()
    table.assign(label="ant").to_csv("to-label.csv", index=False)
    assert invoke("audit", *LABELLED).exit_code == 0


def test_rows_that_remain_stand_for_a_stratum_that_cannot_be_labelled(adapted, invoke):
    truth = pd.read_csv("truth.csv")["kind"]
    lines = pd.read_csv("predictions.csv").assign(prediction=truth, source_only=truth)
    lines.loc[:11, "prediction"] = "none"
    lines.loc[:11, "source_only"] = "other"
    lines.assign(unfamiliar=lines.index.isin(range(12, 30))).to_csv("predictions.csv", index=False)
    assert invoke("audit", *FILES).exit_code == 0
    fill(lambda table: table[~table["row"].between(13, 30)])
    result = invoke("audit", *LABELLED, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["accuracy"] == pytest.approx(
        30 / 42
    )  # of the strata that were audited


def test_rows_or_columns_may_be_deleted(filled, invoke):
    fill(lambda table: table.head(10)[["row", "label"]])
    result = invoke("audit", *CORRECTED)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Accuracy by 10 audited rows")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda t: t.assign(label=t["label"].where(t.index > 2)),
            "3 of 20 rows have no value in 'label', who 't",
        ),
        (lambda t: t.assign(label=" "), "to-label.csv has no value in 'label'; fill it in"),
        (lambda t: t.assign(who=t["who"].where(t.index > 0, "t777")), "'who' is 't777', and in"),
        (lambda t: t.assign(f1=t["f1"].where(t.index > 0, 9.5)), "'f1' is '9.5', and in target"),
        (lambda t: t.assign(f1=t["f1"].sample(frac=1, random_state=0).tolist()), "'f1' is '"),
        (lambda t: t.assign(row=t["row"].where(t.index > 0, 61)), "'61' in 'row' is not a row of"),
        (lambda t: t.assign(row=t["row"].where(t.index > 0, 0)), "'0' in 'row' is not a row of"),
        (
            lambda t: t.assign(row=t["row"].where(t.index > 0, 1.5)),
            "'1.5' in 'row' is not a row of",
        ),
        (lambda t: t.assign(row=t["row"].where(t.index > 0)), "nan in 'row' is not a row of"),
        (lambda t: pd.concat([t, t.head(1)]), "times; keep one of them"),
        (lambda t: t.rename(columns={"label": "labels"}), "has no column 'label'; did you mean"),
        (lambda t: t.drop(columns="row"), "to-label.csv has no column 'row'"),
    ],
)
def test_a_file_that_is_not_filled_in_well(change, told, filled, invoke):
    fill(change)
    before = {path: path.read_bytes() for path in filled.iterdir()}
    result = invoke("audit", *CORRECTED)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: to-label.csv")
    assert result.stderr.count("\n") == 1
    assert told in result.stderr
    assert {path: path.read_bytes() for path in filled.iterdir()} == before


def rewrite(name, change):
    change(pd.read_csv(name)).to_csv(name, index=False)


PREDICTIONS = {
    "no source_only": lambda t: t.drop(columns="source_only"),
    "fewer": lambda t: t.head(50),
    "turned": lambda t: t.iloc[::-1],
    "other ids": lambda t: t.rename(columns={"who": "id"}),
    "no label": lambda t: t.assign(prediction=t["prediction"].where(t.index > 0)),
    "of another model": lambda t: t.assign(prediction=t["prediction"].shift(1, fill_value="ant")),
}


def change_files(what):
    if what in PREDICTIONS:
        rewrite("predictions.csv", PREDICTIONS[what])
    elif what == "other rows":
        for name in ("target.csv", "to-label.csv"):
            rewrite(name, lambda t: t.assign(f1=2.0))
    elif what == "arrays":
        transferable.save(AutoAdapter(), "model.tfm")


@pytest.mark.parametrize(
    ("change", "arguments", "told"),
    [
        ("no source_only", FILES, "no column 'source_only', by which"),
        ("no source_only", LABELLED, "run 'transferable adapt --out' without --no-estimate"),
        ("fewer", FILES, "predictions.csv has 50 rows, target.csv 60; give what 'adapt' wrote"),
        ("turned", FILES, "predictions.csv, row 1: 'who' is 't059', and in target.csv 't000'"),
        ("other ids", FILES, "target.csv has no column 'id'"),
        ("no label", FILES, "predictions.csv lacks labels or confidences"),
        ("other rows", CORRECTED, "model.tfm was fitted to other rows than those of target.csv"),
        ("of another model", CORRECTED, "rows of target.csv other labels than the predictions"),
        ("arrays", CORRECTED, "model.tfm holds a AutoAdapter, which takes arrays"),
        (None, (*FILES, "--rows", 61), "--rows 61: target.csv has 60; ask for fewer"),
        (None, FILES, "to-label.csv exists, perhaps filled in"),
        (None, (*FILES, "--out", "more.parquet"), "go to a .csv or .tsv file"),
        (None, (*FILES, "--label", "who"), "column 'who' names rows"),
        (None, (*FILES, "--model", "model.tfm"), "give these: --labelled"),
        (None, (*LABELLED, "--rows", 3), "--rows chooses rows to label"),
        (None, (*LABELLED, "--save", "m.tfm"), "--save needs the model"),
        (None, (*LABELLED, "--out", "a.csv"), "--out needs a model"),
        (None, (*CORRECTED, "--save", "model.tfm"), "model.tfm would be overwritten"),
        (None, (*CORRECTED, "--out", "to-label.csv"), "to-label.csv would be overwritten"),
        (None, (*FILES, "--labelled", "none.csv"), "there is no file none.csv"),
        (None, (*LABELLED, "--model", "none.tfm"), "there is no file none.tfm"),
    ],
)
def test_bad_input_is_one_clear_line_and_changes_nothing(change, arguments, told, filled, invoke):
    change_files(change)
    before = {path: path.read_bytes() for path in filled.iterdir()}
    result = invoke("audit", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert told in result.stderr
    assert {path: path.read_bytes() for path in filled.iterdir()} == before


def test_standard_output_holds_no_file(adapted, invoke):
    result = invoke("audit", *FILES, "--out", "-")
    assert result.exit_code == 2
    assert "name a file" in result.stderr


def test_text_of_files_controls_no_terminal(filled, invoke):
    hostile = "\x1b[31m[bold]\u202e"
    fill(lambda t: t.assign(label=t["label"].where(t.index > 0, f"moth{hostile}")))
    for arguments in (LABELLED, CORRECTED):
        result = invoke("audit", *arguments)
        assert result.exit_code == 0, result.stderr
        assert r"\x1b[31m[bold]\u202e" in result.stdout
        assert not set(result.output) & {"\x1b", "\u202e"}
    fill(lambda t: t.assign(who=t["who"].where(t.index > 0, hostile)))
    result = invoke("audit", *LABELLED)
    assert result.exit_code == 2
    assert not set(result.output) & {"\x1b", "\u202e"}


@pytest.mark.parametrize("n", [1, 2, 5])
def test_tiny_targets(n, adapted, invoke):
    source, target = tables()
    write(source, target.head(n))
    assert invoke("audit", *FILES).exit_code == 0
    assert sorted(fill()["row"]) == list(range(1, n + 1))
    result = invoke("audit", *CORRECTED)
    assert result.exit_code == 0, result.stderr
    truth = pd.read_csv("truth.csv")["kind"][:n]
    assert pd.read_csv("audited.csv")["prediction"].tolist() == truth.tolist()


def test_an_empty_target(adapted, invoke):
    pd.read_csv("target.csv").head(0).to_csv("target.csv", index=False)
    result = invoke("audit", *FILES)
    assert result.exit_code == 2
    assert "target.csv has no rows" in result.stderr


@pytest.mark.parametrize(("typed", "meant"), [("Cat", "cat"), ("BEE", "bee"), ("antt", "ant")])
def test_a_misspelt_class_is_refused_unless_it_is_new(filled, invoke, typed, meant):
    fill(lambda table: table.assign(label=table["label"].replace(meant, typed)))
    result = invoke("audit", *CORRECTED)
    assert result.exit_code == 2
    assert f"there is no class {typed!r}; did you mean {meant!r}?" in result.stderr
    assert not (filled / "audited.csv").exists()
    result = invoke("audit", *CORRECTED, "--new-class", typed)
    assert result.exit_code == 0, result.stderr
    assert f"Class '{typed}' is not in the source" in result.stdout


def test_the_report_is_made_again_with_the_measured_accuracy_on_top(filled, invoke):
    again = ("--report", "again.html", "--source", "source.csv")
    result = invoke("audit", *CORRECTED, *again)
    assert result.exit_code == 0, result.stderr
    assert "Corrected report saved to again.html" in result.stdout
    page = (filled / "again.html").read_text(encoding="utf-8")
    trust = transferable.load("audited.tfm").trust_
    assert trust.state == "measured"
    assert '<section class="card measured"' in page
    assert f"{trust.low:.0%}".removesuffix("%") in page
    assert "20 labelled rows, each left out in turn" in page
    for given, missing in ((again[:2], "--source"), (again[2:], "--report")):
        assert missing in invoke("audit", *CORRECTED, *given).stderr
    assert "--model" in invoke("audit", *LABELLED, *again).stderr
