"""The benchmark of anchors, on few rows: every setting is tried, and what it changes is undone."""

import pytest

import anchors as benchmark
from problems import small_problem
from transferable._kernel import choose
from transferable._linalg import search


@pytest.fixture
def few_rows(monkeypatch):
    """One small task, and the library as it was once the test is over."""
    problem = small_problem(n_source=60, n_target=50)
    monkeypatch.setitem(benchmark.TASKS, "coil", (("toy",), lambda _: problem))
    for module, name in (
        (choose, "spherical_means"),
        (choose, "N_TIES"),
        (search, "_weights"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))


@pytest.mark.usefixtures("few_rows")
def test_every_setting_is_measured():
    records = benchmark.measure(("coil", "toy", 0, "cpu"))
    assert {record["setting"] for record in records} == {
        setting for setting, *_ in benchmark.settings("coil")
    }
    by_setting = {record["setting"]: record for record in records}
    assert by_setting["none"]["anchors"] is None
    assert by_setting["k-means, 1/10, s 3, weight 1.0"]["anchors"] == 11
    assert all(10 < record["accuracy"] <= 100 for record in records)
    means = {row["setting"]: row["coil"] for row in benchmark.table(records)}
    assert means["none"] == pytest.approx(by_setting["none"]["accuracy"])
