"""Weights chosen inside the fit, and the way back by which they are judged."""

import numpy as np
import pytest
from sklearn.base import clone

from problems import small_problem
from transferable import TFDF, TFDFV
from transferable.classifiers import ARTL, MEDA, _exact
from transferable.classifiers._choice import CHOSEN
from transferable.classifiers._circle import way_back
from transferable.domains import Domains
from transferable.linalg.neighbors import cosine_neighbors
from transferable.linalg.reuse import reusing
from transferable.terms.laplacian import Laplacian

TASK = small_problem(n_source=40, n_target=30, n_features=6)
DOMAINS = Domains.from_stacked(
    np.vstack([TASK.Xs, TASK.Xt]), np.r_[TASK.ys, np.full(30, -1)], np.repeat([1, -1], [40, 30])
)


def adapted(estimator):
    return estimator.adapt(TASK.Xs, TASK.ys, TASK.Xt)


@pytest.mark.parametrize("names", [["alignment"], ["ridge"], ["alignment", "ridge"]])
@pytest.mark.parametrize("Method", [TFDF, TFDFV])
def test_is_the_model_with_what_was_chosen(Method, names):
    auto = adapted(Method(n_neighbors=3, **dict.fromkeys(names, "auto")))
    chosen = {name: getattr(auto, f"{name}_") for name in ("ridge", "alignment")}
    for name in names:
        assert chosen[name] in CHOSEN[name]
    plain = adapted(Method(n_neighbors=3, **chosen))
    np.testing.assert_array_equal(auto.transduction_, plain.transduction_)
    np.testing.assert_allclose(auto.predict_proba(TASK.Xt), plain.predict_proba(TASK.Xt))
    assert auto.get_params()[names[0]] == "auto"
    assert len(auto.history_) == auto.n_iter_


def test_target_labels_and_row_order_have_no_say():
    model = TFDFV(n_neighbors=3, ridge="auto", alignment="auto")
    plain = adapted(clone(model))
    order = np.random.default_rng(0).permutation(70)
    X = np.vstack([TASK.Xs, TASK.Xt])[order]
    y, marks = np.r_[TASK.ys, TASK.yt[::-1]][order], np.repeat([1, -1], [40, 30])[order]
    other = model.fit(X, y, sample_domain=marks)
    assert (other.ridge_, other.alignment_) == (plain.ridge_, plain.alignment_)
    np.testing.assert_array_equal(other.transduction_, plain.transduction_[order])


def test_without_target_rows_the_defaults_are_taken():
    model = TFDFV(n_neighbors=3, ridge="auto", alignment="auto").fit(TASK.Xs, TASK.ys)
    assert (model.ridge_, model.alignment_) == (0.1, 10.0)


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="'alignment' parameter of TFDFV"):
        adapted(TFDFV(alignment="best"))


def test_the_way_back_solves_the_reversed_problem_without_alignment():
    """Against a dense transcription: risk on the target's labels, ridge, graph, variance."""
    model = adapted(TFDFV(n_neighbors=3, manifold_dim=None, ridge=0.2, manifold=0.7))
    codes = np.arange(30) % 3
    rows = np.r_[np.arange(40, 70), np.arange(40)]
    Z = model._features.transform(DOMAINS.X[rows])
    K = model._kernel(Z, Z)
    A = np.diag(np.r_[np.ones(30), np.zeros(40)])
    H = np.eye(70) - np.full((70, 70), 1 / 70)
    L = Laplacian(cosine_neighbors(Z, 3), 1.0).apply(np.eye(70))
    Y = np.zeros((70, 3))
    Y[np.arange(30), codes] = 1
    beta = np.linalg.solve((A + 0.7 * L + 0.01 * H) @ K + 0.2 * np.eye(70), Y)
    np.testing.assert_array_equal(way_back(model, DOMAINS, codes), (K @ beta)[30:].argmax(axis=1))


@pytest.mark.parametrize(
    "method",
    [TFDF(n_neighbors=3), TFDFV(n_landmarks=20), MEDA(manifold_dim=3), ARTL(n_neighbors=3)],
)
def test_true_classes_lead_back(method):
    model = adapted(method)
    true = TASK.yt[DOMAINS.order[40:] - 40]
    assert np.mean(way_back(model, DOMAINS, true) == DOMAINS.y) > 0.8
    assert set(way_back(model, DOMAINS, np.zeros(30, dtype=int))) == {0}


def test_models_that_differ_in_alignment_alone_share_the_way_back(monkeypatch):
    factored = []
    system = _exact._factored_system
    monkeypatch.setattr(_exact, "_factored_system", lambda *a: factored.append(1) or system(*a))
    with reusing():
        for alignment in (1.0, 10.0):
            model = adapted(TFDFV(n_neighbors=3, alignment=alignment))
            way_back(model, DOMAINS, np.arange(30) % 3)
    assert len(factored) == 2  # one for each direction
