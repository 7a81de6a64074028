"""The contract of the library as checks, to be run on any method, also one written elsewhere.

Every check is a function of an unfitted estimator and of nothing else. Together with
scikit-learn's own they are what the library's tests run on every estimator.
"""

from __future__ import annotations

import copy
import locale
import logging
import os
import pickle
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple
from unittest import SkipTest

import numpy as np
import pandas as pd
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils import Bunch, get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator
from threadpoolctl import threadpool_info

from transferable.base import Takes
from transferable.exceptions import MarkedLabelsWarning, NoTargetWarning

__all__ = ["adapter_checks", "check_adapter", "parametrize_with_adapter_checks", "small_problem"]

Check = Callable[[Any], None]


def small_problem(
    seed: int = 0,
    *,
    n_source: int = 24,
    n_target: int = 18,
    n_features: int = 6,
    n_classes: int = 3,
    shift: float = 0.7,
) -> Bunch:
    """Draw Gaussian classes; those of the target are moved and turned.

    Parameters
    ----------
    seed : int, default=0
        Seed of the draw.
    n_source, n_target : int, default=24, 18
        Rows of each domain. Every class has some on both sides.
    n_features, n_classes : int, default=6, 3
        Columns and classes.
    shift : float, default=0.7
        How far every column of the target is moved.

    Returns
    -------
    problem : Bunch
        ``Xs``, ``ys``, ``Xt``, ``yt``, and ``X``, the rows of both, the source first.

    Examples
    --------
    >>> from transferable.testing import small_problem
    >>> small_problem().X.shape
    (42, 6)
    """
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.normal(size=(n_classes, n_features))
    turn = np.eye(n_features) + 0.15 * rng.normal(size=(n_features, n_features))
    ys, yt = np.arange(n_source) % n_classes, np.arange(n_target) % n_classes
    Xs = centres[ys] + rng.normal(size=(n_source, n_features))
    Xt = (centres[yt] + rng.normal(size=(n_target, n_features))) @ turn + shift
    return Bunch(Xs=Xs, ys=ys, Xt=Xt, yt=yt, X=np.vstack([Xs, Xt]))


P = small_problem(n_source=30, n_target=24, n_features=5)
N_SOURCE = len(P.ys)
MARKS = np.where(np.arange(len(P.X)) < N_SOURCE, 1, -1)
MARKED = np.r_[P.ys, np.full(len(P.yt), -1)]
# The same rows with numbers to predict, which rows decide.
Q = Bunch(Xs=P.Xs, ys=10 * P.Xs[:, 0] + P.ys, Xt=P.Xt, yt=10 * P.Xt[:, 0] + P.yt, X=P.X)
Q.marked = np.r_[Q.ys, np.full(len(Q.yt), np.nan)]
P.marked = MARKED
NAMES = ["a", "b", "c"], [-7, 3, 1000], [0.0, 2.0, 7.0]
LIBRARIES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


def kind_of(estimator: Any) -> str:
    """Return what an estimator is to be: "classifier", "regressor" or "transformer"."""
    if is_classifier(estimator):
        return "classifier"
    if is_regressor(estimator):
        return "regressor"
    if hasattr(estimator, "transform"):
        return "transformer"
    raise TypeError(
        f"{type(estimator).__name__} is not a classifier, regressor or transformer; derive it from "
        "transferable.base.DomainClassifier, DomainRegressor or DomainTransformer."
    )


def problem_of(estimator: Any) -> Bunch:
    """Return the problem that the checks give an estimator, with labels of its kind."""
    return Q if kind_of(estimator) == "regressor" else P


def takes(estimator: Any) -> Takes:
    """Return the optional inputs of an estimator; none where it states nothing."""
    stated: Takes = getattr(estimator, "takes", Takes())
    return stated


class Outcome(NamedTuple):
    """Results of a fit for rows: labels, if it gives any, and probabilities, scores or features."""

    labels: NDArray[Any] | None
    values: NDArray[np.floating]


def outcome(estimator: Any, X: Any, y: Any, marks: Any = None, **more: Any) -> Outcome:
    """Fit a copy of an estimator, and return its results for the fitted rows."""
    model = clone(estimator)
    if kind_of(model) == "transformer":
        return Outcome(None, model.fit_transform(X, y, sample_domain=marks, **more))
    model.fit(X, y, sample_domain=marks, **more)
    labels = np.asarray(model.transduction_) if kind_of(model) == "classifier" else None
    return Outcome(labels, answers(model, X))


