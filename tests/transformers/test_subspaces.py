"""GFK and subspace alignment against their closed forms."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.decomposition import PCA

from problems import small_problem
from transferable.transformers import GFK, SubspaceAlignment


@pytest.fixture(scope="module")
def task():
    return small_problem(n_source=60, n_target=50, n_features=9)


def bases(task, k):
    return (PCA(k, svd_solver="full").fit(X).components_.T for X in (task.Xs, task.Xt))


def test_subspace_alignment_is_its_closed_form(task):
    Ps, Pt = bases(task, 3)
    model = SubspaceAlignment(3).adapt(task.Xs, task.ys, task.Xt)
    source = model.transform(task.Xs, sample_domain=np.ones(len(task.Xs)))
    expected = (task.Xs - task.Xs.mean(axis=0)) @ Ps @ Ps.T @ Pt
    np.testing.assert_allclose(np.abs(source), np.abs(expected), atol=1e-9)
    target = model.transform(task.Xt)
    np.testing.assert_allclose(
        np.abs(target), np.abs((task.Xt - task.Xt.mean(axis=0)) @ Pt), atol=1e-9
    )


def test_subspace_alignment_minimises_the_distance_of_the_bases(task):
    Ps, Pt = bases(task, 3)
    M = np.linalg.lstsq(Ps, Pt, rcond=None)[0]
    model = SubspaceAlignment(3).adapt(task.Xs, task.ys, task.Xt)
    np.testing.assert_allclose(np.abs(model.source_components_.T), np.abs(Ps @ M), atol=1e-9)


def test_gfk_is_the_integral_along_the_geodesic(task):
    """Projections onto subspaces on the way are averaged by quadrature."""
    Ps, Pt = bases(task, 3)
    U, cosines, Vt = np.linalg.svd(Ps.T @ Pt)
    angles = np.arccos(np.clip(cosines, -1, 1))
    start = Ps @ U
    direction = (Pt @ Vt.T - start * np.cos(angles)) / np.sin(angles)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    G = np.zeros((9, 9))
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        P = start * np.cos(node * angles) + direction * np.sin(node * angles)
        G += weight * P @ P.T
    Z = GFK(3).adapt(task.Xs, task.ys, task.Xt).transform(task.X)
    np.testing.assert_allclose(Z @ Z.T, task.X @ G @ task.X.T, atol=1e-9)


def test_gfk_takes_sparse_rows(task):
    dense = GFK(3).adapt(task.Xs, task.ys, task.Xt).transform(task.Xt)
    sparse = GFK(3).adapt(csr_array(task.Xs), task.ys, csr_array(task.Xt))
    Z = sparse.transform(csr_array(task.Xt))
    np.testing.assert_allclose(Z @ Z.T, dense @ dense.T, atol=1e-8)


def test_both_bases_have_as_many_directions_as_the_smaller(task):
    model = SubspaceAlignment().adapt(task.Xs, task.ys, task.Xt[:3])
    assert model.source_components_.shape == model.target_components_.shape == (2, 9)
    assert GFK().adapt(task.Xs, task.ys, task.Xt[:3]).factor_.shape == (9, 4)
