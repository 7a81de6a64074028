"""The benchmark runs, on a problem so small that its times say nothing."""

import json
from dataclasses import replace

import pytest

import bench_literal
from problems import small_problem


@pytest.fixture
def tiny(monkeypatch):
    settings = replace(
        bench_literal.PRINTED, manifold_dim=3, n_neighbors=5, max_iter=3, confusion_iter=4
    )
    monkeypatch.setattr(bench_literal, "PRINTED", settings)
    monkeypatch.setattr(bench_literal, "REPEATS", 1)
    monkeypatch.setattr(bench_literal, "task", lambda: (small_problem(), "a small problem"))


def test_both_sides_agree_and_the_table_says_so(tiny, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench_literal.py"])
    bench_literal.main()
    shown = capsys.readouterr().out
    assert "a small problem" in shown
    assert shown.count("100.00") == 2


def test_json(tiny, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench_literal.py", "--json", "--iterations", "1"])
    bench_literal.main()
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["method"] for row in rows] == ["TFDF-V", "TFDF (Adam)"]
    for row in rows:
        assert row["equal_labels"] == 1.0
        assert row["score_difference"] < bench_literal.TOLERANCE
        assert row["ratio"] == pytest.approx(row["literal_s"] / row["library_s"])