def answers(model: Any, X: Any, marks: Any = None) -> NDArray[np.floating]:
    """Return a fitted model's results for rows as numbers."""
    if kind_of(model) == "transformer":
        return np.asarray(model.transform(X, sample_domain=marks))
    if kind_of(model) == "regressor":
        return np.asarray(model.predict(X))
    offered = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    return np.asarray(getattr(model, offered)(X))


def assert_same(one: Outcome, other: Outcome, tolerance: float = 1e-9) -> None:
    """Refuse labels that differ, or numbers by more than a share of the largest."""
    if other.labels is not None:
        np.testing.assert_array_equal(one.labels, other.labels)
    assert_close(one.values, other.values, tolerance)


def assert_close(one: Any, other: Any, tolerance: float) -> None:
    """Refuse numbers that differ by more than a share of the largest."""
    np.testing.assert_allclose(
        one, other, rtol=0, atol=tolerance * max(np.abs(other).max(), 1e-300)
    )


def must_raise(errors: Any, call: Callable[[], Any], why: str) -> BaseException:
    """Return the error that a call raises, and fail where it raises none."""
    try:
        call()
    except errors as error:
        caught: BaseException = error
        return caught
    raise AssertionError(f"{why}, but nothing was raised")


# -- all kinds -----------------------------------------------------------------------------------


def check_adapt_is_fit_on_stacked_rows(estimator: Any) -> None:
    """Compare ``adapt`` with ``fit`` on the rows of both domains, in another order."""
    p = problem_of(estimator)
    order = np.random.default_rng(0).permutation(len(MARKS))
    apart = clone(estimator).adapt(p.Xs, p.ys, p.Xt)
    y = np.r_[p.ys, np.zeros_like(p.yt)]
    stacked = clone(estimator).fit(p.X[order], y[order], sample_domain=MARKS[order])
    assert_close(answers(apart, p.Xt), answers(stacked, p.Xt), 1e-9)


def check_fit_is_deterministic(estimator: Any) -> None:
    """Compare two fits under other seeds of numpy: random numbers come from a parameter."""
    p = problem_of(estimator)
    before = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(1)  # noqa: NPY002
        one = outcome(estimator, p.X, p.marked)
        np.random.seed(2)  # noqa: NPY002
        assert_same(one, outcome(estimator, p.X, p.marked), 0.0)
    finally:
        np.random.set_state(before)  # noqa: NPY002


def check_order_of_rows(estimator: Any) -> None:
    """Compare fits of the same rows in another order."""
    p = problem_of(estimator)
    expected = outcome(estimator, p.X, p.marked)
    order = np.random.default_rng(1).permutation(len(MARKS))
    found = outcome(estimator, p.X[order], p.marked[order])
    labels = None if expected.labels is None else expected.labels[order]
    # A BLAS may round a row by its place in a product.
    assert_same(found, Outcome(labels, expected.values[order]), 1e-10)


def check_missing_labels_mark_the_target(estimator: Any) -> None:
    """Compare -1, NaN and None in the labels with ``sample_domain``."""
    expected = outcome(estimator, P.X, MARKED, MARKS)
    assert_same(outcome(estimator, P.X, MARKED), expected, 0.0)
    assert_same(outcome(estimator, P.X, np.where(MARKED < 0, np.nan, MARKED)), expected, 0.0)
    objects = np.array([None if label < 0 else int(label) for label in MARKED], dtype=object)
    assert_close(outcome(estimator, P.X, objects).values, expected.values, 0.0)


def check_target_labels_are_not_read(estimator: Any) -> None:
    """Give rows that are marked as target any labels."""
    p = problem_of(estimator)
    expected = outcome(estimator, p.X, p.marked)
    for some in (p.yt, np.random.default_rng(2).integers(50, 99, len(p.yt))):
        assert_same(outcome(estimator, p.X, np.r_[p.ys, some], MARKS), expected, 0.0)


def check_types_of_labels(estimator: Any, names: Sequence[Any]) -> None:
    """Compare labels that are strings, negative, far apart or fractional types with 0, 1, 2."""
    given = np.array(names)
    expected = outcome(estimator, P.X, MARKED)
    labels = None if expected.labels is None else given[expected.labels]
    found = outcome(estimator, P.X, given[MARKED], MARKS)
    assert_same(found, Outcome(labels, expected.values), 1e-9)


