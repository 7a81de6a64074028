"""Estimators of tables under the contract of all others."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import transferable
from problems import small_problem
from transferable import TFDFV
from transferable.model_selection import LabelFreeSearch
from transferable.tables import TableClassifier, TableEncoder
from transferable.transformers import CORAL

PROBLEM = small_problem(n_source=30, n_target=24, n_features=5)
N_SOURCE = len(PROBLEM.ys)
MARKS = np.repeat([1, -1], [N_SOURCE, len(PROBLEM.yt)])
MARKED = np.r_[PROBLEM.ys, np.full(len(PROBLEM.yt), -1)]
NAMES = np.array(["ant", "bee", "cat"])


@pytest.mark.filterwarnings("default")
@parametrize_with_checks([TableEncoder()])
def test_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


def columns(X):
    return {name: X[:, i] for i, name in enumerate("abcde")} | {
        "kind": np.where(X[:, 0] > 0, "up", "down")
    }


def model_of(make=pd.DataFrame, **options):
    source, target = make(columns(PROBLEM.Xs)), make(columns(PROBLEM.Xt))
    return TableClassifier(TFDFV(), **options).adapt(source, NAMES[PROBLEM.ys], target)


def test_fit_and_adapt_say_the_same_in_any_order_of_rows():
    expected = model_of()
    both = pd.DataFrame(columns(PROBLEM.X))
    order = np.random.default_rng(1).permutation(len(both))
    labels = np.array([*NAMES[PROBLEM.ys], *[None] * len(PROBLEM.yt)], dtype=object)
    for marks in (MARKS[order], None):
        model = TableClassifier(TFDFV()).fit(both.iloc[order], labels[order], sample_domain=marks)
        np.testing.assert_array_equal(model.transduction_, expected.transduction_[order])
    named = both.assign(label=labels).iloc[order]
    model = TableClassifier(TFDFV()).fit(named, "label")
    np.testing.assert_array_equal(model.transduction_, expected.transduction_[order])
    assert model.label_ == "label"


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=lambda f: f.__module__)
def test_frames_of_every_library_are_matched_by_name(make):
    expected = model_of()
    asked = make(dict(reversed(columns(PROBLEM.Xt).items())))
    model = model_of(make)
    np.testing.assert_array_equal(model.predict_proba(asked), expected.predict_proba(
        pd.DataFrame(columns(PROBLEM.Xt))
    ))  # fmt: skip
    assert model.feature_names_in_.tolist() == [*"abcde", "kind"]
    encoder = TableEncoder().adapt(make(columns(PROBLEM.Xs)), None, asked)
    assert encoder.get_feature_names_out().tolist() == [*"abcde", "kind=down", "kind=up"]


def test_an_encoder_of_other_tables_leaves_a_fitted_model_alone():
    model = model_of()
    rows = pd.DataFrame(columns(PROBLEM.Xt))
    expected = model.predict_proba(rows)
    other = clone(model.encoder_).adapt(rows * 1, None, rows.assign(a=rows["a"] * 1e6))
    assert not np.array_equal(other.transform(rows), model.encoder_.transform(rows))
    np.testing.assert_array_equal(model.predict_proba(rows), expected)


@pytest.mark.filterwarnings("ignore:.*reduced to:UserWarning")
@pytest.mark.parametrize(
    "estimator",
    [LabelFreeSearch(TFDFV(max_iter=2), {"alignment": [1.0, 10.0]}), CORAL(), None],
    ids=["search", "transformer", "default"],
)
def test_searches_transformers_and_the_default_label_tables(estimator, tmp_path):
    source, target = (pd.DataFrame(columns(X)) for X in (PROBLEM.Xs, PROBLEM.Xt))
    model = TableClassifier(estimator).adapt(source, NAMES[PROBLEM.ys], target)
    np.testing.assert_array_equal(model.transduction_[N_SOURCE:], model.predict(target))
    transferable.save(model, tmp_path / "m.tfm")
    again = transferable.load(tmp_path / "m.tfm")
    np.testing.assert_array_equal(again.predict(target), model.predict(target))


def test_rows_are_single_precision_only_where_many_and_nothing_is_lost():
    rng = np.random.default_rng(0)
    many = pd.DataFrame(rng.normal(size=(6_000, 2)), columns=["a", "b"])
    encoder = TableEncoder().adapt(many, None, many + 1)
    assert encoder.transform(many).dtype == np.float32
    assert "single precision" in encoder.notes_[-1]
    assert TableEncoder().adapt(many[:3000], None, many[:3000]).dtype_ == np.float64
    far = many.assign(b=many["b"] + 1e9)
    assert TableEncoder(scale="none").adapt(far, None, far).dtype_ == np.float64
    exact = TableEncoder().adapt(many[:3000], None, many[:3000] + 1)
    assert np.abs(exact.transform(many) - encoder.transform(many)).max() < 0.1
