"""What holds for every estimator of the library: the checks of transferable.testing."""

import inspect
import pkgutil
from importlib import import_module

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KernelDensity

import transferable
from transferable import (
    ARTL,
    MEDA,
    TFDF,
    TFDFV,
    AutoAdapter,
    AutoRegressor,
    all_estimators,
    classifiers,
    experimental,
    regressors,
    transformers,
)
from transferable.base import DomainClassifier, DomainRegressor, DomainTransformer
from transferable.model_selection import LabelFreeSearch
from transferable.regressors import AdaptedRegressor, auto_regressor
from transferable.tables import TableClassifier
from transferable.testing import (
    CHECKS,
    MARKED,
    N_SOURCE,
    P,
    adapter_checks,
    check_adapter,
    parametrize_with_adapter_checks,
)
from transferable.transformers import CORAL, JDA, TCA

# Settings that make a method quick; those left out are the defaults.
QUICK = {"AutoAdapter": {"effort": "fast"}, "LDML": {"max_iter": 3}, "LPJT": {"max_iter": 3}}
LISTED = {name: cls(**QUICK.get(name, {})) for name, cls in all_estimators()}
# A search has to be told what to search.
SEARCH = LabelFreeSearch(TFDFV(max_iter=3), {"alignment": [0.1, 10.0]}, anchor=None)
# Each domain scaled by itself, a row would not be labelled alike in both.
TABLES = TableClassifier(TFDFV(), scale="joint")
OTHERS = [SEARCH, TABLES, TCA(kernel="rbf"), JDA(kernel="linear", normalize=True)]
NUMBERS = [cls() for _, cls in all_estimators("regressor")]
EVERY = [*LISTED.values(), *OTHERS, *NUMBERS]


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    """A pool for numbers has no setting that makes it quick."""
    with pytest.MonkeyPatch.context() as patch:
        for model in (auto_regressor._BOOSTING, auto_regressor._FOREST):
            patch.setattr(model, "n_estimators", 30)
        yield


def expected_to_fail(estimator):
    """A graph of neighbours, a part of these by default, knows rows and not their weights."""
    reason = "a repeated row is another neighbour, a heavier one is not"
    if isinstance(estimator, AutoRegressor):
        reason = "trees draw rows"
    elif isinstance(estimator, AdaptedRegressor):
        reason = "one of several equal rows is left out at a time"
    elif not isinstance(estimator, ARTL | MEDA | TFDF | AutoAdapter):
        return {}
    equivalence = "scikit-learn: check_sample_weight_equivalence_on"
    checks = (f"{equivalence}_dense_data", f"{equivalence}_sparse_data")
    ours = () if isinstance(estimator, AdaptedRegressor) else ("check_weights_are_repeated_rows",)
    return dict.fromkeys([*checks, *ours], reason)


# scikit-learn itself skips check_array_api_input unless SCIPY_ARRAY_API is set, as it does for its
# own estimators. No other check is skipped, and weights without a graph are tested in
# test_sample_weight.py.
@pytest.mark.filterwarnings("default")
@parametrize_with_adapter_checks(EVERY, expected_failed_checks=expected_to_fail)
def test_the_contract(estimator, check):
    check(estimator)


def test_the_list_is_sorted_and_holds_what_the_packages_offer():
    listed = all_estimators()
    assert [name for name, _ in listed] == sorted(name for name, _ in listed)
    assert all(issubclass(cls, DomainClassifier) for _, cls in all_estimators("classifier"))
    assert all(issubclass(cls, DomainTransformer) for _, cls in all_estimators("transformer"))
    assert all(issubclass(cls, DomainRegressor) for _, cls in all_estimators("regressor"))
    with pytest.raises(ValueError, match="'cluster' is unknown"):
        all_estimators("cluster")


@pytest.mark.parametrize("package", [classifiers, regressors, transformers, experimental])
def test_every_method_is_offered_by_its_package(package):
    bases = DomainClassifier | DomainRegressor | DomainTransformer
    offered = tuple(getattr(package, name) for name in package.__all__)
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if module.name.rpartition(".")[2].startswith("_"):
            continue
        for name, cls in vars(import_module(module.name)).items():
            if isinstance(cls, type) and cls.__module__ == module.name and issubclass(cls, bases):
                told = f"import {name} in {package.__file__} and add it to __all__"
                base = any(issubclass(method, cls) for method in offered)
                assert base or name.startswith("_") or issubclass(cls, offered), told


@pytest.mark.parametrize("name", ["GFK", "SubspaceAlignment"])
@pytest.mark.filterwarnings("ignore:.*reduced to:UserWarning")
def test_one_target_row_spans_no_subspace(name):
    with pytest.raises(ValueError, match="rows that vary in both domains"):
        clone(LISTED[name]).fit(P.X[: N_SOURCE + 1], MARKED[: N_SOURCE + 1])


class Careless(CORAL):
    """Maps rows by their place, reads labels of the target, draws, and remembers failed fits."""

    def fit(self, X, y=None, sample_domain=None):
        self.tried_ = True
        return super().fit(X, y, sample_domain)

    def fit_transform(self, X, y=None, sample_domain=None):
        np.random.random()  # noqa: NPY002
        Z = super().fit_transform(X, y, sample_domain)
        Z[0] += 1.0
        return Z + 0.01 * np.max(y) if sample_domain is not None else Z


class Guessing(DomainClassifier):
    """Labels at random."""

    def _draw(self):
        return np.random.default_rng()

    def _fit_domains(self, domains):
        self.classes_ = domains.classes
        labels = domains.classes[self._draw().integers(2, size=len(domains.order))]
        self.transduction_ = labels

    def _scores(self, rows):
        return self._draw().random((rows.shape[0], len(self.classes_)))


@pytest.mark.parametrize(
    ("estimator", "found"),
    [
        (
            Careless(),
            {
                "check_order_of_rows",
                "check_target_labels_are_not_read",
                "check_global_state_is_left_as_it_is",
                "check_a_fit_is_all_or_nothing",
                "check_fitted_rows_are_transformed_as_they_were_embedded",
            },
        ),
        (
            Guessing(),
            {
                "check_fit_is_deterministic",
                "check_order_of_rows",
                "check_fitted_rows_are_predicted_as_they_were_labelled",
                "check_copies_and_pickles",
            },
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_planted_faults_are_found(estimator, found):
    failed = set()
    for name, check in adapter_checks(estimator, scikit_learn=False):
        try:
            check(clone(estimator))
        except Exception:
            failed.add(name)
    assert found <= failed
    with pytest.raises(AssertionError) as caught:
        check_adapter(estimator, scikit_learn=False)
    assert caught.value.__notes__[0].startswith(f"{type(estimator).__name__} fails check_")
    check_adapter(
        estimator, scikit_learn=False, expected_failed_checks=dict.fromkeys(failed, "planted")
    )


def test_what_is_neither_kind_is_refused():
    with pytest.raises(TypeError, match="not a classifier, regressor or transformer; derive"):
        check_adapter(KernelDensity())


def test_every_check_is_listed():
    listed = {getattr(check, "func", check) for checks in CHECKS.values() for check in checks}
    there = {
        value
        for name, value in vars(transferable.testing).items()
        if name.startswith("check_") and inspect.isfunction(value)
    }
    assert listed == there - {check_adapter}
