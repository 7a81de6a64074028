"""The development cases, and what the benchmark of AutoAdapter makes of its records."""

import numpy as np
import pytest

import auto
from cases import development_cases

RECORD = {
    "group": "coil",
    "shift": "as it is",
    "seed": 0,
    "max_rows": 600,
    "seconds": 60,
    "estimated": 0.8,
    "interval": (0.7, 0.9),
    "harm": False,
}


def records():
    accuracy = {
        (auto.LINEAR, "a"): 0.6,
        (auto.LINEAR, "b"): 0.6,
        (auto.FIXED, "a"): 0.7,
        (auto.FIXED, "b"): 0.5,
        (auto.AUTO, "a"): 0.8,
        (auto.AUTO, "b"): 0.58,
    }
    return [
        RECORD | {"method": method, "task": task, "accuracy": value}
        for (method, task), value in accuracy.items()
    ]


def test_there_are_127_cases_and_seventeen_are_tables():
    found = list(development_cases())
    assert len({case.name for case in found}) == len(found) == 127
    kinds = [auto.kind(case.__dict__) for case in found]
    assert [kinds.count(name) for name in ("as is", "partial", "tables")] == [15, 25, 17]


def test_means_and_losses_are_told_beside_logistic_regression():
    found = auto.mean_table(records(), [auto.FIXED, auto.AUTO])
    columns = "as is", "more than 1 below linear", "more than 5 below linear", "worst"
    assert [[row[column] for column in columns] for row in found] == [
        [pytest.approx(60.0), "50", "50", pytest.approx(-10.0)],
        [pytest.approx(69.0), "50", "0", pytest.approx(-2.0)],
    ]


def test_a_case_without_a_method_has_no_number():
    _, row = auto.mean_table(records()[:2], [auto.LINEAR, auto.AUTO])
    assert np.isnan([row[column] for column in (*auto.KINDS.values(), "tables")]).all()
    assert (
        pytest.approx(60.0)
        == auto.accuracies(records(), auto.LINEAR)[("coil", "a", "as it is", 0, 600)]
    )
