import numpy as np
import pytest
from sklearn.utils import Bunch

from problems import small_problem
from transferable import TFDFV


@pytest.fixture(scope="package")
def stacked():
    """A small problem with its rows stacked, target rows unlabelled, and a model fitted to it."""
    task = small_problem(n_source=60, n_target=50, n_features=8)
    y = np.concatenate([task.ys, np.full(len(task.Xt), -1)])
    marks = np.repeat([1, -1], [len(task.ys), len(task.Xt)])
    model = TFDFV(max_iter=3, n_neighbors=3).fit(task.X, y)
    return Bunch(y=y, marks=marks, model=model, **task)
