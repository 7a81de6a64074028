"""A few trials of every area; `make campaign` runs them by the thousand."""

from pathlib import Path

import pytest

from campaign import api, files, forged, kills, limits, models, signals
from campaign.running import run_area

pytestmark = pytest.mark.filterwarnings("ignore")

TRIALS = {api: 150, models: 60, files: 12, forged: 9, kills: 6, limits: 12, signals: 1}
BATCHES = 3


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("area", TRIALS, ids=lambda area: area.__name__.split(".")[-1])
def test_nothing_happens_that_must_not(area, batch, tmp_path):
    seeds = range(TRIALS[area])[batch::BATCHES]
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert area.trial(seed, folder)


def test_crashes_and_failures_are_told_and_kept(tmp_path, monkeypatch):
    count, failures = run_area("failing", range(4), tmp_path)
    assert count == 4
    assert [path.name for path in failures] == ["failing-1.json", "failing-2.json"]
    assert "code -11" in failures[1].read_text()
    assert Path(failures[0]).read_text().count("must not") == 1
