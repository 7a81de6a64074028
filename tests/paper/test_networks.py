"""The networks of the paper's rows give features and scores, and train."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from paper.networks import NETWORKS
from paper.settings import from_setting
from transferable.deep.networks import build, feature_width

SHAPES = {"convm": [(1, 28, 28), (3, 8, 8)], "alexnet": [(3, 64, 64)]}


@pytest.mark.parametrize(
    ("name", "shape"), [(name, shape) for name, shapes in SHAPES.items() for shape in shapes]
)
def test_every_network_gives_features_and_scores(name, shape):
    network = build(NETWORKS[name], shape, 5)
    features = network.features(torch.rand(3, *shape))
    assert features.shape == (3, feature_width(network.features, shape))
    assert network.head(features).shape == (3, 5)
    assert set(SHAPES) == set(NETWORKS)


def test_weights_of_a_file_under_torchvisions_names(tmp_path):
    own = build(NETWORKS["alexnet"], (3, 64, 64), 5).state_dict()
    published = {
        name.removeprefix("features."): torch.full_like(value, 0.01)
        for name, value in own.items()
        if not name.startswith("head.")
    }
    assert {"features.0.weight", "classifier.1.weight", "classifier.4.bias"} <= set(published)
    published["classifier.6.weight"] = torch.zeros(1000, 4096)
    save_file(published, tmp_path / "alexnet.safetensors")
    network = build(NETWORKS["alexnet"], (3, 64, 64), 5, tmp_path / "alexnet.safetensors")
    assert (network.state_dict()["features.classifier.4.weight"] == 0.01).all()
    assert not (network.head.weight == 0.01).any()


def test_a_setting_names_them():
    torch.set_num_threads(1)
    parameters = {"network": "convm", "epochs": 1, "epoch_steps": 1, "batch_size": 8}
    model = from_setting("AdaBN", {"estimator": "AdaBN", "parameters": parameters})
    assert model.network is NETWORKS["convm"]
    X = np.random.default_rng(0).integers(0, 256, size=(12, 1, 8, 8), dtype=np.uint8)
    model.adapt(X, np.arange(12) % 2, X[::2])
    assert model.predict(X).shape == (12,)
