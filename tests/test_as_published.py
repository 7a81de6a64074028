"""The papers' settings, where ours differ."""

import pytest
from sklearn.base import clone
from transferable._paper.settings import build

from problems import small_problem
from transferable import TFDF, TFDFV, all_estimators
from transferable.transformers import JDA, TJM, McDA

PROBLEM = small_problem()
DIFFERING = {"TFDF", "TFDFV", "MEDA", "ARTL", "TCA", "JDA", "BDA", "McDA", "TJM", "SCA"}


@pytest.mark.parametrize(("name", "cls"), all_estimators())
def test_published_settings_can_be_made_cloned_and_changed(name, cls):
    model = cls.as_published()
    assert isinstance(model, cls)
    assert clone(model).get_params(deep=False).keys() == cls().get_params(deep=False).keys()
    differs = repr(model) != repr(cls())
    assert differs == bool(cls._published)
    assert differs == (name in DIFFERING | {"ImportanceWeighted"})
    for parameter, value in cls().get_params(deep=False).items():
        assert getattr(cls.as_published(**{parameter: value}), parameter) is value


@pytest.mark.filterwarnings("ignore:.*reduced to:UserWarning")
@pytest.mark.parametrize("cls", [TFDF, TFDFV, JDA])
def test_published_settings_are_fitted(cls):
    model = cls.as_published().adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    assert len(model.transduction_) == len(PROBLEM.X)


def test_the_classifier_of_the_class_is_not_handed_out():
    assert TFDF.as_published().estimator is not TFDF.as_published().estimator


@pytest.mark.parametrize(("method", "cls"), [("McDA", McDA), ("TJM", TJM)])
def test_experiments_enter_with_them(method, cls):
    pipeline = build("surf", method).transformer
    assert repr(pipeline[-1]) == repr(cls.as_published())
