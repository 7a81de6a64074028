"""What transformers have to satisfy beyond the contract of every estimator."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from problems import small_problem
from transferable import all_estimators
from transferable.transformers import BDA, JDA, JGSA, LPJT, SCA, TCA, TJM, McDA

TRANSFORMERS = [cls() for _, cls in all_estimators("transformer")]
LABELLED = [BDA(), BDA(class_weighted=True), JDA(), JGSA(), LPJT(), McDA()]
WITH_KERNEL = [BDA(), JDA(), JGSA(), LPJT(), McDA(), SCA(), TCA(), TJM()]

# Both are announced, and are what these tests are about.
pytestmark = [
    pytest.mark.filterwarnings("ignore::transferable.exceptions.NoTargetWarning"),
    pytest.mark.filterwarnings("ignore::transferable.exceptions.MarkedLabelsWarning"),
]


def named(models):
    return pytest.mark.parametrize("model", models, ids=lambda model: str(model))


@pytest.fixture
def problem():
    """Stacked rows with marks, shuffled."""
    task = small_problem(n_source=40, n_target=31, n_features=7)
    rng = np.random.default_rng(3)
    X = np.vstack([task.Xs, task.Xt])
    y = np.concatenate([task.ys, np.full(len(task.Xt), -1)])
    order = rng.permutation(len(X))
    return X[order], y[order], np.where(y[order] < 0, -1, 1)


@named(WITH_KERNEL)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", lambda A, B: (1 + A @ B.T) ** 2])
def test_new_rows_with_every_kernel(model, kernel, problem):
    X, y, marks = problem
    fitted = clone(model).set_params(kernel=kernel, n_components=3)
    Z = fitted.fit_transform(X, y, sample_domain=marks)
    assert Z.shape == (len(X), 3)
    target = marks < 0
    np.testing.assert_allclose(fitted.transform(X[target]), Z[target], atol=1e-8 * abs(Z).max())


@named([model for model in TRANSFORMERS if hasattr(model, "n_components")])
def test_too_many_components_are_reduced_with_a_warning_that_says_to_what(model, problem):
    X, y, marks = problem
    greedy = clone(model).set_params(n_components=1000)
    with pytest.warns(UserWarning, match=r"n_components=1000 .* reduced to \d+") as caught:
        greedy.fit(X, y, sample_domain=marks)
    told = int(str(caught[0].message).rstrip(".").split()[-1])
    width = greedy.transform(X).shape[1]
    assert told == (width // 2 if type(model).__name__ == "GFK" else width)


@named(TRANSFORMERS)
def test_unit_of_measurement_does_not_matter(model, problem):
    if type(model).__name__ == "CORAL":
        model = clone(model).set_params(regularization=0.0)
    X, y, marks = problem
    Z = clone(model).fit_transform(X, y, sample_domain=marks)
    scaled = clone(model).fit_transform(1000.0 * X, y, sample_domain=marks)
    inner, reference = scaled @ scaled.T, Z @ Z.T  # bases are free, inner products are not
    factor = np.linalg.norm(inner) / np.linalg.norm(reference)
    np.testing.assert_allclose(inner / factor, reference, atol=1e-5 * np.abs(reference).max())


class OneClass(ClassifierMixin, BaseEstimator):
    """Gives the first class it has seen to every row."""

    def fit(self, X, y):
        self.label_ = y.min()
        return self

    def predict(self, X):
        return np.full(len(X), self.label_)


@named(LABELLED)
def test_classes_without_pseudo_labels_are_skipped(model, problem):
    X, y, marks = problem
    fitted = clone(model).set_params(estimator=OneClass())
    assert np.isfinite(fitted.fit_transform(X, y, sample_domain=marks)).all()
    assert set(fitted.transduction_[marks < 0]) == {0}
    np.testing.assert_array_equal(fitted.transduction_[marks > 0], y[marks > 0])


@named([model for model in LABELLED if not isinstance(model, LPJT)])
def test_settled_labels_end_the_rounds_at_a_fixed_point(model):
    task = small_problem(n_source=40, n_target=31, n_features=7, shift=0.1)
    X, y = np.vstack([task.Xs, task.Xt]), np.concatenate([task.ys, task.yt])
    marks = np.repeat([1, -1], [40, 31])
    few = clone(model).set_params(max_iter=50).fit(X, y, sample_domain=marks)
    assert few.n_iter_ < 50
    more = clone(model).set_params(max_iter=few.n_iter_ + 3).fit(X, y, sample_domain=marks)
    np.testing.assert_array_equal(few.transform(X), more.transform(X))


@named(TRANSFORMERS)
def test_without_a_target_both_maps_are_one(model, problem):
    X, y, marks = problem
    X, y = X[marks > 0], y[marks > 0]
    fitted = clone(model)
    np.testing.assert_allclose(fitted.fit_transform(X, y), fitted.transform(X), atol=1e-9)


@named([model for model in TRANSFORMERS if hasattr(model, "n_components")])
def test_rows_that_are_all_the_same_are_refused(model):
    with pytest.raises(ValueError, match=r"rows that (differ|vary)"):
        clone(model).fit(np.ones((8, 3)), [0, 1, 0, 1, -1, -1, -1, -1])


def test_nothing_to_maximise_is_an_error(problem):
    X, y, marks = problem
    with pytest.raises(ValueError, match="nothing to maximise"):
        JGSA(discrimination=0.0).fit(X[marks > 0], y[marks > 0])
