"""Networks of the rows of deep methods: AlexNet, and the blocks of Conv-M.

They are given to an estimator as functions, ``network=alexnet``, or named in ``settings.toml``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from transferable.deep.networks import Network, picture_channels


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
    channels = picture_channels(input_shape, "alexnet", 64)

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
    channels = picture_channels(input_shape, "convm", 8)
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
}
