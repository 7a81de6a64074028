"""DASVM: it follows the target where the source's machine is left behind."""

import numpy as np
import pytest
from sklearn.svm import SVC

from problems import small_problem
from transferable.classifiers import DASVM


def turned(n_classes, angle, seed=0):
    """Classes on a circle; the target's are turned."""
    rng = np.random.default_rng(seed)
    y = np.arange(40 * n_classes) % n_classes

    def rows(offset):
        place = 2 * np.pi * y / n_classes + offset
        centres = 4 * np.column_stack([np.cos(place), np.sin(place)])
        return centres + 0.7 * rng.normal(size=(len(y), 2))

    return rows(0.0), y, rows(angle), y


@pytest.mark.parametrize(("n_classes", "angle"), [(2, 1.2), (4, 0.55)])
def test_follows_the_target_for_any_number_of_classes(n_classes, angle):
    Xs, ys, Xt, yt = turned(n_classes, angle)
    alone = np.mean(SVC(C=10).fit(Xs, ys).predict(Xt) == yt)
    adapted = np.mean(DASVM().adapt(Xs, ys, Xt).predict(Xt) == yt)
    assert adapted > alone
    assert adapted > 0.97


@pytest.mark.filterwarnings("ignore::transferable.exceptions.NoTargetWarning")
def test_without_a_target_it_is_the_support_vector_machine():
    Xs, ys, *_ = turned(2, 0.0)
    ours, plain = DASVM().fit(Xs, ys), SVC(C=10).fit(Xs, ys)
    np.testing.assert_allclose(ours.decision_function(Xs), plain.decision_function(Xs), atol=1e-2)


def test_the_last_machine_has_let_go_of_the_source():
    Xs, ys, Xt, _ = turned(2, 0.4)
    model = DASVM(kernel="linear", max_iter=5).adapt(Xs, ys, Xt)
    is_support = model._machines.coefficients.any(axis=1)
    assert is_support.any()
    assert not is_support[: len(ys)].any()


def test_too_many_rows_are_refused():
    p = small_problem()
    with pytest.raises(
        MemoryError,
        match=r"target rows would fit\. Nothing was allocated",
    ):
        DASVM(max_memory="1KB").adapt(p.Xs, p.ys, p.Xt)
