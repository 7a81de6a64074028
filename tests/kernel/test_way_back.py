"""The way back, from labels of the target to those of the source, by which settings are judged."""

from dataclasses import replace

import numpy as np
import pytest

import literal
from problems import small_problem
from transferable import TFDF, TFDFV
from transferable._kernel.choose import Balance
from transferable._linalg.arrays import unit_rows
from transferable._linalg.kernels import KernelFunction
from transferable.classifiers import ARTL, MEDA
from transferable.domains import Domains
from transferable.model_selection.scorers import Store

TASK = small_problem(n_source=40, n_target=30, n_features=6)
DOMAINS = Domains.from_stacked(
    np.vstack([TASK.Xs, TASK.Xt]), np.r_[TASK.ys, np.full(30, -1)], np.repeat([1, -1], [40, 30])
)


def adapted(estimator):
    return estimator.adapt(TASK.Xs, TASK.ys, TASK.Xt)


def test_the_way_back_solves_the_reversed_problem_without_alignment():
    """Against a dense transcription: risk on the target's labels, ridge, graph, variance."""
    model = adapted(TFDFV(n_neighbors=3, manifold_dim=None, ridge=0.2, manifold=0.7))
    codes = np.arange(30) % 3
    rows = np.r_[np.arange(40, 70), np.arange(40)]
    Z = unit_rows(DOMAINS.X[rows], None, model._machine.centre)
    K = KernelFunction(model.kernel, model.gamma)(Z, Z)
    A = np.diag(np.r_[np.ones(30), np.zeros(40)])
    H = np.eye(70) - np.full((70, 70), 1 / 70)
    L = literal.laplacian(literal.affinity(Z, 3))
    Y = np.zeros((70, 3))
    Y[np.arange(30), codes] = 1
    beta = np.linalg.solve((A + 0.7 * L + 0.01 * H) @ K + 0.2 * np.eye(70), Y)
    np.testing.assert_array_equal(model._way_back(DOMAINS, codes), (K @ beta)[30:].argmax(axis=1))


@pytest.mark.parametrize(
    "method",
    [TFDF(n_neighbors=3), TFDFV(n_landmarks=20), MEDA(manifold_dim=3), ARTL(n_neighbors=3)],
)
def test_true_classes_lead_back(method):
    model = adapted(method)
    true = TASK.yt[DOMAINS.order[40:] - 40]
    assert np.mean(model._way_back(DOMAINS, true) == DOMAINS.y) > 0.8
    assert set(model._way_back(DOMAINS, np.zeros(30, dtype=int))) == {0}


class Counting(Store):
    """A store that notes what is made."""

    def __init__(self):
        super().__init__()
        self.made = []

    def get(self, key, make, *arguments):
        def noted(*given):
            self.made.append(key[1][0])
            return make(*given)

        return super().get(key, noted, *arguments)


def test_models_that_differ_in_alignment_alone_share_the_way_back():
    """One factorisation for each direction, whatever the alignment and the labels."""
    store = Counting()
    for alignment in (1.0, 10.0):
        model = TFDFV(n_neighbors=3, alignment=alignment)
        model._store = store
        adapted(model)
        domains = replace(DOMAINS, store=store)
        model._way_back(domains, (np.arange(30) + int(alignment)) % 3)
    assert store.made.count("factor") == 2
    assert store.made.count("graph") == 2


def test_nothing_is_balanced_on_the_way_back(monkeypatch):
    model = adapted(TFDF(balance="adaptive"))
    monkeypatch.setattr(Balance, "__init__", None)
    assert len(model._way_back(DOMAINS, np.arange(30) % 3)) == 40