def check_input_is_left_as_it_is(estimator: Any) -> None:
    """Compare the rows, labels and parameters that were given before and after."""
    p = problem_of(estimator)
    X, y, marks = p.X.copy(), np.r_[p.ys, p.yt], MARKS.copy()
    model = clone(estimator)
    before = copy.deepcopy({key: repr(value) for key, value in model.get_params().items()})
    model.fit(X, y, sample_domain=marks)
    answers(model, X)
    np.testing.assert_array_equal(X, p.X)
    np.testing.assert_array_equal(y, np.r_[p.ys, p.yt])
    np.testing.assert_array_equal(marks, MARKS)
    assert before == {key: repr(value) for key, value in model.get_params().items()}


def global_state() -> dict[str, Any]:
    """Return what a whole process shares, by name."""
    loggers = [logging.root, *map(logging.getLogger, logging.root.manager.loggerDict)]
    state = {
        "numpy's random numbers": pickle.dumps(np.random.get_state()),  # noqa: NPY002
        "Python's random numbers": random.getstate(),
        "warning filters": list(warnings.filters),
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "locale": locale.setlocale(locale.LC_ALL),
        "signal handlers": [signal.getsignal(s) for s in signal.valid_signals()],
        "numbers of threads": sorted((i["filepath"], i["num_threads"]) for i in threadpool_info()),
        "loggers": {log.name: (log.level, log.disabled, tuple(log.handlers)) for log in loggers},
        "floating point errors": np.geterr(),
        "scikit-learn's settings": sklearn.get_config(),
    }
    if torch := sys.modules.get("torch"):
        state["torch's random numbers"] = torch.get_rng_state().tolist()
        state["torch's settings"] = (
            torch.are_deterministic_algorithms_enabled(),
            torch.get_num_threads(),
            torch.get_default_dtype(),
        )
    return state


def check_global_state_is_left_as_it_is(estimator: Any) -> None:
    """Compare random numbers, warning filters, loggers and what else a process shares."""
    p = problem_of(estimator)
    outcome(estimator, p.X, p.marked)  # other libraries are imported here
    before = global_state()
    outcome(estimator, p.X, p.marked)
    after = global_state()
    changed = [name for name in before if after[name] != before[name]]
    assert not changed, f"a fit changes {', '.join(changed)}"


def check_a_fit_is_all_or_nothing(estimator: Any) -> None:
    """Let fits fail, of a fresh and of a fitted model, and look for what they left behind."""
    p = problem_of(estimator)
    narrower, one_class = (p.Xs[:, :3], p.ys, p.Xt[:, :2]), (p.Xs, np.zeros(N_SOURCE), p.Xt)
    failing = [("adapt", narrower if takes(estimator).no_labels else one_class)]
    if not get_tags(estimator).input_tags.allow_nan:
        gaps = np.where(MARKS[:, None] < 0, np.nan, p.X)[:, :3]
        failing += [("fit", (gaps, p.marked, MARKS))]
    fresh, fitted = clone(estimator), clone(estimator).adapt(p.Xs, p.ys, p.Xt)
    before, expected = dict(vars(fresh)), answers(fitted, p.Xt)
    for method, given in failing:
        why = f"{method} was given rows that cannot be fitted"
        must_raise(ValueError, partial(getattr(fresh, method), *given), why)
        assert vars(fresh) == before, "a fit that failed must set nothing"
        must_raise(NotFittedError, partial(answers, fresh, p.Xt), "the model is not fitted")
        must_raise(ValueError, partial(getattr(fitted, method), *given), why)
        assert_close(answers(fitted, p.Xt), expected, 0.0)


def check_copies_and_pickles(estimator: Any) -> None:
    """Compare a fitted model with its pickle and its deep copy, and parameters with a clone's."""
    p = problem_of(estimator)
    model = clone(estimator)
    assert {k: repr(v) for k, v in model.get_params().items()} == {
        k: repr(v) for k, v in estimator.get_params().items()
    }
    model.adapt(p.Xs, p.ys, p.Xt)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301
        assert_close(answers(twin, p.Xt), answers(model, p.Xt), 0.0)
    must_raise(NotFittedError, lambda: answers(clone(model), p.Xt), "a clone is not fitted")


def check_single_precision(estimator: Any) -> None:
    """Compare rows in float32 with the same numbers in float64."""
    p = problem_of(estimator)
    single = p.X.astype(np.float32)
    found, expected = (outcome(estimator, X, p.marked) for X in (single, single.astype(np.float64)))
    if expected.labels is None:
        assert_close(found.values, expected.values, 1e-3)
    else:
        assert np.mean(found.labels == expected.labels) >= 0.95


