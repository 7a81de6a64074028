"""Ratios of densities: against one that is known, and what cannot be weighted."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from transferable.classifiers import ImportanceWeighted
from transferable.domains import row_hash
from transferable.ratios import (
    RATIOS,
    effective_sample_size,
    kernel_mean_matching,
    kliep,
    logistic_ratio,
    nearest_neighbor_ratio,
    ulsif,
)

RNG = np.random.default_rng(0)
XS = RNG.normal(0.0, 1.0, size=(400, 1))
XT = RNG.normal(0.6, 0.6, size=(300, 1))
TRUE = (norm.pdf(XS, 0.6, 0.6) / norm.pdf(XS)).ravel()

every_ratio = pytest.mark.parametrize("ratio", RATIOS.values(), ids=RATIOS)


@every_ratio
def test_agrees_with_the_true_ratio_of_two_gaussians(ratio):
    weights = ratio(XS, XT)
    assert weights.shape == (400,)
    assert weights.min() >= 0
    assert weights.mean() == pytest.approx(1.0)
    # Counts are coarse, and a regression on the row itself is monotonous in it; kernels are not.
    least = {nearest_neighbor_ratio: 0.4, logistic_ratio: 0.6}.get(ratio, 0.9)
    assert np.corrcoef(np.argsort(np.argsort(weights)), np.argsort(np.argsort(TRUE)))[0, 1] > least
    # Weighted source rows have the target's mean, but for the row of its own that each counts.
    off = 0.4 if ratio is nearest_neighbor_ratio else 0.2
    assert np.average(XS.ravel(), weights=weights) == pytest.approx(0.6, abs=off)


@every_ratio
def test_equal_samples_are_weighted_about_alike(ratio):
    weights = ratio(XS, RNG.normal(size=(400, 1)))
    assert effective_sample_size(weights) > 200


@every_ratio
def test_row_order_does_not_matter(ratio):
    source, target = RNG.permutation(400), RNG.permutation(300)
    got = ratio(XS[source], XT[target])
    np.testing.assert_allclose(got, ratio(XS, XT)[source], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", sorted(set(RATIOS) - {"logistic"}))  # whose folds go by value
def test_unit_does_not_matter(name):
    ratio = RATIOS[name]
    X = RNG.normal(size=(60, 3))
    np.testing.assert_allclose(ratio(50 * X, 50 * X[20:] + 5), ratio(X, X[20:] + 0.1), rtol=2e-3)


@every_ratio
def test_sparse_rows_are_weighted_as_dense_ones(ratio):
    X = np.maximum(RNG.normal(size=(50, 4)), 0)
    got = ratio(csr_array(X), csr_array(X[20:]))
    np.testing.assert_allclose(got, ratio(X, X[20:]), rtol=1e-4, atol=1e-6)


@every_ratio
def test_one_row_is_refused(ratio):
    with pytest.raises(ValueError, match=r"have 1 and 300 rows; a ratio of densities needs"):
        ratio(XS[:1], XT)


@pytest.mark.parametrize("ratio", [kliep, ulsif])
def test_one_row_to_resemble_is_refused_where_rows_are_left_out(ratio):
    with pytest.raises(ValueError, match="have 400 and 1 rows"):
        ratio(XS, XT[:1])


def test_other_features_are_refused():
    with pytest.raises(ValueError, match="Xs has 1 features, but Xt has 2"):
        kliep(XS, np.zeros((4, 2)))


def test_mean_matching_matches_means():
    """The distance of weighted means in the kernel's space is far below that of plain ones."""
    weights = kernel_mean_matching(XS, XT, gamma=1.0)

    def distance(w):
        def mean(X, Y):
            return np.exp(-((X - Y.T) ** 2))

        w = w / len(XS)
        cross = w @ mean(XS, XT).mean(axis=1)
        return w @ mean(XS, XS) @ w - 2 * cross + mean(XT, XT).mean()

    assert distance(weights) < 0.05 * distance(np.ones(400))
    assert kernel_mean_matching(XS, XT, bound=2.0).max() < 2.5


def test_relative_ratios_are_bounded():
    far = XT + 2.0
    assert ulsif(XS, far, relative=0.5).max() < ulsif(XS, far).max()


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([0.0, 0.0], "All 2 weights are zero: no source row lies where the target does"),
        ([1.0, np.inf], "1 of the 2 weights are infinite"),
        ([1.0, np.nan], "1 of the 2 weights are infinite or not a number"),
        ([1.0, -1.0], "smallest of the weights is -1"),
    ],
)
def test_what_cannot_be_weights_is_refused(weights, says):
    with pytest.raises(ValueError, match=says):
        effective_sample_size(weights)
    full = np.resize(weights, 400)
    ys = (XS[:, 0] > 0).astype(int)
    says = says.replace("2 weights", "400 weights").replace("1 of the", "200 of the")
    with pytest.raises(ValueError, match=says):
        ImportanceWeighted(ratio=lambda Xs, Xt: full).adapt(XS, ys, XT)


def test_logistic_ratios_are_those_of_scikit_learn():
    """Odds of each half of the rows, in the order of their hashes, by a model of the other."""
    rng = np.random.default_rng(0)
    Xs, Xt = rng.normal(size=(60, 3)), rng.normal(size=(50, 3)) + 0.5
    Xs, Xt = (X[np.argsort(row_hash(X))] for X in (Xs, Xt))
    Z = StandardScaler().fit_transform(np.vstack([Xs, Xt]))
    is_target, even = np.arange(110) >= 60, np.arange(110) % 2 == 0
    odds = np.empty(110)
    for kept in (even, ~even):
        model = LogisticRegression(C=0.1, tol=1e-8).fit(Z[kept], is_target[kept])
        odds[~kept] = np.exp(model.decision_function(Z[~kept]))
    expected = odds[:60] / odds[:60].mean()
    np.testing.assert_allclose(logistic_ratio(Xs, Xt), expected, rtol=0.01)
