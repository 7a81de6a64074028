"""Sparse rows are labelled as the same rows written out."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils import get_tags

from problems import small_problem
from transferable import AutoAdapter, all_estimators
from transferable.classifiers import LabelPropagation
from transferable.persistence import load, save

PROBLEM = small_problem(n_source=45, n_target=36)
SPARSE = {
    name: cls
    for name, cls in all_estimators("classifier")
    if get_tags(cls()).input_tags.sparse and name not in ("TFDF", "TFDFV", "MEDA")
}  # those project dense rows onto a manifold by default


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_rows_are_labelled_as_dense_ones(name):
    Xs, Xt = (np.maximum(X, 0.0) for X in (PROBLEM.Xs, PROBLEM.Xt))
    dense = SPARSE[name]().adapt(Xs, PROBLEM.ys, Xt)
    sparse = SPARSE[name]().adapt(csr_array(Xs), PROBLEM.ys, csr_array(Xt))
    # A pool compares dense rows from their mean, which sparse ones are not moved by.
    least = 0.85 if name == "AutoAdapter" else 1.0
    assert np.mean(sparse.transduction_ == dense.transduction_) >= least
    assert np.mean(sparse.predict(csr_array(Xt)) == dense.predict(Xt)) >= least


def test_the_methods_that_can_are_among_them():
    assert {"EasyTL", "ImportanceWeighted", "LabelPropagation", "SelfTraining"} <= set(SPARSE)


@pytest.mark.parametrize("model", [LabelPropagation(), AutoAdapter(effort="fast")], ids=str)
def test_dense_rows_after_sparse_ones(model, tmp_path):
    p = small_problem()
    model.adapt(csr_array(p.Xs), p.ys, csr_array(p.Xt))
    expected = model.predict(csr_array(p.Xt))
    np.testing.assert_array_equal(model.predict(p.Xt), expected)
    save(model, tmp_path / "model.tfm")
    np.testing.assert_array_equal(load(tmp_path / "model.tfm").predict(p.Xt), expected)