def check_tables_with_names(estimator: Any) -> None:
    """Give rows and labels as pandas' frames and series."""
    p = problem_of(estimator)
    table = pd.DataFrame(p.X, columns=list("abcde"))
    expected = outcome(estimator, p.X, p.marked)
    assert_same(outcome(estimator, table, pd.Series(p.marked)), expected, 1e-9)


def check_columns_are_matched_by_name(estimator: Any, library: str) -> None:
    """Give the target's columns in another order than the source's; others are refused."""
    p = problem_of(estimator)
    table = getattr(__import__(library), LIBRARIES[library])
    columns = dict(zip("abcde", p.X.T, strict=True))
    source = table({name: values[:N_SOURCE] for name, values in columns.items()})
    target = table({name: columns[name][N_SOURCE:] for name in "cedba"})
    model = clone(estimator).adapt(source, p.ys, target)
    assert model.feature_names_in_.tolist() == list("abcde")
    expected = clone(estimator).adapt(p.Xs, p.ys, p.Xt)
    assert_close(answers(model, target), answers(expected, p.Xt), 1e-9)
    for names in ("cedbz", "cedb"):
        other = table(dict.fromkeys(names, p.Xt[:, 0]))
        must_raise(ValueError, partial(answers, model, other), f"the columns are {[*names]}")


def check_sparse_rows(estimator: Any) -> None:
    """Compare sparse rows with dense ones where the tags state them; else they are refused."""
    p = problem_of(estimator)
    given = sp.csr_array(p.Xs), p.ys, sp.csr_array(p.Xt)
    if not get_tags(estimator).input_tags.sparse:
        must_raise(
            TypeError, lambda: clone(estimator).adapt(*given), "the tags take no sparse rows"
        )
        return
    found = answers(clone(estimator).adapt(*given), sp.csr_array(p.Xt))
    expected = answers(clone(estimator).adapt(p.Xs, p.ys, p.Xt), p.Xt)
    models = estimator, getattr(estimator, "estimator", None)
    if any(getattr(model, "_centred", False) for model in models):
        # Sparse rows stay as they are, so that only the labels are nearly those of centred ones.
        assert np.mean(found.argmax(axis=1) == expected.argmax(axis=1)) >= 0.8
        return
    if kind_of(estimator) == "transformer":  # bases are free, inner products are not
        found, expected = found @ found.T, expected @ expected.T
    assert_close(found, expected, 1e-9)


def check_weights(estimator: Any) -> None:
    """Give weights of 1, and of 0, whose rows are left out; without support all are refused."""
    p = problem_of(estimator)
    if not takes(estimator).sample_weight:
        must_raise(
            (ValueError, TypeError),
            lambda: clone(estimator).adapt(p.Xs, p.ys, p.Xt, sample_weight=np.ones(N_SOURCE)),
            "`takes` states no sample_weight",
        )
        return
    ones = outcome(estimator, p.X, p.marked, MARKS, sample_weight=np.ones(len(MARKS)))
    assert_same(ones, outcome(estimator, p.X, p.marked, MARKS), 1e-9)
    weights = (np.arange(len(MARKS)) % 5 > 0).astype(float)
    kept = weights > 0
    found = outcome(estimator, p.X, p.marked, MARKS, sample_weight=weights)
    expected = outcome(estimator, p.X[kept], p.marked[kept], MARKS[kept])
    labels = None if found.labels is None else found.labels[kept]
    assert_same(Outcome(labels, found.values[kept]), expected, 1e-9)


def check_weights_are_repeated_rows(estimator: Any) -> None:
    """Compare integer weights with repeated rows."""
    p = problem_of(estimator)
    if not takes(estimator).sample_weight:
        return
    weights = np.random.default_rng(0).integers(0, 4, len(MARKS))
    rows = np.repeat(np.arange(len(MARKS)), weights)
    weighted = clone(estimator).fit(p.X, p.marked, sample_domain=MARKS, sample_weight=weights)
    repeated = clone(estimator).fit(p.X[rows], p.marked[rows], sample_domain=MARKS[rows])
    assert_close(answers(weighted, p.X, MARKS), answers(repeated, p.X, MARKS), 1e-7)


