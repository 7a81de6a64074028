"""DMM: each of its steps does what it says, and together they reach the published accuracy."""

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from problems import small_problem
from transferable.datasets import fetch_office_caltech
from transferable.domains import Domains
from transferable.experimental import DMM
from transferable.transformers._spectral import mean_columns

PROBLEM = small_problem(n_source=60, n_target=45, n_features=8)
STACKED = (PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)


def first_space(k, regularization):
    """Step 1 without pseudo-labels, from n x n matrices: unit rows of the mapped data."""
    X = normalize(PROBLEM.X)
    n, n_source = len(X), len(PROBLEM.ys)
    e = np.r_[np.full(n_source, 1 / n_source), np.full(n - n_source, -1 / (n - n_source))]
    M = np.outer(e, e) / (e @ e)
    H = np.eye(n) - 1 / n
    _, A = eigh(X.T @ H @ X, X.T @ M @ X + regularization * np.eye(8))
    A = A[:, ::-1][:, :k]
    return normalize((X - X.mean(axis=0)) @ (A / np.linalg.norm(A, axis=0)))


@pytest.mark.parametrize("k", [3, 8])
def test_without_weights_one_round_is_a_machine_on_matched_features(k):
    model = DMM(k, max_weight=1.0, max_iter=1).adapt(*STACKED)
    Z = first_space(k, 0.1)
    machine = SVC(C=10.0, gamma=1.0, tol=1e-10).fit(Z[: len(PROBLEM.ys)], PROBLEM.ys)
    np.testing.assert_allclose(
        model.decision_function(PROBLEM.X), machine.decision_function(Z), atol=1e-3
    )


def discrepancy(model, weights):
    """||E_a' Z||^2 between whole domains, in the model's space."""
    Z = model._map(normalize(PROBLEM.X))
    E = mean_columns(Domains(PROBLEM.X, PROBLEM.ys, np.arange(3), np.arange(len(Z))), None)
    a = np.r_[weights[: len(PROBLEM.ys)], np.ones(len(PROBLEM.Xt))]
    return np.sum((E.T @ (a[:, None] * Z)) ** 2)


def test_weights_bring_the_domains_closer_within_their_bounds():
    model = DMM(4, max_weight=2.5, weight_ridge=0.0, max_iter=1).adapt(*STACKED)
    a = model.sample_weight_
    n_source = len(PROBLEM.ys)
    assert discrepancy(model, a) < 0.5 * discrepancy(model, np.ones_like(a))
    assert a[:n_source].min() >= 0
    assert a.max() <= 2.5 + 1e-9
    assert not a[n_source:].any()
    for code in range(3):
        assert a[:n_source][PROBLEM.ys == code].mean() == pytest.approx(1.0, abs=1e-3)


def test_a_large_ridge_makes_weights_equal():
    even = DMM(weight_ridge=1e6).adapt(*STACKED).sample_weight_[: len(PROBLEM.ys)]
    np.testing.assert_allclose(even, 1.0, atol=1e-3)


def test_the_machine_counts_rows_by_their_weight():
    model = DMM(3, weight_ridge=0.0).adapt(*STACKED)
    domains = Domains.from_stacked(PROBLEM.X, np.r_[PROBLEM.ys, np.full(len(PROBLEM.Xt), -1)])
    Z = model._map(normalize(domains.Xs))
    weights = model.sample_weight_[domains.order[: domains.n_source]]
    machine = SVC(C=10.0, gamma=1.0, tol=1e-10).fit(Z, domains.y, weights)
    np.testing.assert_allclose(
        model.decision_function(domains.Xs), machine.decision_function(Z), atol=1e-6
    )


@pytest.mark.parametrize("map_kernel", [None, "linear"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_row_length_does_not_matter(map_kernel, kernel):
    model = DMM(map_kernel=map_kernel, kernel=kernel).adapt(*STACKED)
    np.testing.assert_allclose(
        model.decision_function(7 * PROBLEM.Xt), model.decision_function(PROBLEM.Xt), atol=1e-8
    )


def test_balance_zero_needs_no_pseudo_labels():
    """Then only the weights change between rounds; with equal ones, nothing does."""
    model = DMM(balance=0.0, max_weight=1.0).adapt(*STACKED)
    assert model.n_iter_ == 2


def test_too_many_components_are_reduced_with_a_warning():
    with pytest.warns(UserWarning, match="n_components=50 .* reduced to 8"):
        model = DMM(50).adapt(*STACKED)
    assert model.n_components_ == 8


@pytest.mark.parametrize(("task", "printed"), [("WD", 98.7), ("DW", 99.3)])
def test_published_accuracy_on_decaf6(data_home, task, printed):
    pair = fetch_office_caltech("decaf6", data_home=data_home).task(*task)
    model = DMM().adapt(pair.Xs, pair.ys, pair.Xt)
    assert 100 * np.mean(model.transduction_[len(pair.ys) :] == pair.yt) >= printed
