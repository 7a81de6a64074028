"""A few labelled target rows: used where that is asked for, never looked at elsewhere."""

import numpy as np
import pytest
from sklearn.base import clone

from problems import small_problem
from transferable import ARTL, MEDA, TFDF, TFDFV, AutoAdapter, all_estimators
from transferable.classifiers import AdaptedClassifier
from transferable.model_selection import LabelFreeSearch
from transferable.transformers import BDA, CORAL, JDA

P = small_problem(seed=1, n_source=60, n_target=45, shift=2.5)
MARKS = np.repeat([1, -1], [60, 45])
GIVEN = np.arange(45) < 9  # three rows of each class
TAKING = [
    *(TFDF(), TFDFV(second_order=0.5), MEDA(), ARTL(), JDA(n_components=3), BDA(n_components=3)),
    AutoAdapter(effort="fast"),
]
every_taking = pytest.mark.parametrize("estimator", TAKING, ids=lambda e: type(e).__name__)
pytestmark = pytest.mark.filterwarnings("ignore:manifold_dim=20 is more")


def fitted(estimator, yt, **settings):
    y = np.concatenate([P.ys.astype(np.asarray(yt).dtype), yt])
    return clone(estimator).set_params(**settings).fit(P.X, y, sample_domain=MARKS)


def test_these_take_labels():
    taking = {name for name, cls in all_estimators() if cls().takes.target_labels}
    assert taking == {type(estimator).__name__ for estimator in TAKING}


@every_taking
def test_known_labels_stand_and_do_no_harm(estimator):
    partly = np.where(GIVEN, P.yt, -1)
    used = fitted(estimator, partly, target_labels="use")
    ignored = fitted(estimator, partly, target_labels="ignore")
    np.testing.assert_array_equal(used.transduction_[60:][GIVEN], P.yt[GIVEN])
    right = [np.mean(m.transduction_[60:][~GIVEN] == P.yt[~GIVEN]) for m in (used, ignored)]
    assert right[0] >= right[1] - 0.1
    wrong = fitted(estimator, np.where(GIVEN, (P.yt + 1) % 3, -1), target_labels="use")
    np.testing.assert_array_equal(wrong.transduction_[60:][GIVEN], (P.yt[GIVEN] + 1) % 3)


@every_taking
def test_unknown_may_be_minus_one_nan_or_none(estimator):
    expected = fitted(estimator, np.where(GIVEN, P.yt, -1), target_labels="use").transduction_
    floats = np.where(GIVEN, P.yt, np.nan)
    objects = np.array([y if known else None for y, known in zip(P.yt, GIVEN, strict=True)])
    for yt in (floats, objects):
        np.testing.assert_array_equal(
            fitted(estimator, yt, target_labels="use").transduction_, expected
        )


@every_taking
def test_without_any_known_label_nothing_changes(estimator):
    unknown = np.full(45, -1)
    used, ignored = (fitted(estimator, unknown, target_labels=t) for t in ("use", "ignore"))
    np.testing.assert_array_equal(used.transduction_, ignored.transduction_)


@pytest.mark.parametrize("estimator", TAKING[:4], ids=lambda e: type(e).__name__)
def test_landmarks_agree_with_the_exact_solve(estimator):
    partly = np.where(GIVEN, P.yt, -1)
    scores = [
        fitted(estimator, partly, target_labels="use", n_landmarks=n).decision_function(P.X)
        for n in (None, 10_000)
    ]
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-8 * np.abs(scores[0]).max())


@pytest.mark.parametrize("n_landmarks", [None, 10_000])
def test_known_rows_enter_the_loss_as_source_rows_do(n_landmarks):
    """Without alignment and graph nothing else tells a labelled target row from a source row."""
    settings = {"alignment": 0.0, "manifold": 0.0, "variance": 0.0, "manifold_dim": None}
    model = TFDFV(**settings, n_landmarks=n_landmarks, class_shares="source")
    used = fitted(model, np.where(GIVEN, P.yt, -1), target_labels="use")
    marks = np.where(np.r_[np.zeros(60, dtype=bool), GIVEN], 1, MARKS)
    moved = clone(model).fit(P.X, np.r_[P.ys, P.yt], sample_domain=marks)
    expected = moved.decision_function(P.X)
    np.testing.assert_allclose(used.decision_function(P.X), expected, atol=1e-9)


