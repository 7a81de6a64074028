"""AutoAdapter on rows of words: how they are told, and what their pool does."""

import numpy as np
import pytest
import scipy.sparse as sp

import transferable
from transferable import AutoAdapter
from transferable.classifiers._consensus import by_neighbours, prior_weights
from transferable.classifiers.auto_adapter import KINDS

WORDS = 900


def texts(n, own, seed):
    """Counts of words: five of a class, ten of a domain, the rest of any."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    rows = np.zeros((n, WORDS))
    for row, label in zip(rows, y, strict=True):
        row[rng.choice(40, 3, replace=False) + 40 * label] += 1
        row[rng.choice(WORDS - 280, 30, replace=False) + 280] += 1
        row[rng.choice(100, 8, replace=False) + (80 if own else 180)] += 1
    rows[:, -1] += 1
    return sp.csr_array(rows), y


XS, YS = texts(90, True, 0)
XT, YT = texts(80, False, 1)


@pytest.fixture(scope="module")
def model():
    return AutoAdapter().adapt(XS, YS, XT)


def test_words_are_recognised_or_told_and_seen_in_the_candidates(model):
    names = model.candidates_.name.tolist()
    assert names[:2] == ["logistic regression of words", "self-training on denoised words"]
    assert model.candidates_.error.isna().all()
    told = AutoAdapter(kind="words", effort="fast").adapt(XS.toarray(), YS, XT.toarray())
    assert told.candidates_.name.tolist()[:2] == names[:2]
    for X in (XS > 0, -XS, XS[:, :400]):  # flags, negative, narrow
        other = AutoAdapter(effort="fast").adapt(sp.csr_array(X, dtype=float), YS, X[:80] * 1.0)
        assert "random forest" in other.candidates_.name.tolist()
    plain = AutoAdapter(kind="numbers", effort="fast").adapt(XS, YS, XT)
    assert "random forest" in plain.candidates_.name.tolist()


def test_self_training_has_most_of_the_prior_weight(model):
    views = [member.view for member in model.consensus_.members]
    kind = KINDS["words"]
    weights = prior_weights(views, kind.caution, kind.shares)
    np.testing.assert_allclose(weights, [0.1, 0.6, 0.1, 0.2])
    np.testing.assert_allclose(prior_weights(views[:1], 0.1, kind.shares), [1.0])
    cautious = AutoAdapter(caution=1.0, effort="fast").adapt(XS, YS, XT)
    assert cautious.candidates_.weight.tolist() == [1, 0, 0, 0]


def test_labels_of_new_rows_and_of_a_model_file(model, tmp_path):
    assert np.mean(model.predict(XT) == YT) > 0.8
    transferable.save(model, tmp_path / "m.tfm")
    again = transferable.load(tmp_path / "m.tfm")
    new, _ = texts(30, False, 2)
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))


def test_given_shares_are_met_and_weights_and_several_sources_are_taken():
    wanted = AutoAdapter(class_shares={0: 0.25, 1: 0.75}).adapt(XS, YS, XT)
    assert np.mean(wanted.predict(XT)) == pytest.approx(0.75, abs=1.5 / 80)
    weights = np.r_[np.zeros(20), np.full(70, 2.0)]
    weighted = AutoAdapter().adapt(XS, YS, XT, sample_weight=weights)
    assert weighted.candidates_.error.isna().all()
    several = AutoAdapter().adapt([XS[:50], XS[50:]], [YS[:50], YS[50:]], XT)
    assert several.candidates_.error.isna().all()


def test_neighbours_count_as_far_as_their_labels_agree():
    own = np.eye(2)[[0, 0, 0, 1, 1, 1]]
    alike = np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1], [3, 4, 5], [4, 3, 5], [5, 3, 4]])
    assert by_neighbours(own, alike) == pytest.approx(0.6)
    assert by_neighbours(own, (alike + np.array([0, 3, 3])) % 6) == 0
    assert by_neighbours(own, alike[:, :1]) == 0