def check_several_sources(estimator: Any) -> None:
    """Compare ids of sources by other numbers and as lists; without support they are refused."""
    p = problem_of(estimator)
    ids = np.where(MARKS > 0, 1 + np.arange(len(MARKS)) // 10, MARKS)
    if not takes(estimator).several_sources:
        error = must_raise(
            ValueError,
            lambda: clone(estimator).fit(p.X, p.marked, sample_domain=ids),
            "`takes` states no several_sources",
        )
        assert type(estimator).__name__ in str(error), "the error names the estimator"
        return
    expected = outcome(estimator, p.X, p.marked, ids)
    renumbered = np.where(ids > 0, 7 * ids + 2, -4)
    assert_same(outcome(estimator, p.X, p.marked, renumbered), expected, 1e-9)
    parts = [p.Xs[:10], p.Xs[10:20], p.Xs[20:]]
    labels = [p.ys[:10], p.ys[10:20], p.ys[20:]]
    listed = clone(estimator).adapt(parts, labels, p.Xt)
    assert_close(answers(listed, p.Xt), expected.values[MARKS < 0], 1e-9)


def check_known_target_labels(estimator: Any) -> None:
    """Take labels of a few target rows where that is stated; else they are refused."""
    p = problem_of(estimator)
    known = np.where(np.arange(len(p.yt)) < 6, p.yt, p.marked[MARKS < 0])
    if takes(estimator).target_labels:
        model = clone(estimator).adapt(p.Xs, p.ys, p.Xt, yt=known)
        assert len(model.transduction_) == len(p.X)
        return
    must_raise(
        (ValueError, TypeError),
        lambda: clone(estimator).adapt(p.Xs, p.ys, p.Xt, yt=known),
        "`takes` states no target_labels",
    )


def check_labels_are_needed_by_those_that_read_them(estimator: Any) -> None:
    """Fit without any labels where that is stated; else the missing labels are refused."""
    p = problem_of(estimator)
    if not takes(estimator).no_labels:
        must_raise(
            (ValueError, TypeError),
            lambda: clone(estimator).adapt(p.Xs, None, p.Xt),
            "`takes` states no no_labels",
        )
        return
    must_raise(ValueError, partial(clone(estimator).fit, p.X), "nothing marks the target")
    without = clone(estimator).adapt(p.Xs, None, p.Xt)
    expected = clone(estimator).adapt(p.Xs, p.ys, p.Xt)
    assert_close(answers(without, p.X, MARKS), answers(expected, p.X, MARKS), 1e-9)


def awkward_rows() -> dict[str, tuple[Any, Any]]:
    """Return rows that are unusual and no error, with their labels."""
    rng = np.random.default_rng(4)
    far = np.full((4, 5), -30.0) + rng.normal(size=(4, 5))
    copies = np.r_[np.arange(len(MARKED)), np.arange(0, len(MARKED), 3), np.repeat(40, 5)]
    wide = P.X @ rng.normal(size=(5, 80)) + 0.01 * rng.normal(size=(len(MARKED), 80))
    constant = np.column_stack([P.X, np.full(len(P.X), 3.0), np.zeros(len(P.X))])
    return {
        "constant columns": (constant, MARKED),
        "a column constant in a domain": (np.column_stack([P.X, MARKS > 0]), MARKED),
        "copies of rows": (P.X[copies], MARKED[copies]),
        "a class without target rows": (np.vstack([P.X, far]), np.r_[MARKED, np.full(4, 3)]),
        "a class of one row": (np.vstack([P.X, np.full((1, 5), -9.0)]), np.r_[MARKED, 3]),
        "more columns than rows": (wide, MARKED),
        "no target": (P.Xs, P.ys),
    }


def check_awkward_rows(estimator: Any, which: str) -> None:
    """Fit unusual rows: labels are those of the source, features are finite."""
    X, y = awkward_rows()[which]
    if kind_of(estimator) == "regressor":
        y = np.where(y < 0, np.nan, 10 * X[:, 0] + y)
    found = outcome(estimator, X, y)
    assert len(found.values) == len(y)
    assert np.isfinite(found.values).all()
    if found.labels is not None:
        assert set(found.labels) <= set(y[y >= 0])


def check_one_target_row(estimator: Any) -> None:
    """Fit one target row, or refuse it in words."""
    p = problem_of(estimator)
    X, y = p.X[: N_SOURCE + 1], p.marked[: N_SOURCE + 1]
    try:
        found = outcome(estimator, X, y)
    except ValueError as error:
        assert "row" in str(error), "the error names the rows as too few"
    else:
        assert len(found.values) == len(y)


# -- classifiers ----------------------------------------------------------------------------------


def check_order_of_labels(estimator: Any) -> None:
    """Name the classes the other way round."""
    easy = small_problem(n_source=30, n_target=24, n_features=5, shift=0.0, seed=3)
    expected = clone(estimator).adapt(easy.Xs, easy.ys, easy.Xt).predict(easy.Xt)
    backwards = clone(estimator).adapt(easy.Xs, 2 - easy.ys, easy.Xt).predict(easy.Xt)
    assert np.mean(2 - backwards == expected) >= 0.95


def check_fitted_rows_are_predicted_as_they_were_labelled(estimator: Any) -> None:
    """Compare ``transduction_`` with ``predict``, of all rows and one by one."""
    model = clone(estimator).fit(P.X, MARKED)
    labels = model.predict(P.X)
    target = MARKS < 0
    np.testing.assert_array_equal(labels[target], model.transduction_[target])
    given = model.transduction_[~target] == P.ys
    assert (given | (model.transduction_[~target] == labels[~target])).all()
    one_by_one = [model.predict(row[None, :])[0] for row in P.X[::7]]
    np.testing.assert_array_equal(one_by_one, labels[::7])


def check_scores_and_probabilities_agree_with_labels(estimator: Any, n_classes: int) -> None:
    """Compare the largest score with the label; probabilities are distributions."""
    p = small_problem(n_source=30, n_target=24, n_features=5, n_classes=n_classes)
    model = clone(estimator).adapt(p.Xs, p.ys, p.Xt)
    offered = [name for name in ("predict_proba", "decision_function") if hasattr(model, name)]
    assert offered, "a classifier has predict_proba or decision_function"
    for name in offered:
        scores = getattr(model, name)(p.Xt)
        if scores.ndim == 1:
            assert n_classes == 2
            scores = np.column_stack([-scores, scores])
        assert scores.shape == (len(p.Xt), n_classes)
        np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(p.Xt))
        if name == "predict_proba":
            np.testing.assert_allclose(scores.sum(axis=1), 1.0, rtol=1e-6)
            assert scores.min() >= 0


