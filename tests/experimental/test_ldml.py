"""LDML: JDA where weights are alike, landmarks where they are not."""

import numpy as np

from problems import small_problem
from transferable.experimental import LDML
from transferable.transformers import JDA

PROBLEM = small_problem(n_source=45, n_target=40)
STACKED = (PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)


class FromRows(JDA):
    """JDA whose first pseudo-labels come from the rows, as LDML's do."""

    _starts_from_rows = True
    _settles = False


def test_equal_weights_make_it_joint_distribution_adaptation():
    expected = FromRows(3).adapt(*STACKED)
    model = LDML(3, weight_share=1.0).adapt(*STACKED)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(model.sample_weight_, 1.0)
    np.testing.assert_array_equal(model.transduction_, expected.transduction_)


def test_weights_have_their_mean_in_each_class_and_bring_weighted_means_together():
    model = LDML(3, weight_share=0.4, max_iter=2).adapt(*STACKED)
    weights, Z = model.sample_weight_, model.transform(PROBLEM.X)
    assert ((weights >= 0) & (weights <= 1)).all()
    source = np.arange(85) < 45
    even, weighted = [], []
    for c in range(3):
        np.testing.assert_allclose(weights[:45][PROBLEM.ys == c].mean(), 0.4, atol=1e-6)
        a, b = ((model.transduction_ == c) & side for side in (source, ~source))
        even.append(np.linalg.norm(Z[a].mean(axis=0) - Z[b].mean(axis=0)))
        wa, wb = np.average(Z[a], 0, weights[a]), np.average(Z[b], 0, weights[b] + 1e-12)
        weighted.append(np.linalg.norm(wa - wb))
    assert np.sum(weighted) < 0.5 * np.sum(even)


def test_an_outlier_loses_weight():
    far = np.vstack([PROBLEM.Xs, PROBLEM.Xs[:1] + 25])
    ys = np.r_[PROBLEM.ys, PROBLEM.ys[0]]
    model = LDML(3, kernel="linear").adapt(far, ys, PROBLEM.Xt)
    assert model.sample_weight_[45] < 0.7 * model.weight_share
