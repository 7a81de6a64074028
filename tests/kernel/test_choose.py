"""Automatic choices: the flow and its dimension, the weight of the graph; and what they become."""

import warnings

import numpy as np
import pytest

import literal
from problems import domains_of, small_problem
from transferable import ARTL, MEDA, TFDF, TFDFV
from transferable._kernel import choose
from transferable.limits import LIMITS

P = small_problem(seed=4)


@pytest.fixture
def domains():
    return domains_of(P)


def test_features_have_the_products_of_the_root_of_the_flow(domains):
    Z = choose.parameters(TFDFV(manifold_dim=3), domains).Z
    expected = literal.features(domains.Xs, domains.Xt, 3)
    assert Z.shape == (len(P.X), 6)
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-8)


def test_no_flow_leaves_the_rows_at_unit_length(domains):
    Z = choose.parameters(TFDFV(manifold_dim=None), domains).Z
    np.testing.assert_allclose(Z, literal.unit_rows(domains.X), atol=1e-12)


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


def test_neighbors_count_by_how_they_compare_with_the_kernel():
    """Two classes on a circle: in fine sectors in turn, and so mixed that neighbours mislead."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, 500)
    X = np.c_[np.cos(angles), np.sin(angles)]
    fine = (angles / (2 * np.pi) * 40).astype(int) % 2
    mixed = (rng.random(500) < 0.5 + 0.3 * np.cos(angles)).astype(int)
    better, worse = (
        TFDFV(manifold_dim=None).adapt(X[:300], y[:300], X[300:]).manifold_ for y in (fine, mixed)
    )
    assert better == 3.0
    assert 0.1 <= worse < 1.0


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
    assert model.manifold_dim_ == 20
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
        problem = choose.parameters(model, domains, flow=flow)
        assert problem.flow is flow
        np.testing.assert_allclose(problem.Z, literal.unit_rows(domains.X @ flow), atol=1e-12)


def test_many_target_rows_for_each_source_row_weaken_the_graph():
    """The Laplacian sums over all rows, the loss over the source's."""
    p = small_problem(seed=3, n_source=12, n_target=96)
    few, many = (TFDFV(manifold_dim=None).adapt(p.Xs, p.ys, p.Xt[:n]).manifold_ for n in (48, 96))
    assert many == pytest.approx(few / 2)