def check_better_than_chance(estimator: Any) -> None:
    """Label an easy target."""
    model = clone(estimator).adapt(P.Xs, P.ys, P.Xt)
    assert np.mean(model.predict(P.Xt) == P.yt) > 0.6


def check_rows_all_alike(estimator: Any) -> None:
    """Fit rows that are all zero: any label of the source will do."""
    y = np.r_[np.arange(8) % 2, np.full(4, -1)]
    labels = outcome(estimator, np.zeros((12, 3)), y).labels
    assert labels is not None
    assert set(labels) <= {0, 1}


# -- regressors -----------------------------------------------------------------------------------


def check_missing_numbers_mark_the_target(estimator: Any) -> None:
    """Compare NaN and None in the labels with ``sample_domain``; a -1 is a number as any other."""
    expected = outcome(estimator, Q.X, Q.marked, MARKS)
    objects = np.array([None if y != y else y for y in Q.marked], dtype=object)
    for y in (Q.marked, objects, [f"{y!r}" if y == y else None for y in Q.marked.tolist()]):
        assert_same(outcome(estimator, Q.X, y), expected, 0.0)
    lower = np.r_[np.where(np.arange(N_SOURCE) < 5, -1, P.ys + 1), np.zeros(len(Q.yt))].astype(int)
    marked = np.where(MARKS < 0, np.nan, lower)
    assert_same(outcome(estimator, Q.X, lower, MARKS), outcome(estimator, Q.X, marked), 0.0)


def check_unit_of_the_numbers(estimator: Any) -> None:
    """Give the labels in other units, as tiny and as huge numbers."""
    expected = outcome(estimator, Q.X, Q.marked).values
    for unit in (1e-12, 1e12):
        found = outcome(estimator, Q.X, unit * Q.marked).values
        assert_close(found / unit, expected, 1e-6)


def check_fitted_rows_are_predicted_as_they_were_given(estimator: Any) -> None:
    """Compare ``transduction_`` with ``predict``, of all rows and one by one."""
    model = clone(estimator).fit(Q.X, Q.marked)
    np.testing.assert_array_equal(model.transduction_[:N_SOURCE], Q.ys)
    assert_close(model.predict(Q.Xt), model.transduction_[N_SOURCE:], 1e-9)
    one_by_one = [model.predict(row[None, :])[0] for row in Q.X[::7]]
    assert_close(one_by_one, model.predict(Q.X)[::7], 1e-9)


def check_better_than_the_mean(estimator: Any) -> None:
    """Predict an easy target, better than by one number; rows without a label do not count."""
    easy = small_problem(n_source=90, n_target=60, n_features=3, shift=0.1)
    ys, yt = easy.Xs.sum(axis=1), easy.Xt.sum(axis=1)
    model = clone(estimator).adapt(easy.Xs, ys, easy.Xt)
    score = model.score(easy.Xt, yt)
    assert score > 0.5
    some = np.r_[yt[:30], np.full(30, np.nan)]
    assert abs(model.score(easy.Xt, some) - model.score(easy.Xt[:30], yt[:30])) < 1e-9


