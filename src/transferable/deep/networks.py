"""Networks by name, each a map to features and a head from features to class scores.

``mlp`` takes rows of numbers, ``lenet`` small pictures (28 x 28, 16 x 16), ``mlp-bn`` and
``lenet-bn`` are these with batch normalisation; ``timm:resnet50`` and ``torchvision:resnet50`` are
networks of these libraries, for photographs. Any function of the shape of a row and the number of
classes may replace them, if the module it returns has ``features`` and ``head``.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

__all__ = ["NETWORKS", "DomainNorm", "Network", "backbone", "lenet", "mlp", "reset"]

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


def mlp(input_shape: Sequence[int], n_classes: int, *, norm: bool = False) -> Network:
    """Return two layers of 256 and 128 units on rows of numbers.

    Parameters
    ----------
    input_shape : tuple of int
        The shape of a row; it is taken flat.
    n_classes : int
        Number of classes.
    norm : bool, default=False
        Whether batch normalisation follows each layer.

    Returns
    -------
    Network
        With 128 features.
    """
    width = int(torch.Size(input_shape).numel())
    norms = [[nn.BatchNorm1d(units)] if norm else [] for units in (256, 128)]
    first, second = nn.Linear(width, 256), nn.Linear(256, 128)
    features = nn.Sequential(
        nn.Flatten(), first, *norms[0], nn.ReLU(), second, *norms[1], nn.ReLU()
    )
    return Network(features, nn.Sequential(nn.Dropout(0.5), nn.Linear(128, n_classes)))


def lenet(input_shape: Sequence[int], n_classes: int, *, norm: bool = False) -> Network:
    """Return Caffe's LeNet: 20 and 50 filters, 500 units, and dropout before the head.

    Parameters
    ----------
    input_shape, n_classes, norm
        As for :func:`mlp`, for pictures of at least 16 pixels a side.

    Returns
    -------
    Network
        With 500 features.
    """
    channels = picture_channels(input_shape, "lenet", 16)
    norms = [[nn.BatchNorm2d(filters)] if norm else [] for filters in (20, 50)]
    filters = nn.Sequential(
        nn.Conv2d(channels, 20, 5),
        *norms[0],
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(20, 50, 5),
        *norms[1],
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
    )
    width = feature_width(filters, input_shape)
    features = nn.Sequential(*filters, nn.Linear(width, 500), nn.ReLU())
    return Network(features, nn.Sequential(nn.Dropout(0.5), nn.Linear(500, n_classes)))


_OF_A_LIBRARY = re.compile(r"[\w.-]+")  # no name of a repository or of a folder

NETWORKS: dict[str, Callable[[Sequence[int], int], nn.Module]] = {
    "lenet": lenet,
    "lenet-bn": partial(lenet, norm=True),
    "mlp": mlp,
    "mlp-bn": partial(mlp, norm=True),
}


def backbone(name: str, *, pretrained: bool = False) -> nn.Module:
    """Return a network of timm or torchvision without its last layer.

    Parameters
    ----------
    name : str
        "timm:resnet50" or "torchvision:resnet50".
    pretrained : bool, default=False
        Whether to start from the library's published weights, which it downloads.

    Returns
    -------
    Module
        From pictures to features.
    """
    library, _, model = name.partition(":")
    if library not in ("timm", "torchvision") or not _OF_A_LIBRARY.fullmatch(model):
        raise ValueError(
            f'{name!r} names no network; take one of {", ".join(NETWORKS)}, "timm:..." or '
            '"torchvision:...", or a function of your own.'
        )
    try:
        module = import_module(library)
    except ImportError as error:
        raise ImportError(f"{name!r} needs {library}: pip install {library}") from error
    try:
        if library == "timm":
            return module.create_model(model, pretrained=pretrained, num_classes=0)
        weights = "DEFAULT" if pretrained else None
        body: nn.Module = module.models.get_model(model, weights=weights)
    except OSError as error:
        raise OSError(
            f"the weights of {name!r} cannot be downloaded ({error}); check the connection."
        ) from error
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"{name!r} is not a network of {library}: {error}") from error
    last = [place for place, layer in body.named_modules() if isinstance(layer, nn.Linear)][-1:]
    if not last:
        raise ValueError(f"{name!r} ends in no linear layer that a head could replace.")
    parent, _, name = last[0].rpartition(".")
    setattr(body.get_submodule(parent), name, nn.Identity())
    return body


def build(
    network: Any,
    input_shape: Sequence[int],
    n_classes: int,
    weights: str | os.PathLike[str] | None = None,
) -> nn.Module:
    """Return a new network for rows of a shape and `n_classes` classes, checked on two rows.

    It starts from the weights of a file, or from published ones if these are "pretrained".
    """
    if isinstance(network, nn.Module):
        raise TypeError(
            f"network is a module ({type(network).__name__}); pass a function that builds one, "
            "network=lambda input_shape, n_classes: Network(features, head), with Network of "
            "transferable.deep.networks, since every fit starts anew."
        )
    library = getattr(network, "__module__", "").partition(".")[0]
    if library in ("timm", "torchvision"):
        raise TypeError(
            f"network is a function of {library}, which is not called with the shape of a row; "
            f'pass its name, network="{library}:{network.__name__}".'
        )
    pretrained = weights == "pretrained"
    named = isinstance(network, str)
    if named and network not in NETWORKS:
        body = backbone(network, pretrained=pretrained)
        head = nn.Linear(feature_width(body, input_shape), n_classes)
        built: nn.Module = Network(body, head)
    elif pretrained:
        raise ValueError(
            f'weights="pretrained" is for networks of timm and torchvision; network={network!r} '
            "has none. Name a safetensors file, or leave it out."
        )
    else:
        built = (NETWORKS[network] if named else network)(tuple(input_shape), n_classes)
    if not (hasattr(built, "features") and hasattr(built, "head")):
        raise TypeError(
            f"network must return a module with `features` and `head`; {type(built).__name__} "
            "lacks one: wrap the two parts in transferable.deep.networks.Network(features, head)."
        )
    if weights is not None and not pretrained:
        load_weights(built, weights)
    DomainNorm.install(built)
    training = built.training
    built.eval()
    feature_width(built.features, input_shape)
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


def device_called(name: str) -> torch.device:
    """Return a device by its name; "auto" is a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(
            f'device="{name}" needs a GPU, but torch sees no CUDA GPU here; device="cpu" trains '
            'on the CPU, device="auto" on a GPU if there is one.'
        )
    return torch.device(name)


