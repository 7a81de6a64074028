"""Tables as people have them: what becomes of their columns, and what is refused."""

import datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from transferable.classifiers import TFDF, TFDFV, AdaptedClassifier, AutoAdapter
from transferable.tables import TableClassifier, TableError
from transferable.transformers import CORAL

pytestmark = pytest.mark.filterwarnings("ignore:.*reduced to:UserWarning")


def domain(n, seed, *, shift=0.0, unit=1.0):
    """Rows of two classes with two numbers, a boolean and a colour."""
    rng = np.random.default_rng(seed)
    label = np.where(np.arange(n) % 2, "good", "bad")
    good = label == "good"
    return pd.DataFrame(
        {
            "height": unit * (rng.normal(size=n) + 3 * good + shift),
            "width": unit * (rng.normal(size=n) - 3 * good + shift),
            "moist": (rng.random(n) < 0.5) ^ good,
            "colour": np.where(good, "red", "blue"),
            "label": label,
        }
    )


@pytest.fixture
def source():
    return domain(40, 0)


@pytest.fixture
def target():
    return domain(30, 1, shift=2.0, unit=10.0)


def ones(table):
    return np.ones(len(table))


def unlabelled(table):
    return table.drop(columns="label")


def fitted(source, target, label="label", **options):
    return TableClassifier(TFDFV(), **options).adapt(source, label, target)


@pytest.mark.parametrize("estimator", [None, TFDFV(), CORAL(), AdaptedClassifier()], ids=str)
@pytest.mark.parametrize("scale", ["per-domain", "joint", "none", "unit"])
def test_labels_the_target(source, target, estimator, scale):
    model = TableClassifier(estimator, scale=scale).adapt(source, "label", unlabelled(target))
    assert set(model.predict(target)) <= {"good", "bad"}
    np.testing.assert_allclose(model.predict_proba(target).sum(axis=1), 1.0)
    if scale == "per-domain":
        assert np.mean(model.predict(target) == target["label"]) > 0.9


def test_many_rows_get_one_model_unless_a_pool_is_named(source, target, monkeypatch):
    few = TableClassifier().adapt(source, "label", unlabelled(target))
    assert isinstance(few.estimator_, AutoAdapter)
    monkeypatch.setattr("transferable.tables.classifier._POOL_ROWS", len(source) + len(target) - 1)
    many = TableClassifier().adapt(source, "label", unlabelled(target))
    assert type(many.estimator_) is TFDF
    assert "the method is TFDF: AutoAdapter fits several models" in many.notes_[0]
    named = TableClassifier(AutoAdapter(effort="fast")).adapt(source, "label", unlabelled(target))
    assert isinstance(named.estimator_, AutoAdapter)
    assert not named.notes_


