"""TableRegressor: tables in, numbers out, with what is known of each."""

import numpy as np
import pandas as pd
import pytest

import transferable
from transferable.regressors import ImportanceWeightedRegressor
from transferable.tables import TableError, TableRegressor
from transferable.transformers import CORAL, JDA


def flats(seed=0, n=90, shift=0.0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "id": np.arange(n),
            "size": 60 + 20 * rng.normal(size=n) + shift,
            "side": rng.choice(["sun", "yard"], n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 80, n)),
        }
    )
    return table, 3.0 * table["size"] + 40 * (table["side"] == "sun") + 5 * rng.normal(size=n)


@pytest.fixture(scope="module")
def problem():
    return *flats(), *flats(1, shift=15.0)


@pytest.fixture(scope="module")
def model(problem):
    source, ys, target, _ = problem
    return TableRegressor(ids=["id"]).adapt(source.assign(price=ys), "price", target)


def test_labels_hold_ids_and_what_is_known_of_each_number(model, problem):
    target, yt = problem[2:]
    assert list(model.labels_) == ["id", "prediction", "spread", "source_only", "unfamiliar"]
    assert model.score(target, yt) > 0.8
    np.testing.assert_allclose(model.label(target).prediction, model.predict(target))
    np.testing.assert_allclose(model.spread(target), model.labels_.spread)
    assert [name for name, _ in model.trust_.columns] == ["size"]
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "classes_")


def test_an_audit_corrects_the_table_too(model, problem, tmp_path):
    target, yt = problem[2:]
    rows, _ = model.audit_rows()
    assert len(rows) == 20
    found = model.audit(rows, yt[rows] + 100)
    corrected = found.model
    assert list(corrected.labels_)[-2:] == ["low", "high"]
    assert np.abs(corrected.predict(target) - yt - 100).mean() < 20
    ends = corrected.predict_interval(target)
    np.testing.assert_allclose(corrected.labels_[["low", "high"]], ends)
    transferable.save(corrected, tmp_path / "m.tfm")
    again = transferable.load(tmp_path / "m.tfm")
    np.testing.assert_array_equal(again.label(target).prediction, corrected.predict(target))
    with pytest.raises(ValueError, match="cannot be clicked"):
        model.audit_page(tmp_path / "page.html", target)


def test_one_table_with_missing_numbers(problem):
    source, ys, target, _ = problem
    both = pd.concat([source.assign(price=ys), target.assign(price=np.nan)], ignore_index=True)
    stacked = TableRegressor(ids=["id"]).fit(both, "price")
    apart = TableRegressor(ids=["id"]).adapt(source, ys, target)
    np.testing.assert_allclose(stacked.transduction_, apart.transduction_)


def test_other_estimators(problem):
    source, ys, target, yt = problem
    for estimator in (ImportanceWeightedRegressor(), CORAL()):
        assert TableRegressor(estimator).adapt(source, ys, target).score(target, yt) > 0
    with pytest.raises(ValueError, match="JDA needs classes, and labels are numbers here"):
        TableRegressor(JDA()).adapt(source, ys, target)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            "1,200.50",
            "'1,200.50' is not a number; write numbers with a point, without separators",
        ),
        ("3 %", "'3 %' is not a number"),
        ("2020-01-01", "'2020-01-01' is not a number"),
        (np.nan, "1 of the 90 source rows have no value"),
        (np.inf, "infinity"),
    ],
)
def test_labels_that_are_no_numbers_are_named(problem, value, said):
    source, ys, target, _ = problem
    labels = ys.astype(object)
    labels[3] = value
    with pytest.raises(TableError, match=said):
        TableRegressor().adapt(source.assign(price=labels), "price", target)


def test_notes_on_a_label_in_other_units_and_on_few_values(problem):
    source, ys, target, yt = problem
    source, target = source.assign(euro=1.1 * ys + 3), target.assign(euro=1.1 * yt + 3)
    notes = TableRegressor().adapt(source, ys, target).notes_
    assert any("'euro' is the label in another unit" in text for text in notes)
    notes = TableRegressor().adapt(source.drop(columns="euro"), (ys > ys.mean()) * 1, target).notes_
    assert any("has 2 different values only; are these classes?" in text for text in notes)
