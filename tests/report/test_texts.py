"""The report on columns of sentences."""

import re

import numpy as np
import pandas as pd
import pytest

from report.examples import Page
from transferable import TFDFV, AutoAdapter
from transferable.report.data import Texts, describe
from transferable.report.sections import write_report
from transferable.tables import TableClassifier

ODD = "<b>bold</b> שלום 😀 " + "very " * 80 + "the end"


def reviews(words, n, seed):
    rng = np.random.default_rng(seed)
    label = np.array(["bad", "good"])[np.arange(n) % 2]
    kinds = {"bad": ["awful", "broken", "poor"], "good": ["great", "fine", "lovely"]}
    texts = [" ".join([*rng.choice(words, 4), *rng.choice(kinds[one], 2)]) for one in label]
    return pd.DataFrame({"review": texts, "size": rng.normal(size=n), "label": label})


@pytest.fixture(scope="module")
def pair():
    source = reviews(["it", "was", "book", "page", "plot"], 60, 0)
    target = reviews(["it", "was", "knife", "pan", "steel"], 50, 1)
    target.loc[7, "review"] = ODD
    target.loc[8, "review"] = None
    return source, target.drop(columns="label")


@pytest.mark.parametrize("estimator", [AutoAdapter(effort="fast"), TFDFV()])
def test_texts_and_words_are_on_the_page(pair, estimator, tmp_path):
    source, target = pair
    model = TableClassifier(estimator).adapt(source, "label", target)
    write_report(tmp_path / "r.html", model, source, "label", target)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "of 14 words stand in texts of both domains" in Page(page).text.replace("\n", " ")
    assert re.search(r"book \(\d+\)", page)
    assert re.search(r"knife \(\d+\)", page)
    assert "words for it" in page
    assert "<b>bold" not in page
    if ODD[:10].replace("<", "&lt;").replace(">", "&gt;") in page:
        assert "שלום 😀" in page
        assert re.search(r'<details dir="auto"><summary>…</summary>[^<]*the end</details>', page)
    assert "review=" not in page
    assert "review (14 words)" in page


def test_words_that_speak_for_a_class_and_against_it(pair):
    source, target = pair
    model = TableClassifier(AutoAdapter(effort="fast")).adapt(source, "label", target)
    data = describe(model, source, "label", target)
    row = 11
    code = int(np.flatnonzero(model.classes_ == "good")[0])
    words = target["review"][row].split()
    first, last = (
        set(filter(None, s.split(", "))) for s in data.texts.spoken(data.pool, row, code)
    )
    assert first
    assert first & {"great", "fine", "lovely"}
    assert not last & {"great", "fine", "lovely"}
    assert first | last <= set(words)
    turned = data.texts.spoken(data.pool, row, 1 - code)
    assert set(turned[1].split(", ")) == first
    assert data.texts.spoken(data.pool, 8, code) == ("", "")
    assert isinstance(data.texts, Texts)
