"""What tests of saved models have in common."""

import numpy as np

from problems import small_problem

PROBLEM = small_problem(n_source=45, n_target=36, n_features=12)
NAMES = np.array(["ant", "bee", "cat"])
NEW = small_problem(seed=9, n_source=9, n_target=50, n_features=12).Xt
METHODS = ("predict", "predict_proba", "decision_function", "transform")


def adapted(estimator):
    return estimator.adapt(PROBLEM.Xs, NAMES[PROBLEM.ys], PROBLEM.Xt)


def outputs(model, rows):
    return {name: getattr(model, name)(rows) for name in METHODS if hasattr(model, name)}
