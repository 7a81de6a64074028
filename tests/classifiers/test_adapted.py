"""A classifier on adapted rows is the transformer followed by the classifier, whatever they are."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from problems import small_problem
from transferable.classifiers import AdaptedClassifier
from transferable.transformers import CORAL, TCA

PROBLEM = small_problem()
STACKED = (PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
MARKED = np.r_[PROBLEM.ys, np.full(len(PROBLEM.Xt), -1)]
MARKS = np.where(MARKED < 0, -1, 1)


@pytest.mark.filterwarnings("ignore::transferable.exceptions.MarkedLabelsWarning")
@pytest.mark.parametrize("transformer", [TCA(2), PCA(2), make_pipeline(StandardScaler(), TCA(2))])
def test_is_the_transformer_then_the_estimator(transformer):
    model = AdaptedClassifier(transformer, LogisticRegression()).adapt(*STACKED)
    Z = transformer.fit_transform(PROBLEM.X, MARKED)
    expected = LogisticRegression().fit(Z[MARKS > 0], PROBLEM.ys).predict(Z)
    np.testing.assert_array_equal(model.transduction_[MARKS < 0], expected[MARKS < 0])
    np.testing.assert_array_equal(model.transduction_[MARKS > 0], PROBLEM.ys)  # as given


def test_without_a_transformer_it_is_the_source_only_classifier():
    model = AdaptedClassifier().adapt(*STACKED)
    expected = KNeighborsClassifier(1).fit(PROBLEM.Xs, PROBLEM.ys).predict(PROBLEM.Xt)
    np.testing.assert_array_equal(model.predict(PROBLEM.Xt), expected)


def test_each_domain_is_mapped_in_its_own_way():
    model = AdaptedClassifier(CORAL()).adapt(*STACKED)
    Z = CORAL().fit_transform(PROBLEM.X, MARKED, MARKS)
    nearest = KNeighborsClassifier(1).fit(Z[MARKS > 0], PROBLEM.ys)
    np.testing.assert_array_equal(model.predict(PROBLEM.Xt), nearest.predict(Z[MARKS < 0]))
    np.testing.assert_array_equal(model.predict(PROBLEM.Xt), model.transduction_[MARKS < 0])


def test_the_parts_given_are_left_alone():
    transformer, estimator = PCA(2), LogisticRegression()
    AdaptedClassifier(transformer, estimator).adapt(*STACKED)
    assert not hasattr(transformer, "components_")
    assert not hasattr(estimator, "coef_")


@pytest.mark.parametrize(
    ("estimator", "present", "absent"),
    [
        (None, "predict_proba", "decision_function"),
        (LinearSVC(), "decision_function", "predict_proba"),
    ],
)
def test_offers_what_the_estimator_offers(estimator, present, absent):
    model = AdaptedClassifier(PCA(2), estimator)
    for _ in ("before the fit", "after it"):
        assert hasattr(model, present)
        assert not hasattr(model, absent)
        model.adapt(*STACKED)
    assert len(getattr(model, present)(PROBLEM.Xt)) == len(PROBLEM.Xt)


def test_sparse_rows_where_the_first_step_takes_them():
    X = sp.csr_array(PROBLEM.X)
    model = AdaptedClassifier(TruncatedSVD(2, algorithm="arpack", random_state=0)).fit(X, MARKED)
    assert model.predict(X).shape == MARKED.shape
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        AdaptedClassifier(TCA(2)).fit(X, MARKED)


def test_pandas_output_of_the_transformer():
    plain = AdaptedClassifier(PCA(2), LogisticRegression()).adapt(*STACKED)
    named = AdaptedClassifier(PCA(2).set_output(transform="pandas"), LogisticRegression())
    named.adapt(*STACKED)
    np.testing.assert_array_equal(named.transduction_, plain.transduction_)
    np.testing.assert_allclose(named.predict_proba(PROBLEM.Xt), plain.predict_proba(PROBLEM.Xt))


@pytest.mark.parametrize("parameters", [{"transformer": "pca"}, {"estimator": 3}])
def test_parts_must_be_estimators(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        AdaptedClassifier(**parameters).adapt(*STACKED)
