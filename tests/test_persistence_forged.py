"""Model files that somebody changed and signed again: refused, or right all the same."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import transferable
from campaign import forging
from saved import NAMES, NEW, PROBLEM, adapted, outputs
from transferable.classifiers import TFDFV, AdaptedClassifier
from transferable.persistence import ModelFileError
from transferable.transformers import CORAL, JDA

pytestmark = pytest.mark.filterwarnings("ignore:.*reduced to:UserWarning")


def saved(model, path):
    transferable.save(model, path)
    return path


def forged(file, field, change):
    forging.with_array(file, lambda name, _: field in name, change)
    return file


def in_place(index, value):
    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


KNN = {"kd_tree": KNeighborsClassifier(algorithm="kd_tree"), "brute": KNeighborsClassifier()}


@pytest.mark.parametrize("change", [lambda a: a * 0 + 10**6, lambda a: a[:3]])
def test_search_trees_are_never_taken_from_a_file(change, tmp_path):
    model = adapted(AdaptedClassifier(CORAL(), KNN["kd_tree"]))
    file = forged(saved(model, tmp_path / "model.skops"), "_tree.1", change)
    assert outputs(transferable.load(file), NEW)["predict"].tolist() == model.predict(NEW).tolist()


@pytest.mark.parametrize(
    ("estimator", "field", "change"),
    [
        (TFDFV(manifold_dim=None), "indices", lambda a: a * 0 + 10**8),
        (TFDFV(manifold_dim=None), "indptr", lambda a: a[::-1].copy()),
        (TFDFV(), "_beta", lambda a: a[:-1]),
        (TFDFV(), "_beta", lambda a: a * np.nan),
        (TFDFV(), "classes_", lambda a: a[:2]),
        (JDA(n_components=3), "_coefficients", lambda a: a[:, :2]),
        (AdaptedClassifier(), "_fit_X", lambda a: a[:4]),
        (AdaptedClassifier(CORAL(), SVC()), "_n_support", in_place(0, 10**6)),
        (AdaptedClassifier(CORAL(), SVC()), "_n_support", lambda a: a + a * [10**6, -(10**6), 0]),
        (AdaptedClassifier(CORAL(), SVC()), "_dual_coef_", lambda a: a[:, :2]),
        (AdaptedClassifier(CORAL(), SVC()), "support_vectors_", lambda a: a[:, :2]),
        (AdaptedClassifier(CORAL(), LogisticRegression()), "coef_", lambda a: a[:, :2]),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(estimator, field, change, tmp_path):
    sparse = "ind" in field
    X = (csr_array(PROBLEM.Xs), csr_array(PROBLEM.Xt)) if sparse else (PROBLEM.Xs, PROBLEM.Xt)
    estimator.adapt(X[0], NAMES[PROBLEM.ys], X[1])
    file = forged(saved(estimator, tmp_path / "model.skops"), field, change)
    with pytest.raises(ModelFileError, match=re.escape(str(file))):
        transferable.load(file)


def node(field, index, value):
    def change(nodes):
        nodes = nodes.copy()
        nodes[field][index] = value
        return nodes

    return change


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("nodes", node("left_child", 0, 10**9)),
        ("nodes", node("left_child", 0, 0)),
        ("nodes", node("right_child", 0, -7)),
        ("nodes", node("right_child", 0, 1)),
        ("nodes", node("left_child", 0, -1)),
        ("nodes", node("feature", 0, 12)),
        ("nodes", node("threshold", 0, np.nan)),
        ("nodes", lambda a: a[:-1]),
        ("nodes", lambda a: a["threshold"]),
        ("values", lambda a: a[:, :, :1]),
        ("values", lambda a: a * np.nan),
        ("args.1", lambda a: a + 1),
    ],
)
@pytest.mark.parametrize("model", [DecisionTreeClassifier(), RandomForestClassifier(3)])
def test_decision_trees_are_checked_node_by_node(model, field, change, tmp_path):
    fitted = adapted(AdaptedClassifier(CORAL(), model))
    file = forged(
        saved(fitted, tmp_path / "model.skops"),
        f"tree_.{field}".replace("tree_.args", "args"),
        change,
    )
    with pytest.raises(ModelFileError, match=re.escape(str(file))):
        transferable.load(file)


def test_trees_for_other_features_than_their_forest_are_refused(tmp_path):
    fitted = adapted(AdaptedClassifier(CORAL(), RandomForestClassifier(3)))
    other = DecisionTreeClassifier().fit(np.c_[PROBLEM.Xs, PROBLEM.Xs], PROBLEM.ys)
    fitted.estimator_.estimators_[2] = other
    with pytest.raises(TypeError, match="cannot be saved"):
        transferable.save(fitted, tmp_path / "model.skops")
