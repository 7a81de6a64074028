"""What every kernel classifier promises, whatever its terms and solver."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from problems import published, small_problem
from transferable import TFDF, TFDFV
from transferable.testing import parametrize_with_adapter_checks

P = small_problem(seed=0)
TARGET = slice(len(P.ys), None)


def adapt(estimator, problem=P):
    return estimator.adapt(problem.Xs, problem.ys, problem.Xt)


def assert_same(one, other, rows=P.X, atol=0.0):
    """Equal labels of the fitted rows and equal scores of the given ones."""
    np.testing.assert_array_equal(one.transduction_, other.transduction_)
    np.testing.assert_allclose(
        one.decision_function(rows), other.decision_function(rows), rtol=0, atol=atol
    )


def assert_sound(model, n_rows):
    """No NaN anywhere, and probabilities that are some."""
    probabilities = model.predict_proba(P.X[:, : model.n_features_in_])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert len(model.transduction_) == n_rows
    assert np.isfinite([list(entry.values()) for entry in model.history_]).all()


OTHERS = [
    TFDFV(second_order=0.1, manifold_dim=3),
    TFDFV.as_published(manifold_dim=3),
    TFDF.as_published(confusion_iter=3),
    published(solver="adam", confusion_iter=5, confusion_form="printed"),
]


def expected_to_fail(estimator):
    reason = "a repeated row is another neighbour in the graph, a heavier one is not"
    return {"check_weights_are_repeated_rows": reason} if estimator.manifold else {}


@parametrize_with_adapter_checks(
    OTHERS, scikit_learn=False, expected_failed_checks=expected_to_fail
)
def test_the_contract_with_other_last_stages(estimator, check):
    check(estimator)


def test_order_of_the_classes_does_not_matter(estimator):
    plain = adapt(clone(estimator))
    reversed_ = estimator.adapt(P.Xs, 2 - P.ys, P.Xt)
    np.testing.assert_array_equal(2 - reversed_.transduction_, plain.transduction_)
    F = plain.decision_function(P.X)
    np.testing.assert_allclose(reversed_.decision_function(P.X)[:, ::-1], F, atol=1e-8)


def test_prediction_of_fitted_rows_is_the_transduction(estimator):
    model = adapt(estimator)
    np.testing.assert_array_equal(model.predict(P.X), model.transduction_)
    together = model.decision_function(P.X)
    one_by_one = np.vstack([model.decision_function(row[None]) for row in P.X])
    np.testing.assert_allclose(one_by_one, together, atol=1e-10)


def test_two_classes_have_one_score():
    p = small_problem(seed=2, n_classes=2)
    model = adapt(TFDFV(), p)
    scores = model.decision_function(p.X)
    assert scores.shape == (len(p.X),)
    np.testing.assert_array_equal(model.predict(p.X), (scores > 0).astype(int))


def test_it_adapts():
    """Averaged over problems, adapted labels are better than those of the source alone."""
    gains = []
    for seed in range(8):
        p = small_problem(seed=seed, n_source=60, n_target=60, shift=1.5)
        alone = KNeighborsClassifier(1).fit(p.Xs, p.ys).score(p.Xt, p.yt)
        gains.append(adapt(TFDF(), p).score(p.Xt, p.yt) - alone)
    assert np.mean(gains) > 0


@pytest.mark.parametrize("first", [KNeighborsClassifier(3), LogisticRegression()])
def test_any_classifier_gives_the_first_labels(first):
    model = adapt(TFDFV(estimator=first))
    assert_sound(model, len(P.X))
    assert not hasattr(first, "classes_")


ODD_INPUT = {
    "constant features": lambda X: np.hstack([X[:, :4], np.full((len(X), 2), 3.0)]),
    "all features constant but one": lambda X: np.hstack([X[:, :1], np.ones((len(X), 5))]),
    "duplicates": lambda X: X[np.arange(len(X)) // 2 * 2],
    "rows of zeros": lambda X: X * (np.arange(len(X)) % 7 > 0)[:, None],
    "one column": lambda X: X[:, :1],
    "tiny": lambda X: 1e-12 * X,
    "huge": lambda X: 1e12 * X,
}


@pytest.mark.filterwarnings("ignore:manifold_dim:UserWarning")
@pytest.mark.parametrize("kind", ODD_INPUT)
def test_odd_tables_work(estimator, kind):
    X = ODD_INPUT[kind](P.X)
    y = np.r_[P.ys, np.full(len(P.yt), -1)]
    assert_sound(estimator.fit(X, y), len(X))


@pytest.mark.filterwarnings("ignore:manifold_dim:UserWarning")
def test_one_source_row_for_each_class():
    for estimator in (TFDF(), TFDFV(manifold_dim=2)):
        assert_sound(estimator.adapt(P.Xs[:3], P.ys[:3], P.Xt), 3 + len(P.yt))


def test_a_target_that_holds_one_class_only(estimator):
    """Other classes receive no pseudo-label sooner or later."""
    few = P.Xt[P.yt == 1]
    assert_sound(estimator.adapt(P.Xs, P.ys, few), len(P.ys) + len(few))


def test_memory_layout_does_not_matter(method):
    plain = adapt(clone(method))
    wide = np.zeros((len(P.X), 12))
    wide[:, ::2] = P.X
    read_only = P.X.copy()
    y = np.r_[P.ys, np.full(len(P.yt), -1)]
    for array in (read_only, y):
        array.flags.writeable = False
    for X in (np.asfortranarray(P.X), wide[:, ::2], read_only, P.X.tolist()):
        assert_same(plain, clone(method).fit(X, y))


@pytest.mark.parametrize("switch", ["ridge", "alignment", "manifold", "variance", "confusion"])
@pytest.mark.parametrize("solver", ["closed_form", "adam"])
@pytest.mark.parametrize("form", ["normalised", "printed"])
def test_every_regulariser_can_be_switched_off(switch, solver, form):
    forms = {"alignment_form": form, "confusion_form": form}
    settings = {"confusion_iter": 3, "second_order": 0.1}
    model = adapt(published(**{switch: 0}, **settings, **forms, solver=solver))
    assert_sound(model, len(P.X))
    # The ridge is taken to its limit: it stays in the record, next to nothing.
    assert switch == "ridge" or switch not in model.history_[-1]


def test_all_switched_off_interpolates_the_source():
    off = dict.fromkeys(("ridge", "alignment", "manifold", "variance", "confusion"), 0)
    model = adapt(TFDF(**off))
    assert_sound(model, len(P.X))
    np.testing.assert_array_equal(model.transduction_[: len(P.ys)], P.ys)


def test_without_confusion_tfdf_is_tfdfv():
    assert_same(adapt(TFDF(confusion=0)), adapt(TFDFV()))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", lambda A, B: (A @ B.T + 1) ** 2])
def test_kernels(kernel):
    model = adapt(TFDF(kernel=kernel, second_order=0.1))
    assert_sound(model, len(P.X))
    assert model.score(P.Xs, P.ys) > 0.8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_neighbors": len(P.X)}, rf"n_neighbors={len(P.X)} must be smaller than .* {len(P.X)}"),
        ({"ridge": -1}, "'ridge' parameter"),
        ({"balance": 1.5}, "'balance' parameter"),
        ({"balance": "fair"}, "'balance' parameter"),
        ({"kernel": "sigmoid"}, "'kernel' parameter"),
        ({"gamma": 0}, "'gamma' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"manifold_dim": 0}, "'manifold_dim' parameter"),
        ({"estimator": 1}, "'estimator' parameter"),
        ({"kernel": lambda A, B: A}, "a real number for each pair of rows"),
    ],
)
def test_bad_parameters_are_named_and_leave_nothing_fitted(settings, message):
    model = TFDF(**settings)
    with pytest.raises(ValueError, match=message):
        adapt(model)
    assert [name for name in vars(model) if name.endswith("_")] == []


@pytest.mark.parametrize(
    "settings",
    [
        {"solver": "sgd"},
        {"solver": "lbfgs"},
        {"confusion_form": "soft"},
        {"alignment_form": "soft"},
        {"confusion_iter": 0},
        {"learning_rate": 0.0},
    ],
)
def test_bad_parameters_of_the_published_form(settings):
    model, [name] = TFDF.as_published(**settings), settings
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        adapt(model)
    assert [name for name in vars(model) if name.endswith("_")] == []
    with pytest.raises(TypeError, match=name):
        TFDF(**settings)


@pytest.mark.parametrize("name", ["degree", "coef0", "n_anchors", "record_history", "typo"])
def test_parameters_that_are_none_are_refused(name):
    for make in (TFDF, TFDFV, TFDF.as_published, TFDFV.as_published):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            make(**{name: 1})


def test_the_graph_does_not_limit_a_model_without_one():
    assert_sound(adapt(TFDFV(manifold=0, n_neighbors=500)), len(P.X))


def test_a_single_source_class_is_refused(method):
    with pytest.raises(ValueError, match="of one class, 1"):
        method.adapt(P.Xs, np.ones(len(P.ys), dtype=int), P.Xt)
