"""A few trials of every area; `make campaign` runs them by the thousand."""

import pytest

from campaign import api, files, forged, kills, limits, models, signals
from campaign.running import run

pytestmark = [pytest.mark.processes, pytest.mark.filterwarnings("ignore")]

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


@pytest.mark.parametrize("workers", [1, 3])
def test_crashes_and_failures_are_told_and_kept(workers, tmp_path):
    totals = run({"failing": range(4)}, tmp_path, workers)
    assert totals["failing"][:2].tolist() == [4, 2]
    kept = sorted(tmp_path.iterdir())
    assert [path.name for path in kept] == ["failing-1.json", "failing-2.json"]
    assert kept[0].read_text().count("must not") == 1
    assert "code -11" in kept[1].read_text()
