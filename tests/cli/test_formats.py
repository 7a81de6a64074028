"""Files as people have them go in, and predictions come out as people want them."""

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from transferable.cli import app

ROOT = Path(__file__).parents[2]
GIVEN = ("--label", "kind", "--id", "who", "--method", "tfdfv", "--no-estimate")


@pytest.fixture
def expected(folder, invoke):
    result = invoke("adapt", "source.csv", "target.csv", *GIVEN, "--model", "m.tfm", "--quiet")
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(
    ("writing", "reading"),
    [
        ({"sep": ";", "decimal": ","}, ("--sep", ";", "--decimal", ",")),
        ({"sep": "|"}, ("--sep", "|")),
        ({"sep": "\t"}, ("--sep", "tab")),
        ({"encoding": "utf-16"}, ("--encoding", "utf-16")),
        ({"encoding": "cp1252"}, ("--encoding", "cp1252")),
        ({"encoding": "utf-8-sig"}, ()),
    ],
    ids=str,
)
def test_text_may_be_written_in_many_ways(expected, invoke, writing, reading):
    for name in ("source", "target"):
        table = pd.read_csv(f"{name}.csv").rename(columns={"habitat": "größe"})
        table.to_csv(f"{name}.csv", index=False, **writing)
    result = invoke("adapt", "source.csv", "target.csv", *GIVEN, *reading, "--quiet")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == expected
    if reading:
        refused = invoke("adapt", "source.csv", "target.csv", *GIVEN, "--quiet")
        assert refused.exit_code == 2
        assert reading[0] in refused.stderr, "the remedy is named"


def test_what_stands_for_no_value_can_be_named(folder, invoke):
    for name in ("source", "target"):
        table = pd.read_csv(f"{name}.csv").astype({"f1": object})
        table.loc[2, "f1"] = "unknown"
        table.to_csv(f"{name}.csv", index=False)
    refused = invoke("adapt", "source.csv", "target.csv", *GIVEN)
    assert refused.exit_code == 2, "numbers and a word are categories, and far too many"
    result = invoke("adapt", "source.csv", "target.csv", *GIVEN, "--missing", "unknown", "--json")
    assert "f1" in json.loads(result.stdout)["features"]


def test_standard_input_and_output(expected, folder):
    def piped(*arguments, given):
        return CliRunner().invoke(app, arguments, input=Path(given).read_bytes())

    result = piped("adapt", "source.csv", "-", *GIVEN, "-q", "--out", "-", given="target.csv")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == expected
    assert piped("adapt", "-", "target.csv", *GIVEN, "-q", given="source.csv").stdout == expected
    assert piped("predict", "m.tfm", "-", "-q", given="target.csv").stdout == expected
    both = piped("adapt", "-", "-", *GIVEN, given="target.csv")
    assert both.exit_code == 2
    assert "only one of SOURCE and TARGET" in both.stderr
    empty = CliRunner().invoke(app, ("predict", "m.tfm", "-"), input=b"")
    assert empty.exit_code == 2
    assert "standard input is empty" in empty.stderr


