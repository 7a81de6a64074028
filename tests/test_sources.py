"""Several sources: ids are kept, every source is aligned, what cannot refuses."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import literal
from problems import small_problem
from transferable import ARTL, MEDA, TFDF, TFDFV, all_estimators
from transferable._kernel import rounds
from transferable._kernel.objective import Means, mean_differences
from transferable.classifiers import AdaptedClassifier
from transferable.classifiers.published import PrintedMeans
from transferable.domains import Domains
from transferable.events import Iterate, listen
from transferable.transformers import BDA, CORAL, GFK, JDA, TCA, PerDomainScaler
from transferable.transformers._features import by_row

P = small_problem(seed=3, n_source=60, n_target=40)
IDS = np.r_[np.repeat([1, 2, 5], 20), np.full(40, -1)]
Y = np.r_[P.ys, np.zeros_like(P.yt)]
# Sources lie apart: one has its rows moved, another has them stretched.
X = P.X + 3.0 * (IDS == 2)[:, None]
X[IDS == 5] *= 2.0
RISK = [TFDF(), TFDFV(second_order=0.5), MEDA(), ARTL()]
ALIGNING = [*RISK, JDA(n_components=3), BDA(n_components=3), TCA(n_components=3)]
LISTED = [cls() for name, cls in all_estimators() if name != "AutoAdapter"]
SAME = {"MarginalizedDenoising"}  # One map for all rows
TAKING = [model for model in LISTED if model.takes.several_sources]
APART = [model for model in TAKING if type(model).__name__ not in SAME]
APART += [model for model in ALIGNING if repr(model) not in map(repr, TAKING)]

pytestmark = pytest.mark.filterwarnings("ignore:manifold_dim=20 is more")


def named(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=lambda e: type(e).__name__)


def outcome(estimator, X, y, ids):
    """Scores of rows, or their place in the shared space."""
    model = clone(estimator)
    if hasattr(model, "predict"):
        return model.fit(X, y, sample_domain=ids).decision_function(X)
    return model.fit_transform(X, y, sample_domain=ids)


@named(APART)
def test_sources_are_told_apart_by_their_ids(estimator):
    several, pooled = (outcome(estimator, X, Y, ids) for ids in (IDS, np.sign(IDS)))
    assert several.shape[0] == pooled.shape[0]
    assert several.shape != pooled.shape or np.abs(several - pooled).max() > 1e-3


@named(TAKING)
def test_neither_the_numbers_nor_the_order_of_rows_matter(estimator):
    expected = outcome(estimator, X, Y, IDS)
    renumbered = np.select([IDS == 1, IDS == 2, IDS == 5], [0.5, 7, 30], -4)
    np.testing.assert_array_equal(outcome(estimator, X, Y, renumbered), expected)
    order = np.random.default_rng(1).permutation(len(Y))
    shuffled = outcome(estimator, X[order], Y[order], IDS[order])
    np.testing.assert_allclose(shuffled, expected[order], atol=1e-9)


@named(RISK)
def test_landmarks_agree_with_the_exact_solve(estimator):
    exact, landmarks = (
        outcome(clone(estimator).set_params(n_landmarks=n), X, Y, IDS) for n in (None, 10_000)
    )
    np.testing.assert_allclose(landmarks, exact, atol=1e-8 * np.abs(exact).max())


def test_torch_agrees_with_numpy():
    pytest.importorskip("torch")
    for n_landmarks in (None, 10_000):
        model = TFDF(second_order=0.5, n_landmarks=n_landmarks)
        numpy = outcome(model, X, Y, IDS)
        torch = outcome(model.set_params(device="torch"), X, Y, IDS)
        np.testing.assert_allclose(torch, numpy, atol=1e-8 * np.abs(numpy).max())


@named(ALIGNING)
def test_weights_of_sources_are_by_id_and_only_their_ratios_matter(estimator):
    by_order = outcome(clone(estimator).set_params(source_weights=[1, 2, 4]), X, Y, IDS)
    by_id = outcome(clone(estimator).set_params(source_weights={5: 8, 1: 2, 2: 4}), X, Y, IDS)
    np.testing.assert_allclose(by_id, by_order, atol=1e-9)
    others = outcome(clone(estimator).set_params(source_weights=[4, 2, 1]), X, Y, IDS)
    assert np.abs(others - by_order).max() > 1e-6


@named([TFDFV(), JDA(n_components=3)])
def test_the_nearest_source_counts_most_by_default(estimator):
    rng = np.random.default_rng(0)
    near = P.Xt[:30] + 0.1 * rng.normal(size=(30, 6))
    far = np.where(np.arange(6) % 2, 3.0, -3.0) * P.Xs[:30]
    model = clone(estimator).adapt([far, near], [P.ys[:30], P.yt[:30]], P.Xt)
    assert model.source_weights_[1] > 3 * model.source_weights_[0]
    assert model.source_weights_.mean() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"has the shape \(2,\), but there are 3 sources, \[1, 2, 5\]"),
        ([1, 2, 0], "must be positive numbers"),
        ([1, 2, np.nan], "must be positive numbers"),
        ({1: 1, 2: 1, 3: 1}, r"names the ids \[1, 2, 3\], but the sources are \[1, 2, 5\]"),
    ],
)
def test_weights_of_sources_that_cannot_be_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        TFDFV(source_weights=weights).fit(X, Y, sample_domain=IDS)


def test_lists_of_tables_are_several_sources():
    parts = [X[source == IDS] for source in (1, 2, 5)]
    labels = [Y[source == IDS] for source in (1, 2, 5)]
    model = TFDFV().adapt(parts, labels, P.Xt)
    stacked = TFDFV().fit(X, Y, sample_domain=IDS)
    np.testing.assert_array_equal(model.decision_function(X), stacked.decision_function(X))
    alone = TFDFV().adapt(P.Xs.tolist(), P.ys.tolist(), P.Xt.tolist())
    np.testing.assert_array_equal(
        alone.predict(P.Xt), TFDFV().adapt(P.Xs, P.ys, P.Xt).predict(P.Xt)
    )
    with pytest.raises(ValueError, match="list of 3 sources, so ys must be a list"):
        TFDFV().adapt(parts, P.ys, P.Xt)
    with pytest.raises(ValueError, match=r"ys\[1\] has shape \(19,\), but Xs\[1\] has 20 rows"):
        TFDFV().adapt(parts, [labels[0], labels[1][:19], labels[2]], P.Xt)


def test_every_other_estimator_refuses_and_says_which_can():
    refusing = [model for model in LISTED if not model.takes.several_sources]
    assert len(refusing) > 10
    for model in refusing:
        told = f"{type(model).__name__} takes no several sources; .*TFDF.* do. Or"
        with pytest.raises(ValueError, match=told):
            model.fit(X, Y, sample_domain=IDS)


def test_what_stands_on_a_transformer_takes_what_that_takes():
    model = AdaptedClassifier(CORAL(), LogisticRegression()).fit(X, Y, sample_domain=IDS)
    Z = CORAL().fit_transform(X, Y, sample_domain=IDS)
    expected = LogisticRegression().fit(Z[IDS > 0], P.ys).predict(Z)
    np.testing.assert_array_equal(model.transduction_, expected)
    with pytest.raises(ValueError, match="takes no several sources"):
        AdaptedClassifier().fit(X, Y, sample_domain=IDS)


def test_per_domain_scaler_acts_on_each_id():
    ids = np.r_[IDS[:60], np.repeat([-1, -2], 20)]
    model = PerDomainScaler().fit(X, Y, sample_domain=ids)
    Z = model.transform(X, sample_domain=ids)
    for one in np.unique(ids):
        np.testing.assert_allclose(Z[ids == one].mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(Z[ids == one].std(axis=0), 1.0)
    np.testing.assert_allclose(model.transform(P.Xt).mean(axis=0), 0.0, atol=1e-12)
    with pytest.raises(ValueError, match=r"rows of \[3\], but the fitted domains are \[1, 2, 5\]"):
        model.transform(X[:2], sample_domain=[3, 1])
    with pytest.raises(ValueError, match=r"rows of \[-3\], but the fitted domains are \[-2, -1\]"):
        model.transform(X[:2], sample_domain=[-3, 1])


def test_coral_maps_each_source_by_itself():
    Z = CORAL(regularization=0.0).fit_transform(X, Y, sample_domain=IDS)
    wanted = np.cov(P.Xt.T)
    for source in (1, 2, 5):
        np.testing.assert_allclose(np.cov(Z[source == IDS].T), wanted, atol=1e-9)
        np.testing.assert_allclose(Z[source == IDS].mean(axis=0), P.Xt.mean(axis=0), atol=1e-9)
        alone = np.isin(IDS, [source, -1])
        expected = CORAL(regularization=0.0).fit_transform(X[alone], Y[alone], IDS[alone])
        np.testing.assert_allclose(Z[alone], expected, atol=1e-9)


def test_gfk_is_the_mean_of_the_kernels_of_all_pairs():
    Z = GFK(n_components=2).fit_transform(X, Y, sample_domain=IDS)
    kernels = []
    for source in (1, 2, 5):
        alone = np.isin(IDS, [source, -1])
        model = GFK(n_components=2).fit(X[alone], Y[alone], sample_domain=IDS[alone])
        kernels.append(model.transform(X) @ model.transform(X).T)
    np.testing.assert_allclose(Z @ Z.T, np.mean(kernels, axis=0), atol=1e-9 * np.abs(Z).max() ** 2)


def test_means_are_compared_pair_by_pair():
    domains = Domains.from_stacked(X, np.r_[P.ys, np.full(40, -1)], IDS)
    target = P.yt[domains.order[60:] - 60]
    weights = np.array([0.5, 1.0, 2.0])
    B = mean_differences(domains.counts(target), np.ones(3), weights)
    E = by_row(B.reshape(len(B), -1), domains, target)
    found = (E.T @ domains.X).reshape(3, 4, -1)
    for k, weight in enumerate(weights):
        own = np.flatnonzero(domains.sources == k)
        pair = domains._of(np.r_[own, 60 : len(domains.order)], domains.y[own])
        B = mean_differences(pair.counts(target), np.ones(3), np.ones(1))
        alone = by_row(B[:, 0], pair, target)
        np.testing.assert_allclose(found[k], np.sqrt(weight) * alone.T @ pair.X, atol=1e-12)


def test_the_alignment_of_a_kernel_classifier_is_that_of_all_pairs():
    """Columns of each source, weighted, and their sum over its norm."""
    domains = replace(
        Domains.from_stacked(X, np.r_[P.ys, np.full(40, -1)], IDS),
        source_weights=np.array([0.5, 1.0, 2.0]),
    )
    target = P.yt[domains.order[60:] - 60]
    B = PrintedMeans(1.0).by_group(domains, domains.counts(target), np.ones(3), 0.3)
    E = B[np.r_[3 * domains.sources + domains.y, 9 + target]]
    M = 0.0
    for k, weight in enumerate(domains.source_weights):
        own = np.r_[domains.sources == k, np.ones(40, dtype=bool)]
        codes = domains.with_target(target)[own]
        one = np.zeros((100, 100))
        one[np.ix_(own, own)] = literal.mean_part(codes, int(own.sum()) - 40, 3, 0.3, "printed")
        M = M + weight * one
    np.testing.assert_allclose(E @ E.T, M, atol=1e-12)
    normalised = Means(1.0).by_group(domains, domains.counts(target), np.ones(3), 0.3)
    E = normalised[np.r_[3 * domains.sources + domains.y, 9 + target]]
    assert np.linalg.norm(E @ E.T) == pytest.approx(1.0)


@pytest.fixture(scope="module")
def shifted():
    """Two sources of which the second has other class shares; the target has others still.

    Its rows are noisier, so that the view without alignment is not all that is trusted.
    """
    rng = np.random.default_rng(2)
    centres = 2.5 * rng.normal(size=(3, 6))

    def rows(shares, n, shift, noise):
        y = np.repeat(np.arange(3), np.round(n * np.array(shares)).astype(int))
        return centres[y] + noise * rng.normal(size=(len(y), 6)) + shift, y

    first = rows((0.5, 0.25, 0.25), 120, 0.0, 1.0)
    second = rows((0.2, 0.2, 0.6), 120, 0.2, 1.0)
    return first, second, rows((0.7, 0.3, 0.0), 150, 0.4, 2.0)


@pytest.mark.parametrize("shares", ["auto", "estimated", "source"])
@pytest.mark.parametrize("n_landmarks", [None, 60])
def test_sources_may_swap_their_ids(shifted, shares, n_landmarks):
    """What is assumed of the target's classes is by its own labels, not by those of a source."""
    first, second, (Xt, yt) = shifted
    model = TFDF(class_shares=shares, n_landmarks=n_landmarks, n_neighbors=3)
    one, other = (
        clone(model).adapt([a[0], b[0]], [a[1], b[1]], Xt)
        for a, b in ((first, second), (second, first))
    )
    np.testing.assert_allclose(other.class_shares_, one.class_shares_, atol=1e-9)
    np.testing.assert_allclose(other.decision_function(Xt), one.decision_function(Xt), atol=1e-8)
    np.testing.assert_array_equal(other.predict(Xt), one.predict(Xt))
    np.testing.assert_allclose(other.source_weights_, one.source_weights_[::-1])
    if shares != "source":
        found, true = one.class_shares_, np.bincount(yt, minlength=3) / len(yt)
        prior = np.bincount(np.r_[first[1], second[1]]) / 240
        assert np.abs(found - true).sum() < np.abs(prior - true).sum() / 2


def test_the_shift_is_estimated_with_the_targets_labels(shifted, monkeypatch):
    """The aligned shares that the estimate is given are those of the target's pseudo-labels."""
    first, second, (Xt, _) = shifted
    given, estimate = [], rounds.estimate_shift
    monkeypatch.setattr(rounds, "estimate_shift", lambda *a: given.append(a[2]) or estimate(*a))
    heard = []
    with listen(heard.append):
        TFDFV(n_neighbors=3, max_iter=1).adapt([first[0], second[0]], [first[1], second[1]], Xt)
    codes = next(event for event in heard if isinstance(event, Iterate)).codes[240:]
    np.testing.assert_allclose(given, [np.bincount(codes, minlength=3) / len(codes)])
