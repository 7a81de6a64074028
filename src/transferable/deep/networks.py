"""Networks by name, each a map to features and a head from features to class scores.

``mlp`` takes rows of numbers; ``lenet`` small pictures (28 x 28, 16 x 16); ``convm`` pictures of
any size, with parallel convolutions; ``alexnet`` photographs. Any function of the shape of a row
and the number of classes may replace them, if the module it returns has ``features`` and ``head``.
"""

from __future__ import annotations

import copy
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

__all__ = ["NETWORKS", "DomainNorm", "Network", "alexnet", "convm", "lenet", "mlp", "reset"]

Domain = Literal["source", "target"]


class Network(nn.Module):
    """Features, then class scores.

    Parameters
    ----------
    features : Module
        From rows to a table of features.
    head : Module
        From features to a score for each class.
    """

    def __init__(self, features: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.features, self.head = features, head

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of rows."""
        return self.head(self.features(x))


class DomainNorm(nn.Module):
    """Batch normalisation with one scale and shift, and statistics of each domain.

    Parameters
    ----------
    norm : Module
        The batch normalisation it stands for.
    """

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.source, self.target = norm, copy.deepcopy(norm)
        self.target.weight, self.target.bias = norm.weight, norm.bias
        self.domain: Domain = "source"

    def forward(self, x: Tensor) -> Tensor:
        """Return normalised rows of the current domain."""
        return (self.source if self.domain == "source" else self.target)(x)

    @staticmethod
    def install(network: nn.Module) -> None:
        """Replace every batch normalisation of a network."""
        for module in list(network.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.modules.batchnorm._BatchNorm) and not isinstance(
                    module, DomainNorm
                ):
                    setattr(module, name, DomainNorm(child))

    @staticmethod
    def switch(network: nn.Module, domain: Domain) -> bool:
        """Treat rows as those of this domain from now on; return whether that matters."""
        norms = [module for module in network.modules() if isinstance(module, DomainNorm)]
        for norm in norms:
            norm.domain = domain
        return bool(norms)


def mlp(input_shape: Sequence[int], n_classes: int) -> Network:
    """Return two layers of 256 and 128 units on rows of numbers.

    Parameters
    ----------
    input_shape : tuple of int
        The shape of a row; it is taken flat.
    n_classes : int
        Number of classes.

    Returns
    -------
    Network
        With 128 features.
    """
    width = int(torch.Size(input_shape).numel())
    features = nn.Sequential(
        nn.Flatten(), nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU()
    )
    return Network(features, nn.Sequential(nn.Dropout(0.5), nn.Linear(128, n_classes)))


def lenet(input_shape: Sequence[int], n_classes: int) -> Network:
    """Return Caffe's LeNet: 20 and 50 filters, 500 units, and dropout before the head.

    Parameters
    ----------
    input_shape : tuple of int
        Channels, height and width, of at least 16 pixels.
    n_classes : int
        Number of classes.

    Returns
    -------
    Network
        With 500 features.
    """
    channels = _picture(input_shape, "lenet", 16)
    filters = nn.Sequential(
        nn.Conv2d(channels, 20, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(20, 50, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
    )
    width = feature_width(filters, input_shape)
    features = nn.Sequential(*filters, nn.Linear(width, 500), nn.ReLU())
    return Network(features, nn.Sequential(nn.Dropout(0.5), nn.Linear(500, n_classes)))


def alexnet(input_shape: Sequence[int], n_classes: int) -> Network:
    """Return AlexNet in one column, its layers named as torchvision names them.

    Parameters
    ----------
    input_shape : tuple of int
        Channels, height and width, of at least 64 pixels; 3 x 224 x 224 for published weights.
    n_classes : int
        Number of classes.

    Returns
    -------
    Network
        With 4096 features, those of the layer called fc7.

    References
    ----------
    A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014.
    """
    channels = _picture(input_shape, "alexnet", 64)

    def conv(inputs: int, outputs: int, size: int, stride: int, padding: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, size, stride, padding), nn.ReLU()]

    filters = nn.Sequential(
        *conv(channels, 64, 11, 4, 2),
        nn.MaxPool2d(3, 2),
        *conv(64, 192, 5, 1, 2),
        nn.MaxPool2d(3, 2),
        *conv(192, 384, 3, 1, 1),
        *conv(384, 256, 3, 1, 1),
        *conv(256, 256, 3, 1, 1),
        nn.MaxPool2d(3, 2),
    )
    layers = nn.Sequential(
        nn.Dropout(), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(),
        nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(),
    )  # fmt: skip
    features = nn.Sequential(
        OrderedDict(
            features=filters, avgpool=nn.AdaptiveAvgPool2d(6), flat=nn.Flatten(), classifier=layers
        )
    )
    return Network(features, nn.Linear(4096, n_classes))


class _Parallel(nn.Module):
    """A convolution, a dilated and a transposed one side by side, their outputs concatenated."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            [
                nn.Conv2d(inputs, outputs, 3, padding=1),
                nn.Conv2d(inputs, outputs, 3, padding=2, dilation=2),
                nn.ConvTranspose2d(inputs, outputs, 3, padding=1),
            ]
        )
        self.norm = nn.BatchNorm2d(3 * outputs)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.norm(torch.cat([branch(x) for branch in self.branches], dim=1)))


