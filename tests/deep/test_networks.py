"""Networks by name, weights from files."""

import pytest
import torch
from safetensors.torch import save_file

from transferable.deep.networks import NETWORKS, build, feature_width, load_weights, reset

SHAPES = {
    "mlp": [(7,), (1, 8, 8)],
    "lenet": [(1, 28, 28), (1, 16, 16), (3, 32, 32)],
    "convm": [(1, 28, 28), (3, 8, 8)],
    "alexnet": [(3, 64, 64)],
}


@pytest.mark.parametrize(
    ("name", "shape"), [(name, shape) for name, shapes in SHAPES.items() for shape in shapes]
)
def test_every_network_gives_features_and_scores(name, shape):
    network = build(name, shape, 5)
    x = torch.rand(3, *shape)
    features = network.features(x)
    assert features.shape == (3, feature_width(network.features, shape))
    assert network.head(features).shape == (3, 5)
    assert set(SHAPES) == set(NETWORKS)


def test_pictures_too_small_are_refused():
    with pytest.raises(ValueError, match=r'network="lenet" takes pictures .* got rows of shape'):
        build("lenet", (1, 8, 8), 5)


def test_features_must_be_a_table():
    def flawed(shape, n_classes):
        network = NETWORKS["lenet"](shape, n_classes)
        network.features = torch.nn.Conv2d(1, 2, 3)
        return network

    with pytest.raises(ValueError, match="Flatten"):
        build(flawed, (1, 28, 28), 5)


def test_weights_of_a_file_under_torchvisions_names(tmp_path):
    network = build("alexnet", (3, 64, 64), 5)
    own = network.state_dict()
    published = {
        name.removeprefix("features."): torch.full_like(value, 0.01)
        for name, value in own.items()
        if not name.startswith("head.")
    }
    assert {"features.0.weight", "classifier.1.weight", "classifier.4.bias"} <= set(published)
    published["classifier.6.weight"] = torch.zeros(1000, 4096)
    save_file(published, tmp_path / "alexnet.safetensors")
    before = network.head.weight.clone()
    load_weights(network, tmp_path / "alexnet.safetensors")
    assert (network.state_dict()["features.classifier.4.weight"] == 0.01).all()
    assert torch.equal(network.head.weight, before)


def test_weights_that_do_not_fit_are_named(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_file({"features.1.weight": torch.zeros(256, 7)}, path)
    network = build("mlp", (7,), 5)
    with pytest.raises(ValueError, match=r"no tensor for features.1.bias, .* of that shape"):
        load_weights(network, path)
    path.write_bytes(b"pickled, perhaps")
    with pytest.raises(ValueError, match="no safetensors file"):
        load_weights(network, path)


def test_a_reset_head_differs():
    network = build("mlp", (7,), 5)
    before = network.head[1].weight.clone()
    assert not torch.equal(reset(network.head)[1].weight, before)
