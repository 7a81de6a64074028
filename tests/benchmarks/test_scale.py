"""The benchmarks of scale, on few rows: what they report and how they fail."""

import numpy as np
import pytest

import scale
from shift import synthetic_shift


def test_the_shift_is_one_that_adaptation_helps():
    task = synthetic_shift(400, d=16, n_classes=4)
    Xs, ys, Xt, yt = task.parts
    assert Xs.shape == Xt.shape == (200, 16)
    assert Xs.dtype == np.float32
    assert set(ys) == set(yt) == set(range(4))
    assert np.linalg.norm(Xs.mean(axis=0) - Xt.mean(axis=0)) > 0.1


@pytest.mark.parametrize("graph", [True, False])
def test_a_fit_reports_time_memory_accuracy_and_stages(graph):
    record = scale.measured(scale.fit_shift, {"n": 400, "n_landmarks": 50, "graph": graph})
    assert record["n"] == 400
    assert 0 < sum(record["stages"].values()) <= record["seconds"] + 0.1
    assert 10 < record["accuracy"] <= 100
    assert record["peak_gb"] > 0
    assert ("Finding neighbours" in record["stages"]) is graph


def test_a_measurement_has_a_process_of_its_own():
    record = scale.run("fit_shift", n=300, n_landmarks=20, graph=False)
    assert record["n_landmarks"] == 20
    assert record["seconds"] > 0


def test_what_fails_or_takes_too_long_is_told_not_raised():
    assert "KeyError" in scale.run("peer", name="nobody", n=100)["stopped"]
    assert scale.run("fit_shift", 0, n=300, n_landmarks=20, graph=False)["stopped"] == "after 0 s"


def test_tables_are_made_of_what_is_there():
    fit = {"n": 400, "n_landmarks": 50, "graph": False}
    results = {
        "growth": [scale.measured(scale.fit_shift, fit)],
        "peers": [{"name": "POT EMD", "n": 400, "stopped": "after 1 s"}],
    }
    found = scale.tables(results)
    assert found["peers"] == [{"who": "POT EMD", "rows": 400, "stopped": "after 1 s"}]
    (row,) = found["fits"]
    assert (row["task"], row["rows"], row["graph"]) == ("synthetic shift", 400, "none")
    assert row["seconds"] > 0
    assert "exact" not in found
