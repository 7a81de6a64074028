"""The cases with shifted class shares, and what the safety benchmark makes of its records."""

import numpy as np
import pytest

import safety
from cases import SHIFTS, Case, cases
from transferable import TFDFV

LABELS = np.repeat(np.arange(10), 30)


def test_the_protocol_has_368_cases():
    assert len({case.name for case in cases()}) == 368


def test_partial_keeps_half_of_the_classes_whole():
    ys, yt, keep = SHIFTS["partial"].apply(LABELS, LABELS, seed=0)
    assert np.array_equal(ys, LABELS)
    assert np.array_equal(yt, LABELS[keep])
    assert sorted(np.bincount(yt, minlength=10)) == [0] * 5 + [30] * 5


def test_geometric_thins_one_class_to_a_tenth():
    labels = np.repeat(np.arange(10), 1000)
    counts = np.bincount(SHIFTS["geometric"].apply(labels, labels, seed=0)[1], minlength=10)
    assert counts.max() == 1000
    assert 70 <= counts.min() <= 130


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_merged_classes_are_the_same_in_both_domains(n_classes):
    ys, yt, keep = SHIFTS[f"merged {n_classes}, partial"].apply(LABELS, LABELS, seed=1)
    assert len(np.unique(ys)) == n_classes
    assert len(np.unique(yt)) == -(-n_classes // 2)
    assert np.array_equal(yt, ys[keep])


def test_seeds_draw_differently_and_again_the_same():
    first, again, second = (
        Case("printed", "printed->handwritten", "partial", seed, 200).load() for seed in (0, 0, 1)
    )
    assert np.array_equal(first.Xt, again.Xt)
    assert set(first.yt) != set(second.yt)
    assert len(first.Xs) == 200


def test_methods_are_read_and_never_evaluated():
    model = safety.estimator("TFDFV(alignment=3, balance='printed')", {})
    assert isinstance(model, TFDFV)
    assert (model.alignment, model.balance) == (3, "printed")
    for text in ("TFDFV", "TFDFV(__import__('os'))", "TFDFV(ridge=open('x'))"):
        with pytest.raises(ValueError, match=r"form|malformed"):
            safety.estimator(text, {})


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    case = Case("printed", "printed->handwritten", "partial", 0, 60)
    pairs = [(case, safety.LINEAR)]
    first = safety.collect(pairs, tmp_path / "records.jsonl", 1)
    monkeypatch.setattr(safety, "measure", None)
    assert safety.collect(pairs, tmp_path / "records.jsonl", 1) == first


def test_means_are_over_tasks_and_then_over_groups():
    record = {"shift": "partial", "method": "a", "seed": 0, "max_rows": None, "seconds": 1}
    records = [
        record | {"group": "surf", "task": "C->A", "accuracy": 0.2},
        record | {"group": "surf", "task": "A->C", "accuracy": 0.4},
        record | {"group": "coil", "task": "1->2", "accuracy": 0.9},
    ]
    assert safety.mean_of_groups(records) == pytest.approx(60)
    worse = [r | {"method": "b", "accuracy": r["accuracy"] - 0.1} for r in records[:1]]
    assert safety.differences(records + worse, "b", "a") == {"partial": [pytest.approx(-10)]}
    *_, all_cases = safety.harm_table(records + worse, "b", "a")
    assert list(all_cases.values()) == ["b", "all", 1, "0", "100", "-10.0"]
