"""The table of times: rows of both trees, ratios to floors, and what cannot be measured."""

from pathlib import Path

import pytest

import speed


def test_a_row_shows_floor_before_now_and_ratio(capsys, monkeypatch):
    seconds = iter([10.0, 3.0, 4.0, 5.0, 2.0])
    monkeypatch.setattr(speed, "measured", lambda row, tree: next(seconds))
    arguments = ["--before", str(speed.OWN), "--only", "printed", "--repeats", "2"]
    monkeypatch.setattr(speed, "table_rows", lambda: [speed.Row("printed", float, 10.0)])
    assert speed.main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[1:] == ["1.00", "3.00", "2.00", "2.00"]


def test_a_row_without_its_data_is_left_out(capsys, monkeypatch):
    monkeypatch.setattr(speed, "measured", lambda row, tree: 1.0 if row == "rate" else None)
    assert speed.main(["--only", "COIL"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_process_measures_a_row():
    assert speed.measured("rate", speed.OWN) > 0.1
    assert speed.measured("no such row", speed.OWN) is None


def test_a_folder_without_the_library_is_refused(tmp_path: Path):
    with pytest.raises(SystemExit):
        speed.main(["--before", str(tmp_path)])
