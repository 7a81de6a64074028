"""Both solvers: the updated system against a dense solve, terms one by one, terms of one's own."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import literal
from problems import domains_of, made, published, rounds_of, small_problem
from transferable import TFDFV
from transferable._kernel.objective import Means, Smoothness, Term, Variance
from transferable._kernel.solvers import Solver
from transferable.classifiers.published import Adam

P = small_problem(seed=8)
SETTINGS = {
    "ridge": 0.1,
    "alignment": 10.0,
    "manifold": 1.0,
    "variance": 0.05,
    "second_order": 0.5,
    "balance": 0.4,
    "n_neighbors": 5,
    "manifold_dim": 3,
    "class_shares": "source",
}
both_solvers = pytest.mark.parametrize("n_landmarks", [None, 10_000], ids=["exact", "landmarks"])


def dense(rounds):
    """The system P without columns, and K or the identity: P + EE'K is that with them."""
    d, fixed = rounds.domains, rounds.objective.fixed
    n = len(d.order)
    A = np.zeros((n, n))
    A[d.labelled, d.labelled] = 1.0
    S = A + sum(term.weight * term.form(np.eye(n)) for term in fixed)
    if rounds.solver.n_landmarks is None:
        return S @ rounds.solver.K + rounds.solver.ridge * np.eye(n), rounds.solver.K
    Phi = rounds.solver.features[slice(0, n)]
    identity = np.eye(Phi.shape[1])
    return Phi.T @ S @ Phi + rounds.solver.ridge * identity, identity


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rank=st.integers(2, 14),
    columns=st.integers(1, 5),
    log_scale=st.floats(-3, 4),
)
def test_solution_is_that_of_the_dense_system(seed, rank, columns, log_scale):
    rng = np.random.default_rng(seed)
    n = 14
    factor, root = rng.normal(size=(n, rank)), rng.normal(size=(n, n))
    K, S = factor @ factor.T / n, root @ root.T / n
    P = S @ K + 0.1 * np.eye(n)
    solver = Solver()
    solver.known, solver.solved, solver.dual = {}, partial(np.linalg.solve, P), K.__matmul__
    for _ in range(2):
        E = 10**log_scale * rng.normal(size=(n, columns))
        solver.image = R = rng.normal(size=(n, 3))
        x, scores, *_ = solver.updated([E])
        np.testing.assert_allclose(scores, K @ x, atol=1e-9 * max(1.0, np.abs(x).max()))
        scale = np.abs(P + E @ E.T @ K).max() * np.abs(x).max() + np.abs(R).max()
        np.testing.assert_allclose((P + E @ E.T @ K) @ x, R, atol=1e-9 * scale)


@both_solvers
def test_one_factorisation_serves_many_updates(n_landmarks):
    model = TFDFV(**(SETTINGS | {"second_order": 0.0, "n_landmarks": n_landmarks}))
    rounds = rounds_of(model, domains_of(P))
    solver, (system, K) = rounds.solver, dense(rounds)
    np.testing.assert_allclose(system @ solver.updated([])[0], solver.image, atol=1e-10)
    rng, factor = np.random.default_rng(0), solver.known["factor"]
    for scale in (1e-3, 1.0, 1e3):
        E = scale * rng.normal(size=(len(system), 3))
        x = solver.updated([E])[0]
        updated, atol = system + E @ E.T @ K, 1e-9 * max(1.0, scale**2)
        np.testing.assert_allclose(updated @ x, solver.image, atol=atol)
        halves = [E[:, :1], E[:, 1:]]
        np.testing.assert_allclose(solver.updated(halves)[0], x, atol=1e-10)
        # A pull along the last columns goes to the right-hand side: one for each class.
        last, pull = rng.normal(size=(len(system), 3)), np.array([0.5, -2.0, 1.0])
        x = solver.updated([E, last], pull=pull)[0]
        R = solver.image + last * pull
        np.testing.assert_allclose((updated + last @ last.T @ K) @ x, R, atol=10 * atol)
    assert solver.known["factor"] is factor


@both_solvers
def test_an_update_of_zero_columns_changes_nothing(n_landmarks):
    rounds = rounds_of(TFDFV(**SETTINGS, n_landmarks=n_landmarks), domains_of(P))
    y = rounds.solver.updated([])[0]
    zeros = np.zeros((len(y), 3))
    np.testing.assert_allclose(rounds.solver.updated([zeros])[0], y, atol=1e-12)
    assert rounds.solver.updated([])[0] is y


def test_a_weight_counts_as_the_square_of_a_scale():
    domains = domains_of(P)
    given = domains, domains.counts(P.yt), np.ones(3), 0.4
    once = Means(1.0).by_group(*given)
    for weight in (0.0, 0.3, 9.0):
        np.testing.assert_allclose(Means(weight).by_group(*given), weight**0.5 * once)


@both_solvers
def test_scores_are_the_expansion_over_rows(n_landmarks):
    rounds = made(rounds_of(TFDFV(**SETTINGS, n_landmarks=n_landmarks), domains_of(P)))
    solver, problem = rounds.solver, rounds.solver.problem
    w = rounds.w if solver.whitening is None else solver.whitening @ rounds.w
    F = problem.kernel(problem.Z, solver.expanded) @ w
    np.testing.assert_allclose(rounds.F, F, atol=1e-9)


