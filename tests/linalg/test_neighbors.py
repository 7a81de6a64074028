"""The cosine graph against a brute-force search."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import literal
from problems import small_problem
from transferable import TFDF
from transferable._linalg.search import (
    cosine_neighbors,
    normalised_adjacency,
)
from transferable.limits import LIMITS


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), p=st.integers(1, 6), self_loops=st.booleans())
def test_graph_is_the_printed_affinity(seed, p, self_loops):
    X = np.random.default_rng(seed).normal(size=(15, 4))
    W = cosine_neighbors(X, p, self_loops=self_loops)
    expected = literal.affinity(X, p, self_loops=self_loops)
    np.testing.assert_allclose(W.toarray(), expected, atol=1e-12)


def test_sparse_rows_have_the_graph_of_dense_ones():
    X = sp.random_array((20, 12), density=0.5, rng=np.random.default_rng(0), format="csr")
    np.testing.assert_allclose(
        cosine_neighbors(X, 4).toarray(), cosine_neighbors(X.toarray(), 4).toarray(), atol=1e-12
    )


def test_row_lengths_do_not_matter():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(15, 4))
    scaled = X * rng.uniform(0.1, 10, size=(15, 1))
    np.testing.assert_allclose(
        cosine_neighbors(X, 3).toarray(), cosine_neighbors(scaled, 3).toarray(), atol=1e-12
    )


def test_zero_rows_are_joined_to_nothing():
    X = np.random.default_rng(3).normal(size=(10, 4))
    X[[2, 7]] = 0.0
    W = cosine_neighbors(X, 3).toarray()
    assert not W[[2, 7]].any()
    assert not W[:, [2, 7]].any()


def test_duplicates_are_each_others_nearest():
    X = np.random.default_rng(4).normal(size=(10, 4))
    X[6] = 3.0 * X[1]
    assert cosine_neighbors(X, 1).toarray()[1, 6] == pytest.approx(1.0)


def test_all_rows_equal():
    W = cosine_neighbors(np.ones((6, 3)), 2).toarray()
    np.testing.assert_allclose(W, W.T)
    assert np.all((W > 0).sum(axis=1) >= 2)
    assert not np.diag(W).any()


def test_obtuse_rows_are_not_joined():
    X = np.array([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.05]])
    W = cosine_neighbors(X, 2)
    assert W.toarray()[0, 2] == W.toarray()[1, 2] == 0.0
    assert W.nnz == 2


@pytest.mark.parametrize("self_loops", [False, True])
def test_normalised_adjacency(self_loops):
    X = np.random.default_rng(5).normal(size=(12, 4))
    X[3] = 0.0
    W = cosine_neighbors(X, 3, self_loops=self_loops)
    S = normalised_adjacency(W).toarray()
    degrees = W.toarray().sum(axis=1)
    expected = np.divide(
        W.toarray(),
        np.sqrt(np.outer(degrees, degrees)),
        where=W.toarray() > 0,
        out=np.zeros((12, 12)),
    )
    np.testing.assert_allclose(S, expected, atol=1e-12)
    assert np.linalg.eigvalsh(S).max() <= 1 + 1e-12


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("n_neighbors", [1, 4])
def test_graph_of_a_tensor_is_that_of_the_array(n_neighbors, self_loops):
    torch = pytest.importorskip("torch")
    X = np.random.default_rng(6).normal(size=(40, 5))
    X[[3, 8]] = 0.0
    X[20] = X[21]
    W = cosine_neighbors(X, n_neighbors, self_loops)
    on_device = cosine_neighbors(torch.from_numpy(X), n_neighbors, self_loops)
    assert on_device.layout == torch.sparse_csr
    np.testing.assert_allclose(on_device.to_dense().numpy(), W.toarray(), atol=1e-12)
    np.testing.assert_allclose(
        normalised_adjacency(on_device).to_dense().numpy(),
        normalised_adjacency(W).toarray(),
        atol=1e-12,
    )
    steps = np.diff(on_device.crow_indices().numpy())
    np.testing.assert_array_equal(steps, np.diff(W.indptr))


def test_a_fit_with_equal_rows_is_that_of_any_order_and_block(monkeypatch):
    monkeypatch.setattr(LIMITS, "fewest_queries", 1)
    rng = np.random.default_rng(8)
    task = small_problem(n_source=40, n_target=40, n_features=100)
    source, target = rng.integers(40, size=(2, 150))  # about four of each row
    X = np.vstack([task.Xs[source], task.Xt[target]])
    y, marks = np.r_[task.ys[source], np.full(150, -1)], np.repeat([1, -1], 150)
    fitted = TFDF().fit(X, y, marks)
    for held in (2**24, 700, 1):
        monkeypatch.setattr(LIMITS, "similarity_values", held)
        order = rng.permutation(300)
        again = TFDF().fit(X[order], y[order], marks[order])
        np.testing.assert_array_equal(again.transduction_, fitted.transduction_[order])
        scores, expected = again.decision_function(X), fitted.decision_function(X)
        np.testing.assert_allclose(scores, expected, atol=1e-9)