def feature_width(features: Any, input_shape: Sequence[int]) -> int:
    """Return the number of features that a module makes of a row."""
    training = features.training
    features.eval()
    try:
        with torch.no_grad():
            width = int(features(torch.zeros(1, *input_shape)).shape[1])
    except (AssertionError, RuntimeError) as error:
        raise ValueError(
            f"The network does not take rows of shape {tuple(input_shape)}: {error}"
        ) from error
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

    Names are the network's own, or, as in torchvision's files, those inside its features. The
    network has no :class:`DomainNorm` yet; of a file that was written with them, the target's
    statistics are left out.
    """
    try:
        found = load_file(os.fspath(path))
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"weights={os.fspath(path)!r} is not a safetensors file ({error}); write one with "
            "safetensors.torch.save_file(module.state_dict(), path)."
        ) from error
    found |= {name.replace(".source.", "."): value for name, value in found.items()}
    wanted = network.state_dict()
    chosen = {
        name: found[key]
        for name, value in wanted.items()
        for key in (name, name.removeprefix("features."))
        if key in found and found[key].shape == value.shape
    }
    optional = {name for name in wanted if name.endswith("num_batches_tracked")}
    optional |= {name for name in wanted if name.startswith("head.")}
    missing = [name for name in wanted if name not in chosen and name not in optional]
    if missing:
        raise ValueError(
            f"weights={os.fspath(path)!r} does not fit the network: it has no tensor for "
            f"{', '.join(missing[:3])}{' and others' if len(missing) > 3 else ''} of that shape."
        )
    network.load_state_dict(chosen, strict=False)


def picture_channels(shape: Sequence[int], name: str, least: int) -> int:
    """Return the number of channels, if a row is a picture that is large enough."""
    if len(shape) != 3 or min(shape[1:]) < least:
        raise ValueError(
            f'network="{name}" takes pictures of channels x height x width with at least {least} '
            f"pixels a side; got rows of shape {tuple(shape)}. Pass X of shape (n, height, width) "
            "or (n, channels, height, width), or give input_shape."
        )
    return int(shape[0])
