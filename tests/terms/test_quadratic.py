"""Every quadratic term against its dense matrix as printed, also with an empty pseudo-class."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import literal
from problems import random_codes
from transferable.domains import Groups
from transferable.linalg.neighbors import cosine_neighbors
from transferable.terms.covariances import (
    CovarianceDiscrepancy,
    SecondOrder,
    class_groups,
    squared_differences,
)
from transferable.terms.means import MeanDiscrepancy, mean_differences
from transferable.terms.risk import SourceError, Spread
from transferable.terms.smoothness import Laplacian

N_SOURCE, N_TARGET, N_CLASSES = 13, 10, 3
N = N_SOURCE + N_TARGET
FORMS = st.sampled_from(["printed", "normalised"])
SEEDS = st.integers(0, 10**6)
BALANCES = st.sampled_from([0.0, 0.3, 1.0])


def grouped(codes):
    return Groups(codes, N_SOURCE, N_CLASSES)


def scores(seed, columns=4):
    return np.random.default_rng(seed).normal(size=(N, columns))


def kernel(seed):
    Z = literal.unit_rows(np.random.default_rng(seed).normal(size=(N, 5)))
    return literal.rbf(Z, Z)


def assert_is(term, S, seed=0):
    """The term does to any table what the matrix S does."""
    F = scores(seed)
    scale = max(np.abs(S).max(), 1e-12)
    np.testing.assert_allclose(term.apply(F), S @ F, atol=1e-11 * N * scale)
    assert term.value(F) == pytest.approx(np.trace(F.T @ S @ F), abs=1e-10 * N**2 * scale)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, balance=BALANCES, form=FORMS)
def test_mean_discrepancy(seed, balance, form):
    codes = random_codes(seed, N_SOURCE, N_TARGET, N_CLASSES)
    M = literal.mean_part(codes, N_SOURCE, N_CLASSES, balance, form)
    term = MeanDiscrepancy(
        grouped(codes),
        weight=2.5,
        balance=balance,
        normalised=form == "normalised",
    )
    assert_is(term, 2.5 * M, seed)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, balance=BALANCES, form=FORMS)
def test_covariance_discrepancy(seed, balance, form):
    codes, K = random_codes(seed, N_SOURCE, N_TARGET, N_CLASSES), kernel(seed)
    S = literal.covariance_part(K, codes, N_SOURCE, N_CLASSES, balance, form)
    term = CovarianceDiscrepancy(
        SecondOrder(K, N_SOURCE),
        grouped(codes),
        weight=2.5,
        balance=balance,
        normalised=form == "normalised",
    )
    assert_is(term, 2.5 * S, seed)
    np.testing.assert_allclose(term.times_kernel(), term.apply(K), atol=1e-10)


@pytest.mark.parametrize("n_features", [2, 30])
def test_squared_difference_of_covariances(n_features):
    codes = random_codes(0, N_SOURCE, N_TARGET, N_CLASSES)
    Phi = scores(1, n_features)
    _, masks = literal.group_masks(codes, N_SOURCE, N_CLASSES)
    for group, (source, target) in zip(class_groups(grouped(codes)), masks, strict=True):
        D = np.cov(Phi[source].T, bias=True) - np.cov(Phi[target].T, bias=True)
        np.testing.assert_allclose(squared_differences([group], Phi), D @ D, atol=1e-10)


def test_differences_compare_means_and_leave_an_empty_class_out():
    codes = random_codes(3, N_SOURCE, N_TARGET, N_CLASSES)
    F, source = scores(3), np.arange(N) < N_SOURCE
    columns = grouped(codes).spread(mean_differences(grouped(codes)))
    np.testing.assert_allclose(columns[:, 0] @ F, F[source].mean(0) - F[~source].mean(0))
    first = codes == 0
    np.testing.assert_allclose(
        columns[:, 1] @ F, F[source & first].mean(0) - F[~source & first].mean(0)
    )
    assert not columns[:, N_CLASSES].any()


def test_no_target_leaves_nothing_to_align():
    codes = np.arange(N_SOURCE) % N_CLASSES
    groups = Groups(codes, N_SOURCE, N_CLASSES)
    assert not mean_differences(groups).any()
    term = MeanDiscrepancy(groups, weight=1.0, balance=0.5, normalised=True)
    assert not term.apply(np.ones((N_SOURCE, 2))).any()


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, p=st.integers(1, 5), self_loops=st.booleans(), lonely=st.booleans())
def test_laplacian(seed, p, self_loops, lonely):
    Z = np.random.default_rng(seed).normal(size=(N, 4))
    if lonely:
        Z[2] = 0.0
    L = literal.laplacian(literal.affinity(Z, p, self_loops=self_loops))
    term = Laplacian(cosine_neighbors(Z, p, self_loops=self_loops), 0.7)
    assert_is(term, 0.7 * L, seed)
    assert term.value(scores(seed)) >= -1e-10


def test_source_loss_and_variance():
    A = np.diag((np.arange(N) < N_SOURCE).astype(float))
    assert_is(SourceError(N_SOURCE), A)
    assert_is(Spread(0.3), 0.3 * literal.centring(N))


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, whole=st.booleans(), k=st.integers(1, 4))
def test_theorem_1_bounds_the_covariances_by_a_quadratic_form(seed, whole, k):
    """||b'KZKb||^2 <= sigma k ||b'KZK||^2 where b'KHKb = I.

    KHK is singular, so its root is inverted on its range, in which the rows of KZK lie.
    """
    codes, K = random_codes(seed, N_SOURCE, N_TARGET, N_CLASSES), kernel(seed)
    domains, classes = literal.group_masks(codes, N_SOURCE, N_CLASSES)
    Z = literal.covariance_matrix(*(domains[0] if whole else classes[0]))
    values, vectors = np.linalg.eigh(K @ literal.centring(N) @ K)
    kept = values > 1e-9 * values[-1]
    inverse_root = vectors[:, kept] / np.sqrt(values[kept])
    directions = np.linalg.qr(np.random.default_rng(seed).normal(size=(kept.sum(), k)))[0]
    beta = inverse_root @ directions
    np.testing.assert_allclose(beta.T @ K @ literal.centring(N) @ K @ beta, np.eye(k), atol=1e-5)
    left = np.linalg.norm(beta.T @ K @ Z @ K @ beta) ** 2
    for sigma in (np.sum(1 / values[kept]), 1 / values[kept].min()):  # Frobenius, and spectral norm
        assert left <= sigma * k * np.linalg.norm(beta.T @ K @ Z @ K) ** 2 * (1 + 1e-6)


def test_a_graph_with_another_weight_is_the_same_graph():
    graph = Laplacian(cosine_neighbors(np.random.default_rng(0).normal(size=(N, 3)), 3), key="g")
    F, heavier = scores(1), graph.weighted(2.0)
    np.testing.assert_allclose(heavier.apply(F), 2.0 * graph.apply(F))
    np.testing.assert_array_equal(heavier.weighted(1.0).apply(F), graph.apply(F))
    assert (heavier.key, graph.weight) == ("g", 1.0)
