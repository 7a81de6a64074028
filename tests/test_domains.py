"""One validated problem: which rows are the target, their canonical order, what is refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from transferable.domains import Domains, domain_ids, marked_ids

X6 = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    "y",
    [
        [0, 1, -1, 1, -1, 0],
        np.array([3, 7, -1, 7, -1, 3], dtype=np.int8),
        [0.0, 1.0, np.nan, 1.0, np.nan, 0.0],
        np.array(["a", "b", None, "b", None, "a"], dtype=object),
        np.array(["a", "b", np.nan, "b", None, "a"], dtype=object),
        pd.Series(["a", "b", None, "b", None, "a"]),
        pd.array(["a", "b", pd.NA, "b", pd.NA, "a"], dtype="string"),
        pd.Series([0, 1, pd.NA, 1, pd.NA, 0], dtype="Int64"),
        pd.Series(["a", "b", None, "b", None, "a"], dtype="category"),
    ],
    ids=["int", "int8", "float", "object", "mixed", "series", "string", "Int64", "category"],
)
def test_unlabelled_rows_are_the_target(y):
    domains = Domains.from_stacked(X6, y)
    assert (domains.n_source, domains.n_target, domains.n_classes) == (4, 2, 2)
    assert sorted(domains.order[4:]) == [2, 4]


@pytest.mark.parametrize(
    "y",
    [
        [-1, 1, -1, 1, -1, 1],
        np.array(["a", "b", "a", "b", "a", "-1"]),
        [-1.0, 1.0, 2.0, -1.0, 1.0, 2.0],
        [True, False, True, False, True, False],
    ],
    ids=["binary", "strings", "floats", "booleans"],
)
def test_labels_that_mark_nothing(y):
    """{-1, 1} is a binary problem, and only integers use -1 as a mark."""
    assert Domains.from_stacked(X6, y).n_target == 0


def test_marks_decide_where_they_are_given():
    domains = Domains.from_stacked(X6, [-1, 1, 2, -1, 1, 2], sample_domain=[1, 2, -1, 0.5, -3, -1])
    assert (domains.n_source, domains.n_target) == (3, 3)
    assert domains.classes.tolist() == [-1, 1]


def test_target_labels_are_not_looked_at():
    marks = [1, 1, 1, -1, -1, -1]
    clean = Domains.from_stacked(X6, [0, 1, 0, 0, 0, 0], marks)
    garbage = Domains.from_stacked(X6, np.array([0, 1, 0, np.nan, np.inf, 99]), marks)
    objects = np.array([0, 1, 0, None, "x", 3.5], dtype=object)
    assert clean.n_classes == garbage.n_classes == 2
    np.testing.assert_array_equal(clean.order, garbage.order)
    assert Domains.from_stacked(X6, objects, marks).n_source == 3


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), sparse=st.booleans())
def test_order_depends_on_content_alone(seed, sparse):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(12, 3)).astype(float)  # duplicates, zeros, minus signs
    y = np.array([0, 1, 2, 0, 1, 2, 0, 1, -1, -1, -1, -1])
    shuffled = rng.permutation(12)
    table = sp.csr_array if sparse else np.asarray
    one = Domains.from_stacked(table(X), y)
    other = Domains.from_stacked(table(X[shuffled]), y[shuffled])
    np.testing.assert_array_equal(np.asarray(abs(one.X - other.X).sum()), 0.0)
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_array_equal(one.restore(one.order), np.arange(12))
    restored = one.restore(one.order)
    np.testing.assert_array_equal(restored, np.arange(12))


def test_sparse_and_dense_rows_have_the_same_order():
    X = sp.random_array((20, 6), density=0.3, rng=np.random.default_rng(0), format="csr")
    y = np.r_[np.arange(12) % 3, np.full(8, -1)]
    dense, sparse = Domains.from_stacked(X.toarray(), y), Domains.from_stacked(X, y)
    np.testing.assert_array_equal(dense.order, sparse.order)


def test_minus_zero_is_zero():
    y = [0, 1, -1, -1]
    X = np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 3.0], [0.0, 2.0]])
    signed = X.copy()
    signed[X == 0] = -0.0
    np.testing.assert_array_equal(
        Domains.from_stacked(X, y).order, Domains.from_stacked(signed, y).order
    )


def test_codes_one_hot_and_restore():
    y = np.array(["b", "a", "c", "b"], dtype=object)
    X = np.vstack([X6[:4], X6[4:]])
    domains = Domains.from_stacked(X, np.r_[y, [None, None]])
    assert domains.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(domains.classes[domains.y], y[domains.order[:4]])
    Y = domains.one_hot()
    assert Y.shape == (6, 3)
    np.testing.assert_array_equal(Y[:4].argmax(axis=1), domains.y)
    assert not Y[4:].any()
    np.testing.assert_array_equal(domains.restore(domains.X), X)
    np.testing.assert_array_equal(domains.with_target(np.array([2, 0]))[4:], [2, 0])
    np.testing.assert_array_equal(np.vstack([domains.Xs, domains.Xt]), domains.X)


@pytest.mark.parametrize(
    ("y", "marks", "message"),
    [
        ([0, 1, 0, 1, 0], None, "inconsistent numbers of samples"),
        ([0, 0, 0, -1, -1, -1], [1, 1, 1, -1, -1, -1], "of one class"),
        ([0, 1, 0, 1, 0, 1], [1, 1, 1, 0, -1, -1], r"holds \[0\], which mark no domain"),
        ([0, 1, 0, 1, 0, 1], [1, 1, 1, np.nan, -1, -1], r"holds \[nan\]"),
        ([0, 1, 0, 1, 0, 1], [1, 1, -1], "marks 3 rows, but X has 6"),
        ([0, 1, 0, 1, 0, 1], [1] * 6, "target domain empty: 6 source and 0 target"),
        ([0, 1, 0, 1, 0, 1], [-1] * 6, "source domain empty: 0 source and 6 target"),
        ([np.nan] * 6, None, "None of the 6 rows has a label"),
        ([0, 1, np.nan, 1, 0, 1], [1, 1, 1, -1, -1, -1], "NaN"),
        ([0, 1, np.inf, 1, 0, 1], None, "infinity"),
        ([0.5, 1.25, 0.1, 1, 0, 1], None, "continuous"),
        (np.array([0, 1, None, 1, 0, 1], dtype=object), [1, 1, 1, -1, -1, -1], "have no label"),
        (np.zeros((6, 2)), None, "1d array"),
    ],
)
def test_what_is_refused(y, marks, message):
    with pytest.raises(ValueError, match=message):
        Domains.from_stacked(X6, y, marks)


def test_marks_must_be_numbers():
    with pytest.raises(TypeError, match="must hold numbers"):
        marked_ids(["source", "target"], 2)


def test_a_list_of_all_minus_ones_and_one_class_is_a_binary_problem():
    np.testing.assert_array_equal(domain_ids([-1, -1, 3], None, 3), [1, 1, 1])


def test_order_depends_neither_on_the_unit_nor_much_on_the_last_digits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 6)), np.r_[np.arange(200) % 3, np.full(200, -1)]
    before = X.copy()
    order = Domains.from_stacked(X, y).order
    np.testing.assert_array_equal(X, before)
    for unit in (2.0, 1e-20, 3e15):
        np.testing.assert_array_equal(Domains.from_stacked(unit * X, y).order, order)
    noisy = Domains.from_stacked(X * (1 + 1e-6 * rng.normal(size=X.shape)), y).order
    places, moved = np.argsort(order), np.argsort(noisy)
    assert np.mean(np.abs(places - moved) <= 4) > 0.98, "rows of the ends may change them"
    assert len(set(order[:100]) & set(noisy[:100])) >= 98


def test_order_is_as_good_as_random():
    """Neither labels nor columns follow it, and neighbours in it are not alike."""
    X = np.random.default_rng(1).normal(size=(2000, 5))
    domains = Domains.from_stacked(X, np.r_[np.arange(1000) % 2, np.full(1000, -1)])
    for column in domains.Xs.T:
        assert abs(np.corrcoef(column, np.arange(1000))[0, 1]) < 0.1
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 0.1


def test_groups_are_places_among_the_counts():
    """By source and class, those of the target last; rows count by their weights."""
    rng = np.random.default_rng(0)
    y, target, ids = rng.integers(3, size=40), rng.integers(2, size=30), rng.integers(1, 3, size=40)
    weights = rng.uniform(0.5, 2.0, 70)
    domains = Domains(
        np.zeros((70, 1)),
        y,
        np.arange(3),
        np.arange(70),
        ids=np.r_[ids, -np.ones(30)],
        weights=weights,
    )
    counts, groups = domains.counts(target), domains.groups(target)
    assert counts.shape == (3, 3)
    np.testing.assert_allclose(np.bincount(groups, weights, 9), counts.ravel())
    assert counts[1, 2] == pytest.approx(weights[:40][(ids == 2) & (y == 2)].sum())
    assert counts[2, 2] == 0
    whole = domains.counts(None)
    np.testing.assert_allclose(whole[2], [weights[40:].sum(), 0, 0])
    np.testing.assert_allclose(np.bincount(domains.groups(None), weights, 9), whole.ravel())