def pixels(n, seed, n_columns=20, widest=1.0):
    """Many columns in one unit, of which one may range wider than the others."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.random((n, n_columns)), columns=[f"p{i}" for i in range(n_columns)])
    return table.assign(p0=widest * table["p0"], corner=0.0)


@pytest.mark.parametrize(
    ("options", "more", "expected"),
    [
        ({}, {}, "none"),
        ({"widest": 9.0}, {}, "none"),
        ({"widest": 12.0}, {}, "per-domain"),
        ({"n_columns": 18}, {}, "per-domain"),
        ({}, {"colour": "red"}, "per-domain"),
    ],
    ids=["one unit", "nearly", "two units", "few columns", "text"],
)
def test_auto_scales_unless_columns_seem_of_one_unit(options, more, expected):
    source = pixels(40, 0, **options).assign(label=np.arange(40) % 2, **more)
    target = pixels(30, 1, **options).assign(**more)
    model = TableClassifier(CORAL()).adapt(source, "label", target)
    assert model.encoder_.scale_ == expected
    assert any("similar ranges" in note for note in model.notes_) == (expected == "none")
    np.testing.assert_array_equal(
        model.predict_proba(target),
        clone(model)
        .set_params(scale=expected)
        .adapt(source, "label", target)
        .predict_proba(target),
    )


def test_per_domain_scaling_forgets_units(source, target):
    model = fitted(source, unlabelled(target))
    Xs, Xt = model.encoder_.transform(source, ones(source)), model.encoder_.transform(target)
    for X in (Xs, Xt):
        np.testing.assert_allclose(X[:, :3].mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(X[:, :3].std(axis=0), 1)
    assert model.encoder_.get_feature_names_out().tolist() == [
        "height",
        "width",
        "moist",
        "colour=blue",
        "colour=red",
    ]
    assert set(np.unique(Xt[:, 3:])) == {0.0, 1.0}


def test_other_scalings(source, target):
    joint = fitted(source, target, scale="joint")
    X = np.vstack(
        [joint.encoder_.transform(source, ones(source)), joint.encoder_.transform(target)]
    )
    np.testing.assert_allclose(X[:, :3].mean(axis=0), 0, atol=1e-12)
    none = fitted(source, target, scale="none").encoder_.transform(target)
    np.testing.assert_array_equal(none[:, 0], target["height"])
    unit = fitted(source, target, scale="unit").encoder_.transform(target)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1.0)


def test_column_order_and_further_columns_do_not_matter(source, target):
    expected = fitted(source, target).predict_proba(target)
    turned = target[target.columns[::-1]].assign(weather="mild")
    model = fitted(source, unlabelled(turned))
    np.testing.assert_allclose(model.predict_proba(turned), expected)
    assert model.notes_ == ["only the target has column 'weather'; left out."]
    model = fitted(source.assign(old=1.0, older=2.0), unlabelled(target))
    assert model.notes_ == ["only the source has columns 'old', 'older'; left out."]


def test_labels_of_the_target_are_never_read(source, target):
    expected = fitted(source, unlabelled(target)).predict_proba(target)
    lying = target.assign(label=target["label"].to_numpy()[::-1])
    np.testing.assert_array_equal(fitted(source, lying).predict_proba(target), expected)


def test_missing_numbers_get_the_median_of_their_domain(source, target):
    source.loc[3, "height"] = np.nan
    target.loc[5, "height"] = np.nan
    model = fitted(source, target, scale="per-domain")
    for table, row, own in ((source, 3, True), (target, 5, False)):
        X = model.encoder_.transform(table, ones(table) if own else None)
        filled = table["height"].fillna(table["height"].median())
        np.testing.assert_allclose(X[:, 0], (filled - filled.mean()) / filled.std(ddof=0))
        assert np.isfinite(X[row]).all()


def test_missing_booleans_and_categories(source, target):
    for table in (source, target):
        table["moist"] = table["moist"].astype(object)
        table.loc[2, "moist"] = None
        table.loc[4, "colour"] = np.nan
    model = fitted(source, target)
    assert "moist" in model.encoder_.numeric_
    assert "colour=(missing)" in model.encoder_.get_feature_names_out()
    assert np.isfinite(model.encoder_.transform(target)).all()


def test_categories_of_one_domain_are_none_of_the_others(source, target):
    source.loc[0, "colour"] = "teal"
    target.loc[1, "colour"] = "mauve"
    model = fitted(source, target)
    assert model.encoder_.get_feature_names_out()[3:].tolist() == ["colour=blue", "colour=red"]
    np.testing.assert_array_equal(model.encoder_.transform(target)[1, 3:], [0, 0])
    assert any("'teal'" in note and "source only" in note for note in model.notes_)
    assert any("'mauve'" in note and "target only" in note for note in model.notes_)
    never_seen = target.assign(colour="ochre")
    np.testing.assert_array_equal(model.encoder_.transform(never_seen)[:, 3:], 0)


def test_empty_and_counting_columns_are_left_out(source, target):
    source["row"], target["row"] = np.arange(len(source)), np.arange(len(target))
    source["gone"] = np.nan
    target["gone"] = 1.0
    model = fitted(source, target)
    assert model.encoder_.numeric_ == ["height", "width", "moist"]
    assert any("'gone'" in note for note in model.notes_)
    assert any("'row'" in note for note in model.notes_)
    assert "row" in fitted(source, target, features=["row", "height"]).encoder_.numeric_


def test_ids_drop_and_features(source, target):
    source["who"], target["who"] = (
        [f"{kind}{i}" for i in range(len(t))] for kind, t in (("s", source), ("t", target))
    )
    model = fitted(source, target, ids=["who"], drop=["width"])
    assert model.encoder_.numeric_ + list(model.encoder_.categories_) == [
        "height",
        "moist",
        "colour",
    ]
    model = fitted(source, target, features=["width"])
    assert model.encoder_.numeric_ + list(model.encoder_.categories_) == ["width"]
    with pytest.raises(
        TableError, match=r"'who' holds 70 different names or codes.*ids=\['who'\].*drop=\['who'\]"
    ):
        fitted(source, target)


@pytest.mark.parametrize("kind", [int, float, bool, str])
def test_labels_keep_their_type(source, target, kind):
    codes = (source["label"] == "good").astype(kind)
    model = fitted(source.assign(label=codes), target)
    assert model.classes_.tolist() == sorted(set(codes.tolist()))
    assert type(model.classes_.tolist()[0]) is kind


@pytest.mark.parametrize(
    "dates",
    [
        ["2024-01-31"],
        ["2024-01-31T12:30:00Z", "2023-05-06 07:08"],
        ["31.12.2024", "1.2.24"],
        ["12/31/2024"],
        pd.to_datetime(["2024-01-31"]),
        [datetime.date(2024, 1, 31)],
        pd.to_timedelta(["3 days"]),
    ],
    ids=str,
)
def test_dates_are_refused(source, target, dates):
    source["seen"] = [dates[i % len(dates)] for i in range(len(source))]
    target["seen"] = [dates[i % len(dates)] for i in range(len(target))]
    with pytest.raises(TableError, match=r"'seen' holds dates.*drop=\['seen'\]"):
        fitted(source, target)
    fitted(source, target, drop=["seen"])


def changed(**columns):
    return lambda table: table.assign(**columns)


@pytest.mark.parametrize(
    ("of_source", "of_target", "told"),
    [
        (changed(height="tall"), changed(), "'height' holds text in the source, but numbers"),
        (changed(height=np.inf), changed(), "'height' holds infinite"),
        (changed(label="good"), changed(), "all have the label 'good'"),
        (changed(label=None), changed(), "40 of the 40 source rows have no value"),
        (unlabelled, changed(), "source has no column 'label'; it has 'height'"),
        (changed(), lambda t: t[["label"]], "no feature in common"),
        (lambda t: t.head(1), changed(), "all have the label"),
        (changed(height=[[1]] * 40), changed(), "values of type list"),
    ],
)
def test_tables_that_cannot_be_used(source, target, of_source, of_target, told):
    with pytest.raises(TableError, match=told):
        fitted(of_source(source), of_target(target))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"label": "price"}, "no column 'price'"),
        ({"ids": ["label"]}, "'label' cannot be the label and also id"),
        ({"features": ["label"]}, "also feature"),
        ({"features": ["height", "depth"]}, "no column 'depth'"),
        ({"scale": "huge"}, "'huge' is unknown"),
        ({"drop": ["height", "width", "moist", "colour"]}, "no feature in common"),
    ],
)
def test_options_that_cannot_be_met(source, target, options, told):
    with pytest.raises(TableError, match=told):
        fitted(source, target, **options)


def test_all_columns_empty(source, target):
    with pytest.raises(TableError, match="no column is left"):
        fitted(source[["height", "label"]].assign(height=np.nan), target)


def test_estimators_of_others_are_refused(source, target):
    with pytest.raises(TypeError, match="LogisticRegression"):
        TableClassifier(LogisticRegression()).adapt(source, "label", target)


def test_prediction_checks_its_columns(source, target):
    model = fitted(source, target)
    with pytest.raises(TableError, match="no column 'width'"):
        model.predict(target.drop(columns="width"))
    with pytest.raises(TableError, match="'width' must hold numbers, but it holds 'wide'"):
        model.predict(target.assign(width=["1", "wide"] * 15))
    assert len(model.predict(target.head(1))) == 1
    assert len(model.predict(target.assign(width=np.nan))) == len(target)


def test_a_single_shared_column_of_many_is_warned_of(source, target):
    with pytest.warns(UserWarning, match="'height' is the only column to learn from, of 4") as told:
        model = fitted(source, target[["height"]].assign(other=1.0))
    assert str(told[0].message) in model.notes_
    alone = fitted(source[["height", "label"]], target[["height"]])
    assert not any("only column" in text for text in alone.notes_)
    with pytest.raises(TableError, match=r"no feature in common: 'height', 'width' and 'other'"):
        fitted(source[["height", "width", "label"]], target[["label"]].assign(other=1.0))
    with pytest.raises(TableError, match=r"no column in common: 'height' and 'width'"):
        TableClassifier().adapt([source[["height"]], source[["width"]]], "label", target)


@pytest.mark.parametrize("kind", ["text", "numbers"])
def test_known_target_labels_are_used(source, target, kind):
    source, target = source.copy(), target.copy()
    if kind == "numbers":
        for table in (source, target):
            table["label"] = (table["label"] == "good").astype(int)
    wrong = target["label"].iloc[::-1].to_numpy()  # as many rows of each class
    yt = np.where(np.arange(len(wrong)) < 5, wrong.astype(object), -1)
    model = TableClassifier(TFDFV()).adapt(source, "label", unlabelled(target), yt=yt)
    assert model.transduction_[40:45].tolist() == wrong[:5].tolist()
    assert model.estimator.target_labels == "ignore"
    marked = TableClassifier(TFDFV(target_labels="use"))
    for unknown in (None, np.nan):
        given = pd.Series(wrong).astype(object).where(np.arange(len(wrong)) < 5, unknown)
        again = clone(marked).adapt(source, "label", unlabelled(target), yt=given)
        np.testing.assert_array_equal(again.transduction_, model.transduction_)


def test_target_labels_that_cannot_be_used_are_refused(source, target):
    yt = target["label"].to_numpy()
    with pytest.raises(ValueError, match=r"takes no target labels; .*TFDF.* Or leave yt out"):
        TableClassifier(CORAL()).adapt(source, "label", unlabelled(target), yt=yt)
    with pytest.raises(ValueError, match="labelled 'odd', of which the source has no row"):
        TableClassifier(TFDF()).adapt(source, "label", unlabelled(target), yt=["odd", *yt[1:]])
    with pytest.raises(ValueError, match=r"yt has shape \(29,\), but Xt has 30 rows"):
        TableClassifier(TFDF()).adapt(source, "label", unlabelled(target), yt=yt[1:])


def test_a_mapping_of_sources_is_refused(source, target):
    with pytest.raises(TypeError, match=r"as a list: adapt\(\[\*Xs.values\(\)\]"):
        TableClassifier().adapt({"one": source}, "kind", target)


def test_arguments_in_another_order_are_recognised(source, target):
    rows = unlabelled(source)
    with pytest.raises(ValueError, match="seem to be Xs, Xt, ys"):
        TableClassifier().adapt(source, target, "label")
    with pytest.raises(ValueError, match="seem to be ys, Xs, Xt"):
        TableClassifier().adapt(source["label"], rows, target)


@pytest.mark.filterwarnings("ignore::transferable.exceptions.NoTargetWarning")
def test_fit_takes_both_domains_in_one_table(source, target):
    expected = fitted(source, target).predict_proba(target)
    both = pd.concat([unlabelled(source), unlabelled(target)], ignore_index=True)
    marks = np.repeat([1, -1], [len(source), len(target)])
    labels = pd.concat([source["label"], target["label"]])
    model = TableClassifier(TFDFV()).fit(both, labels, sample_domain=marks)
    np.testing.assert_allclose(model.predict_proba(target), expected)
    alone = TableClassifier(TFDFV()).fit(unlabelled(source), source["label"])
    assert alone.transduction_.tolist() == alone.predict(source).tolist()


def test_is_an_estimator(source, target):
    model = TableClassifier(TFDFV(), scale="joint", ids=["who"])
    assert clone(model).get_params()["scale"] == "joint"
    assert "TableClassifier" in model._repr_html_()


def test_a_single_column_is_never_to_be_used_unseen():
    """Whatever it is encoded as: a column of text becomes several indicators."""
    kinds = np.repeat(["ant", "bee", "cat"], 60)
    source = pd.DataFrame({"word": kinds, "extra": 1.0, "kind": kinds})
    target = pd.DataFrame({"word": kinds})
    with pytest.warns(UserWarning, match="'word' is the only column to learn from"):
        model = TableClassifier(AutoAdapter()).adapt(source, "kind", target)
    assert model.feature_names_in_.tolist() == ["word"]
    assert len(model.encoder_.get_feature_names_out()) == 3
    assert model.trust_.low > 0.75
    assert model.trust_.state == "check"


def test_a_page_to_audit_shows_the_target_of_the_fit(source, target, tmp_path):
    model = TableClassifier(estimator=AutoAdapter(effort="fast")).adapt(source, "label", target)
    path = tmp_path / "label.html"
    chosen = model.audit_page(path, target, n_rows=12)
    assert chosen.rows.tolist() == model.audit_rows(12).rows.tolist()
    for text in (f'"{chosen.rows[0] + 1},', *target.columns):
        assert text in path.read_text("utf-8")
    with pytest.raises(ValueError, match="pass that"):
        model.audit_page(path, target[:5])
