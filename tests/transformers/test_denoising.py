"""Marginalized denoising: what it restores, from which words, and what does not matter."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_union
from sklearn.preprocessing import FunctionTransformer, normalize

import transferable
from transferable.classifiers import AdaptedClassifier
from transferable.limits import LIMITS
from transferable.transformers import MarginalizedDenoising


def drawn(rows, seed, words=30):
    """Flags of words, each more or less frequent."""
    rng = np.random.default_rng(seed)
    return (rng.random((rows, words)) < rng.random(words)).astype(float)


def test_the_closed_form_is_the_mean_over_many_deletions():
    Xs, Xt, noise = drawn(60, 0, 4), drawn(40, 1, 4), 0.4
    model = MarginalizedDenoising(noise=noise).adapt(Xs, None, Xt)
    rng = np.random.default_rng(2)
    whole = np.tile(normalize(np.vstack([Xs, Xt]))[:, model.words_], (4000, 1))
    kept = np.column_stack([whole * (rng.random(whole.shape) > noise), np.ones(len(whole))])
    W = np.linalg.lstsq(kept, whole, rcond=None)[0]
    np.testing.assert_allclose(model.coefficients_, W[:-1], atol=0.02)


def test_words_of_one_domain_are_left_out_and_the_length_of_rows_does_not_count():
    Xs, Xt = drawn(50, 0), drawn(40, 1)
    Xs[:, 3], Xt[:, 7] = 0, 0
    model = MarginalizedDenoising(n_words=20).adapt(Xs, None, Xt)
    assert len(model.words_) == 20
    assert not {3, 7} & set(model.words_.tolist())
    least = np.minimum(Xs.mean(axis=0), Xt.mean(axis=0))
    assert least[model.words_].min() >= np.delete(least, model.words_).max()
    longer = MarginalizedDenoising(n_words=20).adapt(5 * Xs, None, 0.2 * Xt)
    np.testing.assert_allclose(longer.transform(7 * Xt), model.transform(Xt), atol=1e-9)


def test_rows_have_unit_length_and_words_that_stand_together_mean_the_same():
    books, tools = np.repeat([[1, 1, 0], [0, 0, 1]], 20, axis=0), np.eye(3)[[0, 0, 1, 2, 2]]
    model = MarginalizedDenoising().adapt(books, None, tools)
    Z = model.transform(np.eye(3))
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1)
    assert Z[0] @ Z[1] > 0 > Z[0] @ Z[2]


def test_blocks_give_the_same(monkeypatch):
    Xs, Xt = (sp.csr_array(drawn(70, seed)) for seed in (0, 1))
    whole = MarginalizedDenoising().adapt(Xs, None, Xt)
    monkeypatch.setattr(LIMITS, "block_values", 100)
    parts = MarginalizedDenoising().adapt(Xs, None, Xt)
    np.testing.assert_array_equal(parts.words_, whole.words_)
    np.testing.assert_allclose(parts.transform(Xt), whole.transform(Xt), atol=1e-12)


def test_without_a_word_of_both_domains():
    with pytest.raises(ValueError, match="no column has positive values in each"):
        MarginalizedDenoising().adapt(np.eye(4)[:2], None, np.eye(4)[2:])


def test_beside_the_words_in_a_union_and_in_a_model_file(tmp_path):
    y = np.arange(80) % 2
    Xs, Xt = drawn(80, 0), drawn(60, 1)
    Xs[:, 4], Xt[:, 4] = y, y[:60]
    union = make_union(FunctionTransformer(), MarginalizedDenoising())
    model = AdaptedClassifier(union, LogisticRegression()).adapt(Xs, y, Xt)
    assert np.mean(model.predict(Xt) == y[:60]) > 0.9
    transferable.save(model, tmp_path / "m.tfm")
    again = transferable.load(tmp_path / "m.tfm")
    np.testing.assert_array_equal(again.predict_proba(Xt), model.predict_proba(Xt))
