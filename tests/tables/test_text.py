"""Columns of sentences: which are recognised, what becomes of them, and what is refused."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import transferable
from transferable import AutoAdapter
from transferable.classifiers import AdaptedClassifier
from transferable.cli import app
from transferable.tables import TableClassifier, TableEncoder, TableError
from transferable.tables.text import Words
from transferable.transformers import CORAL

RNG = np.random.default_rng(0)
GOOD, BAD = ("great fine lovely", "awful broken poor")
SHARED = "the it was with very and this one"


def reviews(n, about, seed=0):
    """Short reviews of things, half of them good."""
    rng = np.random.default_rng(seed)
    labels = np.array(["bad", "good"])[np.arange(n) % 2]
    kinds = {"bad": BAD, "good": GOOD}
    words = [
        np.concatenate([rng.choice(w.split(), k) for w, k in ((SHARED, 4), (about, 2), (said, 2))])
        for said in map(kinds.get, labels)
    ]
    texts = [" ".join(rng.permutation(some)).capitalize() + "." for some in words]
    return pd.DataFrame({"review": texts, "label": labels})


BOOKS = reviews(70, "page plot author reader", 1)
TOOLS = reviews(60, "knife pan handle steel", 2)


def encoded(source, target, **options):
    encoder = TableEncoder(**options).adapt(source, None, target)
    return encoder, encoder.transform(source), encoder.transform(target)


def test_sentences_become_sparse_rows_of_unit_length():
    encoder, Xs, Xt = encoded(BOOKS[["review"]], TOOLS[["review"]])
    assert sp.issparse(Xs)
    np.testing.assert_allclose(sp.linalg.norm(Xs, axis=1), 1)
    terms = encoder.words_["review"].terms
    assert {"great", "plot", "knife"} <= set(terms)
    assert encoder.get_feature_names_out().tolist() == [f"review={term}" for term in terms]
    assert any("'review' is read as words" in note for note in encoder.notes_)
    both = pd.concat([BOOKS, TOOLS])["review"]
    one = Words.of(both).rows(TOOLS["review"])
    np.testing.assert_allclose(Xt.toarray(), one.toarray())


def test_words_stand_beside_numbers_categories_and_other_words():
    source, target = (
        t[["review"]].assign(
            size=np.arange(len(t)) + 0.5, colour=["red", "blue"] * (len(t) // 2), title=t["review"]
        )
        for t in (BOOKS, TOOLS)
    )
    encoder, X, _ = encoded(source, target, scale="joint")
    assert (encoder.numeric_, [*encoder.categories_]) == (["size"], ["colour"])
    assert [*encoder.words_] == ["review", "title"]
    first, second = X[:, 3 : 3 + len(encoder.words_["review"].terms)].toarray(), X.toarray()
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1)
    np.testing.assert_allclose((second[:, :3] ** 2).sum(axis=1).mean(), 1, atol=0.2)


def test_few_texts_and_names_are_no_sentences_unless_they_are_told():
    names, others = (pd.DataFrame({"name": [f"anna {k}{i}" for i in range(40)]}) for k in "bc")
    with pytest.raises(TableError, match="80 different names or codes") as caught:
        TableEncoder().adapt(names, None, others)
    assert "anna" not in str(caught.value)
    with pytest.raises(TableError, match="no column 'review'"):
        TableEncoder(text=["review"]).adapt(names, None, others)
    answers = pd.DataFrame({"said": ["yes to all of it", "no to all of it"] * 20})
    assert [*encoded(answers, answers)[0].categories_] == ["said"]
    assert encoded(answers, answers, text=["said"])[0].words_["said"].terms[0] == "all"
    assert [*encoded(names, others, text=["name"])[0].words_] == ["name"]


def test_missing_and_unknown_texts_are_empty_rows():
    source = pd.concat([BOOKS, pd.DataFrame({"review": [None, ""]})])[["review"]]
    encoder, X, _ = encoded(source, TOOLS[["review"]])
    assert X[-2:].nnz == 0
    assert encoder.transform(pd.DataFrame({"review": ["Zzz!", None]})).nnz == 0


@pytest.mark.parametrize(
    "text",
    [
        "<b>very</b> good &amp; <script>alert(1)</script>",
        "\0 very \0 good \x07",
        "a" * 100_000 + " very good",
        "😀 עברית טובה very good",
        "12 34 very 5,6 good",
    ],
    ids=["markup", "control", "long", "scripts", "numbers"],
)
def test_any_text_is_read(text, tmp_path):
    source = pd.concat([BOOKS, pd.DataFrame({"review": [text] * 2, "label": "good"})])
    model = TableClassifier(AutoAdapter(effort="fast")).adapt(source, "label", TOOLS[["review"]])
    assert max(map(len, model.encoder_.words_["review"].terms)) <= 64
    transferable.save(model, tmp_path / "m.tfm")
    again = transferable.load(tmp_path / "m.tfm")
    some = pd.DataFrame({"review": [text, "great"]})
    np.testing.assert_array_equal(again.predict_proba(some), model.predict_proba(some))
    assert again.encoder_.words_["review"].terms == model.encoder_.words_["review"].terms


def test_texts_that_share_no_word_are_refused():
    alone, other = ([f"{k}{i}a {k}{i}b {k}{i}c {k}{i}d" for i in range(60)] for k in "vw")
    with pytest.raises(TableError, match="holds no word that two texts have in common"):
        TableEncoder().adapt(alone, None, other)


def test_texts_all_alike_give_a_model_that_says_one_class():
    alike = pd.DataFrame({"review": ["it was very good"] * 40})
    model = TableClassifier(AdaptedClassifier(), text=["review"])
    model.adapt(alike, ["bad", "good", "good", "good"] * 10, alike)
    assert len(set(model.predict(alike))) == 1


def test_a_column_that_is_text_in_one_table_and_numbers_in_the_other():
    numbers = pd.DataFrame({"review": np.arange(60.0)})
    with pytest.raises(TableError, match="'review' holds text in the source, but numbers"):
        TableClassifier().adapt(BOOKS, "label", numbers)
    told = TableEncoder(text=["review"]).adapt(BOOKS[["review"]], None, numbers.assign(review=10))
    assert "10" in told.words_["review"].terms


@pytest.mark.parametrize("kind", [pd.Series, list, np.array])
def test_a_list_of_texts_is_a_table_and_arrays_say_where_texts_go(kind):
    Xs, Xt = kind(BOOKS["review"].tolist()), kind(TOOLS["review"].tolist())
    model = TableClassifier(AutoAdapter(effort="fast")).adapt(Xs, BOOKS["label"], Xt)
    assert np.mean(model.predict(Xt) == TOOLS["label"]) > 0.9
    for estimator in (AutoAdapter(), transferable.TFDF()):
        with pytest.raises(ValueError, match=r"Texts go into transferable\.tables"):
            estimator.adapt(Xs, BOOKS["label"], Xt)
        with pytest.raises(ValueError, match=r"Texts go into transferable\.tables"):
            estimator.fit(Xs, BOOKS["label"])


def hashed(texts):
    """An embedder: which letters a text begins and ends with."""
    ends = np.array([[ord(text[:1] or " "), ord(text[-1:] or " ")] for text in texts])
    return (ends[:, :, None] % 8 == np.arange(8)).reshape(len(texts), 16) + 0.0


def test_an_embedder_stands_beside_the_words():
    batches = []

    def embedder(texts):
        batches.append(texts)
        return 5 * hashed(texts)

    long = BOOKS[["review"]].assign(review=BOOKS["review"] + " and so on" * 2000)
    encoder, _, Xt = encoded(long, TOOLS[["review"]], embedder=embedder)
    n = len(encoder.words_["review"].terms)
    np.testing.assert_allclose(Xt[:, n:].toarray(), hashed(TOOLS["review"]) / np.sqrt(2))
    assert encoder.get_feature_names_out()[n] == "embedded review=1"
    assert max(map(len, batches)) == 64
    assert max(len(text) for texts in batches for text in texts) == 3000
    assert any("measured to harm above 25" in note for note in encoder.notes_)
    model = TableClassifier(AutoAdapter(effort="fast"), embedder=embedder)
    model.adapt(BOOKS, "label", TOOLS[["review"]])
    assert not any("measured to harm" in note for note in model.notes_)
    model.encoder_.embedder = lambda texts: hashed(texts)[:, ::-1]
    with pytest.raises(TableError, match="another than that of the fit"):
        model.predict(TOOLS)


def test_languages_without_spaces_need_an_embedder():
    source, target = ([f"这本书{chr(k + i)}好看" for i in range(40)] for k in (0x4E00, 0x5E00))
    with pytest.raises(TableError, match="no word that two texts have in common"):
        TableEncoder(text=["text"]).adapt(source, None, target[1:])
    encoder = TableEncoder(text=["text"], embedder=hashed).adapt(source, None, target[1:])
    assert encoder.transform(target).shape == (40, 16)


@pytest.mark.parametrize(
    ("embedder", "message"),
    [
        (lambda texts: np.ones((1, 4)), "a row for each text"),
        (lambda texts: np.ones(len(texts)), "a row for each text"),
        (lambda texts: np.full((len(texts), 3), np.nan), "not finite"),
        ("word2vec", "by the package wordllama"),
        ("wordllama", "pip install wordllama"),
    ],
)
def test_what_is_no_embedder_is_refused(embedder, message, monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(TableError, match=message):
        encoded(BOOKS[["review"]], TOOLS[["review"]], embedder=embedder)
    with pytest.raises(TableError, match="for columns of sentences"):
        encoded(BOOKS[["label"]], BOOKS[["label"]], embedder=hashed)


def test_the_package_by_name_is_in_the_model_file(monkeypatch, tmp_path):
    def load(*, cache_dir, disable_download):
        assert (cache_dir, disable_download) == (tmp_path, True), "its own files, and no others"
        return SimpleNamespace(embed=hashed)

    package = {"WordLlama": SimpleNamespace(load=load), "__file__": str(tmp_path / "__init__.py")}
    monkeypatch.setitem(sys.modules, "wordllama", SimpleNamespace(**package))
    model = TableClassifier(AutoAdapter(effort="fast"), embedder="wordllama")
    model.adapt(BOOKS, "label", TOOLS[["review"]])
    transferable.save(model, tmp_path / "m.tfm")
    again = transferable.load(tmp_path / "m.tfm")
    np.testing.assert_array_equal(again.predict_proba(BOOKS), model.predict_proba(BOOKS))
    model.embedder = model.encoder_.embedder = hashed
    with pytest.raises(TypeError, match="embedder is hashed, which cannot be saved"):
        transferable.save(model, tmp_path / "m.tfm")


def test_methods_of_dense_rows_say_which_take_words(tmp_path):
    with pytest.raises(TableError, match=r"CORAL takes no sparse rows.*drop=\['review'\]"):
        TableClassifier(CORAL()).adapt(BOOKS, "label", TOOLS[["review"]])
    TableClassifier(CORAL(), drop=["review"]).adapt(
        BOOKS.assign(size=range(70)), "label", TOOLS.assign(size=np.arange(60) * 3)
    )


def test_commands_read_texts(tmp_path):
    def invoke(*arguments):
        return CliRunner().invoke(app, arguments)

    BOOKS.to_csv(tmp_path / "books.csv", index=False)
    TOOLS[["review"]].assign(code=np.arange(60) % 7 + 2).to_csv(tmp_path / "tools.csv", index=False)
    books, tools, model = (str(tmp_path / n) for n in ("books.csv", "tools.csv", "m.tfm"))
    given = ["adapt", books, tools, "--label", "label", "--text", "review", "--model", model]
    result = invoke(*given)
    assert result.exit_code == 0, result.stderr
    assert "is read as words" in result.stderr
    again = invoke("predict", model, tools)
    assert again.exit_code == 0, again.stderr
    labels = [line.split(",")[0] for line in result.stdout.splitlines()]
    assert labels == [line.split(",")[0] for line in again.stdout.splitlines()]
    assert "columns of words" in invoke("inspect", model).stdout
    for command in ("diagnose", "compare"):
        more = ["--methods", "coral,tfdf"] if command == "compare" else []
        result = invoke(command, books, tools, "--label", "label", *more)
        assert result.exit_code in (0, 1), result.stderr


def test_messages_quote_the_beginning_of_a_long_text():
    answers = [f"{k} " + "and so on " * 50 for k in range(4)]
    source, target = (
        pd.DataFrame({"said": some * 20, "size": 1.0}) for some in (answers, answers[:2])
    )
    encoder = TableEncoder().adapt(source, None, target)
    assert max(map(len, encoder.notes_)) < 400
    with pytest.raises(TableError, match="but it holds '0 and so") as caught:
        encoder.transform(target.assign(size=answers[0]))
    assert len(str(caught.value)) < 250
