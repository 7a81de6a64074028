"""Random changes of small pictures that leave their class as it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn import functional


@dataclass(frozen=True)
class RandomAffine:
    """Turn, scale and shift every picture of a batch by its own random amounts.

    Parameters
    ----------
    rotation : float, default=10
        Most degrees, either way.
    scale : tuple of float, default=(0.8, 1.2)
        Least and largest factor.
    shift : float, default=2
        Most pixels along each axis, either way.

    Examples
    --------
    >>> import torch
    >>> from transferable.deep import RandomAffine
    >>> pictures = torch.zeros(4, 1, 28, 28)
    >>> RandomAffine()(pictures, torch.Generator().manual_seed(0)).shape
    torch.Size([4, 1, 28, 28])
    """

    rotation: float = 10.0
    scale: tuple[float, float] = (0.8, 1.2)
    shift: float = 2.0

    def __call__(self, x: Tensor, generator: Generator) -> Tensor:
        """Changed copies of pictures of shape (n, channels, height, width)."""
        if x.ndim != 4:
            raise ValueError(
                f"RandomAffine changes pictures of shape (n, channels, height, width); got "
                f"{tuple(x.shape)}. Set augment=None for rows of numbers."
            )
        n, _, height, width = x.shape
        u = 2.0 * torch.rand(4, n, generator=generator, device=x.device, dtype=x.dtype) - 1.0
        angle = u[0] * math.radians(self.rotation)
        middle, spread = sum(self.scale) / 2, (self.scale[1] - self.scale[0]) / 2
        factor = 1.0 / (middle + spread * u[1])
        cos, sin = factor * torch.cos(angle), factor * torch.sin(angle)
        right, down = 2 * self.shift / width * u[2], 2 * self.shift / height * u[3]
        maps = torch.stack([cos, -sin, right, sin, cos, down], dim=1).view(n, 2, 3)
        grid = functional.affine_grid(maps, list(x.shape), align_corners=False)
        return functional.grid_sample(x, grid, align_corners=False)