def test_shares_are_met_together_with_known_labels():
    shares = {0: 0.6, 1: 0.2, 2: 0.2}
    partly = np.where(GIVEN, P.yt, -1)
    model = fitted(TFDF(), partly, target_labels="use", class_shares=shares)
    labels = model.transduction_[60:]
    np.testing.assert_array_equal(labels[GIVEN], P.yt[GIVEN])
    np.testing.assert_allclose(np.bincount(labels), [27, 9, 9], atol=1)
    followed = fitted(TFDF(), partly, target_labels="use", class_shares="auto").transduction_[60:]
    np.testing.assert_array_equal(followed[GIVEN], P.yt[GIVEN])


def test_labels_the_source_has_not_are_refused():
    with pytest.raises(ValueError, match="labelled 7, of which the source has no row"):
        fitted(TFDF(), np.where(GIVEN, 7, -1), target_labels="use")
    fitted(TFDF(), np.where(GIVEN, 7, -1), target_labels="ignore")


def test_every_target_row_may_be_labelled():
    model = fitted(TFDFV(), P.yt, target_labels="use")
    np.testing.assert_array_equal(model.transduction_[60:], P.yt)


@pytest.mark.parametrize(
    "steps", [(JDA(target_labels="use"), None), (None, TFDFV(target_labels="use"))]
)
def test_steps_that_would_get_no_target_labels_are_refused(steps):
    rows = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="gets no target labels inside of AdaptedClassifier"):
        AdaptedClassifier(*steps).fit(rows, np.arange(20) % 2, sample_domain=np.repeat([1, -1], 10))


def marked(y, unknown):
    """Labels of the given rows, and a mark for each of the others."""
    return [label if known else unknown for label, known in zip(y, GIVEN, strict=True)]


@every_taking
@pytest.mark.parametrize("unknown", [-1, np.nan, None])
def test_labels_given_to_adapt_are_used(estimator, unknown):
    expected = fitted(estimator, np.where(GIVEN, P.yt, -1), target_labels="use")
    for setting in ("ignore", "use"):
        model = clone(estimator).set_params(target_labels=setting)
        model.adapt(P.Xs, P.ys, P.Xt, yt=marked(P.yt.tolist(), unknown))
        np.testing.assert_array_equal(model.transduction_, expected.transduction_)
        assert model.target_labels == setting


@pytest.mark.parametrize("unknown", [-1, None])
def test_labels_given_to_adapt_may_be_text_and_come_with_several_sources(unknown):
    names = np.array(["ant", "bee", "cat"])
    sources, labels = [P.Xs[:30], P.Xs[30:]], [names[P.ys[:30]], names[P.ys[30:]]]
    yt = marked(names[P.yt].tolist(), unknown)
    model = TFDF().adapt(sources, labels, P.Xt, yt=yt, sample_weight=np.ones(60))
    np.testing.assert_array_equal(model.transduction_[60:][GIVEN], names[P.yt][GIVEN])


def test_minus_one_is_a_label_where_it_is_a_class():
    model = TFDF().adapt(P.Xs, P.ys - 1, P.Xt, yt=P.yt - 1)
    np.testing.assert_array_equal(model.transduction_[60:], P.yt - 1)


def test_labels_given_to_adapt_that_cannot_be_used_are_refused():
    able = r"ARTL, AutoAdapter, BDA, .*TFDF, TFDFV do\. Or leave yt out"
    grid = {"max_iter": [1]}
    for estimator in (AdaptedClassifier(), LabelFreeSearch(TFDFV(), grid), CORAL()):
        name = type(estimator).__name__
        with pytest.raises(ValueError, match=f"{name} takes no target labels; {able}"):
            estimator.adapt(P.Xs, P.ys, P.Xt, yt=P.yt)
    with pytest.raises(ValueError, match="labelled 7, of which the source has no row"):
        TFDF().adapt(P.Xs, P.ys, P.Xt, yt=np.where(GIVEN, 7, -1))
    with pytest.raises(ValueError, match=r"yt has shape \(44,\), but Xt has 45 rows"):
        TFDF().adapt(P.Xs, P.ys, P.Xt, yt=P.yt[1:])
