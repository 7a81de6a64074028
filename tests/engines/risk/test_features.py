"""Features of the engine: geodesic flow at unit length, as far as the ranks allow."""

import warnings

import numpy as np
import pytest

import literal
from problems import small_problem
from transferable import MEDA, TFDF, TFDFV
from transferable.domains import Domains
from transferable.engines.risk.features import ManifoldFeatures

P = small_problem(seed=4)


@pytest.fixture
def domains():
    return Domains.from_stacked(P.X, np.r_[P.ys, np.full(len(P.yt), -1)])


def test_features_have_the_products_of_the_root_of_the_flow(domains):
    Z = ManifoldFeatures.fit(domains, 3).transform(domains.X)
    expected = literal.features(domains.Xs, domains.Xt, 3)
    assert Z.shape == (len(P.X), 6)
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-8)


def test_no_flow_leaves_the_rows_at_unit_length(domains):
    Z = ManifoldFeatures.fit(domains, None).transform(domains.X)
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
