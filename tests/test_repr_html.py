"""How estimators show themselves in a notebook: scikit-learn's way, which needs nothing of ours."""

import pytest

from problems import small_problem
from transferable import TFDFV, all_estimators
from transferable.classifiers import AdaptedClassifier
from transferable.transformers import CORAL


@pytest.mark.parametrize(("name", "cls"), all_estimators())
def test_shows_name_and_parameters(name, cls):
    estimator = cls()
    html = estimator._repr_html_()
    assert name in html
    for parameter in estimator.get_params(deep=False):
        assert parameter in html


def test_shows_what_is_inside_and_whether_it_is_fitted():
    task = small_problem()
    model = AdaptedClassifier(CORAL(), TFDFV())
    assert "Not fitted" in model._repr_html_()
    html = model.adapt(task.Xs, task.ys, task.Xt)._repr_html_()
    assert "Not fitted" not in html
    assert "CORAL" in html
    assert "TFDFV" in html
