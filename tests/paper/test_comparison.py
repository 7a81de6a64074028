"""The same table in four forms."""

import csv
import io
from xml.etree import ElementTree

from rich.console import Console

from paper.comparison import Comparison, to_csv, to_html, to_markdown, to_terminal

TABLE = Comparison(
    name="toy",
    title="Toy <accuracy>",
    rows=("JDA", "TFDF", "DAN"),
    columns=("C->A", "A->C", "Average"),
    published={
        ("JDA", "C->A"): 50.0,
        ("TFDF", "C->A"): 60.0,
        ("DAN", "C->A"): 70.0,
        ("TFDF", "Average"): 61.04,
    },
    ours={("JDA", "C->A"): 49.96, ("TFDF", "C->A"): 65.5, ("TFDF", "Average"): 61.0},
    notes=("a note & more",),
)


def terminal(table, width):
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(to_terminal(table, console))
    return console.file.getvalue()


def test_markdown_has_three_lines_a_method_with_winners_and_marks():
    lines = to_markdown(TABLE).splitlines()
    assert "| TFDF | published | 60.0 | - | **61.0** |" in lines
    assert "|  | ours | **65.5** ▲ | - | **61.0** |" in lines
    assert "|  | difference | +5.5 | - | +0.0 |" in lines
    assert "| DAN | published | **70.0** | - | - |" in lines
    assert "- a note & more" in lines
    assert not any("-0.0" in line for line in lines)


def test_html_is_well_formed_and_escaped():
    page = to_html(TABLE).replace("<!DOCTYPE html>\n", "").replace('<meta charset="utf-8">', "")
    root = ElementTree.fromstring(page)  # noqa: S314 (our own page)
    assert root.find(".//caption").text == TABLE.title
    assert len(root.findall(".//tbody")) == 3
    assert [cell.text for cell in root.findall(".//strong")][:2] == ["61.0", "65.5"]


def test_csv_has_every_value_as_it_is_shown():
    rows = list(csv.DictReader(io.StringIO(to_csv(TABLE))))
    assert len(rows) == 9
    first = rows[0]
    assert (first["row"], first["column"]) == ("JDA", "C->A")
    assert (first["ours"], first["difference"]) == ("50.0", "+0.0")
    assert rows[1]["ours"] == rows[1]["published"] == ""


def test_a_terminal_shows_as_much_as_fits():
    wide, medium, narrow = (terminal(TABLE, width) for width in (140, 62, 40))
    assert wide.count("difference") == 3
    assert medium.count("difference") == 1
    assert "C→A" in medium
    assert "C→A" not in narrow
    for text in (wide, medium, narrow):
        assert "…" not in text
        assert "61.0" in text
        assert "a note & more" in text


def test_without_published_values_only_ours_is_shown():
    table = Comparison("own", "Own", ("JDA",), ("C->A",), {}, {("JDA", "C->A"): 50.0})
    assert "published" not in to_markdown(table).split("\n- ")[0]
    assert "| JDA | ours | **50.0** |" in to_markdown(table)
