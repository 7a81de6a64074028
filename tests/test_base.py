"""The contract: fit, adapt, and nothing half-fitted."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from transferable import TFDF, AutoAdapter
from transferable.base import DomainClassifier, DomainTransformer
from transferable.classifiers import AdaptedClassifier
from transferable.transformers import CORAL, JDA, TCA


class Recorder(DomainClassifier):
    """Keeps the problem it is given, and predicts the first class."""

    _parameter_constraints = {"size": [int]}  # noqa: RUF012
    _accept_sparse = True

    def __init__(self, size=1):
        self.size = size

    def _fit_domains(self, domains):
        self.domains_ = domains
        self.classes_ = domains.classes
        if self.size > 9:
            raise RuntimeError("failed half way")

    def _predict_codes(self, rows):
        return np.zeros(rows.shape[0], dtype=np.intp)


class Signs(DomainTransformer):
    """Marks source rows with 1 and target rows with -1."""

    def _fit_domains(self, domains):
        self._n_features_out = 1

    def _transform_rows(self, rows, ids):
        return np.where(ids > 0, 1.0, -1.0)[:, None]


XS, YS, XT = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1]), -np.ones((3, 2))


def same_problem(one, other):
    np.testing.assert_array_equal(np.asarray(one.X), np.asarray(other.X))
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_array_equal(one.classes, other.classes)


def test_adapt_is_fit_on_stacked_rows():
    apart = Recorder().adapt(XS, YS, XT).domains_
    X, marks = np.vstack([XT, XS]), [-1, -1, -1, 1, 1, 1, 1]
    same_problem(apart, Recorder().fit(X, np.r_[[5, 5, 5], YS], sample_domain=marks).domains_)
    same_problem(apart, Recorder().fit(X, np.r_[[-1, -1, -1], YS]).domains_)


def test_adapt_takes_lists_and_any_label_type():
    domains = Recorder().adapt(XS.tolist(), ["x", "yes", "x", "yes"], XT.tolist()).domains_
    assert domains.classes.tolist() == ["x", "yes"]
    negative = Recorder().adapt(XS, [-1, 5, -1, 7], XT).domains_
    assert negative.classes.tolist() == [-1, 5, 7]


def test_adapt_takes_sparse_rows_on_either_side():
    dense = Recorder().adapt(XS, YS, XT).domains_
    for Xs, Xt in [(sp.csr_array(XS), XT), (XS, sp.coo_array(XT))]:
        domains = Recorder().adapt(Xs, YS, Xt).domains_
        np.testing.assert_array_equal(domains.X.toarray(), dense.X)


def test_adapt_keeps_the_names_of_columns():
    Xs, Xt = (pd.DataFrame(X, columns=["a", "b"]) for X in (XS, XT))
    model = Recorder().adapt(Xs, pd.Series(YS), Xt)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names"):
        model.predict(Xs.rename(columns={"a": "c"}))


class Interchange:
    """A frame that speaks the interchange protocol and nothing else."""

    def __init__(self, columns):
        self._table = pa.table(columns)
        self.shape = self._table.shape

    def __dataframe__(self, *args, **kwargs):
        return self._table.__dataframe__(*args, **kwargs)


class ArrowStream:
    """A frame that hands itself over to Arrow and can do nothing else."""

    def __init__(self, columns):
        self._table = pa.table(columns)
        self.shape = self._table.shape

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, Interchange, ArrowStream])
def test_adapt_matches_columns_by_name_whatever_the_frame(make):
    columns = {"a": XT[:, 0] + 5, "b": XT[:, 1]}
    backwards = make(dict(reversed(columns.items())))
    model = Recorder().adapt(make({"a": XS[:, 0], "b": XS[:, 1]}), YS, backwards)
    target = np.column_stack(list(columns.values()))
    expected = Recorder().adapt(XS, YS, target)
    same_problem(model.domains_, expected.domains_)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model._check_rows(backwards, reset=False), target)


@pytest.mark.parametrize("names", [["a", "c"], ["a", "a"]])
def test_adapt_refuses_frames_whose_columns_differ(names):
    with pytest.raises(ValueError, match=r"Xt must name the same columns.*lacks \['b'\]"):
        Recorder().adapt(pd.DataFrame(XS, columns=["a", "b"]), YS, pd.DataFrame(XT, columns=names))


def test_frames_without_rows_to_look_at_are_refused():
    with pytest.raises(TypeError, match="collect"):
        Recorder().adapt(pl.DataFrame(XS).lazy(), YS, pl.DataFrame(XT).lazy())


def test_names_in_one_domain_only_are_told():
    with pytest.warns(UserWarning, match="Xs names its columns"):
        Recorder().adapt(pd.DataFrame(XS, columns=["a", "b"]), YS, XT)


@pytest.mark.parametrize(
    ("Xs", "ys", "Xt", "message"),
    [
        (XS, YS, np.ones((3, 5)), "Xt has 5 features, but Xs has 2"),
        (XS, YS[:2], XT, r"ys has shape \(2,\), but Xs has 4 rows"),
        (XS[:0], YS[:0], XT, "Xs has no rows"),
        (XS, YS, XT[:0], "Xt has no rows"),
        (XS[0], YS, XT, r"Xs must be a table of rows and columns; got shape \(2,\)"),
        (XS, YS, [[np.nan, 1.0]], "NaN"),
        (XS, YS, [[np.inf, 1.0]], "infinity"),
        (XS, np.zeros(4), XT, "of one class"),
    ],
)
def test_adapt_refuses(Xs, ys, Xt, message):
    with pytest.raises(ValueError, match=message):
        Recorder().adapt(Xs, ys, Xt)


@pytest.mark.parametrize(
    ("order", "seem"),
    [("XTy", "Xs, Xt, ys"), ("yXT", "ys, Xs, Xt"), ("yTX", "ys, Xt, Xs"), ("TyX", "Xt, ys, Xs")],
)
@pytest.mark.parametrize("make", [np.asarray, list, pd.Series, pl.Series, pd.DataFrame])
def test_arguments_in_another_order_are_recognised(order, seem, make):
    given = {"X": XS, "y": make(YS), "T": XT}
    with pytest.raises(ValueError, match=rf"adapt\(Xs, ys, Xt\) .* seem to be {seem}"):
        Recorder().adapt(*(given[name] for name in order))


def test_a_table_of_the_target_is_no_mark():
    with pytest.raises(ValueError, match=r"sample_domain has shape .* for adapt\(Xs, ys, Xt\)"):
        Recorder().fit(XS, YS, XT)


WORDS = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": ["x", "y", "x", None]})


@pytest.mark.parametrize("estimator", [Recorder(), AutoAdapter(), CORAL(), AdaptedClassifier()])
@pytest.mark.parametrize(
    ("Xs", "what"),
    [
        (WORDS, "non-numeric values in 'b' and missing values in 'b'"),
        (WORDS.assign(b=WORDS["b"].astype("category")), "non-numeric values in 'b'"),
        (pl.from_pandas(WORDS), "non-numeric values in 'b'"),
        (WORDS.to_numpy(), "non-numeric values and missing values"),
        (np.array([["x", "y"]] * 4), "non-numeric values"),
        (WORDS.assign(b=pd.Timestamp(2024, 1, 31)), "non-numeric values in 'b'"),
        (WORDS[["a"]].assign(b=pd.NA), "missing values in 'b'"),
        (WORDS[["a"]].assign(b=np.nan), r"missing values in 'b' \(Input X contains NaN\)"),
        ([[1.0, np.nan]] * 4, "missing values"),
    ],
)
def test_text_and_missing_values_have_a_way_out(estimator, Xs, what):
    Xt = Xs[:3] if isinstance(Xs, list) else Xs
    way = r".*goes into transferable\.tables\.TableClassifier"
    with pytest.raises((TypeError, ValueError), match=rf"takes numbers, but X holds {what}{way}"):
        clone(estimator).adapt(Xs, YS, Xt)


def test_sparse_rows_and_new_rows_have_the_same_way_out():
    rows = sp.csr_array([[1.0, np.nan], [0.0, 2.0]])
    with pytest.raises(ValueError, match=r"X holds missing values .*TableClassifier"):
        Recorder().fit(rows, [0, 1])
    model = Recorder().adapt(XS, YS, XT)
    with pytest.raises(ValueError, match=r"X holds missing values .*TableClassifier"):
        model.predict([[np.nan, 1.0]])


def test_y_is_required():
    with pytest.raises(ValueError, match="requires y"):
        Recorder().fit(XS, None)


@pytest.mark.parametrize("broken", [{"size": 10}, {"size": "large"}])
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(broken):
    fresh = Recorder(**broken)
    with pytest.raises((RuntimeError, ValueError)):
        fresh.adapt(XS, YS, XT)
    assert vars(fresh) == broken
    with pytest.raises(NotFittedError):
        fresh.predict(XS)

    fitted = Recorder().adapt(XS, YS, XT)
    before = dict(vars(fitted.set_params(**broken)))
    with pytest.raises((RuntimeError, ValueError)):
        fitted.adapt(XS + 1, YS, XT)
    assert vars(fitted) == before


def test_bad_rows_leave_a_fitted_estimator_as_it_was():
    fitted = Recorder().adapt(XS, YS, XT)
    before = dict(vars(fitted))
    with pytest.raises(ValueError, match="NaN"):
        fitted.adapt(np.full((4, 7), np.nan), YS, np.ones((3, 7)))
    assert vars(fitted) == before


def test_prediction_checks_its_rows():
    model = Recorder().adapt(XS, YS, XT)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.ones((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        model.predict([[np.nan, 1.0]])


@pytest.mark.filterwarnings("ignore::transferable.exceptions.MarkedLabelsWarning")
def test_transformers_map_rows_as_rows_of_their_domain():
    X, y = np.vstack([XT, XS]), np.r_[[-1, -1, -1], YS]
    Z = Signs().fit_transform(X, y)
    np.testing.assert_array_equal(Z.ravel(), [-1, -1, -1, 1, 1, 1, 1])
    model = Signs().fit(X, y)
    np.testing.assert_array_equal(model.transform(XS).ravel(), -np.ones(4))
    np.testing.assert_array_equal(model.transform(XS, [1, 1, 1, -1]).ravel(), [1, 1, 1, -1])
    with pytest.raises(ValueError, match="mark no domain"):
        model.transform(XS, [1, 1, 1, 0])
    assert model.get_feature_names_out().tolist() == ["signs0"]


@pytest.mark.parametrize("tiny", [1.0, 1e-200])
@pytest.mark.parametrize(
    "model", [TFDF(), TCA(), JDA(), CORAL(), AutoAdapter(), AdaptedClassifier(JDA())], ids=str
)
def test_what_underflows_is_zero_whatever_numpy_is_told_to_do_about_it(model, tiny):
    rng = np.random.default_rng(0)
    ys = np.repeat([0, 1, 2], 20)
    Xs = rng.normal(size=(60, 6)) + 8.0 * rng.normal(size=(3, 6))[ys]
    Xs[:, 0] *= tiny
    Xt = Xs + 0.5 * (np.arange(6) > 0)
    X, y, marks = np.concatenate([Xs, Xt]), np.tile(ys, 2), np.repeat([1, -1], 60)

    def answers():
        found = [clone(model).adapt(Xs, ys, Xt)]
        found += [clone(model).fit(X, y, sample_domain=marks)]
        names = ("predict", "predict_proba", "decision_function", "transform")
        values = [getattr(m, name)(Xt) for m in found for name in names if hasattr(m, name)]
        if hasattr(model, "transform"):
            values.append(clone(model).fit_transform(X, y, sample_domain=marks))
        return values

    with np.errstate(all="raise"):
        raised = answers()
        assert np.geterr()["under"] == "raise"
    for one, other in zip(raised, answers(), strict=True):
        np.testing.assert_array_equal(one, other)
