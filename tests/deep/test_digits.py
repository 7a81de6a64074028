"""Real digits: DeepTFDF gains much on a network trained on the source."""

import numpy as np
import torch

from transferable import deep
from transferable.datasets import fetch_mnist_usps

torch.set_num_threads(1)


def test_deep_tfdf_beats_source_only_by_a_margin(data_home):
    task = fetch_mnist_usps(preprocess=False, data_home=data_home).task("U", "M")
    Xs, Xt = task.Xs.astype(np.float32), task.Xt.astype(np.float32)
    settings = {"network": "lenet", "input_shape": (1, 16, 16), "epochs": 5, "epoch_steps": 40}
    alone = deep.SourceOnly(**settings).adapt(Xs, task.ys, Xt)
    model = deep.DeepTFDF(**settings, n_rounds=2).adapt(Xs, task.ys, Xt)
    assert model.score(Xt, task.yt) > alone.score(Xt, task.yt) + 0.08
    assert model.history_[-1]["agreement"] > 0.8
