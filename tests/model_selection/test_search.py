"""The search: picks, records, and says what it left out."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import transferable
from transferable import TFDFV, AutoAdapter
from transferable.classifiers import AdaptedClassifier
from transferable.events import listen
from transferable.model_selection import LabelFreeSearch, RankSum, SilhouetteScore
from transferable.transformers import PerDomainScaler

GRID = {"alignment": [0.1, 10.0], "manifold": [0.0, 1.0]}
MODEL = TFDFV(max_iter=3, n_neighbors=3)
Alone = partial(LabelFreeSearch, anchor=None)  # the best setting answers alone


def neighbors(model, X, y, sample_domain=None):
    return float(model.alignment)


def test_takes_the_setting_that_scores_highest(stacked):
    search = Alone(MODEL, GRID, scoring="circular").fit(stacked.X, stacked.y)
    results = search.cv_results_
    assert len(results["params"]) == 4
    assert results["mean_test_score"][search.best_index_] == results["mean_test_score"].max()
    assert results["rank_test_score"][search.best_index_] == 1
    assert results["params"][search.best_index_] == search.best_params_
    alone = clone(MODEL).set_params(**search.best_params_).fit(stacked.X, stacked.y)
    np.testing.assert_array_equal(search.transduction_, alone.transduction_)
    np.testing.assert_allclose(search.predict_proba(stacked.Xt), alone.predict_proba(stacked.Xt))
    np.testing.assert_allclose(
        search.decision_function(stacked.Xt), alone.decision_function(stacked.Xt)
    )
    np.testing.assert_array_equal(search.classes_, [0, 1, 2])


def test_the_best_settings_may_answer_together(stacked, tmp_path):
    search = Alone(MODEL, GRID, average=3).fit(stacked.X, stacked.y)
    ranks, params = search.cv_results_["rank_test_score"], search.cv_results_["params"]
    models = [
        clone(MODEL).set_params(**params[i]).fit(stacked.X, stacked.y)
        for i in np.argsort(ranks)[:3]
    ]
    expected = np.mean([model.predict_proba(stacked.Xt) for model in models], axis=0)
    np.testing.assert_allclose(search.predict_proba(stacked.Xt), expected)
    np.testing.assert_array_equal(search.predict(stacked.Xt), expected.argmax(axis=1))
    np.testing.assert_allclose(search.decision_function(stacked.Xt), expected)
    np.testing.assert_array_equal(search.transduction_, search.predict(stacked.X))
    assert search.best_estimator_ is search.top_estimators_[0]
    assert search.best_params_ == params[search.best_index_]
    transferable.save(search, tmp_path / "s.tfm")
    again = transferable.load(tmp_path / "s.tfm")
    np.testing.assert_array_equal(again.predict_proba(stacked.Xt), search.predict_proba(stacked.Xt))


def test_an_anchor_counts_half_beside_the_best_by_neighbours(stacked, tmp_path):
    anchor, grid = TFDFV(max_iter=1, alignment=0.0), GRID | {"alignment": [0.1, 1.0, 10.0]}
    search = LabelFreeSearch(MODEL, grid, anchor=anchor).fit(stacked.X, stacked.y)
    by_neighbours = Alone(MODEL, grid, scoring="neighbors", average=5)
    best = by_neighbours.fit(stacked.X, stacked.y)
    assert search.best_params_ == best.best_params_
    assert len(search.top_estimators_) == len(best.top_estimators_) == 5
    alone = clone(anchor).fit(stacked.X, stacked.y)
    expected = (best.predict_proba(stacked.Xt) + alone.predict_proba(stacked.Xt)) / 2
    np.testing.assert_allclose(search.predict_proba(stacked.Xt), expected)
    assert np.abs(expected - best.predict_proba(stacked.Xt)).max() > 1e-3
    np.testing.assert_array_equal(search.transduction_, search.predict(stacked.X))
    one = LabelFreeSearch(MODEL, GRID, average=1, anchor=anchor).fit(stacked.X, stacked.y)
    of_one = one.best_estimator_.predict_proba(stacked.Xt) + alone.predict_proba(stacked.Xt)
    np.testing.assert_allclose(one.predict_proba(stacked.Xt), of_one / 2)
    transferable.save(search, tmp_path / "s.tfm")
    again = transferable.load(tmp_path / "s.tfm")
    np.testing.assert_array_equal(again.predict_proba(stacked.Xt), search.predict_proba(stacked.Xt))


def test_anchors_and_settings_must_give_probabilities(stacked):
    grid = {"estimator__C": [1.0, 2.0]}
    labels_only = AdaptedClassifier(None, LinearSVC())
    with pytest.raises(ValueError, match="an anchor takes the mean of probabilities"):
        LabelFreeSearch(labels_only, grid, anchor=TFDFV()).fit(stacked.X, stacked.y)
    with pytest.raises(ValueError, match="anchor"):
        LabelFreeSearch(MODEL, GRID, anchor=LinearSVC()).fit(stacked.X, stacked.y)


def test_by_default_a_fast_pool_is_the_anchor_where_there_are_probabilities(stacked):
    search = LabelFreeSearch(MODEL, GRID).fit(stacked.X, stacked.y)
    pool = AutoAdapter(effort="fast")
    named = LabelFreeSearch(MODEL, GRID, anchor=pool).fit(stacked.X, stacked.y)
    np.testing.assert_array_equal(search.predict_proba(stacked.X), named.predict_proba(stacked.X))
    assert search.anchor_.effort == "fast"
    labels_only = AdaptedClassifier(None, LinearSVC())
    plain = LabelFreeSearch(labels_only, {"estimator__C": [1.0, 2.0]}).fit(stacked.X, stacked.y)
    assert plain.anchor_ is None
    assert len(plain.top_estimators_) == 1
    with pytest.raises(ValueError, match="anchor"):
        LabelFreeSearch(MODEL, GRID, anchor="none").fit(stacked.X, stacked.y)


def test_labels_alone_have_no_mean(stacked):
    labels_only = AdaptedClassifier(None, LinearSVC())
    with pytest.raises(ValueError, match="average=2 takes the mean of probabilities"):
        Alone(labels_only, {"estimator__C": [1.0, 2.0]}, average=2).fit(stacked.X, stacked.y)


def test_what_is_shared_changes_no_score(stacked):
    grid = {"alignment": [0.1, 10.0], "manifold": [0.5, 1.0, "auto"], "ridge": [0.1, 1.0]}
    grid |= {"manifold_dim": ["auto", 2, None], "balance": ["adaptive", 0.5]}
    search = Alone(MODEL, grid, scoring={"c": "circular", "n": "neighbors"}, refit="c")
    search.fit(stacked.X, stacked.y)
    for i in range(0, 72, 7):
        model = clone(MODEL).set_params(**search.cv_results_["params"][i])
        model.fit(stacked.X, stacked.y)
        alone = Alone(model, {"max_iter": [3]}, scoring="circular")
        alone.fit(stacked.X, stacked.y)
        assert search.cv_results_["mean_test_c"][i] == pytest.approx(alone.best_score_)


def test_target_labels_and_row_order_do_not_matter(stacked):
    plain = Alone(MODEL, GRID).adapt(stacked.Xs, stacked.ys, stacked.Xt)
    garbage = np.concatenate([stacked.ys, stacked.yt[::-1]])
    order = np.random.default_rng(0).permutation(len(garbage))
    other = Alone(MODEL, GRID)
    other.fit(stacked.X[order], garbage[order], sample_domain=stacked.marks[order])
    assert other.best_params_ == plain.best_params_
    np.testing.assert_allclose(
        other.cv_results_["score_circular"], plain.cv_results_["score_circular"]
    )


def test_rank_sums_and_several_scores(stacked):
    scoring = {"both": RankSum(("circular", "entropy")), "own": SilhouetteScore()}
    search = Alone(MODEL, GRID, scoring=scoring, refit="both")
    results = search.fit(stacked.X, stacked.y).cv_results_
    assert {"mean_test_both", "mean_test_own", "score_circular", "score_entropy"} <= set(results)
    with pytest.raises(ValueError, match="refit=None names none of the scores both, own"):
        Alone(MODEL, GRID, scoring=scoring).fit(stacked.X, stacked.y)


def test_workers_find_the_same(stacked):
    one = Alone(MODEL, GRID).fit(stacked.X, stacked.y)
    two = Alone(MODEL, GRID, n_jobs=2).fit(stacked.X, stacked.y)
    np.testing.assert_allclose(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


def test_settings_without_a_score_are_left_out_and_said(stacked):
    def sometimes(model, X, y, sample_domain=None):
        return np.nan if model.alignment == 10.0 else 0.0

    search = Alone(MODEL, GRID, scoring=sometimes)
    with pytest.warns(UserWarning, match=r"'alignment': 10.0.*is left out: no finite score"):
        search.fit(stacked.X, stacked.y)
    assert search.best_params_["alignment"] == 0.1
    assert np.isnan(search.cv_results_["mean_test_score"]).sum() == 2
    assert search.cv_results_["rank_test_score"][2:].tolist() == [3, 4]


def test_a_setting_that_cannot_be_fitted_is_left_out_and_said(stacked):
    search = Alone(MODEL, {"n_neighbors": [3, 500]}, scoring="entropy")
    with pytest.warns(UserWarning, match="n_neighbors=500 must be smaller"):
        search.fit(stacked.X, stacked.y)
    assert search.best_params_ == {"n_neighbors": 3}
    assert "n_neighbors=500" in search.cv_results_["error"][1]
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(ValueError, match="None of the 1 settings has a score"),
    ):
        Alone(MODEL, {"n_neighbors": [500]}).fit(stacked.X, stacked.y)


def test_a_scorer_that_fails_is_recorded(stacked):
    def broken(model, X, y, sample_domain=None):
        raise RuntimeError("no idea")

    scoring = {"good": "entropy", "bad": broken}
    search = Alone(MODEL, {"ridge": [0.1]}, scoring=scoring, refit="good")
    with pytest.warns(UserWarning, match="bad: RuntimeError: no idea"):
        search.fit(stacked.X, stacked.y)
    assert search.best_params_ == {"ridge": 0.1}


@pytest.mark.parametrize("grid", [{}, [], [{}], {"ridge": []}])
def test_empty_grid(grid, stacked):
    with pytest.raises(ValueError, match="give at least one value"):
        Alone(MODEL, grid).fit(stacked.X, stacked.y)


@pytest.mark.parametrize("scoring", ["accuracy", RankSum(("circular", "luck"))])
def test_unknown_scorer(scoring, stacked):
    with pytest.raises(ValueError, match="is not a scorer; choose from recommended"):
        Alone(MODEL, GRID, scoring=scoring).fit(stacked.X, stacked.y)


def test_without_a_target_held_out_source_rows_decide(stacked):
    grid = {"ridge": [1e6, 0.1]}
    with pytest.warns(UserWarning, match="None of the 60 rows is a target row"):
        search = Alone(MODEL, grid).fit(stacked.Xs, stacked.ys)
    scores = search.cv_results_["mean_test_score"]
    assert scores[1] > 0.8
    assert scores[search.best_index_] == scores.max()
    order = np.random.default_rng(0).permutation(60)
    with pytest.warns(UserWarning, match="held out"):
        again = clone(search).fit(stacked.Xs[order], stacked.ys[order])
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], scores)


def test_not_fitted(stacked):
    with pytest.raises(NotFittedError):
        Alone(MODEL, GRID).predict(stacked.Xt)


def test_tells_how_many_settings_are_tried(stacked, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes any stream for a terminal then
    told = []
    with listen(told.append):
        Alone(MODEL, GRID).fit(stacked.X, stacked.y)
    told = [event for event in told if getattr(event, "what", "") == "Trying settings"]
    assert [event.share for event in told] == [None, 0.25, 0.5, 0.75, 1.0]
    assert [event.detail for event in told] == ["", "1 of 4", "2 of 4", "3 of 4", "4 of 4"]
    assert capsys.readouterr() == ("", "")
    Alone(MODEL, GRID, verbose=True).fit(stacked.X, stacked.y)
    shown = capsys.readouterr()
    assert "elapsed" in shown.err
    assert shown.out == ""


def test_a_search_that_fails_leaves_the_last_one_alone(stacked):
    search = Alone(MODEL, GRID, scoring="entropy").fit(stacked.X, stacked.y)
    before = dict(vars(search))
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(ValueError, match="settings has a score"),
    ):
        search.set_params(param_grid={"n_neighbors": [500]}).fit(stacked.X[:, :4], stacked.y)
    assert vars(search) == before | {"param_grid": {"n_neighbors": [500]}}


def test_the_best_estimator_is_fitted_as_it_would_be_by_itself(stacked):
    names = np.array(["ant", "bee", "cat"])
    X = pd.DataFrame(stacked.X, columns=[f"f{i}" for i in range(stacked.X.shape[1])])
    y = np.concatenate([names[stacked.ys], np.full(len(stacked.yt), None)])
    search = Alone(MODEL, GRID, scoring="entropy").fit(X, y)
    alone = clone(MODEL).set_params(**search.best_params_).fit(X, y)
    best = search.best_estimator_
    np.testing.assert_array_equal(best.transduction_, alone.transduction_)
    np.testing.assert_array_equal(best.feature_names_in_, alone.feature_names_in_)
    np.testing.assert_array_equal(best.decision_function(X), alone.decision_function(X))
    np.testing.assert_array_equal(search.decision_function(X), alone.decision_function(X))


def test_pipelines_are_searched(stacked):
    columns = make_column_transformer((StandardScaler(), ["f0", "f1", "f2", "f3", "f4"]))
    X = pd.DataFrame(stacked.X, columns=[f"f{i}" for i in range(stacked.X.shape[1])])
    grid = {"tfdfv__alignment": [0.1, 10.0]}
    search = Alone(make_pipeline(columns, MODEL), grid).fit(X, stacked.y)
    best = search.best_estimator_
    assert len(best[-1].transduction_) == len(X)
    assert best[-1].classes_.tolist() == [0, 1, 2]
    found = search.transduction_[stacked.y < 0]
    np.testing.assert_array_equal(found, search.predict(X[stacked.y < 0]))


@pytest.mark.parametrize("transformer", [PerDomainScaler(), None])
@pytest.mark.filterwarnings("ignore::transferable.exceptions.MarkedLabelsWarning")
def test_a_search_behind_a_transformer_sees_both_domains(stacked, transformer):
    search = Alone(MODEL, GRID)
    model = AdaptedClassifier(transformer, search).adapt(stacked.Xs, stacked.ys, stacked.Xt)
    rows = stacked.X if transformer is None else transformer.fit_transform(stacked.X, stacked.y)
    alone = clone(search).fit(rows, stacked.y)
    assert model.estimator_.best_params_ == alone.best_params_
    np.testing.assert_array_equal(model.transduction_, alone.transduction_)
    assert np.mean(model.predict(stacked.Xt) == stacked.yt) > 0.8


def test_the_default_grid_is_for_tfdf(stacked):
    search = Alone(TFDFV(max_iter=1), scoring="entropy").fit(stacked.X, stacked.y)
    assert len(search.cv_results_["params"]) == 54


def test_a_search_is_saved_with_its_results(stacked, tmp_path):
    grid = [{"alignment": [0.1, 10.0]}, {"ridge": [1.0]}]
    scoring = {"sum": "recommended", "own": SilhouetteScore()}
    search = Alone(MODEL, grid, scoring=scoring, refit="sum").fit(stacked.X, stacked.y)
    transferable.save(search, tmp_path / "search.tfm")
    again = transferable.load(tmp_path / "search.tfm")
    np.testing.assert_array_equal(again.predict_proba(stacked.Xt), search.predict_proba(stacked.Xt))
    assert again.best_params_ == search.best_params_
    assert again.scoring == scoring
    assert again.cv_results_["params"] == search.cv_results_["params"]
    assert again.cv_results_["param_ridge"].mask.tolist() == [True, True, False]
    np.testing.assert_array_equal(
        again.cv_results_["mean_test_own"], search.cv_results_["mean_test_own"]
    )
    refitted = again.fit(stacked.X, stacked.y)  # from the same file of trials
    assert refitted.best_params_ == search.best_params_


def test_trials_judged_by_labels_do_without_probabilities(stacked):
    """The temperature takes a tenth of a fit; the model that is kept has one."""
    seen = []

    def temperature(model, X, y, sample_domain=None):
        seen.append(model.temperature_)
        return 0.0

    temperature.labels_only = True
    search = Alone(MODEL, GRID, scoring=temperature).fit(stacked.X, stacked.y)
    assert np.isnan(seen).all()
    assert search.best_estimator_.temperature_ > 0
    del temperature.labels_only, seen[:]
    Alone(MODEL, GRID, scoring=temperature).fit(stacked.X, stacked.y)
    assert np.isfinite(seen).all()


def test_trials_have_the_history_of_a_fit_alone(stacked):
    """Though they share kernels and factorisations: no value of one is another's."""
    seen = []

    def history(model, X, y, sample_domain=None):
        alone = clone(model).fit(X, y, sample_domain=sample_domain)
        seen.append(model.history_ == alone.history_)
        return 0.0

    search = Alone(MODEL, GRID, scoring=history).fit(stacked.X, stacked.y)
    assert seen == [True] * 4
    assert len(search.best_estimator_.history_) > 0
