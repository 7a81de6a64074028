"""Results do not depend on the unit, and values that cannot be computed with are refused."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from problems import small_problem
from transferable.classifiers import TFDF, TFDFV, AdaptedClassifier, TrAdaBoost
from transferable.experimental import DMM
from transferable.transformers import TCA, LandmarkFeatures

pytestmark = pytest.mark.filterwarnings("ignore:.*reduced to:UserWarning")

PROBLEM = small_problem(n_source=24, n_target=18, n_features=5)


@pytest.mark.parametrize("unit", [1e-25, 1e25])
def test_single_precision(unit):
    p = PROBLEM
    Xs, Xt = (X.astype(np.float32) for X in (p.Xs, p.Xt))
    expected = TFDFV().adapt(Xs, p.ys, Xt).predict(Xt)
    unit = np.float32(unit)
    got = TFDFV().adapt(Xs * unit, p.ys, Xt * unit).predict(Xt * unit)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("rows", [np.asarray, csr_array])
@pytest.mark.parametrize(("unit", "side"), [(1e-150, "below 1e-30"), (1e150, "above 1e.30")])
def test_values_that_cannot_be_computed_with_are_refused(rows, unit, side):
    p, model = PROBLEM, TFDFV(manifold_dim=None)
    with pytest.raises(ValueError, match=rf"The largest value of X is .*, {side}; rescale"):
        model.adapt(rows(p.Xs * unit), p.ys, rows(p.Xt * unit))


def test_new_rows_that_cannot_be_computed_with_are_refused():
    model = TFDF().adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    with pytest.raises(ValueError, match=r"The largest value of X is .*e\+200, above .* rescale"):
        model.predict(PROBLEM.Xt * 1e200)
    assert len(model.predict(PROBLEM.Xt * 1e-200)) == len(PROBLEM.Xt)


def broken(value):
    return lambda X, Y: np.full((X.shape[0], Y.shape[0]), value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e70, 1j])
@pytest.mark.parametrize("make", [TFDF, TCA, LandmarkFeatures])
def test_values_of_a_kernel_function_are_checked(make, value):
    with pytest.raises(ValueError, match="The kernel function"):
        make(kernel=broken(value)).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)


def test_polynomials_that_overflow_say_so():
    with pytest.raises(ValueError, match="smaller degree"):
        TCA(kernel="poly", degree=400).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)


@pytest.mark.parametrize("offset", [1e7, 1e8, 1e10])
def test_probabilities_of_rows_with_an_offset(offset):
    p = PROBLEM
    model = AdaptedClassifier().adapt(p.Xs + offset, p.ys, p.Xt + offset)
    probabilities = model.predict_proba(p.Xt + offset)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), model.predict(p.Xt + offset))


@pytest.mark.parametrize("parameter", ["ridge", "alignment", "manifold", "variance"])
def test_weights_that_would_overflow_are_refused(parameter):
    with pytest.raises(ValueError, match=rf"'{parameter}' parameter .*1e\+30.*Got 1e\+300"):
        TFDF(**{parameter: 1e300}).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)


@pytest.mark.parametrize("seed", range(5))
def test_few_rows_of_one_feature_without_a_penalty_on_variance(seed):
    X = np.random.default_rng(seed).integers(2, size=(6, 1)).astype(float)
    model = TFDF(variance=0.0).adapt(X[:4], [0, 1, 0, 1], X[4:])
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_machine_with_a_huge_penalty_ends():
    model = DMM(C=1e30, max_iter=2).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    assert set(model.transduction_) <= {0, 1, 2}


@pytest.mark.parametrize("kernel", [lambda X, Y: -(X @ Y.T), lambda X, Y: X @ np.flip(Y.T, 0)])
def test_functions_that_are_no_kernels_are_refused(kernel):
    with pytest.raises(ValueError, match="not positive semi-definite"):
        TFDF(kernel=kernel).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)


def test_boosting_ends_where_one_value_dwarfs_the_others():
    X = PROBLEM.X.copy()
    X[3, 2] = 1e28
    model = TrAdaBoost().adapt(X[:24], PROBLEM.ys, X[24:])
    assert set(model.transduction_) <= {0, 1, 2}
