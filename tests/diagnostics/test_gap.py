"""The gap between domains, and the spaces it is measured in."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from problems import small_problem
from transferable import TFDFV
from transferable.classifiers import AdaptedClassifier
from transferable.diagnostics import MEASURES, domain_gap, shared_space, unit_variance
from transferable.metrics import proxy_a_distance
from transferable.transformers import TCA, PerDomainScaler

TASK = small_problem(n_source=40, n_target=30)
DOMAIN = np.repeat([1, -1], [40, 30])


def test_means_and_covariances_do_not_depend_on_units_or_origin():
    first = domain_gap(TASK.Xs, TASK.Xt, TASK.ys, TASK.yt)
    second = domain_gap(1e4 * TASK.Xs + 7, 1e4 * TASK.Xt + 7, TASK.ys, TASK.yt)
    for measure in ("MMD", "MMCD"):
        assert first.overall[measure] == pytest.approx(second.overall[measure])
        for c in first.by_class:
            assert first.by_class[c][measure] == pytest.approx(second.by_class[c][measure])


def test_does_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(1)
    s, t = rng.permutation(40), rng.permutation(30)
    first = domain_gap(TASK.Xs, TASK.Xt, TASK.ys, TASK.yt)
    second = domain_gap(TASK.Xs[s], TASK.Xt[t], TASK.ys[s], TASK.yt[t])
    for measure in MEASURES:
        assert first.overall[measure] == pytest.approx(second.overall[measure])
        for c in first.by_class:
            assert first.by_class[c][measure] == pytest.approx(second.by_class[c][measure])


def test_sparse_rows_count_alike_and_without_labels_there_are_no_classes():
    gap = domain_gap(TASK.Xs, TASK.Xt)
    assert gap.by_class == {}
    assert domain_gap(sp.csr_array(TASK.Xs), TASK.Xt) == gap
    assert gap.overall["A-distance"] == pytest.approx(proxy_a_distance(TASK.Xs, TASK.Xt), abs=0.4)


def test_a_class_with_too_few_rows_has_no_gap():
    gap = domain_gap(TASK.Xs, TASK.Xt, TASK.ys, np.r_[np.zeros(28), 1, 1])
    assert np.isfinite(list(gap.by_class[0].values())).all()
    assert np.isnan(list(gap.by_class[1].values())).all()


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="both domains, ys and yt, or of neither"):
        domain_gap(TASK.Xs, TASK.Xt, TASK.ys)
    with pytest.raises(ValueError, match="Xt has 2 features, but Xs has 6"):
        domain_gap(TASK.Xs, TASK.Xt[:, :2])


def test_unit_variance_of_equal_rows_is_zero():
    assert not unit_variance(np.full((5, 2), 3.0)).any()
    scaled = unit_variance(TASK.X)
    assert np.mean(np.sum(scaled**2, axis=1)) == pytest.approx(1)


def test_space_of_a_classifier_is_its_scores():
    model = TFDFV(manifold_dim=None).adapt(TASK.Xs, TASK.ys, TASK.Xt)
    np.testing.assert_array_equal(
        shared_space(model, TASK.X, DOMAIN), model.decision_function(TASK.X)
    )


def test_space_of_an_adapted_classifier_is_the_embedding_each_domain_by_its_own_map():
    pipeline = make_pipeline(PerDomainScaler(), TCA(2))
    model = AdaptedClassifier(pipeline, LogisticRegression()).adapt(TASK.Xs, TASK.ys, TASK.Xt)
    table = shared_space(model, TASK.X, DOMAIN)
    scaler, tca = (step for _, step in model.transformer_.steps)
    expected = tca.transform(scaler.transform(TASK.X, sample_domain=DOMAIN), sample_domain=DOMAIN)
    np.testing.assert_array_equal(table, expected)


def test_space_is_that_of_the_innermost_method():
    model = AdaptedClassifier(StandardScaler(), TFDFV(manifold_dim=None, max_iter=3))
    model.adapt(TASK.Xs, TASK.ys, TASK.Xt)
    inner = model.estimator_
    scores = inner.decision_function(model.transformer_.transform(TASK.X))
    np.testing.assert_array_equal(shared_space(model, TASK.X, DOMAIN), scores)


def test_scores_of_two_classes_are_one_column():
    two = TASK.ys < 1
    model = LinearSVC().fit(TASK.Xs, two)
    assert shared_space(model, TASK.X, DOMAIN).shape == (70, 1)


def test_an_estimator_without_any_space():
    with pytest.raises(ValueError, match="object has no embedding"):
        shared_space(object(), TASK.X, DOMAIN)
