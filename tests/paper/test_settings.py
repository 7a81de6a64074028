"""The settings file and what is built from it."""

import numpy as np
import pytest
from sklearn.base import clone

from paper import settings
from paper.benchmarks import BENCHMARKS
from problems import small_problem

EVERY = [(d, m) for d in settings.datasets() for m in settings.methods(d)]


def test_datasets_are_those_of_the_experiments():
    assert settings.datasets() == list(BENCHMARKS)


@pytest.mark.parametrize(("dataset", "method"), EVERY)
def test_every_setting_gives_an_estimator_that_adapts(dataset, method):
    if dataset == "digits-full":
        pytest.importorskip("torch")
    estimator = settings.build(dataset, method)
    assert callable(estimator.adapt)
    assert clone(estimator) is not estimator
    assert settings.build(dataset, method) is not estimator


@pytest.mark.filterwarnings("ignore:n_components:UserWarning")
@pytest.mark.parametrize("method", ["1NN", "SVM", "TCA", "JDA", "CORAL"])
def test_estimators_label_target_rows(method):
    task = small_problem()
    model = settings.build("surf", method).adapt(task.Xs, task.ys, task.Xt)
    assert set(model.predict(task.Xt)) <= set(task.ys)
    assert len(model.transduction_) == len(task.X)


def test_rows_are_brought_to_unit_length_where_the_file_says_so():
    task = small_problem()
    model = settings.build("decaf6", "SA").set_params(
        transformer__subspacealignment__n_components=2
    )
    one = model.adapt(task.Xs, task.ys, task.Xt).predict(task.Xt)
    lengths = np.linspace(0.1, 10, len(task.Xt))[:, None]
    other = clone(model).adapt(task.Xs, task.ys, lengths * task.Xt).predict(task.Xt)
    np.testing.assert_array_equal(one, other)


def test_unknown_names_are_told_what_there_is():
    with pytest.raises(ValueError, match=r"'mnist' is no dataset; choose from surf"):
        settings.build("mnist", "TCA")
    with pytest.raises(ValueError, match=r"'CTA' is no method on surf; choose from 1NN"):
        settings.build("surf", "CTA")


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"clasifier": "1NN"}, "'clasifier'"),
        ({"classifier": "2NN"}, "'2NN' is unknown"),
    ],
)
def test_mistakes_in_the_file_are_named(setting, complaint):
    with pytest.raises(ValueError, match=complaint):
        settings.from_setting("X on surf", setting)
