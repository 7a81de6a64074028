"""Weights of rows: integer weights are repeated rows, in everything that takes them."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from problems import published, small_problem
from transferable import ARTL, MEDA, TFDF, TFDFV, AutoAdapter, all_estimators
from transferable.classifiers import CAPLS, AdaptedClassifier
from transferable.datasets import make_shifted
from transferable.transformers import BDA, CORAL, JDA, TCA, MarginalizedDenoising, PerDomainScaler

P = small_problem(seed=3, n_source=60, n_target=40)
IDS = np.r_[np.repeat([1, 2, 3], 20), np.full(40, -1)]
Y = np.r_[P.ys, P.yt]
WEIGHTS = np.random.default_rng(0).integers(0, 3, len(Y))
REPEATED = np.repeat(np.arange(len(Y)), WEIGHTS)
# Fixed settings, without a graph of neighbours or drawn landmarks.
FIXED = {"manifold": 0.0, "n_landmarks": None, "class_shares": "source"}
BALANCED = FIXED | {"balance": 0.4, "manifold_dim": 3}
SMALL = {"n_components": 3}
PRECISE = LogisticRegression(solver="newton-cholesky", tol=1e-10)
CASES = {
    "TFDF": TFDF(second_order=0.5, **BALANCED),
    "TFDF printed": published(second_order=0.5, alignment_form="printed", **BALANCED),
    "TFDFV": TFDFV(second_order=0.5, **BALANCED),
    "TFDFV by landmarks": TFDFV(second_order=0.5, **BALANCED | {"n_landmarks": 10_000}),
    "TFDFV from 1-NN": TFDFV(estimator=KNeighborsClassifier(1), **BALANCED),
    "TFDFV from a model": TFDFV(estimator=PRECISE, **BALANCED),
    "MEDA": MEDA(**BALANCED),
    "ARTL": ARTL(**FIXED),
    **{
        f"{cls.__name__} {kernel}": cls(kernel=kernel, **SMALL)
        for cls in (TCA, JDA, BDA)
        for kernel in (None, "linear", "rbf")
    },
    "BDA by class": BDA(class_weighted=True, balance=0.3, **SMALL),
    "CORAL": CORAL(),
    "MarginalizedDenoising": MarginalizedDenoising(),
    "PerDomainScaler": PerDomainScaler(),
    "AdaptedClassifier": AdaptedClassifier(CORAL(), PRECISE),
}
TESTED = {type(estimator).__name__ for estimator in CASES.values()}
# AutoAdapter draws trees and neighbours by row; test_trust.py has its weights.
OTHERS = {name: cls() for name, cls in all_estimators() if name not in TESTED | {"AutoAdapter"}}
CASES |= {name: model for name, model in OTHERS.items() if model.takes.sample_weight}
every_case = pytest.mark.parametrize("estimator", CASES.values(), ids=CASES)


def values(model, X, ids):
    """What a fitted model says of rows."""
    if hasattr(model, "decision_function"):
        return np.column_stack([model.decision_function(X), model.predict_proba(X)])
    return model.transform(X, sample_domain=ids)


@every_case
@pytest.mark.parametrize("n_features", [6, 120])
@pytest.mark.parametrize("several", [False, True])
def test_integer_weights_are_repeated_rows(estimator, n_features, several):
    if several and not estimator.takes.several_sources:
        pytest.skip("takes one source")
    task = small_problem(seed=3, n_source=60, n_target=40, n_features=n_features)
    ids = IDS if several else np.sign(IDS)
    if several and "source_weights" in estimator.get_params():
        estimator = clone(estimator).set_params(source_weights=[0.5, 1.0, 2.0])
    weighted = clone(estimator).fit(task.X, Y, sample_domain=ids, sample_weight=WEIGHTS)
    repeated = clone(estimator).fit(task.X[REPEATED], Y[REPEATED], sample_domain=ids[REPEATED])
    expected = values(repeated, task.X, ids)
    found = values(weighted, task.X, ids)
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())
    if hasattr(weighted, "transduction_"):
        assert len(weighted.transduction_) == len(Y)
        np.testing.assert_array_equal(weighted.transduction_[REPEATED], repeated.transduction_)


@pytest.mark.parametrize(
    ("method", "shares"),
    [(TFDF, "estimated"), (TFDF, "auto"), (TFDFV, "auto"), (JDA, "auto"), (BDA, "auto")],
)
def test_integer_weights_are_repeated_rows_where_class_shares_are_estimated(method, shares):
    fixed = SMALL
    if issubclass(method, TFDF):
        fixed = FIXED | {"balance": 0.4, "manifold_dim": None}
    task = make_shifted("label", n_classes=3, n_features=6, strength=1.5, noise=1.0)
    X, y, ids = np.r_[task.Xs, task.Xt], np.r_[task.ys, task.yt], np.repeat([1, -1], 200)
    weights = np.random.default_rng(0).integers(0, 3, 400)
    rows = np.repeat(np.arange(400), weights)
    model = method(**fixed | {"class_shares": shares})
    weighted = clone(model).fit(X, y, sample_domain=ids, sample_weight=weights)
    repeated = clone(model).fit(X[rows], y[rows], sample_domain=ids[rows])
    assert np.ptp(weighted.class_shares_history_, axis=0).max() > 0.1  # it is followed
    np.testing.assert_allclose(weighted.class_shares_, repeated.class_shares_, atol=1e-9)
    expected = values(repeated, X, ids)
    np.testing.assert_allclose(values(weighted, X, ids), expected, atol=1e-8 * abs(expected).max())


@every_case
def test_a_row_of_weight_zero_is_left_out(estimator):
    weights = (np.arange(len(Y)) % 5 > 0).astype(float)
    kept = weights > 0
    ids = IDS if estimator.takes.several_sources else np.sign(IDS)
    weighted = clone(estimator).fit(P.X, Y, sample_domain=ids, sample_weight=weights)
    expected = clone(estimator).fit(P.X[kept], Y[kept], sample_domain=ids[kept])
    np.testing.assert_array_equal(values(weighted, P.X, ids), values(expected, P.X, ids))
    if hasattr(weighted, "predict"):
        np.testing.assert_array_equal(weighted.transduction_[kept], expected.transduction_)


def test_adapt_takes_weights_of_the_source_or_of_all_rows():
    weights = 1.0 + np.arange(60) % 3
    model = TFDFV(**BALANCED)
    of_source = model.adapt(P.Xs, P.ys, P.Xt, sample_weight=weights).decision_function(P.X)
    of_all = np.r_[weights, np.ones(40)]
    stacked = model.adapt(P.Xs, P.ys, P.Xt, sample_weight=of_all).decision_function(P.X)
    np.testing.assert_array_equal(of_source, stacked)
    parts = [P.Xs[:30], P.Xs[30:]], [P.ys[:30], P.ys[30:]], P.Xt
    by_list = model.adapt(*parts, sample_weight=[weights[:30], None]).decision_function(P.X)
    flat = model.adapt(*parts, sample_weight=np.r_[weights[:30], np.ones(30)])
    np.testing.assert_array_equal(by_list, flat.decision_function(P.X))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.r_[-1.0, np.ones(99)], "Negative values in data passed to `sample_weight`"),
        (np.r_[np.nan, np.ones(99)], "sample_weight holds NaN"),
        (np.zeros(100), "All sample_weight are zero"),
        (np.ones(99), r"sample_weight.shape == \(99,\), expected \(100,\)"),
        (np.ones((100, 2)), r"sample_weight.shape == \(100, 2\)"),
        (np.array(["heavy"] * 100), "must hold numbers"),
        (np.r_[np.zeros(60), np.ones(40)], "leaves the source domain empty"),
        (np.r_[np.ones(60), np.zeros(40)], "leaves the target domain empty"),
    ],
)
def test_weights_that_cannot_be_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        TFDFV().fit(P.X, Y, sample_domain=np.sign(IDS), sample_weight=weights)


def test_methods_that_take_no_weights_refuse_them_by_name():
    with pytest.raises(ValueError, match=r"CAPLS takes no sample_weight; .*TFDF.* do. Or leave it"):
        CAPLS().adapt(P.Xs, P.ys, P.Xt, sample_weight=np.ones(60))
    with pytest.raises(ValueError, match="Neither FunctionTransformer nor KNeighborsClassifier"):
        AdaptedClassifier(None, KNeighborsClassifier()).adapt(
            P.Xs, P.ys, P.Xt, sample_weight=1.0 + np.arange(60) % 2
        )


@pytest.mark.parametrize("estimator", [TFDFV(), AutoAdapter(), AdaptedClassifier(CORAL(), PRECISE)])
@pytest.mark.parametrize(("source", "target"), [(0.002, 1.0), (1.0, 1000.0), (0.002, 1000.0)])
def test_weights_that_are_far_from_one_are_warned_about_once(estimator, source, target):
    weights = np.where(IDS > 0, source, target)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        clone(estimator).fit(P.X, Y, sample_domain=np.sign(IDS), sample_weight=weights)
    scale = [one.filename for one in told if "counts rows; divide it by its mean" in str(one)]
    assert scale == [__file__]
