"""Plans of fits within a memory budget."""

import psutil
import pytest

from transferable._kernel.choose import KernelSizes
from transferable._linalg.arrays import CPU
from transferable._linalg.memory import Plan, memory_budget

SIZES = KernelSizes(5000, 10, itemsize=8, row_bytes=3000, matrices=7)
EXACT_BYTES = 7 * 8 * 5000**2 + 5000 * 3000


@pytest.mark.parametrize(
    ("given", "n_bytes"),
    [(12345, 12345), ("800MB", 800 * 2**20), ("1.5 GiB", 3 * 2**29), ("64k", 2**16), ("7", 7)],
)
def test_sizes_are_read(given, n_bytes):
    assert memory_budget(given, CPU) == n_bytes


def test_without_a_size_half_of_the_free_memory_is_taken():
    assert memory_budget(None, CPU) == pytest.approx(psutil.virtual_memory().available / 2, rel=0.2)


def test_what_is_no_size_is_refused():
    with pytest.raises(ValueError, match=r'max_memory="lots" is not a size.*"4GB"'):
        memory_budget("lots", CPU)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.8, 1.2])
def test_no_plan_takes_more_than_the_budget(share):
    budget = int(share * EXACT_BYTES)
    if share > 1:
        assert Plan.make(SIZES, "auto", budget).n_landmarks is None
        return
    plan = Plan.make(SIZES, "auto", budget)
    assert plan.n_landmarks <= 1000
    assert plan.n_bytes <= budget


def test_features_are_held_while_they_fit():
    held, streamed = (SIZES.landmark_bytes(300, held=held, chunk=8) for held in (True, False))
    assert streamed < held
    plan = Plan.make(SIZES, 300, held)
    assert (plan.held, plan.chunk, plan.n_bytes) == (True, 8, held)
    assert not Plan.make(SIZES, 300, held - 1).held
    with pytest.raises(MemoryError, match=r"n_landmarks=300 of 5000 rows .* n_landmarks=\d+ would"):
        Plan.make(SIZES, 300, streamed - 1)


def test_where_no_landmarks_fit_the_error_says_so():
    with pytest.raises(MemoryError, match="no number of landmarks fits"):
        Plan.make(SIZES, "auto", 1000)
