"""What holds for every estimator of the library, whatever its method."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from problems import small_problem
from transferable import ARTL, FAMILIES, MEDA, TFDF, TFDFV, AutoAdapter, all_estimators
from transferable.base import DomainClassifier, DomainTransformer
from transferable.model_selection import LabelFreeSearch
from transferable.tables import TableClassifier

LISTED = {
    kind: {name: cls() for name, cls in all_estimators(kind)}
    for kind in ("classifier", "transformer")
}
# A search has to be told what to search.
SEARCH = LabelFreeSearch(TFDFV(max_iter=3), {"alignment": [0.1, 10.0]}, anchor=None)
# Each domain scaled by itself, a row would not be labelled alike in both.
TABLES = TableClassifier(TFDFV(), scale="joint")
CLASSIFIERS = LISTED["classifier"] | {"LabelFreeSearch": SEARCH, "TableClassifier": TABLES}
TRANSFORMERS = LISTED["transformer"]
EVERY = {**CLASSIFIERS, **TRANSFORMERS}

# These problems have fewer directions than some defaults ask for, no target, or marked labels;
# that is announced, and no error.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*reduced to:UserWarning"),
    pytest.mark.filterwarnings("ignore::transferable.exceptions.NoTargetWarning"),
    pytest.mark.filterwarnings("ignore::transferable.exceptions.MarkedLabelsWarning"),
]

PROBLEM = small_problem(n_source=30, n_target=24, n_features=5)
N_SOURCE = len(PROBLEM.ys)
MARKS = np.where(np.arange(len(PROBLEM.X)) < N_SOURCE, 1, -1)
MARKED = np.r_[PROBLEM.ys, np.full(len(PROBLEM.yt), -1)]

every_estimator = pytest.mark.parametrize("estimator", EVERY.values(), ids=EVERY)
every_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS.values(), ids=CLASSIFIERS)
every_transformer = pytest.mark.parametrize("estimator", TRANSFORMERS.values(), ids=TRANSFORMERS)


def expected_to_fail(estimator):
    """A graph of neighbours, a part of these by default, knows rows and not their weights."""
    if not isinstance(estimator, ARTL | MEDA | TFDF | AutoAdapter):
        return {}
    checks = (f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse"))
    return dict.fromkeys(checks, "a repeated row is another neighbour, a heavier one is not")


# scikit-learn itself skips check_array_api_input unless SCIPY_ARRAY_API is set, as it does for its
# own estimators. No other check is skipped, and weights without a graph are tested in
# test_sample_weight.py.
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(list(EVERY.values()), expected_failed_checks=expected_to_fail)
def test_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


def outcome(estimator, X, y, sample_domain=None):
    """What a fit says of its rows: their labels, or their place in the shared space."""
    estimator = clone(estimator)
    if hasattr(estimator, "predict"):
        return estimator.fit(X, y, sample_domain=sample_domain).transduction_
    return estimator.fit_transform(X, y, sample_domain=sample_domain)


def assert_same(one, other, tolerance=0.0):
    """Labels alike, or embedded rows alike to a share of the largest value."""
    if one.dtype.kind == "f" and one.ndim == 2:
        np.testing.assert_allclose(one, other, atol=tolerance * np.abs(other).max(), rtol=0)
    else:
        np.testing.assert_array_equal(one, other)


def test_the_list_is_sorted_and_holds_what_the_packages_offer():
    listed = all_estimators()
    assert [name for name, _ in listed] == sorted(LISTED["classifier"] | LISTED["transformer"])
    assert all(issubclass(cls, DomainClassifier) for _, cls in all_estimators("classifier"))
    assert all(issubclass(cls, DomainTransformer) for _, cls in all_estimators("transformer"))
    with pytest.raises(ValueError, match="'cluster' is unknown"):
        all_estimators("cluster")


@every_estimator
def test_row_order_does_not_matter(estimator):
    expected = outcome(estimator, PROBLEM.X, MARKED)
    order = np.random.default_rng(1).permutation(len(MARKED))
    assert_same(outcome(estimator, PROBLEM.X[order], MARKED[order]), expected[order])


@every_estimator
def test_marks_say_the_same_as_missing_labels(estimator):
    expected = outcome(estimator, PROBLEM.X, MARKED)
    assert_same(outcome(estimator, PROBLEM.X, MARKED, MARKS), expected)
    floats = np.where(MARKED < 0, np.nan, MARKED)
    assert_same(outcome(estimator, PROBLEM.X, floats), expected)


@every_estimator
def test_target_labels_are_never_read(estimator):
    expected = outcome(estimator, PROBLEM.X, MARKED)
    for garbage in (PROBLEM.yt, np.random.default_rng(2).integers(50, 99, len(PROBLEM.yt))):
        y = np.r_[PROBLEM.ys, garbage]
        assert_same(outcome(estimator, PROBLEM.X, y, MARKS), expected)


@every_estimator
@pytest.mark.parametrize("names", [["a", "b", "c"], [-7, 3, 1000], [0.0, 2.0, 7.0]], ids=str)
def test_any_labels_will_do(estimator, names):
    names = np.array(names)
    expected = outcome(estimator, PROBLEM.X, MARKED)
    got = outcome(estimator, PROBLEM.X, names[MARKED], MARKS)
    assert_same(got, names[expected] if expected.ndim == 1 else expected)


@every_classifier
def test_the_order_of_labels_does_not_matter(estimator):
    easy = small_problem(n_source=30, n_target=24, n_features=5, shift=0.0, seed=3)
    expected = clone(estimator).adapt(easy.Xs, easy.ys, easy.Xt).predict(easy.Xt)
    backwards = clone(estimator).adapt(easy.Xs, 2 - easy.ys, easy.Xt).predict(easy.Xt)
    assert np.mean(2 - backwards == expected) >= 0.95


@every_classifier
def test_fitted_rows_are_predicted_as_they_were_labelled(estimator):
    model = clone(estimator).fit(PROBLEM.X, MARKED)
    labels = model.predict(PROBLEM.X)
    one_by_one = [model.predict(row[None, :])[0] for row in PROBLEM.X[::7]]
    np.testing.assert_array_equal(one_by_one, labels[::7])
    np.testing.assert_array_equal(model.transduction_[MARKS < 0], labels[MARKS < 0])
    np.testing.assert_array_equal(model.transduction_[MARKS > 0], PROBLEM.ys)  # as given


@every_transformer
def test_fitted_rows_are_transformed_as_they_were_embedded(estimator):
    model = clone(estimator)
    Z = model.fit_transform(PROBLEM.X, MARKED)
    assert_same(model.transform(PROBLEM.X, MARKS), Z, 1e-9)
    assert_same(model.transform(PROBLEM.Xt), Z[MARKS < 0], 1e-9)
    assert Z.shape[1] == len(model.get_feature_names_out())


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_and_probabilities_agree_with_labels(estimator, n_classes):
    p = small_problem(n_source=30, n_target=24, n_features=5, n_classes=n_classes)
    model = clone(estimator).adapt(p.Xs, p.ys, p.Xt)
    offered = [name for name in ("predict_proba", "decision_function") if hasattr(model, name)]
    assert offered
    for name in offered:
        scores = getattr(model, name)(p.Xt)
        if scores.ndim == 1:
            assert n_classes == 2
            scores = np.column_stack([-scores, scores])
        assert scores.shape == (len(p.Xt), n_classes)
        np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(p.Xt))
        if name == "predict_proba":
            np.testing.assert_allclose(scores.sum(axis=1), 1.0)
            assert scores.min() >= 0


@every_classifier
def test_does_better_than_chance_on_the_target(estimator):
    model = clone(estimator).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    assert np.mean(model.predict(PROBLEM.Xt) == PROBLEM.yt) > 0.6


def with_constant_column():
    X = np.column_stack([PROBLEM.X, np.full(len(PROBLEM.X), 3.0), np.zeros(len(PROBLEM.X))])
    return X, MARKED


def with_column_constant_in_one_domain():
    return np.column_stack([PROBLEM.X, np.where(MARKS > 0, 1.0, 0.0)]), MARKED


def with_duplicates():
    rows = np.r_[np.arange(len(MARKED)), np.arange(0, len(MARKED), 3), np.repeat(40, 5)]
    return PROBLEM.X[rows], MARKED[rows]


def with_a_class_no_target_row_has():
    far = np.full((4, 5), -30.0) + np.random.default_rng(4).normal(size=(4, 5))
    return np.vstack([PROBLEM.X, far]), np.r_[MARKED, np.full(4, 3)]


def with_a_class_of_one_row():
    return np.vstack([PROBLEM.X, np.full((1, 5), -9.0)]), np.r_[MARKED, 3]


def with_more_features_than_rows():
    rng = np.random.default_rng(5)
    return PROBLEM.X @ rng.normal(size=(5, 80)) + 0.01 * rng.normal(size=(54, 80)), MARKED


def without_a_target():
    return PROBLEM.Xs, PROBLEM.ys


AWKWARD = [
    with_constant_column,
    with_column_constant_in_one_domain,
    with_duplicates,
    with_a_class_no_target_row_has,
    with_a_class_of_one_row,
    with_more_features_than_rows,
    without_a_target,
]


@every_estimator
@pytest.mark.parametrize("make", AWKWARD, ids=lambda make: make.__name__)
def test_awkward_rows_are_fitted(estimator, make):
    X, y = make()
    got = outcome(estimator, X, y)
    assert len(got) == len(y)
    if got.ndim == 1:
        assert set(got) <= set(y[y >= 0])
    else:
        assert np.isfinite(got).all()


@every_estimator
def test_one_target_row_is_fitted_unless_the_method_needs_a_subspace_of_it(estimator):
    X, y = PROBLEM.X[: N_SOURCE + 1], MARKED[: N_SOURCE + 1]
    if type(estimator).__name__ in ("GFK", "SubspaceAlignment"):
        with pytest.raises(ValueError, match="rows that vary in both domains"):
            outcome(estimator, X, y)
    else:
        assert len(outcome(estimator, X, y)) == len(y)


@every_classifier
def test_rows_all_alike_get_some_label(estimator):
    X = np.zeros((12, 3))
    y = np.r_[np.arange(8) % 2, np.full(4, -1)]
    assert set(outcome(estimator, X, y)) <= {0, 1}


@every_estimator
def test_single_precision_says_nearly_the_same(estimator):
    single = outcome(estimator, PROBLEM.X.astype(np.float32), MARKED)
    double = outcome(estimator, PROBLEM.X.astype(np.float32).astype(np.float64), MARKED)
    if double.ndim == 1:
        assert np.mean(single == double) >= 0.95
    else:
        assert_same(single, double, 1e-3)


@every_estimator
def test_tables_with_column_names(estimator):
    table = pd.DataFrame(PROBLEM.X, columns=list("abcde"))
    expected = outcome(estimator, PROBLEM.X, MARKED)
    assert_same(outcome(estimator, table, pd.Series(MARKED)), expected)


@every_estimator
@pytest.mark.parametrize(
    "library", [pd.DataFrame, pl.DataFrame, pa.table], ids=lambda f: f.__module__
)
def test_frames_are_matched_by_name(estimator, library):
    columns = dict(zip("abcde", PROBLEM.X.T, strict=True))
    source = library({name: values[:N_SOURCE] for name, values in columns.items()})
    target = library({name: columns[name][N_SOURCE:] for name in "cedba"})
    model = clone(estimator).adapt(source, PROBLEM.ys, target)
    assert model.feature_names_in_.tolist() == list("abcde")
    expected = clone(estimator).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    asked = library({name: values[N_SOURCE:] for name, values in columns.items()})
    label = "predict" if hasattr(model, "predict") else "transform"
    assert_same(getattr(model, label)(asked), getattr(expected, label)(PROBLEM.Xt))


@every_transformer
def test_pandas_output(estimator):
    table = pd.DataFrame(PROBLEM.X, index=np.arange(100, 154))
    table.columns = list("abcde")
    model = clone(estimator).set_output(transform="pandas")
    Z = model.fit_transform(table, MARKED)
    assert Z.index.tolist() == table.index.tolist()
    assert Z.columns.tolist() == model.get_feature_names_out().tolist()


def test_every_estimator_is_of_one_family():
    listed = [name for names in FAMILIES.values() for name in names]
    assert sorted(listed) == [name for name, _ in all_estimators()]