def test_excel_goes_in(folder, invoke):
    for name in ("source", "target"):
        table = pd.read_csv(f"{name}.csv").round(4)  # Excel keeps 15 digits
        table.to_csv(f"{name}.csv", index=False)
        table.to_excel(f"{name}.xlsx", index=False)
    expected, result = (
        invoke("adapt", f"source.{kind}", f"target.{kind}", *GIVEN, "--quiet")
        for kind in ("csv", "xlsx")
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == expected.stdout


@pytest.mark.parametrize("kind", ["xlsx", "parquet"])
def test_what_is_named_missing_is_missing_in_every_format(folder, invoke, kind):
    for name in ("source", "target"):
        table = pd.read_csv(f"{name}.csv").round(4)
        table.loc[:1, "f0"] = -999.0
        table["colour"] = ["unknown", *["red", "blue"] * len(table)][: len(table)]
        table.to_csv(f"{name}.csv", index=False)
        table.to_excel(f"{name}.xlsx", index=False)
        table.to_parquet(f"{name}.parquet")
    missing = ("--missing", "unknown", "--missing", "-999")
    expected, result = (
        invoke("adapt", f"source.{name}", f"target.{name}", *GIVEN, *missing, "--quiet")
        for name in ("csv", kind)
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == expected.stdout
    plain = invoke("adapt", "source.csv", "target.csv", *GIVEN, "--quiet")
    assert plain.stdout != expected.stdout


def test_sheets_of_excel(folder, invoke):
    table = pd.read_csv("source.csv")
    with pd.ExcelWriter("source.xlsx") as book:
        table.to_excel(book, sheet_name="rows", index=False)
        pd.DataFrame().to_excel(book, sheet_name="empty", index=False)
    assert invoke("adapt", "source.xlsx", "target.csv", *GIVEN, "--quiet").exit_code == 0
    with pd.ExcelWriter("source.xlsx") as book:
        pd.DataFrame({"note": ["by hand"]}).to_excel(book, sheet_name="notes", index=False)
        table.to_excel(book, sheet_name="rows", index=False)
    unsure = invoke("adapt", "source.xlsx", "target.csv", *GIVEN)
    assert unsure.exit_code == 2
    assert "holds several sheets, 'notes', 'rows'; name one: --sheet notes" in unsure.stderr
    named = invoke("adapt", "source.xlsx", "target.csv", *GIVEN, "--sheet", "rows")
    assert named.exit_code == 0, named.stderr
    unknown = invoke("adapt", "source.xlsx", "target.csv", *GIVEN, "--sheet", "row")
    assert unknown.exit_code == 2
    assert "has no sheet 'row'; its sheets are 'notes', 'rows'" in unknown.stderr


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("source.xlsx", "openpyxl", "excel"), ("source.parquet", "pyarrow", "tables")],
)
def test_what_is_not_installed_is_named_in_one_line(
    folder, invoke, monkeypatch, name, package, extra
):
    table = pd.read_csv("source.csv")
    table.to_excel(name, index=False) if name.endswith("xlsx") else table.to_parquet(name)
    monkeypatch.setitem(sys.modules, {"pyarrow": "pyarrow.parquet"}.get(package, package), None)
    result = invoke("adapt", name, "target.csv", *GIVEN)
    assert result.exit_code == 2
    told = f"{name} needs {package} to be read: pip install '.[{extra}]' in a clone of the source"
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_device_that_needs_torch_is_refused_in_one_line_without_it(folder, invoke, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = invoke("adapt", "source.csv", "target.csv", *GIVEN, "--device", "cuda")
    assert result.exit_code == 2
    assert (
        result.stderr
        == "Error: --device cuda needs torch: pip install '.[gpu]' in a clone of the source.\n"
    )


def test_parquet_comes_out_piece_by_piece(expected, invoke):
    lines = pd.read_csv(io.StringIO(expected), dtype={"who": str})
    result = invoke("adapt", "source.csv", "target.csv", *GIVEN, "--out", "p.parquet")
    assert result.exit_code == 0, result.stderr
    pd.testing.assert_frame_equal(pd.read_parquet("p.parquet"), lines, check_dtype=False)
    long = pd.concat([pd.read_csv("target.csv")] * 1000, ignore_index=True)
    long.to_csv("long.csv", index=False)
    assert invoke("predict", "m.tfm", "long.csv", "--out", "q.parquet").exit_code == 0
    again = pd.read_parquet("q.parquet")
    assert len(again) == len(long)
    assert again["prediction"].tolist() == lines["prediction"].tolist() * 1000


def test_every_probability_comes_out_if_asked_for(expected, invoke):
    result = invoke("predict", "m.tfm", "target.csv", "--probabilities")
    lines = pd.read_csv(io.StringIO(result.stdout))
    each = lines[["probability_ant", "probability_bee", "probability_cat"]]
    np.testing.assert_allclose(each.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(each.max(axis=1), lines["confidence"])
    given = ("adapt", "source.csv", "target.csv", *GIVEN, "-q", "--probabilities")
    assert invoke(*given).stdout == result.stdout


def test_predict_scores_itself_where_labels_are_known(expected, invoke):
    true = pd.read_csv("known.csv")["truth"]
    right = np.mean(pd.read_csv(io.StringIO(expected))["prediction"] == true)
    told = invoke("predict", "m.tfm", "known.csv", "--target-label", "truth")
    assert f"24 rows with a value in 'truth': {right:.1%}" in told.stderr
    given = ("predict", "m.tfm", "known.csv", "--target-label", "truth", "--out", "p.csv")
    record = json.loads(invoke(*given, "--json").stdout)
    assert record["evaluation"] == {"column": "truth", "rows": 24, "accuracy": right}
    lacking = invoke("predict", "m.tfm", "target.csv", "--target-label", "truth")
    assert lacking.exit_code == 2
    assert "target.csv has no column 'truth'" in lacking.stderr


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "transferable", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.startswith("transferable ")


def test_help_shows_flags_as_flags_with_examples(invoke):
    shown = invoke("adapt", "--help").stdout
    lines = [line for line in shown.splitlines() if "--json" in line or "--tune" in line]
    assert lines
    assert not any("<bool>" in line or "BOOL" in line for line in lines)
    assert "Examples" in shown
    assert "docs/command-line.md" in shown


def test_methods_explains_every_parameter(invoke):
    records = json.loads(invoke("methods", "--json").stdout)
    for record in records:
        assert set(record["explained"]) >= set(record["parameters"]), record["method"]
        assert all(record["explained"][name] for name in record["parameters"])
    assert [record["method"] for record in records if record["default"]] == ["autoadapter"]
    assert "as in TFDFV" not in " ".join(invoke("methods", "tfdf").stdout.split())