@pytest.mark.parametrize(
    "change", [{"random_state": 1}, {"gamma": 1.0}, {"ridge": 1.0}, {"manifold_dim": 2}]
)
@pytest.mark.parametrize("n_landmarks", [None, 20])
def test_solvers_over_the_same_rows_have_the_same_key(n_landmarks, change):
    """Whatever else is aligned or smoothed: fits of one search share by it."""
    settings = SETTINGS | {"n_landmarks": n_landmarks}
    domains = domains_of(P)
    own, same, other = (
        rounds_of(TFDFV(**settings | more), domains).base
        for more in ({}, {"alignment": 3.0, "manifold": 0.5, "n_neighbors": 3}, change)
    )
    assert own.key == same.key
    assert hash(own.key) == hash(same.key)
    assert (own.key == other.key) == (n_landmarks is None and "random_state" in change)


@both_solvers
def test_the_history_is_the_objective_from_scratch(n_landmarks):
    """Every term of a round with all of them, by dense matrices as printed."""
    model = published(**SETTINGS, n_landmarks=n_landmarks, confusion=0.2)
    domains = domains_of(P)
    rounds = rounds_of(model, domains, P.yt)
    codes, K = domains.with_target(P.yt), rounds.base.problem.kernel(*2 * (rounds.base.problem.Z,))
    entry = made(rounds).history[-1]
    F, Y = rounds.F, domains.one_hot()
    groups = codes, domains.n_source, 3, 0.4, "normalised"
    cosines = literal.cosine_columns(F)[0]
    L = literal.laplacian(literal.affinity(rounds.base.problem.Z, 5))
    forms = {
        "means": 10.0 * literal.mean_part(*groups),
        "covariances": 5.0 * literal.covariance_part(K, *groups),
        "manifold": L,
        "variance": 0.05 * literal.centring(len(F)),
    }
    expected = {name: np.trace(F.T @ S @ F) for name, S in forms.items()}
    expected["source"] = np.sum((F - Y)[domains.source] ** 2)
    expected["ridge"] = 0.1 * np.trace(F.T @ np.linalg.solve(K, F))
    expected["confusion"] = 0.2 * np.linalg.norm(cosines.T @ cosines - np.eye(3)) ** 2
    expected |= {"objective": sum(expected.values()), "balance": 0.4}
    expected["changed"] = np.mean(rounds.target.codes != P.yt)
    assert entry == pytest.approx(expected, rel=1e-6)


@both_solvers
def test_the_ablation_is_a_list_with_entries_removed(n_landmarks):
    """Leaving terms out is the same as giving them no weight."""
    settings = SETTINGS | {"second_order": 0.0, "n_landmarks": n_landmarks}
    names = {Means: "alignment", Smoothness: "manifold", Variance: "variance"}
    domains = domains_of(P)
    whole = rounds_of(TFDFV(**settings), domains, P.yt).objective
    for kind, name in names.items():
        fixed, aligned = (
            [term for term in terms if not isinstance(term, kind)]
            for terms in (whole.fixed, whole.aligned)
        )
        assert len(fixed) + len(aligned) == 2
        without = rounds_of(TFDFV(**settings), domains, P.yt, fixed=fixed, aligned=aligned)
        other = rounds_of(TFDFV(**(settings | {name: 0.0})), domains, P.yt)
        np.testing.assert_array_equal(made(without).w, made(other).w)
        left = set(names_of(whole)) - {kind.name}
        assert left == {term for term in without.history[-1] if term in names_of(whole)}


def names_of(objective):
    return [term.name for term in (*objective.fixed, *objective.aligned)]


@dataclass(frozen=True)
class Tilt(Term):
    """A term of somebody's own: every other row's scores are to be small."""

    weight: float = 2.0
    key: str = "tilt"
    name: ClassVar[str] = "tilt"

    def form(self, F):
        out = 1.0 * F
        out[1::2] = 0.0
        return out


class Tilted(TFDFV):
    """TFDF-V with one more term."""

    def _objective(self, problem):
        plain = super()._objective(problem)
        return replace(plain, fixed=[*plain.fixed, Tilt()])


def test_a_term_of_ones_own_serves_both_solvers():
    """It is the same quadratic form over all rows and over as many landmarks."""
    scores, fitted = [], []
    for n_landmarks in (None, 10_000):
        model = Tilted(**SETTINGS, n_landmarks=n_landmarks)
        rounds = made(rounds_of(model, domains_of(P), P.yt))
        scores.append(rounds.F)
        np.testing.assert_allclose(Adam.gradient(rounds), 0.0, atol=1e-9)
        value = rounds.history[-1]["tilt"]
        assert value == pytest.approx(2.0 * np.sum(rounds.F[::2] ** 2))
        fitted.append(model.adapt(P.Xs, P.ys, P.Xt).decision_function(P.X))
        assert "tilt" in model.history_[-1]
    np.testing.assert_allclose(*scores, atol=1e-8)
    np.testing.assert_allclose(*fitted, atol=1e-8)
    plain = TFDFV(**SETTINGS).adapt(P.Xs, P.ys, P.Xt).decision_function(P.X)
    assert np.abs(fitted[0] - plain).max() > 1e-3


@both_solvers
def test_a_term_that_offers_nothing_a_solver_can_use_is_refused_by_name(n_landmarks):
    class Nothing(Term):
        name, weight, key = "nothing", 1.0, "nothing"

    model = TFDFV(**SETTINGS, n_landmarks=n_landmarks)
    with pytest.raises(NotImplementedError, match="The term Nothing has no form"):
        rounds_of(model, domains_of(P), fixed=[Nothing()]).solve([])
