"""What a record says about a fit."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.utils import Bunch

from paper.benchmarks import BENCHMARKS
from paper.plans import cells_of
from paper.running import fit_iterates, measure
from transferable.classifiers import AdaptedClassifier


class WarningPCA(PCA):
    def fit_transform(self, X, y=None):
        warnings.warn("fitted with care", UserWarning, stacklevel=2)
        return super().fit_transform(X, y)


@pytest.fixture
def task(toy):
    return BENCHMARKS["coil"].fetch().task("COIL1", "COIL2")


def cell_of(method):
    return next(c for c in cells_of("coil") if c.method == method and c.source == "COIL1")


@pytest.mark.parametrize("method", ["1NN", "PCA", "JDA", "MEDA", "TFDF"])
def test_accuracy_is_that_of_the_last_iterate(task, method):
    cell = cell_of(method)
    record = measure(cell, task)
    labels = clone(cell.estimator).adapt(task.Xs, task.ys, task.Xt).transduction_
    assert record.accuracy == np.mean(labels[len(task.ys) :] == task.yt)
    assert record.accuracy <= record.accuracy_best_iterate <= 1
    assert record.key == cell.key
    assert record.seconds > 0


@pytest.mark.parametrize("method", ["JDA", "MEDA", "TFDF"])
def test_iterates_come_in_input_order_and_end_with_the_result(task, method):
    rng = np.random.default_rng(0)
    order = rng.permutation(len(task.yt))
    shuffled = Bunch(**(task | {"Xt": task.Xt[order], "yt": task.yt[order]}))
    model, iterates = fit_iterates(cell_of(method), shuffled)
    assert len(iterates.labels) == len(iterates.tables) >= 1
    np.testing.assert_array_equal(
        iterates.labels[-1][len(task.ys) :], model.transduction_[len(task.ys) :]
    )
    _, straight = fit_iterates(cell_of(method), task)
    np.testing.assert_allclose(
        iterates.tables[-1][len(task.ys) :], straight.tables[-1][len(task.ys) :][order], atol=1e-8
    )


def test_target_labels_change_the_scores_but_not_the_fit(task):
    cell = cell_of("TFDF")
    wrong = Bunch(**(task | {"yt": (task.yt + 1) % 3}))
    _, honest = fit_iterates(cell, task)
    _, misled = fit_iterates(cell, wrong)
    for a, b in zip(honest.tables, misled.tables, strict=True):
        np.testing.assert_array_equal(a, b)
    assert measure(cell, task).accuracy != measure(cell, wrong).accuracy


def test_the_best_iterate_is_kept_apart_from_the_last(task):
    cell = cell_of("JDA")
    _, iterates = fit_iterates(cell, task)
    accuracies = [np.mean(labels[len(task.ys) :] == task.yt) for labels in iterates.labels]
    record = measure(cell, task)
    assert record.n_iterates == len(accuracies)
    assert record.accuracy_best_iterate == max(accuracies)


def test_warnings_are_kept_with_the_record(task, cell):
    record = measure(replace(cell, estimator=AdaptedClassifier(WarningPCA(2))), task)
    assert record.warnings == ["fitted with care"]


def test_peak_memory_is_that_of_this_fit_alone(task, cell):
    ballast = np.ones(40_000_000)
    del ballast
    peak = measure(cell, task).peak_memory_mib
    assert peak is None or 10 < peak < 2000
