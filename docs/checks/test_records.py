"""Tables of records as pages show them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from _site.records import table

import recording


@pytest.fixture(autouse=True)
def records(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "RECORDS", tmp_path)
    found = [("TFDF()", "A", 50.0), ("JDA", "A", 40.0), ("TFDF()", "mean", 55.0)]
    recording.tabulate("toy", [{"method": m, "task": t, "accuracy": a} for m, t, a in found])


def test_some_rows_and_columns():
    lines = table("toy.csv", {"accuracy": "per cent", "method": "method"}, ["JDA", "TFDF()"])
    assert lines == [
        "| per cent | method |",
        "| ---: | --- |",
        "| 40.0 | JDA |",
        "| 50.0 | `TFDF()` |",
        "| 55.0 | `TFDF()` |",
    ]
    assert table("toy.csv", where={"task": "mean"})[2:] == ["| `TFDF()` | mean | 55.0 |"]


@pytest.mark.parametrize(
    "wrong",
    [{"columns": {"mean": "mean"}}, {"rows": ["SPL"]}, {"where": {"task": "B"}}],
)
def test_names_that_are_not_there(wrong):
    with pytest.raises(ValueError, match=r"toy\.csv"):
        table("toy.csv", **wrong)
