"""Networks by name, weights from files."""

import sys
import types
from urllib.error import URLError

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import transferable
from transferable import deep
from transferable.deep.networks import (
    NETWORKS,
    DomainNorm,
    build,
    feature_width,
    load_weights,
    reset,
)

torch.set_num_threads(1)

SHAPES = {
    "mlp": [(7,), (1, 8, 8)],
    "mlp-bn": [(7,)],
    "lenet": [(1, 28, 28), (1, 16, 16), (3, 32, 32)],
    "lenet-bn": [(1, 16, 16)],
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


def test_weights_of_a_network_with_batch_normalisation(tmp_path):
    plain = NETWORKS["lenet-bn"]((1, 16, 16), 7)
    plain.features(torch.rand(8, 1, 16, 16))  # statistics
    path = tmp_path / "plain.safetensors"
    published = {n.removeprefix("features."): v for n, v in plain.state_dict().items()}
    save_file({n: v for n, v in published.items() if "num_batches" not in n}, path)
    network = build("lenet-bn", (1, 16, 16), 5, path)
    norm = network.features[1]
    assert isinstance(norm, DomainNorm)
    for own in (norm.source, norm.target):
        assert torch.equal(own.running_mean, plain.features[1].running_mean)
        assert torch.equal(own.weight, plain.features[1].weight)
    save_file({n: v.clone() for n, v in network.state_dict().items()}, path)
    again = build("lenet-bn", (1, 16, 16), 5, path)  # under the network's own names
    assert torch.equal(again.features[1].target.running_mean, norm.source.running_mean)
    assert torch.equal(again.features[0].weight, network.features[0].weight)


class FakeBody(torch.nn.Module):
    """A network in the manner of torchvision, whose last layer is within a sequence."""

    def __init__(self, n_classes=1000):
        super().__init__()
        self.bn = torch.nn.BatchNorm2d(3)
        last = torch.nn.Linear(12, n_classes) if n_classes else torch.nn.Identity()
        self.classifier = torch.nn.Sequential(torch.nn.Linear(48, 12), torch.nn.ReLU(), last)

    def forward(self, x):
        assert x.shape[2:] == (4, 4)
        return self.classifier(self.bn(x).flatten(1))


@pytest.fixture
def libraries(monkeypatch):
    """timm and torchvision, each with one network."""

    def create(name, pretrained, num_classes):
        if name == "far":
            raise URLError("no route")
        if name != "tiny":
            raise RuntimeError(f"Unknown model ({name})")
        return filled(FakeBody(num_classes), pretrained)

    def get(name, weights):
        if name == "far":
            raise URLError("no route")
        if name != "tiny":
            raise ValueError(f"Unknown model {name}")
        return filled(FakeBody(), weights == "DEFAULT")

    def filled(body, pretrained):
        with torch.no_grad():
            body.classifier[0].bias.fill_(7.0 if pretrained else 0.0)
        return body

    timm, torchvision = types.ModuleType("timm"), types.ModuleType("torchvision")
    timm.create_model = create
    torchvision.models = types.SimpleNamespace(get_model=get)
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)


@pytest.mark.parametrize("library", ["timm", "torchvision"])
def test_networks_of_other_libraries_are_found_and_saved_by_name(
    library, libraries, tmp_path, monkeypatch
):
    name, rng = f"{library}:tiny", np.random.default_rng(0)
    X = rng.random((20, 3, 4, 4), dtype=np.float32)
    settings = {"epochs": 1, "epoch_steps": 2, "batch_size": 8, "learning_rate": 1e-9}
    model = deep.DDC(network=name, weights="pretrained", **settings)
    model.adapt(X, np.arange(20) % 2, X[::2])
    assert model.transform(X).shape == (20, 12)
    assert float(model.network_.features.classifier[0].bias[0].detach()) == pytest.approx(7.0)
    transferable.save(model, tmp_path / "model.tfm")
    again = transferable.load(tmp_path / "model.tfm")
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    with pytest.raises(OSError, match=rf"weights of '{library}:far' cannot be downl.*no route"):
        build(f"{library}:far", (3, 4, 4), 2, "pretrained")
    monkeypatch.setattr(FakeBody, "__module__", f"{library}.models")
    with pytest.raises(TypeError, match=f'pass its name, network="{library}:FakeBody"'):
        build(FakeBody, (3, 4, 4), 2)
    with pytest.raises(ValueError, match=r"does not take rows of shape \(3, 9, 9\)"):
        build(f"{library}:tiny", (3, 9, 9), 2)
    with pytest.raises(
        ValueError, match=f"'{library}:huge' is not a network of {library}: Unknown"
    ):
        build(f"{library}:huge", (3, 4, 4), 2)


def test_a_library_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match="'timm:resnet50' needs timm: pip install timm"):
        build("timm:resnet50", (3, 224, 224), 2)
    with pytest.raises(ValueError, match="'resnet50' names no network; take one of lenet, "):
        build("resnet50", (3, 224, 224), 2)
    with pytest.raises(ValueError, match='weights="pretrained" is for networks of timm and'):
        build("mlp", (3,), 2, "pretrained")


def test_weights_that_do_not_fit_are_named(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_file({"features.1.weight": torch.zeros(256, 7)}, path)
    network = build("mlp", (7,), 5)
    with pytest.raises(ValueError, match=r"no tensor for features.1.bias, .* of that shape"):
        load_weights(network, path)
    path.write_bytes(b"pickled, perhaps")
    with pytest.raises(ValueError, match="not a safetensors file"):
        load_weights(network, path)


def test_a_reset_head_differs():
    network = build("mlp", (7,), 5)
    before = network.head[1].weight.clone()
    assert not torch.equal(reset(network.head)[1].weight, before)
