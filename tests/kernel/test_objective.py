"""Every quadratic term against its dense matrix as printed, also with an empty pseudo-class."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import literal
from problems import random_codes
from transferable import MEDA, TFDFV
from transferable._kernel.choose import parameters
from transferable._kernel.covariances import (
    Covariances,
    GroupCentring,
    KernelCovariances,
    projected_covariances,
    squared_differences,
)
from transferable._kernel.objective import Means, Variance, mean_differences
from transferable._kernel.solvers import ExactSolver
from transferable._linalg.moments import Moments
from transferable.classifiers.published import PrintedCovariances, PrintedMeans
from transferable.domains import Domains

N_SOURCE, N_TARGET, N_CLASSES = 13, 10, 3
N = N_SOURCE + N_TARGET
FORMS = st.sampled_from(["printed", "normalised"])
SEEDS = st.integers(0, 10**6)
BALANCES = st.sampled_from([0.0, 0.3, 1.0])
MEANS = {"printed": PrintedMeans, "normalised": Means}
COVARIANCES = {"printed": PrintedCovariances, "normalised": Covariances}
ONES = np.ones(N_CLASSES)


def domains_with(codes, rows=None):
    """A problem with these codes, in whose order they are."""
    rows = np.zeros((len(codes), 2)) if rows is None else rows
    return Domains(rows, codes[:N_SOURCE], np.arange(N_CLASSES), np.arange(len(codes)))


def columns(term, codes, balance):
    """E of a term that compares groups of rows."""
    domains, target = domains_with(codes), codes[N_SOURCE:]
    B = term.by_group(domains, domains.counts(target), ONES, balance)
    return B[np.r_[domains.y, N_CLASSES + target]]


def scores(seed, n_columns=4):
    return np.random.default_rng(seed).normal(size=(N, n_columns))


def kernel(seed):
    Z = literal.unit_rows(np.random.default_rng(seed).normal(size=(N, 5)))
    return literal.rbf(Z, Z)


def assert_is(form, S, seed=0):
    """The form does to any table what the matrix S does."""
    F = scores(seed)
    scale = max(np.abs(S).max(), 1e-12)
    np.testing.assert_allclose(form(F), S @ F, atol=1e-11 * N * scale)
    expected = np.trace(F.T @ S @ F)
    assert np.sum(F * form(F)) == pytest.approx(expected, abs=1e-10 * N**2 * scale)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, balance=BALANCES, form=FORMS)
def test_means(seed, balance, form):
    codes = random_codes(seed, N_SOURCE, N_TARGET, N_CLASSES)
    M = literal.mean_part(codes, N_SOURCE, N_CLASSES, balance, form)
    E = columns(MEANS[form](2.5), codes, balance)
    assert_is(lambda F: E @ (E.T @ F), 2.5 * M, seed)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, balance=BALANCES, form=FORMS)
def test_covariances(seed, balance, form):
    codes, K = random_codes(seed, N_SOURCE, N_TARGET, N_CLASSES), kernel(seed)
    S = literal.covariance_part(K, codes, N_SOURCE, N_CLASSES, balance, form)
    given = domains_with(codes), codes[N_SOURCE:], ONES, balance
    term = KernelCovariances(COVARIANCES[form](2.5), K, {}, *given, np.asarray)
    assert_is(term.form, 2.5 * S, seed)
    np.testing.assert_allclose(term.times_kernel(), term.form(K), atol=1e-10)


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, balance=BALANCES, form=FORMS)
def test_covariances_of_features(seed, balance, form):
    """Phi'S Phi from moments by class, where K = Phi Phi'."""
    codes, Phi = random_codes(seed, N_SOURCE, N_TARGET, N_CLASSES), scores(seed, 6)
    S = literal.covariance_part(Phi @ Phi.T, codes, N_SOURCE, N_CLASSES, balance, form)
    domains, inside = domains_with(codes), np.arange(N) < N_SOURCE
    source, target = (
        [Moments.of(Phi[side & (codes == c)]) for c in range(N_CLASSES)]
        for side in (inside, ~inside)
    )
    counts = domains.counts(codes[N_SOURCE:])
    G = projected_covariances(
        COVARIANCES[form](2.5), domains, counts, source, target, ONES, balance
    )
    expected = 2.5 * Phi.T @ S @ Phi
    np.testing.assert_allclose(G, expected, atol=1e-10 * np.abs(expected).max())


def test_what_no_label_changes_of_the_covariances_is_kept():
    K, known = kernel(0), {}
    for seed in range(3):
        codes = random_codes(seed, N_SOURCE, N_TARGET, N_CLASSES)
        domains = domains_with(np.r_[np.arange(N_SOURCE) % 3, codes[N_SOURCE:]])
        given = domains, codes[N_SOURCE:], ONES, 0.3
        kept = KernelCovariances(Covariances(1.0), K, known, *given, np.asarray)
        made = KernelCovariances(Covariances(1.0), K, {}, *given, np.asarray)
        np.testing.assert_array_equal(kept.times_kernel(), made.times_kernel())
    assert len(known) == 2


@pytest.mark.parametrize("n_features", [2, 30])
def test_squared_difference_of_covariances(n_features):
    codes = random_codes(0, N_SOURCE, N_TARGET, N_CLASSES)
    Phi = scores(1, n_features)
    _, masks = literal.group_masks(codes, N_SOURCE, N_CLASSES)
    groups, expected = [], 0.0
    for source, target in masks:
        groups.append(GroupCentring(np.flatnonzero(source), np.flatnonzero(target)))
        D = np.cov(Phi[source].T, bias=True) - np.cov(Phi[target].T, bias=True)
        np.testing.assert_allclose(squared_differences(groups[-1:], Phi), D @ D, atol=1e-10)
        expected = expected + len(groups) ** 2 * D @ D
    trust = 1.0 + np.arange(len(groups))
    np.testing.assert_allclose(squared_differences(groups, Phi, trust), expected, atol=1e-10)


def test_differences_compare_means_and_leave_an_empty_class_out():
    codes = random_codes(3, N_SOURCE, N_TARGET, N_CLASSES)
    F, source = scores(3), np.arange(N) < N_SOURCE
    domains = domains_with(codes)
    B = mean_differences(domains.counts(codes[N_SOURCE:]), ONES, np.ones(1))
    E = B[np.where(source, codes, N_CLASSES + codes), 0]
    np.testing.assert_allclose(E[:, 0] @ F, F[source].mean(0) - F[~source].mean(0))
    first = codes == 0
    np.testing.assert_allclose(E[:, 1] @ F, F[source & first].mean(0) - F[~source & first].mean(0))
    assert not E[:, N_CLASSES].any()


def test_no_target_leaves_nothing_to_align():
    codes = np.arange(N_SOURCE) % N_CLASSES
    for term in (Means(1.0), PrintedMeans(1.0)):
        assert not columns(term, codes, 0.5).any()


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, p=st.integers(1, 5), self_loops=st.booleans(), lonely=st.booleans())
def test_laplacian(seed, p, self_loops, lonely):
    Z = np.random.default_rng(seed).normal(size=(N, 4))
    if lonely:
        Z[2] = 0.0
    domains = domains_with(np.arange(N) % N_CLASSES, Z)
    problem = parameters(MEDA(manifold=0.7, manifold_dim=None, n_neighbors=p), domains)
    [term] = problem.graph(p, self_loops=self_loops)
    L = literal.laplacian(literal.affinity(Z, p, self_loops=self_loops))
    assert term.weight == 0.7
    assert_is(term.form, L, seed)
    F = scores(seed)
    assert np.sum(F * term.form(F)) >= -1e-10


def test_source_loss_and_variance():
    A = np.diag((np.arange(N) < N_SOURCE).astype(float))
    domains = domains_with(np.arange(N) % N_CLASSES, scores(2))
    problem = parameters(TFDFV(manifold_dim=None, n_neighbors=3), domains)
    solver = ExactSolver(problem, []).reweighted(ONES)
    assert_is(solver.loss, A)
    np.testing.assert_array_equal(solver.image, domains.one_hot())
    assert solver.norm == N_SOURCE
    ratio = np.array([0.5, 1.0, 2.0])
    assert_is(ExactSolver(problem, []).reweighted(ratio).loss, A * ratio[np.arange(N) % N_CLASSES])
    term = Variance(0.3, np.ones(N))
    assert term.weight == 0.3
    assert_is(term.form, literal.centring(N))


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
    domains, F = domains_with(np.arange(N) % N_CLASSES, scores(0, 3)), scores(1)
    problems = (
        parameters(TFDFV(manifold=weight, manifold_dim=None), domains) for weight in (1.0, 2.0, 0.0)
    )
    (once,), (twice,), none = (problem.graph(3) for problem in problems)
    assert none == []
    assert (once.weight, twice.weight) == (1.0, 2.0)
    assert once.key == twice.key
    np.testing.assert_array_equal(once.form(F), twice.form(F))
