"""Estimators of this library as steps of pipelines of skada."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from problems import small_problem
from transferable.transformers import CORAL


def test_a_transformer_in_a_pipeline_of_skada_learns_from_both_domains():
    with sklearn.config_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of skada's imports
        skada = pytest.importorskip("skada")
    p = small_problem(n_source=120, n_target=90)
    y, domain = np.r_[p.ys, np.full(90, -1)], np.repeat([1, -1], [120, 90])
    with sklearn.config_context(enable_metadata_routing=True):  # as importing skada does
        model = skada.make_da_pipeline(StandardScaler(), CORAL(), LogisticRegression())
        model.fit(p.X, y, sample_domain=domain)
        assert model[-1].base_estimator_.classes_.tolist() == [0, 1, 2], "no class for target rows"
        score = model.score(p.Xt, p.yt)
    rows = CORAL().fit_transform(StandardScaler().fit_transform(p.X), sample_domain=domain)
    alone = LogisticRegression().fit(rows[:120], p.ys)
    assert score == pytest.approx(alone.score(rows[120:], p.yt), abs=0.03)
