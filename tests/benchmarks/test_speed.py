"""The table of times: rows of both trees beside their goals, and what cannot be measured."""

from pathlib import Path

import pytest

import speed


def test_a_row_shows_the_least_of_before_and_now_beside_the_goals(capsys, monkeypatch):
    found = iter([(3.0, 90.0), (4.0, 80.0), (5.0, 100.0), (2.0, 70.0)])
    monkeypatch.setattr(speed, "measured", lambda row, tree: next(found))
    monkeypatch.setattr(speed, "table_rows", lambda: {"printed": (float, 1.5, 0)})
    arguments = ["--before", str(speed.OWN), "--only", "printed", "--repeats", "2"]
    assert speed.main(arguments) == 0
    head, row = capsys.readouterr().out.splitlines()[-2:]
    assert head.split("  ")[0] == "what"
    assert row.split() == ["printed", "3.00", "2.00", "1.50", "90", "70"]


def test_a_row_without_its_data_is_left_out(capsys, monkeypatch):
    monkeypatch.setattr(speed, "measured", lambda row, tree: None)
    assert speed.main(["--only", "COIL"]) == 1
    assert capsys.readouterr().out == ""


def test_a_process_measures_a_row():
    seconds, megabytes = speed.measured("TFDF, printed digits", speed.OWN)
    assert seconds > 0.1
    assert megabytes > 50
    assert speed.measured("no such row", speed.OWN) is None


def test_a_folder_without_the_library_is_refused(tmp_path: Path):
    with pytest.raises(SystemExit):
        speed.main(["--before", str(tmp_path)])
