"""Each toy shift is what its name says, and as strong as it is asked to be."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from transferable.datasets import make_drifted, make_reviews, make_shifted

SHIFTS = ["covariate", "label", "concept", "subspace"]
SHAPES = ["gaussians", "moons"]
MANY = {"n_source": 3000, "n_target": 3000}


def accuracies(task):
    """Of a model of the source, on further rows of the source and on the target."""
    model = KNeighborsClassifier(15).fit(task.Xs[::2], task.ys[::2])
    return model.score(task.Xs[1::2], task.ys[1::2]), model.score(task.Xt, task.yt)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shift", SHIFTS)
def test_the_seed_decides_and_sizes_are_as_asked(shift, shape):
    one, same, other = (
        make_shifted(shift, shape=shape, n_source=31, n_target=17, n_features=5, random_state=seed)
        for seed in (0, 0, 1)
    )
    assert (one.Xs.shape, one.Xt.shape) == ((31, 5), (17, 5))
    assert (one.ys.shape, one.yt.shape) == ((31,), (17,))
    assert one.name == f"{shape}, {shift} shift"
    for field in ("Xs", "ys", "Xt", "yt"):
        np.testing.assert_array_equal(one[field], same[field])
    assert not np.allclose(one.Xs, other.Xs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shift", SHIFTS)
def test_without_strength_there_is_no_shift(shift, shape):
    task = make_shifted(shift, shape=shape, strength=0.0, noise=0.1, **MANY)
    np.testing.assert_allclose(task.Xs.mean(axis=0), task.Xt.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(np.cov(task.Xs.T), np.cov(task.Xt.T), atol=0.1)
    np.testing.assert_allclose(np.bincount(task.ys), np.bincount(task.yt), atol=15)
    source, target = accuracies(task)
    assert target == pytest.approx(source, abs=0.02)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shift", ["concept", "subspace"])
def test_the_stronger_the_turn_the_worse_a_model_of_the_source(shift, shape):
    shifted = [make_shifted(shift, shape=shape, strength=s, **MANY) for s in (0.0, 1.0, 2.0, 3.0)]
    targets = [accuracies(task)[1] for task in shifted]
    assert targets == sorted(targets, reverse=True)
    assert targets[-1] < targets[0] - 0.1


@pytest.mark.parametrize("shape", SHAPES)
def test_under_covariate_shift_rows_move_and_their_rule_stays(shape):
    task = make_shifted("covariate", shape=shape, **MANY)
    assert task.Xt.sum(axis=1).mean() > task.Xs.sum(axis=1).mean() + 0.5
    on_both = KNeighborsClassifier(50).fit(task.Xs, task.ys).predict_proba(task.Xt)[:, 1]
    expected = KNeighborsClassifier(50).fit(task.Xt, task.yt).predict_proba(task.Xt)[:, 1]
    assert np.mean(np.abs(on_both - expected)) < 0.05


@pytest.mark.parametrize("shape", SHAPES)
def test_under_label_shift_shares_move_and_classes_stay(shape):
    task = make_shifted("label", shape=shape, **MANY)
    assert np.mean(task.ys == 0) == 0.5
    assert np.mean(task.yt == 0) == pytest.approx(np.e**2 / (np.e**2 + 1), abs=1e-3)
    for code in (0, 1):
        one, other = task.Xs[task.ys == code], task.Xt[task.yt == code]
        np.testing.assert_allclose(one.mean(axis=0), other.mean(axis=0), atol=0.1)


@pytest.mark.parametrize("shape", SHAPES)
def test_under_concept_shift_rows_stay(shape):
    task = make_shifted("concept", shape=shape, strength=2.0, **MANY)
    np.testing.assert_allclose(task.Xs.mean(axis=0), task.Xt.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(np.cov(task.Xs.T), np.cov(task.Xt.T), atol=0.15)


def test_the_subspace_of_the_classes_is_turned_by_the_angle():
    task = make_shifted("subspace", n_features=6, n_classes=3, noise=0.01, strength=1.5, **MANY)
    bases = [
        np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:2] for X in (task.Xs, task.Xt)
    ]
    cosines = np.linalg.svd(bases[0] @ bases[1].T)[1]
    np.testing.assert_allclose(np.rad2deg(np.arccos(cosines)), 45.0, atol=0.5)


def test_shares_are_met_to_a_row():
    task = make_shifted(
        n_source=100, n_target=50, class_shares=[0.9, 0.1], target_shares=[0.2, 0.8]
    )
    assert np.bincount(task.ys).tolist() == [90, 10]
    assert np.bincount(task.yt).tolist() == [10, 40]


def test_noise_makes_it_harder():
    easy, hard = (make_shifted("label", strength=0.0, noise=noise, **MANY) for noise in (0.1, 2.0))
    model = LogisticRegression()
    assert model.fit(easy.Xs, easy.ys).score(easy.Xt, easy.yt) == 1.0
    assert model.fit(hard.Xs, hard.ys).score(hard.Xt, hard.yt) < 0.95


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"shift": "colour"}, "shift='colour' is unknown; choose from covariate"),
        ({"shape": "square"}, "shape='square' is unknown"),
        ({"shape": "moons", "n_classes": 3}, "not n_classes=3"),
        ({"n_features": 1}, "n_features=1 is too little; give 2 or more"),
        ({"strength": -1.0}, "strength=-1.0 is too little"),
        ({"class_shares": [0.5, 0.6]}, r"class_shares=\[0.5, 0.6\] must be 2 numbers"),
        ({"target_shares": [1.0]}, "target_shares"),
    ],
)
def test_what_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_shifted(**parameters)


def test_made_up_reviews_are_half_good_and_of_words_that_differ():
    task = make_reviews(60, 40, random_state=3)
    assert task.source.rating.value_counts().to_dict() == {"good": 30, "bad": 30}
    assert (list(task.target), len(task.yt)) == (["review"], 40)
    words = [
        set(" ".join(t.review).lower().replace(".", "").split())
        for t in task.values()
        if hasattr(t, "review")
    ]
    assert {"excellent", "terrible"} & words[0] & words[1]
    assert "gripping" in words[0] - words[1]
    assert task.source.equals(make_reviews(60, 40, random_state=3).source)
    assert not task.source.equals(make_reviews(60, 40, random_state=4).source)


def test_drifted_sensors_answer_less_and_keep_what_they_measure():
    task = make_drifted(n_source=400, n_target=300)
    assert len(task.source) == 400
    assert len(task.target) == len(task.yt) == 300
    assert "concentration" not in task.target
    assert task.target.temperature.mean() < task.source.temperature.mean() - 5
    for name in (f"sensor_{k}" for k in range(1, 5)):
        assert np.corrcoef(task.target[name], np.log1p(task.yt))[0, 1] > 0.7
    still = make_drifted(drift=0.0)
    assert abs(still.target.temperature.mean() - still.source.temperature.mean()) < 1
    assert make_drifted().source.equals(make_drifted().source)
