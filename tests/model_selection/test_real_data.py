"""The recommended score on the smallest real tasks; benchmarks/records/selection has all."""

import numpy as np
import pytest

from transferable import TFDFV
from transferable.datasets import fetch_office_caltech
from transferable.model_selection import LabelFreeSearch

GRID = {
    "ridge": [0.01, 0.1],
    "alignment": [0.1, 1.0, 10.0],
    "manifold": [0.1, 1.0, 10.0],
    "n_neighbors": [5, 20],
}


@pytest.mark.parametrize("pair", [("W", "D"), ("D", "W")])
def test_the_pick_is_better_than_the_median_setting(pair, data_home):
    task = fetch_office_caltech("surf", data_home=data_home).task(*pair)

    def truth(model, X, y, sample_domain=None):
        return model.score(task.Xt, task.yt)

    scoring = {"recommended": "recommended", "truth": truth}
    model = TFDFV(class_shares="source")  # as in benchmarks/records/selection
    search = LabelFreeSearch(model, GRID, scoring=scoring, refit="recommended", anchor=None)
    search.adapt(task.Xs, task.ys, task.Xt)
    assert search.score(task.Xt, task.yt) >= np.median(search.cv_results_["mean_test_truth"])
