"""Tables of records: written as they are read, and quoted without a copy that could differ."""

import csv
import re
from pathlib import Path

import pytest

import recording
from recording import quote, read, tabulate

ROOT = Path(__file__).parents[2]
TABLES = sorted(recording.RECORDS.rglob("*.csv"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "RECORDS", tmp_path)
    return tmp_path


def test_what_is_recorded_can_be_quoted(folder, capsys):
    rows = [
        {"task": "C->A", "method": "TFDF, chosen", "accuracy": 51.449, "seconds": None},
        {"task": "C->A", "method": "JDA", "accuracy": float("nan"), "runs": 3},
    ]
    tabulate("part/toy", rows)
    assert read("part/toy.csv")[1] == {
        "task": "C->A", "method": "JDA", "accuracy": "", "seconds": "", "runs": "3",
    }  # fmt: skip
    assert quote("part/toy.csv; C->A; TFDF, chosen; accuracy") == "51.4"
    assert "TFDF, chosen  51.4" in capsys.readouterr().out


def test_a_partial_table_is_printed_only(folder, capsys):
    tabulate("toy", [{"method": "TFDF"}], keep=False)
    assert "TFDF" in capsys.readouterr().out
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("toy.csv; TFDF; mean", "no column 'mean', but method, accuracy"),
        ("toy.csv; SPL; accuracy", "0 rows of toy.csv begin with SPL"),
        ("toy.csv; accuracy", "2 rows of toy.csv"),
        ("toy.csv; JDA; accuracy", "empty"),
    ],
)
def test_a_quotation_that_names_no_cell_is_refused(folder, text, wrong):
    tabulate("toy", [{"method": "TFDF", "accuracy": 50.0}, {"method": "JDA", "accuracy": None}])
    with pytest.raises(ValueError, match=re.escape(wrong)):
        quote(text)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_record_is_a_table(path):
    """Each row has a cell for each of the headings, which differ."""
    with path.open(encoding="utf-8", newline="") as file:
        headings, *rows = csv.reader(file)
    assert rows
    assert all(headings)
    assert len(set(headings)) == len(headings)
    assert {len(row) for row in rows} == {len(headings)}


def quoted(text):
    """Paragraphs with a comment such as ``<!-- record: FILE; ROW; COLUMN -->``, and that cell."""
    for comment in re.finditer(r"<!-- record: (.*?) -->", text):
        yield text[: comment.start()].rstrip().rsplit("\n\n", 1)[-1], quote(comment[1])


def stands_in(number, paragraph):
    return re.search(rf"(?<![\d.]){re.escape(number)}(?!\.?\d)", paragraph) is not None


def test_a_quoted_number_stands_before_its_comment(folder):
    tabulate("toy", [{"method": "TFDF", "accuracy": 51.4}])
    comment = "<!-- record: toy.csv; TFDF; accuracy -->"
    found = [
        stands_in(n, p) for p, n in quoted(f"51.4\n\n1{comment} 51.4 %. {comment}\n\n{comment}")
    ]
    assert found == [False, True, True]
    assert not stands_in("1.4", "51.4 1.45 1.4.1")


def test_readme_quotes_the_records():
    assert all(stands_in(number, paragraph) for paragraph, number in quoted(README))
