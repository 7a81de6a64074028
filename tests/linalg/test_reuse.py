import numpy as np
import pytest
import scipy.sparse as sp

from transferable.linalg.reuse import canonical, remember, reusing


def make(log):
    def square(X, power=2):
        log.append(power)
        return X**power

    return square


def test_without_a_memory_every_call_computes():
    log = []
    square, X = make(log), np.arange(3.0)
    assert canonical(X) is X
    assert remember(square, X) is not remember(square, X)
    assert len(log) == 2


def test_same_arguments_give_the_same_object():
    log = []
    square, X = make(log), np.arange(3.0)
    with reusing(), reusing():
        first = remember(square, X, 2)
        assert remember(square, X, 2) is first
        assert remember(square, X, 3) is not first
        assert remember(square, X.copy(), 2) is not first
    assert log == [2, 3, 2]


@pytest.mark.parametrize("table", [np.arange(6.0).reshape(2, 3), sp.csr_array(np.eye(3))])
def test_equal_tables_become_one(table):
    with reusing():
        assert canonical(table.copy()) is canonical(table.copy())
        assert canonical(table.astype(np.float32)) is not canonical(table)
        assert canonical(table * 2) is not canonical(table)


def test_the_oldest_values_go_first():
    log = []
    square, tables = make(log), [np.full(100, float(i)) for i in range(4)]
    with reusing(most_bytes=2000):
        for table in tables:
            remember(square, table)
        remember(square, tables[3])
        assert len(log) == 4
        remember(square, tables[0])
        assert len(log) == 5


def test_tables_that_agree_at_their_ends_are_told_apart():
    tables = [np.array([0.0, i, 0.0]) for i in range(3)]
    with reusing():
        for table in tables:
            assert canonical(table) is table
        assert canonical(tables[2].copy()) is tables[2]
