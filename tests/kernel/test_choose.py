"""Automatic choices: the flow and its dimension, the weight of the graph; and what they become."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.utils import Bunch

import literal
from problems import domains_of, small_problem
from transferable import ARTL, MEDA, TFDF, TFDFV, AutoAdapter
from transferable._kernel import choose
from transferable._linalg.arrays import Reordered, centre_of
from transferable.limits import LIMITS
from transferable.transformers import PerDomainScaler

P = small_problem(seed=4)


@pytest.fixture
def domains():
    return domains_of(P)


def test_features_have_the_products_of_the_root_of_the_flow(domains):
    Z = choose.parameters(TFDFV(manifold_dim=3), domains).Z
    expected = literal.features(domains.Xs, domains.Xt, 3, centred=True)
    assert Z.shape == (len(P.X), 7)
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-8)


def test_no_flow_leaves_centred_rows_at_unit_length(domains):
    Z = choose.parameters(TFDFV(manifold_dim=None), domains).Z
    expected = literal.features(domains.Xs, domains.Xt, None, centred=True)
    np.testing.assert_allclose(Z, expected, atol=1e-12)
    for uncentred in (MEDA(manifold_dim=None), TFDF.as_published(manifold_dim=None)):
        Z = choose.parameters(uncentred, domains).Z
        np.testing.assert_allclose(Z, literal.unit_rows(domains.X), atol=1e-12)


@pytest.mark.parametrize("manifold_dim", [None, 3])
def test_features_do_not_depend_on_where_rows_are(manifold_dim):
    model, moved = (
        TFDFV(manifold_dim=manifold_dim, balance=0.5).adapt(P.Xs + move, P.ys, P.Xt + move)
        for move in (0.0, 1000.0)
    )
    np.testing.assert_allclose(
        moved.decision_function(P.Xt + 1000.0), model.decision_function(P.Xt), atol=1e-6
    )


def test_the_radius_tells_circles_apart():
    """Of one direction in two columns, and of another distance from the mean."""
    rng = np.random.default_rng(0)
    angles, y = rng.uniform(0, 2 * np.pi, (2, 200)), np.arange(200) % 2
    Xs, Xt = ((1.0 + y)[:, None] * np.c_[np.cos(a), np.sin(a)] for a in angles)
    assert TFDF().adapt(Xs, y, 1.1 * Xt).score(1.1 * Xt, y) > 0.95


@pytest.mark.parametrize("in_blocks", [False, True])
def test_the_centre_is_the_weighted_mean_however_rows_are_read(in_blocks, monkeypatch):
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(50, 4)) + 100.0, rng.integers(1, 4, 50)
    if in_blocks:
        monkeypatch.setattr(LIMITS, "block_values", 12)
    every = np.repeat(X, w, axis=0)
    expected = np.append(every.mean(axis=0), -np.sqrt(2 * every.var(axis=0).mean()))
    order = rng.permutation(50)
    for rows, weights in ((X, w), (sp.csr_array(X), w), (Reordered(X, order), w[order])):
        np.testing.assert_allclose(centre_of(rows, weights.astype(float)), expected)


def test_a_flow_that_costs_accuracy_gives_way_to_the_rows_by_and_by(monkeypatch):
    p = wide()
    errors = {30: 0.0, 0: 0.0}

    def error(*arguments):
        return errors[arguments[-1].flow.shape[1] // 2]

    monkeypatch.setattr(choose, "_left_out_error", error)
    found = []
    for errors[30] in (0.019, 0.021, 0.025, 0.029, 0.031):
        problem = choose.parameters(TFDFV(), domains_of(p))
        found.append(problem.Z @ problem.Z.T)
    steps = [np.abs(b - a).max() for a, b in pairwise(found)]
    whole = np.abs(found[-1] - found[0]).max()
    assert steps[0] < 0.3 * whole
    assert steps[-1] < 0.3 * whole
    flow, plain = (choose.parameters(TFDFV(manifold_dim=k), domains_of(p)).Z for k in (30, None))
    np.testing.assert_allclose(found[0], flow @ flow.T, atol=1e-12)
    np.testing.assert_allclose(found[-1], plain @ plain.T, atol=1e-12)


def test_sparse_rows_are_centred_along_a_flow_only():
    sparse = sp.csr_array(np.where(P.X > 0.5, P.X, 0.0))
    rows = domains_of(Bunch(**P | {"X": sparse})), domains_of(Bunch(**P | {"X": sparse.toarray()}))
    along = [choose.parameters(TFDFV(manifold_dim=3), d).Z for d in rows]
    np.testing.assert_allclose(along[0] @ along[0].T, along[1] @ along[1].T, atol=1e-9)
    Z = choose.parameters(TFDFV(manifold_dim=None), rows[0]).Z
    assert sp.issparse(Z)
    np.testing.assert_allclose(Z.toarray(), literal.unit_rows(rows[0].X.toarray()), atol=1e-12)


@pytest.mark.parametrize("estimator", [TFDF, TFDFV, MEDA])
def test_more_directions_than_the_ranks_allow_are_reduced_with_a_warning(estimator):
    with pytest.warns(UserWarning, match="manifold_dim=50 .* reduced to 6"):
        model = estimator(manifold_dim=50).adapt(P.Xs, P.ys, P.Xt)
    assert model.manifold_dim_ == 6
    with pytest.warns(UserWarning, match="reduced to 2"):
        assert estimator(manifold_dim=5).adapt(P.Xs, P.ys, P.Xt[:3]).manifold_dim_ == 2


def test_a_target_without_directions_is_used_without_a_flow():
    with pytest.warns(UserWarning, match="reduced to 0"):
        model = TFDFV(manifold_dim=3).adapt(P.Xs, P.ys, P.Xt[:1])
    assert model.manifold_dim_ is None


def test_as_many_directions_as_the_ranks_allow_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TFDFV(manifold_dim=6).adapt(P.Xs, P.ys, P.Xt).manifold_dim_ == 6


def test_auto_chooses_by_itself_without_a_warning():
    wide = small_problem(seed=5, n_features=60, n_source=60, n_target=60)
    for p in (P, wide):
        model = TFDFV(manifold_dim="auto").adapt(p.Xs, p.ys, p.Xt)
        assert model.manifold_dim_ is None or 1 <= model.manifold_dim_ <= min(p.X.shape)


def test_neighbors_count_by_the_odds_that_they_are_of_one_class():
    """Two classes on a circle: in sectors in turn, and mixed."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, 500)
    X = np.c_[np.cos(angles), np.sin(angles)]
    halves = (angles > np.pi).astype(int)
    mixed = rng.random(500) < 0.5 + 0.3 * np.cos(angles)
    chance = rng.integers(0, 2, 500)
    sure, unsure, none = (
        TFDFV(manifold_dim=None).adapt(X[:300], y[:300], X[300:]).manifold_
        for y in (halves, mixed.astype(int), chance)
    )
    assert sure == 20.0
    assert 0.1 <= unsure < 1.0
    assert none == 0.1


