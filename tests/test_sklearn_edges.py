"""scikit-learn's own tools around the library: they do the right thing, or something is said."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from problems import small_problem
from transferable import TFDFV, all_estimators
from transferable.classifiers import AdaptedClassifier
from transferable.exceptions import MarkedLabelsWarning, NoTargetWarning
from transferable.model_selection import EntropyScore, LabelFreeSearch
from transferable.tables import TableClassifier, TableEncoder
from transferable.transformers import CORAL, TJM, LandmarkFeatures, OTMapping, PerDomainScaler

P = small_problem(seed=3, n_source=45, n_target=36)
MARKS = np.repeat([1, -1], [len(P.ys), len(P.yt)])
MARKED = np.r_[P.ys, np.full(len(P.yt), -1)]
TRUTH = np.r_[P.ys, P.yt]
MODEL = TFDFV(max_iter=2, n_neighbors=3)
TRANSFORMERS = dict(all_estimators("transformer"))


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def test_a_fit_without_target_rows_says_so():
    with pytest.warns(NoTargetWarning, match="None of the 45 rows .*: TFDFV learns") as told:
        MODEL.fit(P.Xs, P.ys)
    assert told[0].filename == __file__, "it is said of the line that fits"


@pytest.mark.parametrize(
    "tool",
    [
        VotingClassifier([("adapted", MODEL), ("plain", LogisticRegression())]),
        StackingClassifier([("adapted", MODEL), ("plain", LogisticRegression())], cv=2),
        BaggingClassifier(MODEL, n_estimators=2, random_state=0),
        OneVsRestClassifier(MODEL),
    ],
    ids=lambda tool: type(tool).__name__,
)
def test_tools_that_encode_marks_away_are_told_of(tool):
    with pytest.warns(NoTargetWarning):
        tool.fit(P.X, MARKED)


def test_marks_that_a_following_classifier_would_learn_are_told_of():
    with pytest.warns(MarkedLabelsWarning, match="the 36 rows labelled -1 .* AdaptedClassifier"):
        pipeline = make_pipeline(CORAL(), LogisticRegression()).fit(P.X, MARKED)
    assert -1 in pipeline.classes_
    right = AdaptedClassifier(CORAL(), LogisticRegression()).fit(P.X, MARKED)
    assert right.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("transformer", [CORAL(), TJM(2)], ids=lambda t: type(t).__name__)
def test_marks_are_told_of_where_they_are_given(transformer):
    with pytest.warns(MarkedLabelsWarning) as told:
        transformer.fit_transform(P.X, MARKED)
    assert told[0].filename == __file__


def test_rows_without_a_label_are_not_scored_as_errors():
    model = MODEL.fit(P.X, MARKED)
    expected = np.mean(model.predict(P.Xs) == P.ys)
    assert model.score(P.X, MARKED) == pytest.approx(expected)
    assert model.score(P.X, np.where(MARKED < 0, np.nan, MARKED)) == pytest.approx(expected)
    assert model.score(P.X, TRUTH) == pytest.approx(np.mean(model.predict(P.X) == TRUTH))
    weights = np.where(np.arange(len(P.X)) < 5, 1.0, 0.0)
    first = np.mean(model.predict(P.X[:5]) == P.ys[:5])
    assert model.score(P.X, MARKED, sample_weight=weights) == pytest.approx(first)
    with pytest.raises(ValueError, match="None of the 36 rows has a label"):
        model.score(P.Xt, MARKED[MARKS < 0])


def test_a_class_called_minus_one_is_scored():
    y = np.where(P.ys == 0, -1, 1)
    model = MODEL.adapt(P.Xs, y, P.Xt)
    assert model.score(P.Xs, y) == pytest.approx(np.mean(model.predict(P.Xs) == y))


def test_grid_search_leaves_target_rows_out_of_its_score():
    search = GridSearchCV(MODEL, {"ridge": [0.1]}, cv=3).fit(P.X, MARKED)
    assert search.best_score_ > 0.9, "two rows in five would be errors"


def test_a_frozen_model_is_calibrated_on_labelled_rows():
    model = MODEL.fit(P.X, MARKED)
    calibrated = CalibratedClassifierCV(FrozenEstimator(model)).fit(P.Xs, P.ys)
    assert calibrated.classes_.tolist() == [0, 1, 2]


@pytest.mark.usefixtures("routing")
def test_marks_are_routed_without_being_asked_for():
    pipeline = make_pipeline(StandardScaler(), PerDomainScaler(), MODEL)
    pipeline.fit(P.X, np.r_[P.ys, np.zeros_like(P.yt)], sample_domain=MARKS)
    scaled = PerDomainScaler().fit_transform(StandardScaler().fit_transform(P.X), None, MARKS)
    direct = MODEL.fit(scaled, MARKED)
    np.testing.assert_array_equal(pipeline[-1].transduction_, direct.transduction_)
    scorer = EntropyScore()
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(MODEL, {"ridge": [0.1, 1.0]}, cv=folds, scoring=scorer)
    told = search.fit(P.X, TRUTH, sample_domain=MARKS).cv_results_["mean_test_score"]
    np.testing.assert_allclose(search.fit(P.X, MARKED).cv_results_["mean_test_score"], told)


@pytest.mark.usefixtures("routing")
def test_rows_without_labels_go_through_a_pipeline():
    clusters = make_pipeline(PerDomainScaler(), KMeans(3, n_init=1, random_state=0))
    labels = clusters.fit(P.X, sample_domain=MARKS)[-1].labels_
    assert len(np.unique(labels)) == 3


@pytest.mark.parametrize("kind", [TableClassifier(MODEL), TableEncoder(), LabelFreeSearch(MODEL)])
def test_what_is_no_method_asks_for_marks_too(kind):
    assert kind.get_metadata_routing().consumes("fit", ["sample_domain"]) == {"sample_domain"}


def test_a_search_adapts_pipelines():
    pipeline = make_pipeline(StandardScaler(), PCA(4), MODEL)
    search = LabelFreeSearch(pipeline, {"tfdfv__ridge": [0.1, 1e6]}).adapt(P.Xs, P.ys, P.Xt)
    assert search.best_params_ == {"tfdfv__ridge": 0.1}
    assert len(search.best_estimator_[-1].transduction_) == len(P.X), "it has seen both domains"
    assert search.classes_.tolist() == [0, 1, 2]
    assert np.mean(search.predict(P.Xt) == P.yt) > 0.9
    assert not get_config()["enable_metadata_routing"]


def test_rows_that_come_without_labels_are_not_taken_for_known():
    ignoring, using = (clone(MODEL).set_params(target_labels=how) for how in ("ignore", "use"))
    expected = ignoring.adapt(P.Xs, P.ys, P.Xt).predict_proba(P.Xt)
    np.testing.assert_allclose(using.adapt(P.Xs, P.ys, P.Xt).predict_proba(P.Xt), expected)
    names = np.array(["a", "b", "c"])
    using.adapt(P.Xs, names[P.ys], P.Xt)
    np.testing.assert_allclose(using.predict_proba(P.Xt), expected)


@pytest.mark.filterwarnings("ignore:The setting .* is left out:UserWarning")
def test_a_search_refuses_to_drop_known_target_labels():
    search = LabelFreeSearch(clone(MODEL).set_params(target_labels="use"), {"ridge": [0.1]})
    with pytest.raises(ValueError, match="target_labels='use' is not for a search"):
        search.fit(P.X, TRUTH, sample_domain=MARKS)


def test_the_default_grid_finds_the_step_it_is_for():
    search = LabelFreeSearch(make_pipeline(StandardScaler(), PCA(4), MODEL), scoring="entropy")
    search.adapt(P.Xs, P.ys, P.Xt)
    assert set(search.best_params_) == {
        f"tfdfv__{name}" for name in ("ridge", "alignment", "manifold", "n_neighbors")
    }
    with pytest.raises(ValueError, match="AdaptedClassifier has no default param_grid"):
        LabelFreeSearch(AdaptedClassifier(CORAL())).adapt(P.Xs, P.ys, P.Xt)


def test_pipelines_within_an_adapted_classifier_see_both_domains():
    steps = make_pipeline(LandmarkFeatures(20), CORAL())
    then = make_pipeline(StandardScaler(), MODEL)
    model = AdaptedClassifier(steps, then).adapt(P.Xs, P.ys, P.Xt)
    assert len(model.estimator_[-1].transduction_) == len(P.X)
    assert model.classes_.tolist() == [0, 1, 2]


def test_tools_that_route_nothing_are_trained_on_the_source():
    model = AdaptedClassifier(CORAL(), AdaBoostClassifier(n_estimators=3)).adapt(P.Xs, P.ys, P.Xt)
    assert model.estimator_.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("method", ["exact", "entropic", "laplace"])
def test_transport_without_classes_needs_no_labels(method):
    found, expected = (OTMapping(method).adapt(P.Xs, ys, P.Xt) for ys in (None, P.ys))
    np.testing.assert_array_equal(found.coupling_, expected.coupling_)


@pytest.mark.parametrize("column", [lambda y: y[:, None], lambda y: pd.DataFrame({"y": y})])
def test_columns_of_labels_are_taken_with_scikit_learns_warning(column):
    expected = MODEL.adapt(P.Xs, P.ys, P.Xt).transduction_
    with pytest.warns(DataConversionWarning):
        np.testing.assert_array_equal(
            TFDFV(**MODEL.get_params()).adapt(P.Xs, column(P.ys), P.Xt).transduction_, expected
        )
    with pytest.warns(DataConversionWarning):
        found = TFDFV(**MODEL.get_params()).fit(P.X, column(TRUTH), sample_domain=MARKS)
    np.testing.assert_array_equal(found.transduction_, expected)
    with pytest.warns(DataConversionWarning):
        TableClassifier(MODEL).adapt(P.Xs, column(P.ys), P.Xt)


def test_targets_of_regression_are_refused_as_such():
    with pytest.raises(ValueError, match=r"fractions such as 0\.5, as targets of regression do"):
        MODEL.adapt(P.Xs, P.ys + 0.5, P.Xt)