def convm(input_shape: Sequence[int], n_classes: int) -> Network:
    """Return three blocks of parallel convolutions (plain, dilated, transposed) and 256 units.

    The blocks are those of the Conv-M network of Wu et al.; their number and width are ours, and
    their loss is left out.

    Parameters
    ----------
    input_shape : tuple of int
        Channels, height and width, of at least 8 pixels.
    n_classes : int
        Number of classes.

    Returns
    -------
    Network
        With 256 features.

    References
    ----------
    C. Wu, W. Wen, T. Afzal, Y. Zhang, Y. Chen and H. Li, "A compact DNN: approaching
    GoogLeNet-level accuracy of classification and domain adaptation", CVPR 2017.
    """
    channels = _picture(input_shape, "convm", 8)
    layers: list[nn.Module] = []
    for inputs, outputs in ((channels, 16), (48, 32), (96, 64)):
        layers += [_Parallel(inputs, outputs), nn.MaxPool2d(2)]
    features = nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * 192, 256), nn.ReLU()
    )
    return Network(features, nn.Sequential(nn.Dropout(0.5), nn.Linear(256, n_classes)))


NETWORKS: dict[str, Callable[[Sequence[int], int], nn.Module]] = {
    "alexnet": alexnet,
    "convm": convm,
    "lenet": lenet,
    "mlp": mlp,
}


def build(network: Any, input_shape: Sequence[int], n_classes: int) -> nn.Module:
    """Return a new network for rows of this shape and so many classes, checked on two rows."""
    made = NETWORKS[network] if isinstance(network, str) else network
    built: nn.Module = made(tuple(input_shape), n_classes)
    if not (hasattr(built, "features") and hasattr(built, "head")):
        raise TypeError(
            f"network must return a module with `features` and `head`; {type(built).__name__} "
            "lacks one: wrap the two parts in transferable.deep.networks.Network(features, head)."
        )
    DomainNorm.install(built)
    training = built.training
    built.eval()
    with torch.no_grad():
        features = built.features(torch.zeros(2, *input_shape))
        if features.ndim != 2:
            raise ValueError(
                f"The network's features have shape {tuple(features.shape)} for 2 rows; end them "
                "with torch.nn.Flatten()."
            )
        scores = built.head(features)
    if tuple(scores.shape) != (2, n_classes):
        raise ValueError(
            f"The network's head gives {tuple(scores.shape)[1:]} scores a row, but the source has "
            f"{n_classes} classes; build its last layer with the n_classes it is called with."
        )
    return built.train(training)


def feature_width(features: Any, input_shape: Sequence[int]) -> int:
    """Return the number of features that a module makes of a row."""
    training = features.training
    features.eval()
    with torch.no_grad():
        width = int(features(torch.zeros(1, *input_shape)).shape[1])
    features.train(training)
    return width


def reset(module: nn.Module) -> nn.Module:
    """Give the layers new random weights."""
    for layer in module.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    return module


def load_weights(network: nn.Module, path: str | os.PathLike[str]) -> None:
    """Load the tensors of a safetensors file; the head's may be absent, or of other classes.

    Names are the network's own, or, as in torchvision's files, those inside its features.
    """
    try:
        found = load_file(os.fspath(path))
    except (SafetensorError, OSError) as error:
        raise ValueError(f"weights={os.fspath(path)!r} is no safetensors file: {error}") from error
    wanted = network.state_dict()
    chosen = {
        name: found[key]
        for name, value in wanted.items()
        for key in (name, name.removeprefix("features."))
        if key in found and found[key].shape == value.shape
    }
    missing = [name for name in wanted if name not in chosen and not name.startswith("head.")]
    if missing:
        raise ValueError(
            f"weights={os.fspath(path)!r} does not fit the network: it has no tensor for "
            f"{', '.join(missing[:3])}{' and others' if len(missing) > 3 else ''} of that shape."
        )
    network.load_state_dict(chosen, strict=False)


def _picture(shape: Sequence[int], name: str, least: int) -> int:
    """Return the number of channels, if a row is a picture that is large enough."""
    if len(shape) != 3 or min(shape[1:]) < least:
        raise ValueError(
            f'network="{name}" takes pictures of channels x height x width with at least {least} '
            f"pixels a side; got rows of shape {tuple(shape)}. Pass X of shape (n, height, width) "
            "or (n, channels, height, width), or give input_shape."
        )
    return int(shape[0])
