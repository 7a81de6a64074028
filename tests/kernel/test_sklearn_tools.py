"""scikit-learn's tools around the kernel classifiers.

Its own checks of an estimator run over every estimator of the library in test_all_estimators.py.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from problems import small_problem
from transferable import TFDF, TFDFV

P = small_problem(seed=6)
Y = np.r_[P.ys, np.full(len(P.yt), -1)]
MARKS = np.r_[np.ones(len(P.ys)), -np.ones(len(P.yt))]


def test_grid_search_with_its_default_score(method):
    search = GridSearchCV(method, {"alignment": [0.0, 10.0], "n_neighbors": [3, 5]}, cv=2)
    search.fit(P.X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert set(search.predict(P.Xt)) <= set(P.ys)
    found = search.best_estimator_.transduction_[len(P.ys) :]
    np.testing.assert_array_equal(found, search.predict(P.Xt))


def test_grid_search_passes_marks_on():
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(TFDFV(), {"ridge": [0.1, 1.0]}, cv=folds)
    search.fit(P.X, np.r_[P.ys, P.yt], sample_domain=MARKS)
    direct = clone(search.best_estimator_).fit(P.X, Y)
    found = direct.transduction_[len(P.ys) :]
    np.testing.assert_array_equal(found, search.predict(P.Xt))


@pytest.mark.filterwarnings("ignore::transferable.exceptions.NoTargetWarning")
def test_cross_validation_on_a_source_alone(method):
    scores = cross_val_score(method, P.Xs, P.ys, cv=3)
    assert scores.mean() > 0.7


def test_pipeline(method):
    X = P.X * [1, 10, 100, 1, 1, 1]
    pipeline = make_pipeline(StandardScaler(), clone(method)).fit(X, Y)
    direct = clone(method).fit(StandardScaler().fit_transform(X), Y)
    np.testing.assert_array_equal(pipeline.predict(X), direct.transduction_)
    marked = make_pipeline(StandardScaler(), clone(method))
    name = f"{type(method).__name__.lower()}__sample_domain"
    marked.fit(X, np.r_[P.ys, P.yt], **{name: MARKS})
    np.testing.assert_allclose(marked.predict_proba(X), pipeline.predict_proba(X))


@pytest.mark.parametrize("name", ["ridge", "kernel", "manifold_dim", "estimator"])
@pytest.mark.parametrize("make", [TFDF, TFDFV, TFDF.as_published, TFDFV.as_published])
def test_parameters_are_set_by_name(name, make):
    model = make()
    value = {"ridge": 3.0, "kernel": "linear", "manifold_dim": 7, "estimator": None}[name]
    assert model.set_params(**{name: value}).get_params()[name] == value


def test_parameters_of_the_published_form_are_set_by_name():
    model = TFDF.as_published().set_params(solver="closed_form", alignment_form="normalised")
    assert (model.solver, clone(model).alignment_form) == ("closed_form", "normalised")
    with pytest.raises(ValueError, match="Invalid parameter 'solver'"):
        TFDF().set_params(solver="adam")
    with pytest.raises(ValueError, match="Invalid parameter 'confusion'"):
        TFDFV().set_params(confusion=1.0)
