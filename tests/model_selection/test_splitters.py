"""Splits by domain: what is trained on, what is scored, and that scikit-learn's tools take them."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, cross_val_score

from problems import small_problem
from transferable import TFDFV
from transferable.model_selection import (
    LeaveOneDomainOut,
    StratifiedDomainKFold,
    as_source_and_target,
)

P = small_problem(seed=5, n_source=42, n_target=33)
MARKS = np.repeat([1, -1], [len(P.ys), len(P.yt)])
MARKED = np.r_[P.ys, np.full(len(P.yt), -1)]
MODEL = TFDFV(max_iter=2, n_neighbors=3)
ROOMS = np.array(["attic", "cellar", "hall"])[np.arange(len(P.X)) // 3 % 3]
TRUTH = np.r_[P.ys, P.yt]


def test_every_domain_is_the_target_once():
    X, y, ids = as_source_and_target(P.X, TRUTH, ROOMS)
    splits = list(LeaveOneDomainOut().split(X, y, ids))
    assert len(splits) == LeaveOneDomainOut().get_n_splits(X, y, ids) == 3
    for k, (train, test) in enumerate(splits, start=1):
        assert set(ids[test]) == {-k}
        assert set(ids[train]) == {1, 2, 3, -k} - {k}
        assert set(test) <= set(train), "its rows are adapted to, without labels"
        assert np.sum(ids == -k) == len(test)


def test_new_rows_of_the_target_can_be_held_out():
    X, y, ids = as_source_and_target(P.X, TRUTH, ROOMS)
    for train, test in LeaveOneDomainOut(test_size=0.4).split(X, y, ids):
        assert len(np.unique(ids[test])) == 1
        own = np.sum(ids == ids[test[0]])
        assert len(test) == round(0.4 * own)
        assert set(train).isdisjoint(test)
        assert np.sum(ids[train] == ids[test[0]]) == own - len(test)


def test_rows_are_given_twice_in_their_container():
    frame = pd.DataFrame(P.X, columns=list("abcdef"))
    for table in (frame, csr_array(P.X), P.X.tolist()):
        X, y, ids = as_source_and_target(table, TRUTH, ROOMS)
        assert X.shape == (2 * len(P.X), 6)
        assert isinstance(X, type(table)) or isinstance(table, list)
        np.testing.assert_array_equal(y[: len(P.X)], y[len(P.X) :])
        np.testing.assert_array_equal(ids[: len(P.X)], -ids[len(P.X) :])


@pytest.mark.parametrize("test", ["both", "source", "target"])
def test_folds_hold_the_same_share_of_every_domain_and_class(test):
    tested = np.zeros(len(P.X), dtype=int)
    splitter = StratifiedDomainKFold(4, test=test)
    assert splitter.get_n_splits() == 4
    for train, rows in splitter.split(P.X, np.r_[P.ys, P.yt * 0], sample_domain=MARKS):
        tested[rows] += 1
        assert set(train).isdisjoint(rows)
        assert len(train) + len(rows) == len(P.X)
        for code in range(3) if test != "target" else ():
            assert np.sum(MARKED[rows] == code) in (3, 4)
        if test != "source":
            assert np.sum(MARKS[rows] < 0) in (8, 9)
    expected = {"both": MARKS == MARKS, "source": MARKS > 0, "target": MARKS < 0}[test]
    np.testing.assert_array_equal(tested, expected.astype(int))


def test_target_labels_are_not_looked_at():
    one, other = (
        list(StratifiedDomainKFold(3).split(P.X, np.r_[P.ys, yt], sample_domain=MARKS))
        for yt in (P.yt, np.arange(len(P.yt)))
    )
    for (_, test), (_, same) in zip(one, other, strict=True):
        np.testing.assert_array_equal(test, same)
    (_, marked), *_ = StratifiedDomainKFold(3).split(P.X, MARKED)
    np.testing.assert_array_equal(marked, one[0][1])


def test_in_cross_validation_and_search_with_groups():
    X, y, ids = as_source_and_target(P.X, TRUTH, ROOMS)
    sides = {"sample_domain": np.sign(ids)}
    scores = cross_val_score(MODEL, X, y, groups=ids, params=sides, cv=LeaveOneDomainOut())
    assert len(scores) == 3
    assert scores.min() > 0.6
    search = GridSearchCV(MODEL, {"ridge": [0.1, 1e8]}, cv=LeaveOneDomainOut())
    assert search.fit(X, y, groups=ids, **sides).best_params_ == {"ridge": 0.1}
    folds = StratifiedDomainKFold(3, test="source")
    assert cross_val_score(MODEL, P.X, MARKED, cv=folds).min() > 0.8


def test_marks_are_routed_to_estimator_and_splitter():
    folds = StratifiedDomainKFold(3, test="target")
    expected = cross_val_score(
        MODEL, P.X, TRUTH, groups=MARKS, params={"sample_domain": MARKS}, cv=folds
    )
    with config_context(enable_metadata_routing=True):
        routed = cross_val_score(MODEL, P.X, TRUTH, params={"sample_domain": MARKS}, cv=folds)
        search = GridSearchCV(MODEL, {"ridge": [0.1]}, cv=folds)
        search.fit(P.X, TRUTH, sample_domain=MARKS)
    np.testing.assert_array_equal(routed, expected)
    assert search.best_score_ == pytest.approx(expected.mean())


@pytest.mark.parametrize(
    ("splitter", "arguments", "message"),
    [
        (LeaveOneDomainOut(), (P.X, TRUTH, np.ones(len(P.X))), "as_source_and_target gives"),
        (LeaveOneDomainOut(), (P.X,), "needs the domain of each row"),
        (LeaveOneDomainOut(), (P.X, TRUTH, MARKS), "source 1 is the only one"),
        (LeaveOneDomainOut(test_size=1.0), (P.X, TRUTH, MARKS), "share between 0 and 1"),
        (StratifiedDomainKFold(1), (P.X, MARKED), "n_splits=1 must be"),
        (
            StratifiedDomainKFold(40),
            (P.X, MARKED),
            "Domain -1 has 33 rows, too few for n_splits=40",
        ),
        (StratifiedDomainKFold(test="none"), (P.X, MARKED), "test='none' is unknown"),
        (StratifiedDomainKFold(), (P.X, TRUTH, MARKS * 0), "mark no domain"),
    ],
)
def test_what_is_refused(splitter, arguments, message):
    with pytest.raises(ValueError, match=message):
        list(splitter.split(*arguments))
