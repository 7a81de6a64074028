"""The papers' settings, where ours differ."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from paper.settings import build
from problems import small_problem
from transferable import TFDF, TFDFV, all_estimators
from transferable.persistence import load, save
from transferable.transformers import JDA, TJM, McDA

PROBLEM = small_problem()
# What only the published classes have.
PRINTED_FORMS = {
    "TFDF": {"alignment_form", "confusion_form", "confusion_iter", "solver", "learning_rate"},
    "TFDFV": {"alignment_form"},
}
DIFFERING = {"TFDF", "TFDFV", "MEDA", "ARTL", "TCA", "JDA", "BDA", "McDA", "TJM", "SCA"}


@pytest.mark.parametrize(("name", "cls"), all_estimators())
def test_published_settings_can_be_made_cloned_and_changed(name, cls):
    model = cls.as_published()
    assert isinstance(model, cls)
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    ours = cls().get_params(deep=False)
    further = PRINTED_FORMS.get(name, set())
    assert model.get_params(deep=False).keys() - ours.keys() == further
    theirs = {p: repr(getattr(model, p)) for p in ours}
    differs = theirs != {p: repr(value) for p, value in ours.items()}
    assert differs == (name in DIFFERING | {"ImportanceWeighted"})
    assert differs == (bool(cls._published) or bool(further))
    for parameter, value in cls().get_params(deep=False).items():
        assert getattr(cls.as_published(**{parameter: value}), parameter) is value


@pytest.mark.filterwarnings("ignore:.*reduced to:UserWarning")
@pytest.mark.parametrize("cls", [TFDF, TFDFV, JDA])
def test_published_settings_are_fitted(cls):
    model = cls.as_published().adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    assert len(model.transduction_) == len(PROBLEM.X)


@pytest.mark.parametrize("cls", [TFDF, TFDFV])
def test_the_classifier_of_the_class_is_not_handed_out(cls):
    assert cls.as_published().estimator is not cls.as_published().estimator


@pytest.mark.parametrize("cls", [TFDF, TFDFV])
def test_the_setting_is_the_papers(cls):
    """As Algorithms 1 and 2 and the experiments of the paper have it."""
    model = cls.as_published()
    wanted = {
        "ridge": 0.1,
        "alignment": 10.0,
        "manifold": 1.0,
        "variance": 0.01,
        "second_order": 1.0,
        "balance": "printed",
        "n_neighbors": 10,
        "graph": "neighbors",
        "max_iter": 10,
        "class_shares": "source",
        "alignment_form": "printed",
    }
    if cls is TFDF:
        wanted |= {"confusion": 0.1, "confusion_form": "printed", "solver": "adam"}
        wanted |= {"learning_rate": 0.0005, "confusion_iter": "auto"}
    assert {name: getattr(model, name) for name in wanted} == wanted
    assert repr(model.estimator) == repr(KNeighborsClassifier(1))
    assert not issubclass(type(model), TFDFV) or not hasattr(model, "solver")


@pytest.mark.parametrize("cls", [TFDF, TFDFV])
def test_published_models_are_saved_and_loaded(cls, tmp_path):
    model = cls.as_published(max_iter=2).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    save(model, tmp_path / "model.tfm")
    again = load(tmp_path / "model.tfm")
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    np.testing.assert_array_equal(
        again.decision_function(PROBLEM.X), model.decision_function(PROBLEM.X)
    )


@pytest.mark.parametrize(("method", "cls"), [("McDA", McDA), ("TJM", TJM)])
def test_experiments_enter_with_them(method, cls):
    pipeline = build("surf", method).transformer
    assert repr(pipeline[-1]) == repr(cls.as_published())
