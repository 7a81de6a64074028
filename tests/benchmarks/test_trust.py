"""Problems and tables of the benchmark of verdicts and audits."""

import numpy as np
import pytest

import trust
from problems import small_problem


def test_problems_are_of_every_kind_and_have_their_own_names():
    found = [(kind, family, name) for kind, family, name, _ in trust.problems([*trust.KINDS])]
    assert len(set(found)) == len(found)
    kinds = [kind for kind, *_ in found]
    assert kinds.count("development") == 127
    assert set(trust.MADE) < set(kinds)


@pytest.mark.filterwarnings("ignore:The `return_X_y` parameter:DeprecationWarning")  # skada's
@pytest.mark.parametrize("shift", trust.SHIFTS)
def test_simulated_shifts_have_two_classes_in_both_domains(shift):
    pytest.importorskip("skada")
    Xs, ys, Xt, yt = trust.simulated(shift, 0)
    assert Xs.shape[1] == Xt.shape[1] == 2
    assert len(set(ys)) == len(set(yt)) == 2


def test_made_up_targets_differ_from_the_given_in_what_they_say():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 5
    for name, change in trust.MADE.items():
        Xs, ys, Xt, yt = change(X, y, X + 1.0, y, np.random.default_rng(1))
        same = [np.array_equal(*pair) for pair in ((Xs, X), (ys, y), (Xt, X + 1.0), (yt, y))]
        assert not all(same), name
        assert len(Xs) == len(ys)
        assert len(Xt) == len(yt) == 40


def test_a_measured_problem_makes_a_row_of_each_table():
    p = small_problem(n_source=60, n_target=60, n_features=5)
    record = trust.measure("shifts", "any", "0", (p.Xs, p.ys, p.Xt, p.yt), draws=1)
    assert record["low"] <= record["high"]
    assert 0 <= record["audit 20"]["after"] <= 1
    records = [record | {"kind": "development", "family": family} for family in ("surf", "coil")]
    names = ["development, surf", "development, coil", "development, all"]
    assert [(row["cases of"], row["cases"]) for row in trust.verdicts(records)] == [
        *((name, 1) for name in names[:2]), (names[2], 2),
    ]  # fmt: skip
    assert [row["rows audited"] for row in trust.audits(records)] == [*trust.SIZES] * 3
    assert [row["family"] for row in trust.left_out(records)] == ["surf", "coil"]
    assert [row["AUROC"] for row in trust.unfamiliar(records)] == [None, None]