def check_labels_that_are_no_numbers(estimator: Any) -> None:
    """Refuse labels of which nothing can be learnt, with the value."""
    for label, said in (
        (np.inf, "infinity"),
        ("1,200.50", "'1,200.50' is not a number"),
        ("3 %", "'3 %' is not a number"),
    ):
        y = [*Q.ys[:-1], label]
        error = must_raise(ValueError, partial(clone(estimator).adapt, Q.Xs, y, Q.Xt), said)
        assert said in str(error)
    dates = np.datetime64("2020-01-01") + np.arange(N_SOURCE)
    for given, said in (
        (np.full(N_SOURCE, 3.5), "have the number 3.5"),
        (Q.ys + 1j, "complex128 are not real numbers"),
        (dates, "convert them"),
        (np.column_stack([Q.ys, Q.ys]), "shape (30, 2)"),
    ):
        error = must_raise(ValueError, partial(clone(estimator).adapt, Q.Xs, given, Q.Xt), said)
        assert said in str(error)


# -- transformers ---------------------------------------------------------------------------------


def check_fitted_rows_are_transformed_as_they_were_embedded(estimator: Any) -> None:
    """Compare ``fit_transform`` with ``transform`` of the same rows, with marks and as new ones."""
    model = clone(estimator)
    Z = model.fit_transform(P.X, MARKED)
    assert_close(model.transform(P.X, MARKS), Z, 1e-9)
    assert_close(model.transform(P.Xt), Z[MARKS < 0], 1e-9)
    source = np.ones(N_SOURCE)
    assert_close(model.transform(P.Xs, sample_domain=source), Z[MARKS > 0], 1e-9)
    assert Z.shape[1] == len(model.get_feature_names_out())


def check_marks_of_new_rows(estimator: Any) -> None:
    """Refuse marks that are 0 or too few."""
    model = clone(estimator).adapt(P.Xs, P.ys, P.Xt)
    for marks in ([1, -1, 0], [1, -1]):
        ask = partial(model.transform, P.X[:3], sample_domain=marks)
        must_raise(ValueError, ask, f"sample_domain={marks} marks no domain for some of 3 rows")


def check_frames_as_output(estimator: Any) -> None:
    """Return pandas' frames where ``set_output`` requests them."""
    table = pd.DataFrame(P.X, index=np.arange(100, 100 + len(P.X)), columns=list("abcde"))
    model = clone(estimator).set_output(transform="pandas")
    Z = model.fit_transform(table, MARKED)
    assert Z.index.tolist() == table.index.tolist()
    assert Z.columns.tolist() == model.get_feature_names_out().tolist()


EVERY: tuple[Check, ...] = (
    check_adapt_is_fit_on_stacked_rows,
    check_fit_is_deterministic,
    check_order_of_rows,
    check_target_labels_are_not_read,
    check_input_is_left_as_it_is,
    check_global_state_is_left_as_it_is,
    check_a_fit_is_all_or_nothing,
    check_copies_and_pickles,
    check_single_precision,
    check_tables_with_names,
    *(partial(check_columns_are_matched_by_name, library=name) for name in LIBRARIES),
    check_sparse_rows,
    check_weights,
    check_weights_are_repeated_rows,
    check_several_sources,
    check_known_target_labels,
    check_labels_are_needed_by_those_that_read_them,
    *(partial(check_awkward_rows, which=which) for which in awkward_rows()),
    check_one_target_row,
)
OF_CLASSES: tuple[Check, ...] = (
    *EVERY,
    check_missing_labels_mark_the_target,
    *(
        partial(check_types_of_labels, names=n)
        for n in (["a", "b", "c"], [-7, 3, 1000], [0.0, 2, 7])
    ),
)
CHECKS: dict[str, tuple[Check, ...]] = {
    "classifier": (
        *OF_CLASSES,
        check_order_of_labels,
        check_fitted_rows_are_predicted_as_they_were_labelled,
        *(partial(check_scores_and_probabilities_agree_with_labels, n_classes=n) for n in (2, 3)),
        check_better_than_chance,
        check_rows_all_alike,
    ),
    "regressor": (
        *EVERY,
        check_missing_numbers_mark_the_target,
        check_unit_of_the_numbers,
        check_fitted_rows_are_predicted_as_they_were_given,
        check_better_than_the_mean,
        check_labels_that_are_no_numbers,
    ),
    "transformer": (
        *OF_CLASSES,
        check_fitted_rows_are_transformed_as_they_were_embedded,
        check_marks_of_new_rows,
        check_frames_as_output,
    ),
}


