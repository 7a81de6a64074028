"""What fits share: kept by slot and key within a context, and by nobody else."""

import numpy as np
import pytest

from transferable import TFDF
from transferable.domains import Domains
from transferable.workspace import Same, Workspace, shared, sharing, workspace


def counting(log, value=0.0):
    return lambda: log.append(value) or np.full(100, value)


def test_a_value_is_made_once_for_each_slot_and_key():
    log, space = [], Workspace()
    first = space.get("kernel", 1, counting(log))
    assert space.get("kernel", 1, counting(log)) is first
    assert space.get("kernel", 2, counting(log)) is not first
    assert space.get("graph", 1, counting(log)) is not first
    assert len(log) == 3


def test_the_oldest_values_go_first():
    log, space = [], Workspace(most_bytes=2000)
    for i in range(4):
        space.get("kernel", i, counting(log, i))
    space.get("kernel", 3, counting(log))
    assert len(log) == 4
    space.get("kernel", 0, counting(log))
    assert len(log) == 5


def test_what_is_larger_than_the_workspace_is_not_kept_and_drives_nothing_out():
    space = Workspace(most_bytes=10)
    space.get("error", 0, lambda: 0.5)
    assert space.get("kernel", 0, counting([])).shape == (100,)
    log = []
    space.get("kernel", 0, counting(log))
    assert len(log) == 1
    assert space.get("error", 0, lambda: 0.7) == 0.5


def test_fits_within_share_one_and_others_have_their_own():
    assert shared() is None
    assert workspace() is not workspace()
    with sharing() as outer:
        assert workspace() is outer
        value = outer.get("kernel", 0, counting([]))
        with sharing(labels_only=True) as inner:
            assert inner.labels_only
            assert inner.get("kernel", 0, counting([])) is value
        assert not workspace().labels_only
    assert shared() is None


def test_the_very_same_objects_are_meant():
    X = np.zeros(3)
    assert Same(X, None) == Same(X, None)
    assert hash(Same(X)) == hash(Same(X))
    assert Same(X) != Same(X.copy())
    assert Same(X) != Same(X, None)


@pytest.mark.parametrize("change", ["rows", "labels"])
def test_problems_that_differ_share_nothing_that_depends_on_it(change):
    """Fits of one workspace are those they would be alone."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    Xs, Xt = rng.normal(size=(40, 4)) + 3 * y[:, None], rng.normal(size=(30, 4))
    other_y = np.roll(y, 1) if change == "labels" else y
    other_Xt = 2 * Xt + 1 if change == "rows" else Xt
    with sharing():
        TFDF().adapt(Xs, y, Xt)
        together = TFDF().adapt(Xs, other_y, other_Xt).decision_function(Xt)
    alone = TFDF().adapt(Xs, other_y, other_Xt).decision_function(Xt)
    np.testing.assert_array_equal(together, alone)


def test_keys_of_problems_tell_their_rows_apart():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.r_[np.arange(10) % 2, np.full(10, -1)]
    order = np.random.default_rng(1).permutation(20)
    domains = Domains.from_stacked(X, y)
    assert Domains.from_stacked(X[order], y[order]).key == domains.key
    assert Domains.from_stacked(X + 1e-9, y).key != domains.key
    assert Domains.from_stacked(X, np.r_[y[:9], np.full(11, -1)]).key != domains.key