def repeated(model):
    """A model with every value that the fitted one resolved."""
    return type(model)(
        manifold=model.manifold_,
        manifold_dim=model.manifold_dim_,
        n_landmarks=model.n_landmarks_,
        graph=model.n_anchors_ or "neighbors",
        source_weights=model.source_weights_,
        class_shares="source",
    )


def wide(n_source=150, n_target=120, n_features=60):
    return small_problem(seed=5, n_source=n_source, n_target=n_target, n_features=n_features)


@pytest.mark.parametrize("Method", [TFDF, TFDFV])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("by_landmarks", [False, True])
def test_every_resolved_value_repeats_the_fit(Method, several, by_landmarks, monkeypatch):
    if by_landmarks:  # and anchors
        monkeypatch.setattr(LIMITS, "exact_rows", 100)
        monkeypatch.setattr(LIMITS, "landmarks", 80)
        monkeypatch.setattr(choose, "_MANY_ROWS", 100)
    p = wide()
    y, ids = np.r_[p.ys, np.zeros_like(p.yt)], np.r_[np.ones(150), np.full(120, -1)]
    if several:
        ids[50:150] = 4
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message='n_landmarks="auto" takes 80')
        model = Method(class_shares="source").fit(p.X, y, sample_domain=ids)
    assert (model.n_landmarks_, model.n_anchors_) == ((80, 54) if by_landmarks else (None, None))
    assert model.manifold_dim_ == 30
    assert len(model.source_weights_) == 1 + several
    again = repeated(model).fit(p.X, y, sample_domain=ids)
    np.testing.assert_allclose(
        again.decision_function(p.X), model.decision_function(p.X), rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(again.transduction_, model.transduction_)
    for name in ("manifold_", "manifold_dim_", "n_landmarks_", "n_anchors_", "balance_"):
        assert getattr(again, name) == pytest.approx(getattr(model, name))


def test_a_flow_that_is_given_is_taken(domains):
    flow = np.random.default_rng(0).normal(size=(6, 4))
    for model in (TFDFV(), ARTL()):
        problem = choose.parameters(model, domains, features=choose.Features(flow))
        assert problem.features.flow is flow
        np.testing.assert_allclose(problem.Z, literal.unit_rows(domains.X @ flow), atol=1e-12)


def test_many_target_rows_for_each_source_row_weaken_the_graph():
    """The Laplacian sums over all rows, the loss over the source's."""
    p = small_problem(seed=3, n_source=12, n_target=96)
    few, many = (TFDFV(manifold_dim=None).adapt(p.Xs, p.ys, p.Xt[:n]).manifold_ for n in (48, 96))
    assert many == pytest.approx(few / 2)


def test_a_column_that_outweighs_all_others_is_named_once():
    p, wide = small_problem(seed=4), [1, 1, 30.0, 1, 1, 1]
    with pytest.warns(
        UserWarning, match=r"Column 2 has 100% of .* all 6 .*PerDomainScaler"
    ) as told:
        TFDFV(manifold_dim=None).adapt(p.Xs * wide, p.ys, p.Xt * wide)
    assert len(told) == 1
    names = ["tall", "long", "old", "wet", "dry", "red"]
    frames = [pd.DataFrame(rows * wide, columns=names) for rows in (p.Xs, p.Xt)]
    with pytest.warns(UserWarning, match="Column 'old' has"):
        ARTL().adapt(frames[0], p.ys, frames[1])
    AutoAdapter(effort="fast").adapt(p.Xs * wide, p.ys, p.Xt * wide)  # has members that scale
    marks = np.repeat([1, -1], [len(p.Xs), len(p.Xt)])
    scaled = PerDomainScaler().fit_transform(p.X * wide, sample_domain=marks)
    TFDFV(manifold_dim=None).adapt(scaled[marks > 0], p.ys, scaled[marks < 0])