def name_of(check: Any) -> str:
    """Return the name of a check with the values that it is bound to."""
    if not isinstance(check, partial):
        return str(check.__name__)
    bound = ", ".join(f"{key}={value}" for key, value in check.keywords.items())
    return f"{check.func.__name__}({bound})" if bound else str(check.func.__name__)


def quietly(check: Check, estimator: Any) -> None:
    """Run a check without the warnings that it is about."""
    if isinstance(check, partial) and find_spec(check.keywords.get("library", "numpy")) is None:
        raise SkipTest(f"needs {check.keywords['library']}")
    with warnings.catch_warnings():
        for category in (NoTargetWarning, MarkedLabelsWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", ".*reduced to|sample_weight counts rows", UserWarning)
        check(estimator)


def adapter_checks(estimator: Any, *, scikit_learn: bool = True) -> Iterator[tuple[str, Check]]:
    """Yield the name and the function of each check that concerns an estimator.

    Parameters
    ----------
    estimator : object
        Unfitted classifier, regressor or transformer, with small settings if its defaults are slow.
    scikit_learn : bool, default=True
        Whether scikit-learn's own checks are among them.

    Yields
    ------
    name : str
        Name of the check, with its setting.
    check : callable
        Function of an estimator, which raises what is wrong.

    Examples
    --------
    >>> from transferable.testing import adapter_checks
    >>> from transferable.transformers import CORAL
    >>> dict(adapter_checks(CORAL()))["check_order_of_rows"](CORAL())
    """
    for check in CHECKS[kind_of(estimator)]:
        yield name_of(check), partial(quietly, check)
    if scikit_learn:
        for _, check in estimator_checks_generator(estimator):
            # It wants columns in another order to be refused; here they are matched by name.
            if name_of(check) != "check_dataframe_column_names_consistency":
                yield f"scikit-learn: {name_of(check)}", check


def check_adapter(
    estimator: Any,
    *,
    scikit_learn: bool = True,
    expected_failed_checks: Mapping[str, str] | None = None,
) -> None:
    """Check that an estimator keeps the contract of the library.

    Parameters
    ----------
    estimator : object
        Unfitted classifier, regressor or transformer, with small settings if its defaults are slow.
    scikit_learn : bool, default=True
        Whether scikit-learn's own checks run too.
    expected_failed_checks : dict or None, default=None
        Checks that are not run, by name, with the reason.

    Examples
    --------
    >>> from transferable.testing import check_adapter
    >>> from transferable.transformers import PerDomainScaler
    >>> check_adapter(PerDomainScaler(), scikit_learn=False)
    """
    for name, check in adapter_checks(estimator, scikit_learn=scikit_learn):
        if name in (expected_failed_checks or {}):
            continue
        try:
            check(clone(estimator))
        except SkipTest:
            continue
        except Exception as error:
            error.add_note(f"{type(estimator).__name__} fails {name} of transferable.testing")
            raise


def parametrize_with_adapter_checks(
    estimators: Iterable[Any],
    *,
    scikit_learn: bool = True,
    expected_failed_checks: Callable[[Any], Mapping[str, str]] | None = None,
) -> Any:
    """Return a decorator that makes one test of pytest for each estimator and check.

    Parameters
    ----------
    estimators : iterable of objects
        Unfitted classifiers, regressors and transformers.
    scikit_learn : bool, default=True
        Whether scikit-learn's own checks are among them.
    expected_failed_checks : callable or None, default=None
        Function from an estimator to the checks it is expected to fail, by name, with reasons.

    Returns
    -------
    decorator : pytest.MarkDecorator
        For a test with the parameters ``estimator`` and ``check``.

    Examples
    --------
    >>> from transferable.testing import parametrize_with_adapter_checks
    >>> from transferable.transformers import CORAL
    >>> @parametrize_with_adapter_checks([CORAL()])
    ... def test_contract(estimator, check):
    ...     check(estimator)
    """
    import pytest

    cases = []
    for estimator in estimators:
        expected = expected_failed_checks(estimator) if expected_failed_checks else {}
        for name, check in adapter_checks(estimator, scikit_learn=scikit_learn):
            marks = pytest.mark.xfail(reason=expected[name]) if name in expected else ()
            title = f"{type(estimator).__name__}-{name}"
            cases.append(pytest.param(clone(estimator), check, id=title, marks=marks))
    return pytest.mark.parametrize(("estimator", "check"), cases)
